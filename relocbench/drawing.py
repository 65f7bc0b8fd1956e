"""Reports of finished runs, drawn by the rooms above: they register what they draw, this room never imports them."""

import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

GROUP = "relocbench.reports"


@dataclass(frozen=True)
class Drawn:
    """What was written.

    Attributes
    ----------
    data, page
        The Parquet file, and the page; None where there is none.
    missing
        Why there is no page.
    """

    data: Path | None
    page: Path | None
    missing: str | None = None


def drawer(word: str) -> Callable[..., Drawn]:
    """Return what draws the report of a command; where nobody has registered, it draws nothing and says so."""
    for point in importlib.metadata.entry_points(group=GROUP, name=word):
        found: Callable[..., Drawn] = point.load()
        return found
    return lambda *given, **more: Drawn(None, None, f"no report: nothing is registered for {word}")
