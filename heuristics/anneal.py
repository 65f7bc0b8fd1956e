"""Simulated annealing on the incremental state of an assignment.

Proposals move a single client, move all members of a topic on one server together, or exchange two clients. The search
consists of rounds. Each round starts from the best assignment so far, heats up again and cools down; in trials on the
paper's instances this was better than one slow cooling of the same length.

Where capacity is scarce, other rounds follow after the first ones (:mod:`heuristics.anneal_scarce`).
"""

import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from relocbench.heuristics.anneal_kernel import Journal, Neighbourhood, anneal_batch, nearest_servers, sample_changes
from relocbench.heuristics.anneal_prices import Prices, sacrificed_servers
from relocbench.heuristics.anneal_rounds import Round, Task, Tasks
from relocbench.heuristics.anneal_scarce import scarce_rounds
from relocbench.instances.errors import InputError
from relocbench.instances.incremental_state import State
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.kernels.random_numbers import below, random_words, uniform
from relocbench.instances.nearest_server import nearest_server
from relocbench.instances.solution import Progress, Solution, report
from relocbench.instances.timeline.relocation_state import RelocatingState, Relocation


@dataclass(frozen=True)
class Targets:
    """How the target server of a proposal is drawn.

    Attributes
    ----------
    to_topic
        Of every 1024 proposals, how many go to a server on which the client's topic is open.
    to_near
        Of every 1024 proposals, how many go to one of the servers listed for the client (its nearest or its likely
        servers). The remaining proposals go to any server.
    """

    to_topic: int
    to_near: int


@dataclass(frozen=True)
class AnnealParams:
    """The parameters of annealing.

    Attributes
    ----------
    final_heat
        The temperature at the end of a round, as a share of the typical change.
    priced_part
        The part of a priced round during which prices apply. The rest of the round minimises the objective itself.
    round_per_client
        Proposals of one round for each client.
    shortest_round
        The least number of proposals of one round, which matters for small instances.
    largest_batch
        The largest number of proposals between two readings of the clock and of the loads.
    smallest_batch
        The smallest number of proposals between two readings of the clock, unless the round ends before.
    batches_per_round
        The number of batches in a round, unless that makes a batch too small or too large.
    sampled_changes
        Proposals that are sampled before a round to determine the typical change.
    journal
        Accepted moves that the journal of a batch can hold, in addition to two for each client.
    near_servers
        How many of its nearest servers are listed for each client.
    near_targets
        The targets of proposals when the nearest servers are listed.
    likely_targets
        The targets of proposals when a lower bound has supplied the likely servers of each client. These are better
        candidates than the nearest servers, so they are proposed more often.
    scarce_change
        Capacity is scarce if the typical change is this many times as large as that of the delays alone. It is at most
        6 on the instances of the paper's first study and on larger ones, and 9 or more where the paper's spool per
        member is 4 or more.
    scarce_clients
        The least number of clients for such rounds. The usual rounds find the optimum of small instances.
    scarce_final_heat
        The temperature at the end of a round for scarce capacity, as a share of the typical change of the delays.
    refits
        Of every 1024 proposals of such a round, how many are refits.
    region_blur
        The servers of a region are those with the least delay from the first one after a random delay is added, whose
        mean is this share of the median delay between servers.
    """

    final_heat: float = 0.005
    priced_part: float = 0.85
    round_per_client: int = 10_000
    shortest_round: int = 500_000
    largest_batch: int = 1 << 16
    smallest_batch: int = 1 << 11
    batches_per_round: int = 100
    sampled_changes: int = 2000
    journal: int = 1 << 18
    near_servers: int = 4
    near_targets: Targets = Targets(to_topic=560, to_near=400)
    likely_targets: Targets = Targets(to_topic=200, to_near=824)
    scarce_change: float = 7.0
    scarce_clients: int = 100
    scarce_final_heat: float = 0.06
    refits: int = 20
    region_blur: float = 0.3


PARAMS = AnnealParams()
# With capacities larger by this factor no server is full.
UNLIMITED = 1e9
ROUND_PER_CLIENT = PARAMS.round_per_client
# The rounds follow one another in this order, again and again. Priced rounds find good homes when many servers are
# full, warm rounds improve the assignment locally, and hot rounds escape from a local optimum, which small overloaded
# instances need.
ROUNDS = (Round(0.2, priced=True), Round(0.2, priced=False), Round(1.0, priced=False))


