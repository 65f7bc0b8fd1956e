"""Run one method on one instance, and evaluate the homes that it returns.

:func:`solve` is for users. It isolates every method that could harm the calling process: exact methods, whose solvers
may crash, and all code of other people. :func:`solve_here` runs any method in the calling process; the worker process
of an isolated run calls it.
"""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from relocbench.instances.checks import checked_seed, checked_time_limit
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import Evaluation, evaluate
from relocbench.instances.files.solution_file import STATUSES, StoredSolution
from relocbench.instances.gap import gap
from relocbench.instances.generators.families import family
from relocbench.instances.instance import Instance, require_instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray
from relocbench.instances.notebook_card import card, percent
from relocbench.instances.solution import Progress, Solution
from relocbench.runs.isolation.import_guard import refuse_during_import
from relocbench.runs.isolation.supervisor import MEMORY_LIMIT, Worker
from relocbench.runs.methods import Selector
from relocbench.runs.outcome import INTERRUPTED, Outcome, Point
from relocbench.runs.run_error import RunError
from relocbench.runs.selectors import MethodLike, StartLike, as_selector, require_available, with_start
from relocbench.runs.start_homes import StartHomes

# By this much, relative to the cost, a bound may exceed a computed cost because of rounding.
ROUNDING = 1e-9
# The methods with their settings that this process has already compiled.
_WARM: set[str] = set()


def exceeds(claim: float, cost: float) -> bool:
    """Return whether a claimed value is above a computed cost by more than rounding.

    Parameters
    ----------
    claim, cost
        The two values.

    Returns
    -------
    bool
        Whether the claim exceeds the cost.
    """
    return claim > cost + ROUNDING * abs(cost)


@dataclass(frozen=True, eq=False)
class Result:
    """A solution and its cost, as the evaluator computes it.

    Attributes
    ----------
    instance
        The problem.
    selector, seed
        The method with its settings, and the seed.
    solution
        What the method returned.
    evaluation
        The cost of the homes and the loads of the servers.
    seconds
        Wall-clock time of the method.
    stopped
        If the method was stopped at a limit, one line that says so; None if it ended by itself.

    Examples
    --------
    >>> import relocbench
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> result = relocbench.solve(instance, "nearest")
    >>> result.home.tolist(), round(result.y, 4), result.status
    ([2, 0, 3, 2], 2.9495, 'feasible')
    >>> result.bound is None and result.gap is None
    True
    """

    instance: Instance
    selector: Selector
    seed: int
    solution: Solution
    evaluation: Evaluation
    seconds: float
    stopped: str | None = None

    def __repr__(self) -> str:
        bound = "" if self.bound is None else f", bound {self.bound:.8g}, gap {percent(self.gap)}"
        where = self.instance.name or self.instance.hash[:12]
        return f"<Result {self.selector} on {where}: {self.status}, ΣD {self.objective:.8g}, Y {self.y:.6g} ms{bound}>"

    def _repr_html_(self) -> str:
        cost = self.evaluation
        values = {
            "method": f"{self.selector}, seed {self.seed}",
            "status": self.status if self.stopped is None else f"{self.status}: {self.stopped}",
            "Y": f"{cost.y:.6g} ms = {cost.y1:.6g} + {cost.y2:.6g}",
            "ΣD": f"{self.objective:.8g}",
            "bound": None if self.bound is None else f"{self.bound:.8g}",
            "gap": percent(self.gap),
            "least θ": f"{cost.theta.min():.3g}",
            "overloaded servers": int((cost.theta < 1).sum()),
            "seconds": f"{self.seconds:.3g}",
        }
        return card(f"Result on {self.instance.name or self.instance.hash[:12]}", values)

    @property
    def home(self) -> IntArray:
        """One server per client."""
        return self.solution.home

    @property
    def objective(self) -> float:
        """``ΣD``, the total delay of all publications."""
        return self.evaluation.objective

    @property
    def y(self) -> float:
        """``Y``, the mean delay of a publication."""
        return self.evaluation.y

    @property
    def theta(self) -> FloatArray:
        """``θ``, the share of the load that each server processes locally."""
        return self.evaluation.theta

    @property
    def status(self) -> str:
        """``optimal``, ``claimed``, ``feasible``, ``time_limit`` or ``memory_limit``."""
        return self.solution.status

    @property
    def bound(self) -> float | None:
        """The lower bound on ``ΣD`` that the method proved; None if it proved none."""
        return self.solution.bound if math.isfinite(self.solution.bound) else None

    @property
    def gap(self) -> float | None:
        """``(objective - bound) / objective``; None without a bound."""
        return gap(self.objective, self.bound)

    def stored(self) -> StoredSolution:
        """Return the content of a solution file.

        Returns
        -------
        StoredSolution
            What :func:`instances.files.solution_file.write_solution` writes.

        Examples
        --------
        >>> import relocbench
        >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
        >>> relocbench.solve(instance, "nearest", seed=1).stored().method
        'nearest'
        """
        return StoredSolution(
            instance=self.instance.hash,
            method=str(self.selector),
            seed=self.seed,
            status=self.status,
            home=self.home,
            objective=self.objective,
            bound=self.bound,
        )


