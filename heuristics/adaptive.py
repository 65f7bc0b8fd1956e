"""Our own heuristic in the spirit of RELOC: each step is taken where it lowers the objective, and nowhere else.

RELOC decides once for the whole instance: ``K`` clusters, the relation step, the cooperation step. Which choice is good
depends on the instance and on the client. Here the objective chooses:

1. NS (which is RELOC with ``K = L``), OTOS and RELOC itself give the first homes.
2. Clients are visited topic by topic, as in Algorithm 1. Each one may go to its nearest server, whatever its cluster
   (locality), or to a server with other members of its topics (relation). The exact change of the objective decides.
   All members of a topic may leave an overloaded server together (cooperation).
3. During the first passes storage has a price, so that members of a topic gather on few servers before these are full.
   The price falls from pass to pass, and the last pass has none.
4. The best homes of all steps are returned. So they are never worse than those of the three methods.

The paper has no such method. docs/reading.md gives measurements.
"""

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from relocbench.heuristics import otos, reloc
from relocbench.heuristics.adaptive_kernel import (
    Diary,
    Surroundings,
    Workspace,
    improve_clients,
    improve_topics,
    make_diary,
    make_workspace,
)
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.incremental_state import State
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.nearest_server import nearest_server
from relocbench.instances.solution import Progress, Solution, report

# Homes with their cost.
Found = tuple[float, IntArray]


@dataclass(frozen=True)
class AdaptiveParams:
    """The parameters of the method.

    Attributes
    ----------
    visits
        The number of visits to clients in one run, unless there are more clients: then it is one visit for each client,
        which keeps the time in proportion to that of RELOC. Small instances are improved from all starts with it.
    prices
        The price of a unit of storage in each pass, relative to the *usual price*: the delay that NS loses to the
        cloud, divided by the storage that it uses. Without overload under NS all prices are 0.
    around
        When nothing improves any more, so many servers around the home and around the nearest server are compared too.
    precision
        A move must lower the objective by more than this share of it.
    batch
        The number of visits between two readings of the clock.
    small
        Up to this number of clients the clock is not read: all visits take less than a tenth of a second, and the homes
        are the same on every machine.
    """

    visits: int = 10_000
    prices: tuple[float, ...] = (1.0, 0.6, 0.3, 0.1)
    around: int = 4
    precision: float = 1e-9
    batch: int = 1 << 16
    small: int = 1000


PARAMS = AdaptiveParams()


