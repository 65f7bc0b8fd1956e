"""Checks whether the optional solver libraries are installed.

A method that needs such a library names it in its entry in :mod:`runs.methods` (``needs``), imports it inside its
functions, and calls :func:`require` first. A missing library then gives a clear message instead of an import error.
"""

import importlib.util

from relocbench.instances.errors import InputError

# How to install the solver libraries.
HOW = "pip install 'relocbench[solvers]'"


def missing(*modules: str) -> str | None:
    """Return which modules are not installed.

    Parameters
    ----------
    *modules
        Names of modules, as in an import statement.

    Returns
    -------
    str or None
        A message that names the missing modules and says how to install them; None if all modules are installed.
    """
    absent = [module for module in modules if importlib.util.find_spec(module) is None]
    return f"{' and '.join(absent)} not installed: {HOW}" if absent else None


def require(what: str, *modules: str) -> None:
    """Raise an error if a module is not installed.

    Parameters
    ----------
    what
        The method or the setting that needs the modules, for the message: ``method cpsat`` or ``solver scip``.
    *modules
        Names of modules, as in an import statement.

    Raises
    ------
    InputError
        If a module is not installed.
    """
    if reason := missing(*modules):
        raise InputError(what, reason)
