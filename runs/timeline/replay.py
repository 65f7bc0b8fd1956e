"""Replay a timeline under a policy, and measure what its homes cost."""

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from relocbench.instances.checks import checked_seed, checked_time_limit
from relocbench.instances.errors import InputError, shown
from relocbench.instances.evaluation import checked_home, evaluate
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.nearest_server import nearest_server
from relocbench.instances.notebook_card import card
from relocbench.instances.timeline.epoch import Epoch
from relocbench.instances.timeline.schedule_cost import CostMeter, ScheduleCost, carried_homes
from relocbench.instances.timeline.timeline import Timeline
from relocbench.runs.isolation.import_guard import refuse_during_import
from relocbench.runs.methods import Selector
from relocbench.runs.selectors import MethodLike, as_selector
from relocbench.runs.timeline.method_runner import MethodRunner
from relocbench.runs.timeline.policies import REMEMBERED, History, LastSolve
from relocbench.runs.timeline.policy_selectors import Policy, PolicyLike, as_policy
from relocbench.runs.timeline.replay_rows import EpochRow, read_rows, rows_table
from relocbench.runs.timeline.replay_store import ReplayKey, ReplayStore

# How long solving takes in the timeline: no time, the time that was measured, or the same seconds each time.
Staleness = bool | float


@dataclass(frozen=True, eq=False)
class Replay:
    """A timeline under one policy with one method.

    Attributes
    ----------
    timeline
        The timeline.
    policy, method, seed
        What was replayed.
    cost
        The cost of the schedule.
    solves, solve_seconds
        How often homes were computed, and how long that took.
    path
        The file with one row per epoch; None if the rows are in memory.
    rows
        The rows; empty if they are in a file.

    Examples
    --------
    >>> import relocbench
    >>> timeline = relocbench.generate_timeline(seed=1, n_epochs=3, topics=8)
    >>> replay = relocbench.replay(timeline, "every[k=2]", "nearest")
    >>> replay.solves, replay.cost.seconds
    (2, 180.0)
    >>> replay.table().num_rows
    3
    """

    timeline: Timeline
    policy: Policy
    method: Selector
    seed: int
    cost: ScheduleCost
    solves: int
    solve_seconds: float
    path: Path | None = None
    rows: list[EpochRow] = field(default_factory=list)

    def __repr__(self) -> str:
        what = f"{self.policy} {self.method} on {self.timeline.name or 'a timeline'}"
        parts = f"{self.cost.handovers} handovers, Y {self.cost.y:.6g} ms"
        return f"<Replay {what}: cost {self.cost.total:.8g}, {parts}>"

    def _repr_html_(self) -> str:
        values: dict[str, object] = {"policy": str(self.policy), "method": str(self.method), "seed": self.seed}
        values |= {"solves": self.solves, "solve seconds": f"{self.solve_seconds:.3g}"}
        values |= {name: f"{value:.8g}" for name, value in self.cost.values().items()}
        return card(f"Replay of {self.timeline.name or 'a timeline'}", values)

    def table(self) -> pa.Table:
        """Return the rows, one per epoch.

        Returns
        -------
        pyarrow.Table
            The columns of :class:`runs.timeline.replay_rows.EpochRow`.

        Examples
        --------
        >>> import relocbench
        >>> timeline = relocbench.generate_timeline(seed=1, n_epochs=3, topics=8)
        >>> relocbench.replay(timeline, "every[k=2]", "nearest").table()["solved"].to_pylist()
        [True, False, True]
        """
        return rows_table(self.rows if self.path is None else read_rows(self.path))

    def values(self) -> dict[str, Any]:
        """Return the main numbers by name.

        Returns
        -------
        dict
            What ``relocbench moving run --json`` prints for a replay.

        Examples
        --------
        >>> import relocbench
        >>> timeline = relocbench.generate_timeline(seed=1, n_epochs=3, topics=8)
        >>> relocbench.replay(timeline, "never", "nearest").values()["policy"]
        'never'
        """
        return {
            "timeline": self.timeline.name,
            "hash": self.timeline.hash,
            "policy": str(self.policy),
            "method": str(self.method),
            "seed": self.seed,
            **self.cost.values(),
            "solves": self.solves,
            "solve_seconds": self.solve_seconds,
            "file": None if self.path is None else str(self.path),
        }


