"""The optional packages that pages need."""

import importlib.util

from relocbench.instances.errors import InputError

PACKAGES = ("jinja2", "markupsafe", "plotly")


def require(*packages: str, install: str = "'relocbench[reports]'") -> None:
    """Check that packages are installed.

    Parameters
    ----------
    *packages
        The packages; by default those of the extra ``reports``.
    install
        What to give to ``pip install`` if one is missing.

    Raises
    ------
    InputError
        If a package is missing. The message says how to install it.
    """
    missing = [name for name in packages or PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError("reports", f"expected {' and '.join(missing)}; install with: pip install {install}")