def solve(
    instance: Instance,
    *,
    seed: int,
    time_limit: float,
    start: IntArray | None = None,
    on_progress: Progress | None = None,
    moves: int = 0,
) -> Solution:
    """Improve an assignment by simulated annealing.

    Parameters
    ----------
    instance, seed
        As for every method.
    time_limit
        Seconds after which the search stops.
    start
        The initial assignment; by default every client starts at its nearest server.
    on_progress
        Called with (seconds, incumbent, bound) whenever a better assignment is found. The bound is always ``-inf``.
    moves
        The number of proposals. The same number and the same seed give the same homes if the time limit is not
        reached. With 0 the search continues until the time limit.

    Returns
    -------
    Solution
        The best assignment found, without a lower bound.

    Raises
    ------
    InputError
        If ``moves`` is negative.
    """
    if moves < 0:
        raise InputError("method anneal: moves", f"expected at least 0, got {moves}")
    begin = time.perf_counter()
    search = _Search(instance, nearest_server(instance) if start is None else start, seed, _near(instance))
    return _in_rounds(search, _rounds(instance, search, seed), begin, time_limit, moves, on_progress)


def relocate(
    instance: Instance, relocation: Relocation, start: IntArray, *, seed: int, time_limit: float, moves: int
) -> Solution:
    """Improve an assignment by simulated annealing, where it costs something to leave the homes of the epoch before.

    Parameters
    ----------
    instance
        The problem of the present epoch.
    relocation
        The homes before, and the prices of leaving them.
    start
        The initial assignment, which already has a home for every client.
    seed, time_limit, moves
        As for :func:`solve`.

    Returns
    -------
    Solution
        The homes with the least sum of ``ΣD`` and the cost of relocation that were found. Its trace has these sums.
    """
    begin = time.perf_counter()
    search = _Search(instance, start, seed, _near(instance), relocation=relocation)
    # The moves of whole topics in rounds for scarce capacity do not know relocation.
    return _in_rounds(search, _repeated(ROUNDS), begin, time_limit, moves, None)


def _in_rounds(
    search: "_Search",
    rounds: Tasks,
    begin: float,
    time_limit: float,
    moves: int,
    on_progress: Progress | None,
) -> Solution:
    """Run rounds until the time limit or the number of proposals is reached."""
    instance = search.instance
    round_length = max(PARAMS.round_per_client * instance.n_clients, PARAMS.shortest_round)
    best, best_home = search.best, search.best_home
    found = best_home
    trace = [(time.perf_counter() - begin, best, -math.inf)]
    report(on_progress, best_home, trace[0])
    made = 0

    def time_is_left() -> bool:
        # The first round always starts: the set-up alone may take longer than a short time limit.
        return time_limit > 0 and (made == 0 or time.perf_counter() - begin < time_limit)

    while (moves == 0 or made < moves) and time_is_left():
        task = next(rounds) if made == 0 else rounds.send(found)
        if task.start is not None:
            search.begin_at(task.start)
        length = int(task.mode.effort * round_length)
        if moves:
            length = min(length, moves - made)
        search.begin_round(length, task.mode)
        done, progress = 0, 0.0
        round_begin = time.perf_counter() - begin
        while progress < 1:
            done += search.run_batch(length - done, progress)
            progress = done / length
            now = time.perf_counter() - begin
            if search.best < best:
                best, best_home = search.best, search.best_home.copy()
                trace.append((now, best, -math.inf))
                report(on_progress, best_home, trace[-1])
            if moves == 0:
                # If the remaining time is too short for the round, it cools faster, so that it still ends cold.
                progress = max(progress, (now - round_begin) / max(time_limit - round_begin, 1e-9))
            elif now >= time_limit:
                break
        made += done
        found = search.result
        search.return_to_best()
        if task.start is None:
            # The same homes, with a cost that has no rounding errors of many moves.
            best = search.best
    return Solution(best_home, trace=tuple(trace))


def anneal_among(
    instance: Instance,
    likely: npt.NDArray[np.bool_] | None,
    start: IntArray,
    *,
    seed: int,
    mode: Round,
    time_used: Callable[[], float],
) -> IntArray:
    """Run one round of annealing that prefers the likely homes, and return its result.

    Parameters
    ----------
    instance, start, seed
        As for every method.
    likely
        The likely homes of each client (``M×L``), to which most proposals go. A client with only one likely home moves
        only when all members of its topic move together. With None the nearest servers are proposed instead.
    mode
        How the round runs.
    time_used
        Called after each batch. It returns the used share of the time available for this round. If the time is too
        short for the round, the round cools faster; it ends when the share reaches 1.

    Returns
    -------
    array
        The best homes found, or the last homes if the cooling continues: one server per client.
    """
    search = _Search(instance, start, seed, _near(instance) if likely is None else _likely(instance, likely))
    length = int(mode.effort * max(PARAMS.round_per_client * len(search.around.moving), PARAMS.shortest_round))
    search.begin_round(length, mode)
    done, progress, used = 0, 0.0, time_used()
    while max(progress, used) < 1:
        done += search.run_batch(length - done, progress)
        used = time_used()
        progress = max(done / length, used)
    return search.result


