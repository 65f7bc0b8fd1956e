"""One method, run again and again on the epochs of a timeline."""

from dataclasses import dataclass, replace
from types import TracebackType

from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray
from relocbench.runs.isolation.supervisor import MEMORY_LIMIT, Worker
from relocbench.runs.methods import Selector
from relocbench.runs.run_error import RunError
from relocbench.runs.selectors import MethodLike, as_selector, require_available, with_start
from relocbench.runs.solve import solve_here, warm_up


@dataclass(frozen=True, eq=False)
class Solved:
    """The result of a method.

    Attributes
    ----------
    home
        One server for each client that is present.
    y
        Mean delay of a publication with these homes.
    clusters
        The number of clusters that RELOC used or chose; None for other methods.
    """

    home: IntArray
    y: float
    clusters: int | None


class MethodRunner:
    """Runs a method on one instance after the other. An isolated method keeps its process.

    Parameters
    ----------
    method
        A selector, or a function.
    seed, time_limit
        As for every method.

    Raises
    ------
    InputError
        If there is no such method, or it is not available here.
    """

    def __init__(self, method: MethodLike, *, seed: int, time_limit: float) -> None:
        self.selector = as_selector(method)
        require_available([self.selector])
        self._seed, self._time_limit = seed, time_limit
        self._worker: Worker | None = None
        if self.selector.is_isolated:
            self._worker = Worker(threads=self.selector.threads, memory_limit=MEMORY_LIMIT)
        else:
            warm_up(self.selector)

    def __enter__(self) -> "MethodRunner":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._worker is not None:
            self._worker.close()

    def solve(self, instance: Instance, before: IntArray | None = None, clusters: int | None = None) -> Solved:
        """Run the method.

        Parameters
        ----------
        instance
            The problem.
        before
            The homes so far. A method that takes a start begins with them, unless its selector names another start.
        clusters
            The number of clusters of the last run. ``reloc[k=auto]`` tries this one, its double and its half.

        Returns
        -------
        Solved
            The homes.

        Raises
        ------
        InputError
            If the method does not support the instance.
        RunError
            If the run failed, or was stopped before it reported homes.
        """
        selector = self._prepared(before, clusters)
        if self._worker is None:
            result = solve_here(instance, selector, seed=self._seed, time_limit=self._time_limit)
            home, y, facts = result.home, result.y, result.solution.facts
        else:
            outcome = self._worker.run(instance, selector, seed=self._seed, time_limit=self._time_limit)
            if outcome.status == "error" or outcome.home is None or outcome.evaluation is None:
                raise RunError(str(self.selector), outcome)
            home, y, facts = outcome.home, outcome.evaluation.y, outcome.facts
        is_reloc = self.selector.method.name == "reloc" and "k" in facts
        return Solved(home, y, int(facts["k"]) if is_reloc else None)

    def _prepared(self, before: IntArray | None, clusters: int | None) -> Selector:
        selector = self.selector
        if before is not None and selector.start is None and selector.method.takes("start"):
            return with_start(selector, before)
        chooses = selector.method.name == "reloc" and selector.settings.get("k") == "auto"
        if clusters and chooses and "near" not in selector.settings:
            return replace(selector, settings={**selector.settings, "near": clusters})
        return selector
