"""Runs in the light of each other: what is known of an instance, and which answers are wrong."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from relocbench.formulations.incumbent import slack
from relocbench.instances.library.library import Library
from relocbench.runs.cross_check import Disagreement, by_instance
from relocbench.runs.methods import METHODS
from relocbench.runs.run_store import Row
from relocbench.runs.sweep import group_of

# How a run can end, best first. A wrong answer and a refusal are errors in the rows, and something else to a reader.
OUTCOMES = ("optimal", "feasible", "time_limit", "memory_limit", "refused", "error", "wrong")

Problem = tuple[str, int]


@dataclass(frozen=True, eq=False)
class Judged:
    """A run, and what is known of its instance from everybody.

    Attributes
    ----------
    row
        The run.
    best
        The least cost of homes known: of this benchmark, or of the library; None where nobody has any.
    bound
        The highest bound that is believed, of this benchmark or of the library.
    wrong
        Why its answer is not believed; empty if it is.
    library
        The name of the instance in the library, if it is there.
    """

    row: Row
    best: float | None
    bound: float | None
    wrong: str = ""
    library: str | None = None

    @property
    def problem(self) -> Problem:
        """What was to be solved: an instance and a seed."""
        return self.row.hash, self.row.seed

    @property
    def group(self) -> str:
        """What its instance belongs to."""
        return group_of(self.row)

    @property
    def proved(self) -> bool:
        """Whether it ended with a proof that nobody contradicts."""
        return self.outcome == "optimal"

    @property
    def outcome(self) -> str:
        """How it ended: one of ``OUTCOMES``."""
        if self.wrong:
            return "wrong"
        return "refused" if self.row.failure == "refused" else self.row.status

    @property
    def optimum_known(self) -> bool:
        """Whether the best homes known are proved to be optimal, by anybody."""
        return self.best is not None and self.bound is not None and self.bound >= self.best - slack(self.best)

    @property
    def excess(self) -> float | None:
        """How far its homes are above the best known, relative to these."""
        return relative(self.row.objective, self.best)

    @property
    def root_gap(self) -> float | None:
        """How far the bound of its first relaxation is below the best homes known, relative to these."""
        return _below(self.best, self.row.facts.get("root_bound"))

    @property
    def final_gap(self) -> float | None:
        """How far its last bound is below the best homes known, relative to these; None if it is not believed."""
        return None if self.outcome in ("wrong", "error") else _below(self.best, self.row.bound)

    @property
    def seconds_or_limit(self) -> float:
        """How long the proof took; the time limit where there is none."""
        return min(self.row.seconds, self.row.time_limit) if self.proved else self.row.time_limit


def judge(rows: Sequence[Row], wrong: Sequence[Disagreement], shelf: Library | None = None) -> list[Judged]:
    """Return the runs in the light of each other, of the library, and of the wrong answers that were found."""
    known = {entry.instance: entry for entry in (shelf or Library()).entries.values()}
    why = {(one.hash, one.methods[0], one.seed): one.message for one in wrong}
    judged: dict[tuple[str, str, int], Judged] = {}
    for key, part in by_instance(rows).items():
        costs = [row.objective for row in part if row.objective is not None]
        bounds = [
            row.bound
            for row in part
            if row.bound is not None and row.status != "error" and (key, row.selector, row.seed) not in why
        ]
        if (certified := known.get(key)) is not None:
            costs.append(certified.objective)
            bounds.append(certified.bound)
        best, bound = min(costs, default=None), max(bounds, default=None)
        name = None if certified is None else certified.name
        for row in part:
            run = key, row.selector, row.seed
            judged[run] = Judged(row, best, bound, why.get(run, ""), name)
    return [judged[row.hash, row.selector, row.seed] for row in rows]


def relative(cost: float | None, best: float | None) -> float | None:
    """Return how far a cost is above the best, relative to it."""
    if cost is None or best is None:
        return None
    return 0.0 if cost <= best else (cost - best) / best if best > 0 else math.inf


def can_prove(runs: Sequence[Judged]) -> list[str]:
    """Return the methods that prove something: those registered so, and others that have claimed a bound."""
    found: dict[str, bool] = {}
    for run in runs:
        method = METHODS.get(run.row.selector.partition("[")[0])
        told = run.row.bound is not None or run.row.status == "optimal"
        found[run.row.selector] = found.get(run.row.selector, False) or (
            told if method is None else method.proves != "nothing"
        )
    return [selector for selector, proves in found.items() if proves]


def _below(best: float | None, bound: float | None) -> float | None:
    if best is None or bound is None or not math.isfinite(bound):
        return None
    return 0.0 if bound >= best else (best - bound) / best if best > 0 else math.inf
