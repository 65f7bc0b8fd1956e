"""What gaps are measured against: the proven optimum, or where none is known the certified bound."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from relocbench.formulations.incumbent import slack
from relocbench.instances.library.library import Library
from relocbench.reports.study.subjects import Subject
from relocbench.runs.methods import METHODS
from relocbench.runs.run_store import Row
from relocbench.runs.selectors import Selector, parse_selector

OPTIMUM, BOUND = "proven optimum", "certified bound"
# Up to this many clients the exact method comes first; beyond, it seldom ends in time.
EXACT, EXACT_CLIENTS = "branch-price", 30
CERTIFIED = "bound"


@dataclass(frozen=True)
class Reference:
    """What is proved of an instance.

    Attributes
    ----------
    kind
        ``proven optimum`` or ``certified bound``.
    value
        ``ΣD`` that gaps are measured against.
    bound
        What no assignment is below; the value, but for what a proof leaves open (10⁻⁶).
    by
        Who says so.
    """

    kind: str
    value: float
    bound: float
    by: str


def from_library(subjects: Iterable[Subject]) -> dict[str, Reference]:
    """Return what the library proves, by the instances' hashes."""
    shelf = Library()
    entries = {entry.instance: entry for entry in shelf.entries.values()}
    found = {}
    for subject in subjects:
        if (entry := entries.get(subject.instance.hash)) is not None:
            optimal = entry.status == "optimal"
            value = entry.objective if optimal else entry.bound
            by = f"library version {shelf.version}, certificate"
            found[entry.instance] = Reference(OPTIMUM if optimal else BOUND, value, entry.bound, by)
    return found


def from_rows(rows: Iterable[Row]) -> dict[str, Reference]:
    """Return what runs prove: optima of any method that proves them, bounds of the one that certifies them."""
    found: dict[str, Reference] = {}
    for row in rows:
        if row.objective is None or row.bound is None or row.failure == "claim":
            continue
        if row.status == "optimal":
            told = Reference(OPTIMUM, row.objective, row.bound, row.selector)
        elif row.selector.partition("[")[0] == CERTIFIED:
            told = Reference(BOUND, row.bound, row.bound, row.selector)
        else:
            continue  # a bound that a solver states on the way, and nobody has checked
        found[row.hash] = stronger(found.get(row.hash), told)
    return found


def stronger(one: Reference | None, other: Reference) -> Reference:
    """Return the reference that says more: an optimum, else the higher bound; the first if they say the same."""
    if one is None or (one.kind, other.kind) == (BOUND, OPTIMUM):
        return other
    return other if one.kind == other.kind == BOUND and other.bound > one.bound else one


def merged(*parts: Mapping[str, Reference]) -> dict[str, Reference]:
    """Return the strongest reference of each instance."""
    found: dict[str, Reference] = {}
    for part in parts:
        for key, told in part.items():
            found[key] = stronger(found.get(key), told)
    return found


def wanted(
    subjects: Sequence[Subject], known: Mapping[str, Reference], tried_exact: bool
) -> list[tuple[Subject, Selector]]:
    """Return which instances need a run to have a reference, and of what.

    First the exact method, on small instances whose optimum is not known, even if a bound is; then the bound, where
    there is nothing yet.
    """
    if tried_exact:
        return [(subject, parse_selector(CERTIFIED)) for subject in subjects if subject.instance.hash not in known]
    if METHODS[EXACT].unavailable() is not None:
        return []
    proved = {key for key, told in known.items() if told.kind == OPTIMUM}
    return [
        (subject, parse_selector(EXACT))
        for subject in subjects
        if subject.instance.n_clients <= EXACT_CLIENTS and subject.instance.hash not in proved
    ]


def contradictions(rows: Iterable[Row], references: Mapping[str, Reference]) -> list[str]:
    """Return for each verified cost below what is said to be proved one line: one of the two is wrong."""
    found = []
    for row in rows:
        told = references.get(row.hash)
        if told is not None and row.objective is not None and row.objective < told.bound - slack(told.bound):
            found.append(
                f"{row.selector} (seed {row.seed}) has homes of {row.instance} that cost {row.objective!r}, "
                f"below the {told.kind} {told.bound!r} by {told.by}"
            )
    return found