def scarce_unit(instance: Instance, home: IntArray, seed: int, least_change: float | None = None) -> float | None:
    """Return the unit of temperatures for :func:`scarce_rounds` if these find better homes, None otherwise.

    Parameters
    ----------
    instance, seed
        As for every method.
    home
        Good homes.
    least_change
        In place of ``scarce_change`` of :class:`AnnealParams`.

    Returns
    -------
    float or None
        The typical change of the delays, if the typical change of the objective is many times as large, and there are
        many clients. Then most proposals change the loads of full servers.
    """
    if instance.n_clients < PARAMS.scarce_clients:
        return None
    search = _Search(instance, home, seed, _near(instance))
    change, unit = search.typical_change(), search.typical_change_of_delays()
    return unit if change > (least_change or PARAMS.scarce_change) * unit else None


def _repeated(modes: Sequence[Round]) -> Tasks:
    """Yield rounds again and again, each from the best homes so far."""
    for mode in itertools.cycle(modes):
        yield Task(mode)


def _rounds(instance: Instance, search: "_Search", seed: int) -> Tasks:
    """Yield the rounds of :func:`solve` without end."""
    for mode in ROUNDS:
        yield Task(mode)
    unit = scarce_unit(instance, search.best_home, seed)
    yield from _repeated(ROUNDS) if unit is None else scarce_rounds(instance, search.best_home, unit, seed)


