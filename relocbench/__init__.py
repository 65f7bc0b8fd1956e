"""A workbench that tells how far from optimal topic allocations on edge servers are.

The names below are what the workbench offers to Python. Each is imported when it is first used, so that
``import relocbench`` is fast and loads no solver.
"""

import importlib
from typing import TYPE_CHECKING

from relocbench.runs.version import __version__

if TYPE_CHECKING:
    from relocbench.formulations.certificates.verification import verify
    from relocbench.instances.evaluation import evaluate
    from relocbench.instances.generators.generate import generate
    from relocbench.instances.instance import Instance
    from relocbench.reports.gate.check import check
    from relocbench.reports.study.study import study
    from relocbench.runs.certify import certify
    from relocbench.runs.solve import solve

__all__ = ["Instance", "__version__", "certify", "check", "evaluate", "generate", "solve", "study", "verify"]

# Where each name comes from, as the imports above say; a test compares the two.
_MODULES = {
    "Instance": "relocbench.instances.instance",
    "certify": "relocbench.runs.certify",
    "check": "relocbench.reports.gate.check",
    "evaluate": "relocbench.instances.evaluation",
    "generate": "relocbench.instances.generators.generate",
    "solve": "relocbench.runs.solve",
    "study": "relocbench.reports.study.study",
    "verify": "relocbench.formulations.certificates.verification",
}

if not TYPE_CHECKING:

    def __getattr__(name):
        if name not in _MODULES:
            raise AttributeError(f"module 'relocbench' has no attribute {name!r}")
        value = getattr(importlib.import_module(_MODULES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