def replay(
    timeline: Timeline,
    policy: PolicyLike = "always",
    method: MethodLike = "reloc",
    *,
    seed: int = 0,
    time_limit: float = 60.0,
    stale: Staleness = False,
    out: str | Path | None = None,
    on_epoch: Callable[[EpochRow], None] | None = None,
) -> Replay:
    """Replay a timeline under a policy.

    Parameters
    ----------
    timeline
        The timeline.
    policy
        When homes are computed again: ``never``, ``always``, ``every[k=5]``, ``threshold[worse=0.1]``,
        ``gap[above=0.1]``, ``relocate[ahead=2]``, or a function of your own ``f(history, epoch) -> homes or None``.
    method
        The method that computes them: a selector or a function, as for ``solve``.
    seed, time_limit
        Of every run of the method.
    stale
        Whether new homes come into force only after the time that computing them took. A number is taken as that time,
        in seconds. While homes are being computed, the policy is not asked.
    out
        A folder for the result. Then the rows are not kept in memory, a replay that was interrupted continues, and one
        that is there already is not repeated.
    on_epoch
        Called with every row, also with those of an earlier replay that is continued.

    Returns
    -------
    Replay
        The cost of the schedule, and where its rows are.

    Raises
    ------
    InputError
        If there is no such policy or method, an epoch is wrong, or the policy returns no valid homes.
    RunError
        If a run of the method failed.

    Examples
    --------
    >>> import relocbench
    >>> timeline = relocbench.generate_timeline(seed=1, n_epochs=4, topics=8, speed=60)
    >>> def when_somebody_moved_far(history, epoch):
    ...     return history.solve() if epoch.number % 3 == 0 else None
    >>> relocbench.replay(timeline, when_somebody_moved_far, "nearest").solves
    2
    """
    refuse_during_import("relocbench.replay")
    if not isinstance(timeline, Timeline):
        raise InputError("timeline", f"expected a Timeline, got {shown(timeline)}; read_timeline reads one from a file")
    if not isinstance(stale, bool) and not (isinstance(stale, int | float) and 0 <= stale < float("inf")):
        raise InputError("stale", f"expected true, false or seconds from 0, got {shown(stale)}")
    seed, time_limit = checked_seed(seed), checked_time_limit(time_limit)
    chosen, selector = as_policy(policy), as_selector(method)
    run = _Run(timeline, chosen, selector, seed, time_limit, stale)
    if out is None:
        rows = []
        for row in run.rows():
            rows.append(row)
            if on_epoch is not None:
                on_epoch(row)
        return run.result(rows=rows)
    store = ReplayStore(Path(out))
    key = ReplayKey(
        timeline=timeline.hash,
        policy=str(chosen),
        method=str(selector),
        seed=seed,
        time_limit=time_limit,
        stale=float(stale) if not isinstance(stale, bool) else str(stale).lower(),
        code=f"{chosen.version()}; {selector.version()}",
    )
    for row in store.finished_rows(key):
        run.recall(row)
        if on_epoch is not None:
            on_epoch(row)
    if run.n_done < timeline.n_epochs:
        with store.writer(key, run.n_done) as write:
            for row in run.rows():
                write(row, run.is_settled)
                if on_epoch is not None:
                    on_epoch(row)
        store.finish(key, {"name": timeline.name, "epochs": timeline.n_epochs, **run.result().cost.values()})
    return run.result(path=store.path(key))


@dataclass(frozen=True, eq=False)
class _Pending:
    """New homes that are not in force yet: when they will be, and those of which epoch they are."""

    due: float
    epoch: Epoch
    home: IntArray


