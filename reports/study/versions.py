"""The versions that the runs of a study were made with, which may differ from those of the moment."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from relocbench.instances.errors import plural
from relocbench.reports.pages.page import MACHINE
from relocbench.runs.run_store import Row

# A run of which the version is not known.
UNKNOWN = "not known"
# What describes the machine rather than the software. Where it differs, the costs are comparable and the times are not.
HARDWARE = tuple(name for name in MACHINE if name not in ("relocbench", "python"))


@dataclass(frozen=True)
class Versions:
    """The versions of runs.

    Attributes
    ----------
    common
        The versions and the facts about the machine in which all runs agree.
    differing
        For everything else, each value with the number of its runs.
    code
        For each method, the versions of its code with the number of their runs.
    """

    common: dict[str, str]
    differing: dict[str, dict[str, int]]
    code: dict[str, dict[str, int]]

    @property
    def warning(self) -> str | None:
        """A warning that the study mixes versions; None if it does not."""
        packages = {name: counts for name, counts in self.differing.items() if name not in HARDWARE}
        mixed = packages | {selector: counts for selector, counts in self.code.items() if len(counts) > 1}
        if not mixed:
            return None
        listed = "; ".join(
            f"{name}: " + ", ".join(f"{value} ({plural(count, 'run')})" for value, count in counts.items())
            for name, counts in mixed.items()
        )
        return f"**This study mixes versions.** {listed}. Its numbers may not come from one version."


def versions_of(rows: Iterable[Row]) -> Versions:
    """Return the versions of runs.

    Parameters
    ----------
    rows
        The runs.

    Returns
    -------
    Versions
        What they agree in, and the counts of what they differ in.
    """
    every = list(rows)
    names = dict.fromkeys(name for row in every for name in row.versions)
    counts = {name: dict(Counter(row.versions.get(name, UNKNOWN) for row in every)) for name in names}
    code: dict[str, Counter[str]] = {}
    for row in every:
        if row.code:
            code.setdefault(row.selector, Counter())[row.code] += 1
    return Versions(
        common={name: next(iter(found)) for name, found in counts.items() if len(found) == 1},
        differing={name: found for name, found in counts.items() if len(found) > 1},
        code={selector: dict(found) for selector, found in code.items()},
    )