def solve(
    instance: Instance,
    method: MethodLike,
    *,
    seed: int = 0,
    time_limit: float = 60.0,
    memory_limit: int = MEMORY_LIMIT,
    start: StartLike | None = None,
    on_progress: Progress | None = None,
    log: Path | None = None,
    keep_incumbent: bool = False,
) -> Result:
    """Find a home for every client with a method.

    The heuristics of this project run in this process. Exact methods and the code of other people run in a process of
    their own, which is killed at its limits; nothing that happens there can end this process or change ``instance``.

    Parameters
    ----------
    instance
        The problem.
    method
        A selector, such as ``nearest`` or ``reloc[k=8]``, or a function of your own.
    seed
        The same seed gives the same homes.
    time_limit
        Seconds that the method may take. Constructive methods ignore it. A method given as ``start`` gets at most half
        of them. Loading and compiling do not count.
    memory_limit
        Resident bytes that the process of an isolated method, and the processes that it starts, may use together.
    start
        Homes to start from, if the method takes them: one server per client, a file of homes, or a method that finds
        them.
    on_progress
        Called with (seconds, incumbent, bound) whenever a method that searches improves one of the two.
    log
        File for everything that an isolated method prints.
    keep_incumbent
        Whether an interrupt (Ctrl-C) ends the run and returns the best homes that the method has reported, with
        ``stopped`` set to ``interrupted``. Otherwise, or without any homes, KeyboardInterrupt is raised as usual.

    Returns
    -------
    Result
        The solution with its evaluated cost. If the method was stopped at a limit, it is the best one that the method
        had reported.

    Raises
    ------
    InputError
        If there is no such method, it is not available here, or it does not support the instance.
    RunError
        If the run failed, or was stopped before it reported homes.

    Examples
    --------
    >>> import relocbench
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> relocbench.solve(instance, "reloc[k=2]")
    <Result reloc[k=2] on tiny-scarce-plain-0: feasible, ΣD 10.912716, Y 2.72818 ms>
    >>> relocbench.solve(instance, "enumerate", time_limit=30)
    <Result enumerate on tiny-scarce-plain-0: optimal, ΣD 7.7531518, Y 1.93829 ms, bound 7.7531518, gap 0%>
    """
    refuse_during_import("relocbench.solve")
    require_instance(instance)
    seed, time_limit = checked_seed(seed), checked_time_limit(time_limit)
    selector = with_start(as_selector(method), start)
    if not selector.is_isolated:
        return _solve_here_until_interrupted(instance, selector, seed, time_limit, on_progress, keep_incumbent)
    require_available([selector])
    outcome = run_isolated(
        instance,
        selector,
        seed=seed,
        time_limit=time_limit,
        memory_limit=memory_limit,
        log=log,
        on_progress=on_progress,
        keep_incumbent=keep_incumbent,
    )
    if outcome.failure == "refused":
        raise InputError("", outcome.error or "")
    if outcome.status == "error" or outcome.home is None or outcome.evaluation is None:
        raise RunError(str(selector), outcome)
    solution = Solution(outcome.home, outcome.bound, outcome.status, outcome.trace, outcome.facts)
    return Result(instance, selector, seed, solution, outcome.evaluation, outcome.seconds, outcome.error)


def run_isolated(
    instance: Instance,
    method: MethodLike,
    *,
    seed: int = 0,
    time_limit: float = 60.0,
    memory_limit: int = MEMORY_LIMIT,
    log: Path | None = None,
    on_progress: Progress | None = None,
    stop: threading.Event | None = None,
    keep_incumbent: bool = False,
) -> Outcome:
    """Run a method in a new process.

    Parameters
    ----------
    instance, method, seed, time_limit, on_progress
        As in :func:`runs.solve.solve`.
    memory_limit
        Resident bytes that the process and its children may use together.
    log
        File for the solver's log and everything else that the process prints. Without it the solver prints no log.
    stop
        When it is set, the process is killed and KeyboardInterrupt is raised.
    keep_incumbent
        Whether an interrupt, once the method has reported homes, gives an outcome with these homes and the error
        ``interrupted`` instead of KeyboardInterrupt.

    Returns
    -------
    Outcome
        The verified outcome, also if the run failed.

    Raises
    ------
    InputError
        If there is no such method, or the log cannot be written.
    KeyboardInterrupt
        If ``stop`` was set, or the user interrupts the run.
    """
    selector = as_selector(method)
    with Worker(threads=selector.threads, memory_limit=memory_limit, stop=stop) as worker:
        return worker.run(
            instance,
            selector,
            seed=seed,
            time_limit=time_limit,
            log=log,
            on_progress=on_progress,
            keep_incumbent=keep_incumbent,
        )


class _Recorder:
    """The progress of a run in this process: the homes that the method has passed to ``keep``, and the trace."""

    def __init__(self, on_progress: Progress | None) -> None:
        self._on_progress = on_progress
        self.home: IntArray | None = None
        self.trace: list[Point] = []
        self.begin = 0.0

    def keep(self, home: IntArray) -> None:
        self.home = home

    def __call__(self, seconds: float, incumbent: float, bound: float) -> None:
        self.trace.append((seconds, incumbent, bound))
        if self._on_progress is not None:
            self._on_progress(seconds, incumbent, bound)

    def start_clock(self) -> None:
        self.begin = time.perf_counter()


