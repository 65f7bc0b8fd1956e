"""Assess runs: combine each run with the best objective and bound known of its instance, and mark wrong answers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from relocbench.formulations.incumbent import slack
from relocbench.instances.gap import excess, gap
from relocbench.instances.library.library import Library
from relocbench.runs.cross_check import Disagreement, by_instance
from relocbench.runs.methods import METHODS
from relocbench.runs.run_store import Row
from relocbench.runs.sweep import group_of

# The ways in which a run can end, best first. The rows store wrong answers and refusals as errors; pages show them
# separately.
OUTCOMES = ("optimal", "claimed", "feasible", "time_limit", "memory_limit", "refused", "error", "wrong")

# The content hash of an instance, and a seed.
Problem = tuple[str, int]


@dataclass(frozen=True, eq=False)
class AssessedRun:
    """A run, and what all runs and the library prove about its instance.

    Attributes
    ----------
    row
        The run.
    best
        The least objective known, from this benchmark or the library; None if there are no homes.
    bound
        The highest lower bound from this benchmark or the library; bounds of wrong answers and of runs that ended as
        ``claimed`` are not used.
    wrong
        Why the answer of the run is wrong; empty if it is not.
    library
        The name of the instance in the library; None if it is not there.
    """

    row: Row
    best: float | None
    bound: float | None
    wrong: str = ""
    library: str | None = None

    @property
    def problem(self) -> Problem:
        """The problem: an instance and a seed."""
        return self.row.hash, self.row.seed

    @property
    def group(self) -> str:
        """The group of the instance."""
        return group_of(self.row)

    @property
    def proved(self) -> bool:
        """Whether the run proved optimality and is not a wrong answer."""
        return self.outcome == "optimal"

    @property
    def outcome(self) -> str:
        """How the run ended: one of ``OUTCOMES``."""
        if self.wrong:
            return "wrong"
        return "refused" if self.row.failure == "refused" else self.row.status

    @property
    def optimum_known(self) -> bool:
        """Whether the best known objective is proved to be optimal, here or in the library."""
        return self.best is not None and self.bound is not None and self.bound >= self.best - slack(self.best)

    @property
    def excess(self) -> float | None:
        """The excess of the objective over the best known objective."""
        if self.row.objective is None or self.best is None:
            return None
        return excess(self.row.objective, self.best)

    @property
    def root_gap(self) -> float | None:
        """The gap between the best known objective and the bound of the root relaxation."""
        return _gap_to(self.best, self.row.facts.get("root_bound"))

    @property
    def final_gap(self) -> float | None:
        """The gap between the best known objective and the final bound; None for errors and wrong answers."""
        return None if self.outcome in ("wrong", "error") else _gap_to(self.best, self.row.bound)

    @property
    def seconds_or_limit(self) -> float:
        """The seconds to the proof, or the time limit if there is no proof."""
        return min(self.row.seconds, self.row.time_limit) if self.proved else self.row.time_limit


def assess(rows: Sequence[Row], wrong: Sequence[Disagreement], library: Library | None = None) -> list[AssessedRun]:
    """Assess runs.

    Parameters
    ----------
    rows
        The runs.
    wrong
        The wrong answers among them, from :func:`runs.cross_check.wrong_answers`.
    library
        The library; by default that of the package.

    Returns
    -------
    list of AssessedRun
        One for each row, in the same order.
    """
    known = {entry.instance: entry for entry in (library or Library()).entries.values()}
    reasons = {(one.hash, one.methods[0], one.seed): one.message for one in wrong}
    assessed: dict[tuple[str, str, int], AssessedRun] = {}
    for key, part in by_instance(rows).items():
        objectives = [row.objective for row in part if row.objective is not None]
        bounds = [
            row.bound
            for row in part
            # The bound of a claim is not supported by the tolerances of its solver, so it proves nothing.
            # Neither does that of a method of other people, which nobody has checked.
            if row.bound is not None
            and row.status not in ("error", "claimed")
            and row.selector.partition("[")[0] in METHODS
            and (key, row.selector, row.seed) not in reasons
        ]
        if (certified := known.get(key)) is not None:
            objectives.append(certified.objective)
            bounds.append(certified.bound)
        best, bound = min(objectives, default=None), max(bounds, default=None)
        name = None if certified is None else certified.name
        for row in part:
            run = key, row.selector, row.seed
            assessed[run] = AssessedRun(row, best, bound, reasons.get(run, ""), name)
    return [assessed[row.hash, row.selector, row.seed] for row in rows]


def proving_methods(runs: Sequence[AssessedRun]) -> list[str]:
    """Return the methods that prove optima or bounds.

    Parameters
    ----------
    runs
        The runs of a benchmark.

    Returns
    -------
    list of str
        Selectors of the methods that are registered as proving something, and of unregistered methods that claimed a
        bound.
    """
    found: dict[str, bool] = {}
    for run in runs:
        method = METHODS.get(run.row.selector.partition("[")[0])
        claims = run.row.bound is not None or run.row.status in ("optimal", "claimed")
        found[run.row.selector] = found.get(run.row.selector, False) or (
            claims if method is None else method.proves != "nothing"
        )
    return [selector for selector, proves in found.items() if proves]


def _gap_to(best: float | None, bound: float | None) -> float | None:
    return None if bound is None or not math.isfinite(bound) else gap(best, bound)
