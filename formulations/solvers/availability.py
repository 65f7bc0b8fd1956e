"""Whether the solvers are here; a missing one is a sentence, not an import error."""

import importlib.util

from relocbench.instances.errors import InputError

HOW = "pip install 'relocbench[solvers]'"


def missing(*modules: str) -> str | None:
    """Return which of the modules are not installed and how to get them; None where all are."""
    absent = [module for module in modules if importlib.util.find_spec(module) is None]
    return f"{' and '.join(absent)} not installed: {HOW}" if absent else None


def require(what: str, *modules: str) -> None:
    """Refuse to go on without the modules.

    Raises
    ------
    InputError
        If one is missing; ``what`` is the method and the setting that need it.
    """
    if reason := missing(*modules):
        raise InputError(what, reason)