def solve(
    instance: Instance,
    *,
    seed: int,
    time_limit: float,
    start: IntArray | None = None,
    on_progress: Progress | None = None,
    k: int = 4,
    threads: int = 2,
) -> Solution:
    """Run NS, OTOS and RELOC, and improve their homes by steps of RELOC that lower the objective.

    Parameters
    ----------
    instance
        The problem.
    seed
        The seed of K-means.
    time_limit
        Seconds after which no further step begins. Without reaching it, and on small instances, the homes depend on the
        seed only.
    start
        Homes that are improved beside those of the three methods, such as those of an earlier epoch.
    on_progress
        Called with (seconds, incumbent, bound) whenever better homes are found. The bound is always ``-inf``.
    k
        ``K``, the number of clusters of the run of RELOC.
    threads
        The number of threads of the runs of RELOC and OTOS. The homes do not depend on it.

    Returns
    -------
    Solution
        The best homes found. They are never worse than those of NS and, unless the time limit is reached, of OTOS and
        of RELOC by the number of shared topics.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    if k < 1:
        raise InputError("method adaptive: k", f"expected at least 1, got {k}")
    if threads < 1:
        raise InputError("method adaptive: threads", f"expected at least 1, got {threads}")
    search = _Search(instance, time_limit, on_progress)
    found = [search.first]
    homes = [] if start is None else [start]
    if search.time_is_left():
        homes += _otos_and_reloc(instance, seed, k, threads)
    for home in homes:
        if not any(np.array_equal(home, other) for _, other in found):
            found.append(search.offer(home))
    for around in (0, PARAMS.around):
        # The sort is stable and looks at costs only: homes of equal cost keep the order NS, OTOS, RELOC.
        found = [search.improve(start, around) for start in sorted(found, key=itemgetter(0))]
    return Solution(search.home, trace=tuple(search.trace))


def _otos_and_reloc(instance: Instance, seed: int, k: int, threads: int) -> tuple[IntArray, IntArray]:
    """Return the homes of OTOS and of RELOC in its default reading, with the number of shared topics as relation.

    A factorisation would take several times as long as everything else.
    """

    def run_reloc() -> IntArray:
        return reloc.solve(instance, seed=seed, time_limit=math.inf, k=k, relation="exact", threads=threads).home

    def run_otos() -> IntArray:
        return otos.solve(instance, seed=seed, time_limit=math.inf).home

    if threads == 1:
        return run_otos(), run_reloc()
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(run_otos)
        home = run_reloc()
        return beside.result(), home


class _Search:
    """The best homes found so far, the clock, and the number of visits that are left."""

    def __init__(self, instance: Instance, time_limit: float, on_progress: Progress | None) -> None:
        self._instance = instance
        self._begin = time.perf_counter()
        self._time_limit = time_limit
        self._on_progress = on_progress
        self._visits = max(instance.n_clients, PARAMS.visits)
        self._cost = math.inf
        self.nearest = nearest_server(instance)
        self.trace: list[tuple[float, float, float]] = []
        now = evaluate(instance, self.nearest)
        self.first = self._compare(now.objective, self.nearest)
        # The delay that NS loses to the cloud, for each unit of storage that it uses.
        lost = 2 * instance.cloud_delay * float((now.sent * (1 - now.theta)).sum())
        used = float(now.storage_load.sum())
        self._usual_price = lost / used if used > 0 else 0.0

    def time_is_left(self) -> bool:
        """Return whether another step may begin."""
        is_small = self._instance.n_clients <= PARAMS.small
        return is_small or time.perf_counter() - self._begin < self._time_limit

    def offer(self, home: IntArray) -> Found:
        """Keep homes if they are the best so far, and return them with their cost."""
        return self._compare(evaluate(self._instance, home).objective, home)

    def _compare(self, cost: float, home: IntArray) -> Found:
        if cost < self._cost:
            self._cost, self.home = cost, home
            self.trace.append((time.perf_counter() - self._begin, cost, -math.inf))
            report(self._on_progress, home, self.trace[-1])
        return cost, home

    def improve(self, start: Found, around: int) -> Found:
        """Improve homes as far as time and visits allow, and offer the result.

        With ``around > 0`` more servers are compared for each client, topics leave servers that have room too, and
        nothing has a price.
        """
        if not self._go_on():
            return start
        state = State(self._instance, start[1])
        area = _surroundings(self._instance, self.nearest, around)
        improvement = _Improvement(
            state,
            area,
            make_workspace(self._instance.n_servers),
            make_diary(self._instance.n_clients, self._instance.n_topics),
            PARAMS.precision * start[0],
        )
        if around == 0:
            self._pass_with_prices(improvement)
        while self._go_on():
            while self._pass(improvement) > 0:
                pass
            visited, moved = improve_topics(
                state.arrays, area, improvement.diary, improvement.least, around > 0, self._visits
            )
            self._visits -= visited
            if moved == 0:
                break
        return self.offer(state.home)

    def _pass_with_prices(self, improvement: "_Improvement") -> None:
        """Visit all clients at falling prices of storage, as often as the visits allow."""
        # A pass visits each membership about once, and one pass is left for the time without prices.
        passes = self._visits // max(len(improvement.area.member), 1) - 1
        prices = PARAMS.prices[-max(passes, 1) :] if passes < len(PARAMS.prices) else PARAMS.prices
        nothing = np.zeros(self._instance.n_servers)
        for price in prices:
            improvement.state.relax_capacities(0.0, nothing + price * self._usual_price, nothing)
            # With too few visits for all memberships, every client is visited once before any is revisited.
            self._pass(improvement, once=passes < 1)
            # The next price concerns everyone.
            improvement.diary.visited[:] = -1
        improvement.state.restore_capacities()

    def _pass(self, improvement: "_Improvement", once: bool = False) -> int:
        """Visit the waiting clients, topic by topic, and return their number."""
        state, area, work, diary, least = improvement
        done = topic = 0
        while topic < self._instance.n_topics and self._go_on():
            visits = min(self._visits, PARAMS.batch)
            visited, topic = improve_clients(state.arrays, area, work, diary, least, once, topic, visits)
            self._visits -= visited
            done += visited
        return done

    def _go_on(self) -> bool:
        return self._visits > 0 and self.time_is_left()


class _Improvement(NamedTuple):
    """Homes that are being improved: their state, and the other arguments of the kernels."""

    state: State
    area: Surroundings
    work: Workspace
    diary: Diary
    least: float


def _surroundings(instance: Instance, nearest: IntArray, around: int) -> Surroundings:
    """Return the surroundings of clients and servers, with ``around`` servers listed for each server."""
    count = min(around, instance.n_servers - 1)
    delay = instance.server_delay.copy()
    np.fill_diagonal(delay, np.inf)
    listed = np.argsort(delay, axis=1, kind="stable")[:, :count] if count else np.empty((len(delay), 0))
    return Surroundings(instance.members.start, instance.members.item, nearest, listed.astype(np.int32))
