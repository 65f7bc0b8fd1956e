"""All runs of a benchmark, with the selections that its page uses repeatedly."""

from collections.abc import Sequence

from relocbench.reports.benchmark.assessment import AssessedRun, Problem, proving_methods
from relocbench.reports.benchmark.measures import solved_by_all
from relocbench.reports.pages.method_style import styles
from relocbench.runs.cross_check import Disagreement


class Results:
    """The runs of methods on problems, all under the same limits.

    Parameters
    ----------
    runs
        The result of :func:`reports.benchmark.assessment.assess`; at least one run.
    wrong
        The wrong answers among them.
    """

    def __init__(self, runs: Sequence[AssessedRun], wrong: Sequence[Disagreement]) -> None:
        self.runs, self.wrong = runs, wrong
        self.methods = list(dict.fromkeys(run.row.selector for run in runs))
        self.provers = proving_methods(runs)
        self.common = solved_by_all(runs, self.provers)
        self.seeds = len({run.row.seed for run in runs})
        self.time_limit = runs[0].row.time_limit
        self.memory_limit = runs[0].row.memory_limit
        self.styles = styles(self.methods)
        self._by_problem: dict[Problem, list[AssessedRun]] = {}
        for run in runs:
            self._by_problem.setdefault(run.problem, []).append(run)
        self.problems = list(self._by_problem)

    def of(self, method: str, problems: set[Problem] | None = None) -> list[AssessedRun]:
        """Return the runs of a method.

        Parameters
        ----------
        method
            The selector.
        problems
            The problems to select; None for all.

        Returns
        -------
        list of AssessedRun
            The runs.
        """
        own = [run for run in self.runs if run.row.selector == method]
        return own if problems is None else [run for run in own if run.problem in problems]

    def on(self, problem: Problem) -> list[AssessedRun]:
        """Return all runs on a problem.

        Parameters
        ----------
        problem
            An instance and a seed.

        Returns
        -------
        list of AssessedRun
            The runs of all methods.
        """
        return self._by_problem[problem]

    @property
    def optima_known(self) -> int:
        """The number of problems whose best known objective is proved to be optimal, here or in the library."""
        return len({run.problem for run in self.runs if run.optimum_known})


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    Parameters
    ----------
    number
        The number.
    noun
        The noun in the singular.

    Returns
    -------
    str
        A text such as ``1 problem`` or ``2 problems``.
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
