"""A workbench that tells how far from optimal topic allocations on edge servers are.

The names below are what the workbench offers to Python; each is imported when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from relocbench.version import __version__

if TYPE_CHECKING:
    from instances.evaluation import evaluate
    from instances.instance import Instance
    from relocbench.generating import generate
    from relocbench.solving import solve

_PLACES = {
    "Instance": "instances.instance",
    "evaluate": "instances.evaluation",
    "generate": "relocbench.generating",
    "solve": "relocbench.solving",
}

__all__ = ["Instance", "__version__", "evaluate", "generate", "solve"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'relocbench' has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return __all__
