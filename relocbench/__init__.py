"""A workbench that tells how far from optimal topic allocations on edge servers are.

The names below are what the workbench offers to Python; each is imported when it is first used. Rooms above this one
add theirs as entry points ``relocbench.names``, as they do with commands.
"""

import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any

from relocbench.version import __version__

if TYPE_CHECKING:
    from relocbench.certifying import certify
    from relocbench.formulations.certificates.verification import verify
    from relocbench.generating import generate
    from relocbench.instances.evaluation import evaluate
    from relocbench.instances.instance import Instance
    from relocbench.solving import solve

_PLACES = {
    "Instance": "relocbench.instances.instance",
    "certify": "relocbench.certifying",
    "evaluate": "relocbench.instances.evaluation",
    "generate": "relocbench.generating",
    "solve": "relocbench.solving",
    "verify": "relocbench.formulations.certificates.verification",
}

__all__ = ["Instance", "__version__", "certify", "evaluate", "generate", "solve", "verify"]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(importlib.import_module(_PLACES[name]), name)
    # What Python itself asks every module for is not looked up among installed packages.
    if not name.startswith("_"):
        for point in importlib.metadata.entry_points(group="relocbench.names", name=name):
            return point.load()
    raise AttributeError(f"module 'relocbench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *importlib.metadata.entry_points(group="relocbench.names").names})
