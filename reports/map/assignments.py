"""Assignments to look at: from solution files, from certificates, from the library, from methods."""

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
from relocbench.runs.solve import solve


@dataclass(frozen=True, eq=False)
class Assignment:
    """Homes for an instance, and where they are from.

    Attributes
    ----------
    label
        What it is called.
    home
        One server per client.
    """

    instance: Instance
    label: str
    home: IntArray

    @cached_property
    def cost(self) -> Evaluation:
        """What it costs."""
        return evaluate(self.instance, self.home)

    @cached_property
    def distance(self) -> float:
        """How far a client is from its home on average, in km."""
        return mean_distance(self.instance, self.home)


@dataclass(frozen=True)
class Known:
    """What no assignment costs less than: ``bound``, by ``whom``; ``optimal`` if the best homes known cost that."""

    bound: float
    optimal: bool
    whom: str


def from_file(path: Path, instance: Instance) -> tuple[Assignment, Known | None]:
    """Read a solution or a certificate; a certificate is verified, and then its bound is known."""
    offer = read_offer(path, instance)
    if not isinstance(offer, Certificate):
        return Assignment(instance, f"{name_of(offer.method)}, seed {offer.seed} ({path.name})", offer.home), None
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
    known = Known(rounded_down(verdict.bound), verdict.status == "optimal", f"the certificate {path.name}")
    return Assignment(instance, label, home), known


def from_library(instance: Instance, shelf: Library | None = None) -> tuple[Assignment, Known] | None:
    """Return the best homes of the library and their bound, if the instance is there."""
    shelf = shelf or Library()
    entry = next((one for one in shelf.entries.values() if one.instance == instance.hash), None)
    if entry is None:
        return None
    label = "optimal (library)" if entry.status == "optimal" else "best known (library)"
    home = shelf.best_home(entry.name)
    return Assignment(instance, label, home), Known(entry.bound, entry.status == "optimal", "the library's certificate")


def from_method(selector: str, instance: Instance, seed: int, time_limit: float) -> Assignment:
    """Run a method."""
    result = solve(instance, selector, seed=seed, time_limit=time_limit)
    return Assignment(instance, name_of(str(result.selector)), result.solution.home)


def gather(
    instance: Instance, files: Sequence[Path], methods: Sequence[str], seed: int, time_limit: float
) -> tuple[list[Assignment], Known | None]:
    """Return what was asked for, and the highest bound known; of a library instance its best homes come first.

    Where nothing was asked for and nothing is known, clients go to the nearest server.
    """
    found: list[Assignment] = []
    bounds: list[Known] = []
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
