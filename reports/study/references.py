"""The references of a study: the proven optimum of an instance or, where none is known, a certified bound."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from relocbench.formulations.incumbent import slack
from relocbench.instances.library.library import Library
from relocbench.reports.study.subjects import Subject
from relocbench.runs.cross_check import LIBRARY, wrong_answers
from relocbench.runs.methods import METHODS, Selector
from relocbench.runs.run_store import Row
from relocbench.runs.selectors import parse_selector

OPTIMUM = "proven optimum"
BOUND = "certified bound"
# The exact method runs first on instances of up to this many clients. On larger ones it rarely finishes in time.
EXACT = "branch-price"
EXACT_CLIENTS = 30
# The method whose bounds are certified.
CERTIFIED = "bound"


@dataclass(frozen=True)
class Reference:
    """The cost that the excess of runs on an instance is measured against.

    Attributes
    ----------
    kind
        ``proven optimum`` or ``certified bound``.
    value
        The reference cost ``ΣD``.
    bound
        A lower bound on the objective of every assignment. It equals the value up to the tolerance of a proof of
        optimality (10⁻⁶).
    by
        The source of the proof.
    """

    kind: str
    value: float
    bound: float
    by: str


def from_library(subjects: Iterable[Subject]) -> dict[str, Reference]:
    """Return the references that the library proves.

    Parameters
    ----------
    subjects
        The instances of the study.

    Returns
    -------
    dict
        The references by hash, for the instances that the library holds.
    """
    library = Library()
    entries = {entry.instance: entry for entry in library.entries.values()}
    found = {}
    for subject in subjects:
        if (entry := entries.get(subject.instance.hash)) is not None:
            optimal = entry.status == "optimal"
            value = entry.objective if optimal else entry.bound
            by = f"library version {library.version}, certificate"
            found[entry.instance] = Reference(OPTIMUM if optimal else BOUND, value, entry.bound, by)
    return found


def from_rows(rows: Iterable[Row]) -> dict[str, Reference]:
    """Return the references that runs prove.

    Parameters
    ----------
    rows
        Runs of any methods.

    Returns
    -------
    dict
        The references by hash: optima of every method that proves them, and bounds of the method that certifies them.
    """
    found: dict[str, Reference] = {}
    for row in rows:
        if row.objective is None or row.bound is None or row.failure == "claim":
            continue
        if row.status == "optimal":
            reference = Reference(OPTIMUM, row.objective, row.bound, row.selector)
        elif row.selector.partition("[")[0] == CERTIFIED:
            reference = Reference(BOUND, row.bound, row.bound, row.selector)
        else:
            continue  # The bound of a solver that did not finish has not been verified.
        found[row.hash] = stronger(found.get(row.hash), reference)
    return found


def stronger(one: Reference | None, other: Reference) -> Reference:
    """Return the stronger of two references of an instance.

    Parameters
    ----------
    one
        A reference, or None if there is none yet.
    other
        Another reference.

    Returns
    -------
    Reference
        An optimum rather than a bound, the higher of two bounds, and the first if they are equally strong.
    """
    if one is None or (one.kind, other.kind) == (BOUND, OPTIMUM):
        return other
    return other if one.kind == other.kind == BOUND and other.bound > one.bound else one


def merged(*parts: Mapping[str, Reference]) -> dict[str, Reference]:
    """Return the strongest reference of each instance.

    Parameters
    ----------
    *parts
        References by hash.

    Returns
    -------
    dict
        The strongest references by hash.
    """
    found: dict[str, Reference] = {}
    for part in parts:
        for key, reference in part.items():
            found[key] = stronger(found.get(key), reference)
    return found


def wanted(
    subjects: Sequence[Subject], known: Mapping[str, Reference], tried_exact: bool
) -> list[tuple[Subject, Selector]]:
    """Return the runs that are needed to give every instance a reference.

    Parameters
    ----------
    subjects
        The instances of the study.
    known
        The references known so far, by hash.
    tried_exact
        False in the first pass, which runs the exact method on small instances without a proven optimum. True in the
        second pass, which computes a certified bound where there is no reference yet.

    Returns
    -------
    list
        An instance and a method for each run.
    """
    if tried_exact:
        return [(subject, parse_selector(CERTIFIED)) for subject in subjects if subject.instance.hash not in known]
    if METHODS[EXACT].unavailable() is not None:
        return []
    proved = {key for key, reference in known.items() if reference.kind == OPTIMUM}
    return [
        (subject, parse_selector(EXACT))
        for subject in subjects
        if subject.instance.n_clients <= EXACT_CLIENTS and subject.instance.hash not in proved
    ]


def contradictions(rows: Sequence[Row], references: Mapping[str, Reference]) -> list[str]:
    """Return the verified objectives that are below a proved or claimed bound, so that one of the two is wrong.

    Parameters
    ----------
    rows
        Runs of any methods.
    references
        The references by hash.

    Returns
    -------
    list of str
        One line for each contradiction.
    """
    found = []
    for row in rows:
        reference = references.get(row.hash)
        if reference is None or row.objective is None:
            continue
        if row.objective < reference.bound - slack(reference.bound):
            found.append(
                f"{row.selector} (seed {row.seed}) has homes of {row.instance} that cost {row.objective!r}, "
                f"below the {reference.kind} {reference.bound!r} by {reference.by}"
            )
    # A bound that is no reference, such as one of a method of other people, is held to all costs as well.
    sources = {(key, reference.by) for key, reference in references.items()}
    found += [
        f"{one.message} ({one.instance}, seed {one.seed})"
        for one in wrong_answers(rows)
        if one.methods[0] != LIBRARY and (one.hash, one.methods[0]) not in sources
    ]
    return found