class _Search:
    """The current assignment, the best assignment found from its start, and the temperatures of the current round."""

    def __init__(
        self,
        instance: Instance,
        start: IntArray,
        seed: int,
        around: Neighbourhood,
        params: AnnealParams = PARAMS,
        relocation: Relocation | None = None,
    ) -> None:
        self.instance = instance
        self._relocation = relocation
        self._state = self._state_of(start)
        self.around = self._everywhere = around
        self._params = params
        size = params.journal + 2 * instance.n_clients
        self._journal = Journal(np.empty(size, np.int32), np.empty(size, np.int32))
        self._random = random_words(seed)
        self.best = self._now = self._state.objective
        self.best_home = self._state.home
        self._prices: Prices | None = None

    def _state_of(self, home: IntArray) -> State:
        if self._relocation is None:
            return State(self.instance, home)
        return RelocatingState(self.instance, home, self._relocation)

    def begin_round(self, length: int, mode: Round) -> None:
        """Set the temperatures, the prices and the kinds of proposals for a round of ``length`` proposals."""
        self.around = self._everywhere
        if mode.region:
            self.around = _within(self.instance, self.best_home, self._draw_region(mode.region), self._everywhere)
        self._mode = mode
        typical = unit = self.typical_change() if mode.unit is None else mode.unit
        usual = self._params.scarce_final_heat if mode.scarce else self._params.final_heat
        final_heat = usual if mode.final_heat is None else mode.final_heat
        refits, sacrificed = 0, np.zeros(self._state.instance.n_servers, np.bool_)
        if mode.scarce:
            if mode.unit is None:
                unit = self.typical_change_of_delays()
            # A refit may move clients to any server, so there are none in a round on a region.
            refits = 0 if mode.region else self._params.refits
            sacrificed = sacrificed_servers(self._state.arrays.server["theta"])
        self.around = self.around._replace(refits=refits)
        self._length, self._hot, self._cold = length, mode.heat * unit, final_heat * unit
        self._prices = mode.prices
        if mode.priced and self._prices is None:
            instance = self._state.instance
            self._prices = Prices(instance, typical, mode.extra_capacity, sacrificed, mode.first_prices)

    def _draw_region(self, size: int) -> IntArray:
        """Draw a server at random and servers in its neighbourhood."""
        delay, servers = self.instance.server_delay, self.instance.n_servers
        first = below(self._random, servers)
        noise = np.array([uniform(self._random) for _ in range(servers)])
        blurred = delay[first] - self._params.region_blur * float(np.median(delay)) * np.log1p(-noise)
        blurred[first] = -1.0
        return np.sort(np.argsort(blurred, kind="stable")[:size]).astype(np.int32)

    def typical_change(self) -> float:
        """Return the median nonzero change, so that temperatures do not depend on the units of delay."""
        count = self._params.sampled_changes
        change = np.abs(sample_changes(self._state.arrays, self.around, self._random, count, self._relocation))
        return float(np.median(change[change > 0])) if change.any() else 1.0

    def typical_change_of_delays(self) -> float:
        """Return the typical change if capacities were practically unlimited."""
        no_price = np.zeros(self._state.instance.n_servers)
        self._state.relax_capacities(UNLIMITED, no_price, no_price)
        change = self.typical_change()
        self._state.restore_capacities()
        return change

    def run_batch(self, most: int, progress: float) -> int:
        """Make at most ``most`` proposals and return their number; ``progress`` is the finished part of the round."""
        params = self._params
        # The length of the whole cooling, and the finished part of it.
        length = int(self._length / (self._mode.end - self._mode.begin))
        progress = self._mode.begin + progress * (self._mode.end - self._mode.begin)
        batch = max(params.smallest_batch, length // params.batches_per_round)
        steps = min(most, params.largest_batch, batch)
        cooling = self._cold / self._hot
        now_hot = self._hot * cooling**progress
        now_cold = self._hot * cooling ** (progress + steps / length)
        if self._prices is not None:
            if progress < params.priced_part:
                self._prices.impose(self._state, progress / params.priced_part)
            else:
                self._prices = None
                self._state.restore_capacities()
            self._now = self._state.objective
        # Under prices the least value is not the least cost, so the kernel must not record it as the incumbent.
        least = self.best if self._prices is None else -math.inf
        least, self._now, done = anneal_batch(
            self._state.arrays,
            self.around,
            self._journal,
            self._random,
            steps,
            now_hot,
            now_cold,
            least,
            self._now,
            self.best_home,
            self._relocation,
        )
        # The running sums are recomputed, which removes the rounding errors of many moves.
        self._state.refresh()
        self._now = self._state.objective
        if self._prices is None:
            self.best = least
            return done
        if self._state.cost < self.best:
            self.best, self.best_home = self._state.cost, self._state.home
        return done

    @property
    def result(self) -> IntArray:
        """The result of the round that has ended."""
        return self._state.home if self._mode.end < 1 else self.best_home

    def begin_at(self, home: IntArray) -> None:
        """Continue from other homes, and forget the best assignment found."""
        self.best_home = home.copy()
        self.return_to_best()

    def return_to_best(self) -> None:
        """Continue from the best assignment found."""
        self._state = self._state_of(self.best_home)
        self.best = self._now = self._state.objective


def _near(instance: Instance) -> Neighbourhood:
    """Return the neighbourhood in which the nearest servers of each client are proposed most often."""
    near = nearest_servers(
        instance.client_x,
        instance.client_y,
        instance.server_x,
        instance.server_y,
        instance.explicit_client_delay,
        min(PARAMS.near_servers, instance.n_servers),
    )
    every = np.arange(instance.n_clients, dtype=np.int32)
    count = np.full(instance.n_clients, near.shape[1], np.int32)
    targets = PARAMS.near_targets
    return Neighbourhood(
        instance.members.start, instance.members.item, every, near, count, targets.to_topic, targets.to_near, 0
    )


def _within(instance: Instance, home: IntArray, servers: IntArray, everywhere: Neighbourhood) -> Neighbourhood:
    """Return the neighbourhood in which the clients of some servers move among these servers, and no others move."""
    moving = np.flatnonzero(np.isin(home, servers)).astype(np.int32)
    if not len(moving):
        return everywhere
    near = np.ascontiguousarray(np.broadcast_to(servers, (instance.n_clients, len(servers))))
    count = np.full(instance.n_clients, len(servers), np.int32)
    return everywhere._replace(moving=moving, near=near, near_count=count, to_topic=0, to_near=1024)


def _likely(instance: Instance, likely: npt.NDArray[np.bool_]) -> Neighbourhood:
    """Return the neighbourhood in which the likely servers of each client are proposed most often."""
    count = likely.sum(axis=1).astype(np.int32)
    moving = np.flatnonzero(count > 1).astype(np.int32)
    if not len(moving):
        moving = np.arange(instance.n_clients, dtype=np.int32)
    # Each row lists the likely servers first; ``count`` says how many entries of the row are likely servers.
    order = np.argsort(~likely, axis=1, kind="stable").astype(np.int32)[:, : max(1, int(count.max()))]
    return Neighbourhood(
        instance.members.start,
        instance.members.item,
        moving,
        np.ascontiguousarray(order),
        np.maximum(count, 1),
        PARAMS.likely_targets.to_topic,
        PARAMS.likely_targets.to_near,
        0,
    )
