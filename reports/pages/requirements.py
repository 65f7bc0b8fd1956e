"""The optional packages that pages need."""

import importlib.util

from relocbench.instances.errors import InputError

PACKAGES = ("jinja2", "markupsafe", "plotly")


def require() -> None:
    """Check that the packages of the extra ``reports`` are installed.

    Raises
    ------
    InputError
        If a package is missing. The message says how to install it.
    """
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            "reports", f"expected {' and '.join(missing)}; install with: pip install 'relocbench[reports]'"
        )
