"""All runs of a benchmark, and what is asked of them again and again."""

from collections.abc import Sequence

from relocbench.reports.benchmark.assessment import Judged, Problem, can_prove
from relocbench.reports.benchmark.measures import solved_by_all
from relocbench.reports.pages.method_style import looks
from relocbench.runs.cross_check import Disagreement


class Results:
    """Runs of methods on problems, all under the same limits.

    Parameters
    ----------
    runs
        What :func:`reports.benchmark.assessment.judge` returns; at least one.
    wrong
        The wrong answers among them.
    """

    def __init__(self, runs: Sequence[Judged], wrong: Sequence[Disagreement]) -> None:
        self.runs, self.wrong = runs, wrong
        self.methods = list(dict.fromkeys(run.row.selector for run in runs))
        self.provers = can_prove(runs)
        self.common = solved_by_all(runs, self.provers)
        self.seeds = len({run.row.seed for run in runs})
        self.time_limit = runs[0].row.time_limit
        self.memory_limit = runs[0].row.memory_limit
        self.looks = looks(self.methods)
        self._races: dict[Problem, list[Judged]] = {}
        for run in runs:
            self._races.setdefault(run.problem, []).append(run)
        self.problems = list(self._races)

    def of(self, method: str, problems: set[Problem] | None = None) -> list[Judged]:
        """Return the runs of a method, perhaps on some problems only."""
        mine = [run for run in self.runs if run.row.selector == method]
        return mine if problems is None else [run for run in mine if run.problem in problems]

    def race(self, problem: Problem) -> list[Judged]:
        """Return all runs on a problem."""
        return self._races[problem]

    @property
    def optima_known(self) -> int:
        """Of how many problems the best homes known are proved to be optimal, here or in the library."""
        return len({run.problem for run in self.runs if run.optimum_known})


def several(number: int, what: str) -> str:
    """Return a number of things, in words."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
