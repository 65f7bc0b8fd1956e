"""The assignments that a map shows: from solution files, certificates, the library, and methods."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from relocbench.formulations.certificates.certificate import Certificate
from relocbench.formulations.certificates.verification import rounded_down, verify
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import Evaluation, checked_home, evaluate, mean_distance
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.library.library import Library
from relocbench.reports.pages.method_style import name_of
from relocbench.runs.library_updates import read_offer
from relocbench.runs.selectors import MethodLike
from relocbench.runs.solve import solve


@dataclass(frozen=True, eq=False)
class Assignment:
    """Homes for the clients of an instance.

    Attributes
    ----------
    instance
        The instance.
    label
        The name of the assignment on the page.
    home
        One server per client.
    """

    instance: Instance
    label: str
    home: IntArray

    @cached_property
    def cost(self) -> Evaluation:
        """The evaluation of the homes."""
        return evaluate(self.instance, self.home)

    @cached_property
    def distance(self) -> float:
        """The mean distance from a client to its home, in km."""
        return mean_distance(self.instance, self.home)


@dataclass(frozen=True)
class KnownBound:
    """A proved lower bound of an instance.

    Attributes
    ----------
    bound
        The bound on ``ΣD``.
    optimal
        Whether an assignment with this objective is known, so that the bound is the optimum.
    source
        The source of the proof.
    """

    bound: float
    optimal: bool
    source: str


def from_file(path: Path, instance: Instance) -> tuple[Assignment, KnownBound | None]:
    """Read homes or a certificate.

    Parameters
    ----------
    path
        The file.
    instance
        The instance that it belongs to.

    Returns
    -------
    Assignment
        The homes.
    KnownBound or None
        The bound of a certificate, which is verified first; None for other homes or if it proves nothing.

    Raises
    ------
    InputError
        If the file cannot be read or belongs to another instance.
    """
    offer = read_offer(path, instance)
    if not isinstance(offer, Certificate):
        label = f"{name_of(offer.method)}, seed {offer.seed} ({path.name})" if offer.method else path.name
        return Assignment(instance, label, offer.home), None
    if offer.instance != instance.hash:
        raise InputError(str(path), f"expected a certificate of the instance given, got one of {offer.instance[:16]}…")
    try:
        home = checked_home(instance, offer.home)
    except InputError as error:
        raise error.inside(str(path)) from error
    verdict = verify(instance, offer)
    label = f"certificate ({path.name})"
    if not verdict.proved or verdict.bound is None:
        return Assignment(instance, f"{label}, which proves nothing", home), None
    known = KnownBound(rounded_down(verdict.bound), verdict.status == "optimal", f"the certificate {path.name}")
    return Assignment(instance, label, home), known


def from_library(instance: Instance, library: Library | None = None) -> tuple[Assignment, KnownBound] | None:
    """Return the best homes that the library has for an instance.

    Parameters
    ----------
    instance
        The instance.
    library
        The library; by default that of the package.

    Returns
    -------
    tuple or None
        The homes and the bound; None if the library does not have the instance.
    """
    library = library or Library()
    entry = next((one for one in library.entries.values() if one.instance == instance.hash), None)
    if entry is None:
        return None
    label = "optimal (library)" if entry.status == "optimal" else "best known (library)"
    home = library.best_home(entry.name)
    return Assignment(instance, label, home), KnownBound(
        entry.bound, entry.status == "optimal", "the library's certificate"
    )


def from_method(method: MethodLike, instance: Instance, seed: int, time_limit: float) -> Assignment:
    """Run a method.

    Parameters
    ----------
    method, instance, seed, time_limit
        The run.

    Returns
    -------
    Assignment
        The homes that the method returns.
    """
    result = solve(instance, method, seed=seed, time_limit=time_limit)
    return Assignment(instance, name_of(str(result.selector)), result.solution.home)


def gather(
    instance: Instance, files: Sequence[Path], methods: Sequence[MethodLike], seed: int, time_limit: float
) -> tuple[list[Assignment], KnownBound | None]:
    """Collect the assignments of a map.

    Parameters
    ----------
    instance
        The instance. If the library has it, its best homes come first.
    files
        Files with homes: solutions, certificates, lists.
    methods
        Methods to run. Without any other assignment, ``nearest`` is run.
    seed, time_limit
        For the methods.

    Returns
    -------
    list of Assignment
        The assignments.
    KnownBound or None
        The highest bound known; None if there is none.
    """
    found: list[Assignment] = []
    bounds: list[KnownBound] = []
    if (best := from_library(instance)) is not None:
        found.append(best[0])
        bounds.append(best[1])
    for path in files:
        assignment, known = from_file(path, instance)
        found.append(assignment)
        bounds += [] if known is None else [known]
    chosen = methods or ([] if found else ["nearest"])
    found += [from_method(selector, instance, seed, time_limit) for selector in chosen]
    return found, max(bounds, key=lambda known: known.bound, default=None)
