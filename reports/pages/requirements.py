"""What pages need that may not be installed."""

import importlib.util

from relocbench.instances.errors import InputError

PACKAGES = ("jinja2", "markupsafe", "plotly")


def require() -> None:
    """Say in one line what to install, if anything is missing."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            "reports", f"expected {' and '.join(missing)}; install with: pip install 'relocbench[reports]'"
        )
