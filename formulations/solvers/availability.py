"""Checks whether the optional solver libraries are installed.

A method that needs such a library names it in its entry in :mod:`runs.methods` (``needs``), imports it inside its
functions, and calls :func:`require` first. A missing library then gives a clear message instead of an import error.
"""

import importlib.util

from relocbench.instances.errors import InputError

# How to install the solver libraries.
HOW = "pip install 'relocbench[solvers]'"
# The solvers that a parameter ``solver`` may name, with their module and, for those that are not in the extra
# ``solvers`` because they need a licence, the package to install.
SOLVERS = {
    "highs": ("highspy", ""),
    "scip": ("pyscipopt", ""),
    "cbc": ("pulp", ""),
    "gurobi": ("gurobipy", "gurobipy"),
    "cplex": ("cplex", "cplex"),
    "xpress": ("xpress", "xpress"),
    "copt": ("coptpy", "coptpy"),
}


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


def missing_solver(name: str) -> str | None:
    """Return why a solver cannot be used.

    Parameters
    ----------
    name
        The solver, one of ``SOLVERS``.

    Returns
    -------
    str or None
        What to install; None if the solver's library is installed. Whether there is a licence shows only when it runs.
    """
    module, package = SOLVERS[name]
    if not package:
        return missing(module)
    if importlib.util.find_spec(module) is not None:
        return None
    return f"{module} not installed: pip install {package}, and a licence (without one: small models only)"


def require_solver(name: str) -> None:
    """Raise an error if a solver is not installed.

    Parameters
    ----------
    name
        The solver, one of ``SOLVERS``.

    Raises
    ------
    InputError
        If its library is not installed.
    """
    if reason := missing_solver(name):
        raise InputError(f"solver {name}", reason)