def _solve_here_until_interrupted(
    instance: Instance,
    selector: Selector,
    seed: int,
    time_limit: float,
    on_progress: Progress | None,
    keep_incumbent: bool,
) -> Result:
    if not keep_incumbent:
        return solve_here(instance, selector, seed=seed, time_limit=time_limit, on_progress=on_progress)
    kept = _Recorder(on_progress)
    try:
        return solve_here(
            instance, selector, seed=seed, time_limit=time_limit, on_progress=kept, on_ready=kept.start_clock
        )
    except KeyboardInterrupt:
        if kept.home is None:
            raise
        solution = Solution(kept.home.copy(), trace=tuple(kept.trace))
        seconds = time.perf_counter() - kept.begin
        return Result(instance, selector, seed, solution, evaluate(instance, kept.home), seconds, INTERRUPTED)


def solve_here(
    instance: Instance,
    method: MethodLike,
    *,
    seed: int = 0,
    time_limit: float = 60.0,
    on_progress: Progress | None = None,
    log: bool = False,
    on_ready: Callable[[], None] | None = None,
) -> Result:
    """Find a home for every client with a method, in this process.

    Parameters
    ----------
    instance
        The problem.
    method
        A selector, such as ``nearest`` or ``reloc[k=8]``, or a function of your own.
    seed
        The same seed gives the same homes.
    time_limit
        Seconds that the method may take. Constructive methods ignore it. A method given as ``start`` gets at most half
        of them. Loading and compiling, which happen once per process, do not count.
    on_progress
        Called with (seconds, incumbent, bound) whenever a method that searches improves one of the two.
    log
        Whether solvers may print their logs.
    on_ready
        Called when the method is loaded and compiled, just before its time limit begins.

    Returns
    -------
    Result
        The solution with its evaluated cost.

    Raises
    ------
    InputError
        If there is no such method, it is not available here, or it returned no valid assignment.
    ArithmeticError
        If the method claims a bound above the cost of its own assignment.
    """
    selector = as_selector(method)
    function = selector.method.load()
    require_available([selector])
    warm_up(selector)
    if on_ready is not None:
        on_ready()
    begin = time.perf_counter()
    arguments: dict[str, Any] = dict(selector.settings)
    if isinstance(selector.start, StartHomes):
        arguments["start"] = _read_start(selector, instance)
    elif selector.start is not None:
        arguments["start"] = solve_here(instance, selector.start, seed=seed, time_limit=time_limit / 2).solution.home
    if on_progress is not None and selector.method.takes("on_progress"):
        arguments["on_progress"] = on_progress
    if log and selector.method.takes("log"):
        arguments["log"] = True
    remaining = max(0.0, time_limit - (time.perf_counter() - begin))
    solution = function(instance, seed=seed, time_limit=remaining, **arguments)
    seconds = time.perf_counter() - begin
    evaluation = evaluate(instance, solution.home)
    if solution.status not in STATUSES:
        raise ArithmeticError(f"{selector} returned the status {solution.status!r}, expected {', '.join(STATUSES)}")
    if exceeds(solution.bound, evaluation.objective):
        raise ArithmeticError(
            f"{selector} claims the bound {solution.bound}, but its own homes cost {evaluation.objective}"
        )
    return Result(instance, selector, seed, solution, evaluation, seconds)


def _read_start(selector: Selector, instance: Instance) -> IntArray:
    assert isinstance(selector.start, StartHomes)
    try:
        return selector.start.read(instance)
    except InputError as error:
        raise InputError(f"method {selector.method.name}: start: {error.field}", error.problem) from error


def warm_up(method: MethodLike) -> None:
    """Run a method on a small instance, so that it is loaded and compiled before any time is measured.

    Parameters
    ----------
    method
        As in :func:`solve`. A method that this process has already run this way is not run again.
    """
    selector = as_selector(method)
    # The homes that a method starts from do not matter for what is compiled, and may be others in every run.
    alone = replace(selector, start=None)
    if isinstance(selector.start, Selector):
        warm_up(selector.start)
    if (key := f"{selector.method.where} {alone} {alone.version()}") in _WARM:
        return
    if selector.method.proves == "nothing":
        small = family("preliminary").cells({"storage": 7.0})[0].build(0)
    else:
        # It is solved to optimality within a second, and every kernel of every method is needed for that.
        small = family("tiny").cells({"regime": "overloaded", "clients": 3, "servers": 2})[0].build(0)
    # A method of other people may use all the time that it gets, whatever it proves.
    seconds = 0.01 if selector.method.is_external or selector.method.proves == "nothing" else 60.0
    try:
        selector.method.load()(small, seed=0, time_limit=seconds, **selector.settings)
    except Exception:
        # An external method may not support this instance. If it has a fault, the run itself will show it.
        if not selector.method.is_external:
            raise
    _WARM.add(key)