class _Run:
    """The state of a replay between two epochs."""

    def __init__(
        self, timeline: Timeline, policy: Policy, selector: Selector, seed: int, time_limit: float, stale: Staleness
    ) -> None:
        self._timeline, self._policy, self._selector = timeline, policy, selector
        self._seed, self._time_limit, self._stale = seed, time_limit, stale
        self._meter = CostMeter(timeline.prices)
        self._before: tuple[Epoch, IntArray] | None = None
        self._last_solve: LastSolve | None = None
        self._costs: deque[ScheduleCost] = deque(maxlen=REMEMBERED)
        self._pending: _Pending | None = None
        self._recalled_home: list[int] = []
        self._solves, self._solve_seconds = 0, 0.0
        self.n_done = 0

    @property
    def is_settled(self) -> bool:
        """Whether the rows so far are all that is needed to continue: no homes are waiting to come into force."""
        return self._pending is None

    def result(self, path: Path | None = None, rows: list[EpochRow] | None = None) -> Replay:
        """Return what was measured."""
        return Replay(
            self._timeline,
            self._policy,
            self._selector,
            self._seed,
            self._meter.total,
            self._solves,
            self._solve_seconds,
            path,
            rows or [],
        )

    def recall(self, row: EpochRow) -> None:
        """Take over an epoch of an earlier replay."""
        self._meter.total += row.cost
        self._note(row)
        self._recalled_home = row.home

    def _note(self, row: EpochRow) -> None:
        self._costs.append(row.cost)
        self._solve_seconds += row.solve_seconds
        if row.solved:
            assert row.solved_y is not None
            self._solves += 1
            self._last_solve = LastSolve(row.epoch, row.solved_y, row.clusters)
        self.n_done = row.epoch + 1

    def rows(self) -> Iterator[EpochRow]:
        """Replay the epochs that are left."""
        epochs = self._timeline.epochs()
        if self.n_done:
            last = next(itertools.islice(epochs, self.n_done - 1, None))
            self._before = last, checked_home(last.instance, self._recalled_home)
            self._meter.resume(*self._before, self._meter.total)
        self._policy.warm_up()
        waiting: deque[Epoch] = deque()

        def upcoming(count: int) -> list[Epoch]:
            count = min(count, self._timeline.n_epochs)
            waiting.extend(itertools.islice(epochs, max(0, count - len(waiting))))
            return list(itertools.islice(waiting, count))

        with MethodRunner(self._selector, seed=self._seed, time_limit=self._time_limit) as runner:
            while True:
                epoch = waiting.popleft() if waiting else next(epochs, None)
                if epoch is None:
                    return
                try:
                    row = self._replay(epoch, runner, upcoming)
                except InputError as error:
                    raise error.inside(f"epoch {epoch.number}") from error
                self._note(row)
                yield row

    def _replay(self, epoch: Epoch, runner: MethodRunner, upcoming: Callable[[int], list[Epoch]]) -> EpochRow:
        home = nearest_server(epoch.instance)
        arrivals = epoch.instance.n_clients
        if self._before is not None:
            carried = carried_homes(*self._before, epoch)
            arrivals = int(np.count_nonzero(carried < 0))
            home = np.where(carried >= 0, carried, home).astype(np.int32)
        solved: tuple[float, int | None] | None = None
        seconds = 0.0
        if self._pending is None:
            history = History(
                self._timeline,
                home.copy(),
                self._before,
                self._last_solve,
                self._costs,
                self._seed,
                self._time_limit,
                upcoming,
                runner,
                epoch,
            )
            begin = time.perf_counter()
            found = self._policy(history, epoch)
            seconds = time.perf_counter() - begin
            if found is not None:
                try:
                    new = checked_home(epoch.instance, found)
                except InputError as error:
                    raise error.inside(f"policy {self._policy}") from error
                clusters = None if history.solved is None else history.solved.clusters
                solved = evaluate(epoch.instance, new).y, clusters
                # Before comparing with True: True is an int, too.
                wait = (seconds if self._stale else 0.0) if isinstance(self._stale, bool) else float(self._stale)
                self._pending = _Pending(epoch.start + wait, epoch, new)
        cost, home, delayed = self._pass(epoch, home)
        self._before = epoch, home
        return EpochRow(
            epoch=epoch.number,
            start=epoch.start,
            length=epoch.length,
            clients=epoch.instance.n_clients,
            arrivals=arrivals,
            topics=epoch.instance.n_topics,
            y=cost.y,
            total=cost.total,
            delay_cost=cost.delay_cost,
            handover_cost=cost.handover_cost,
            spool_cost=cost.spool_cost,
            handovers=cost.handovers,
            spool_moved=cost.spool_moved,
            publications=cost.publications,
            client_seconds=cost.client_seconds,
            overloaded_seconds=cost.overloaded_seconds,
            least_theta=float(evaluate(epoch.instance, home).theta.min()),
            solved=solved is not None,
            solve_seconds=seconds,
            delayed=delayed,
            solved_y=None if solved is None else solved[0],
            clusters=None if solved is None else solved[1],
            home=home.tolist(),
        )

    def _pass(self, epoch: Epoch, home: IntArray) -> tuple[ScheduleCost, IntArray, float | None]:
        """Let an epoch pass, and let pending homes come into force if they are due. Return cost, homes and delay."""
        cost, begin, delayed = ScheduleCost(), epoch.start, None
        if self._pending is not None and self._pending.due < epoch.end:
            if self._pending.due > begin:
                cost += self._meter.add(epoch, home, self._pending.due - begin)
                begin = self._pending.due
            # Clients that have arrived since then are not among the new homes; they stay where they are.
            new = carried_homes(self._pending.epoch, self._pending.home, epoch)
            home = np.where(new >= 0, new, home).astype(np.int32)
            delayed = begin - epoch.start
            self._pending = None
        whole = None if begin == epoch.start else epoch.end - begin
        return cost + self._meter.add(epoch, home, whole), home, delayed
