"""Simulated annealing on the incremental state of an assignment.

Proposals move a single client, move all members of a topic on one server together, or exchange two clients. The search
consists of rounds. Each round starts from the best assignment so far, heats up again and cools down; in trials on the
paper's instances this was better than one slow cooling of the same length.

Where capacity is scarce, most proposals open a topic on a full server, and the changes of the objective are many times
larger than the differences between delays. Temperatures relative to these changes are too high. After the first rounds
such an instance gets rounds of its own, with temperatures relative to delays and with proposals that replace a topic on
a server by another one. These rounds form *chains*: a cooling from a high temperature, then short warm rounds on all
servers, then shorter ones on a few neighbouring servers each, always from the best homes of the chain. What chains find
differs by several percent, so a run has several of them. benchmarks/README.md compares this with fewer, longer rounds.
"""

import itertools
import math
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from relocbench.heuristics.anneal_kernel import Journal, Neighbourhood, anneal_batch, nearest_servers, sample_changes
from relocbench.heuristics.anneal_prices import FirstPrices, Prices
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.incremental_state import State
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.kernels.random_numbers import below, random_words, uniform
from relocbench.instances.nearest_server import nearest_server
from relocbench.instances.solution import Progress, Solution, report
from relocbench.instances.timeline.relocation_state import RelocatingState, Relocation


@dataclass(frozen=True)
class Round:
    """How one round of annealing runs.

    Attributes
    ----------
    heat
        The initial temperature, as a share of the typical change: the median of the absolute changes of the objective
        that random proposals make.
    priced
        Whether the loads of servers have prices (:mod:`heuristics.anneal_prices`) until shortly before the end.
    extra_capacity
        In a priced round, the share by which capacities are larger at its start.
    scarce
        Whether the round is made for scarce capacity: the typical change is that of the delays alone, some proposals
        are refits (:func:`heuristics.anneal_kernel.refit`), and sacrificed servers have no prices.
    effort
        The length of the round, relative to a usual round.
    first_prices
        The initial prices, if they are known.
    final_heat
        The temperature at the end, as a share of the typical change; None for the usual one.
    region
        The number of neighbouring servers among which clients move in this round, which are drawn at its start. All
        other clients stay. With 0 clients move among all servers.
    """

    heat: float
    priced: bool
    extra_capacity: float = 0.2
    scarce: bool = False
    effort: float = 1.0
    first_prices: FirstPrices | None = None
    final_heat: float | None = None
    region: int = 0


@dataclass(frozen=True, eq=False)
class Task:
    """One round, and the homes from which it starts.

    Attributes
    ----------
    mode
        How the round runs.
    start
        The homes from which it starts; None for the best homes so far.
    """

    mode: Round
    start: IntArray | None = None


# The rounds of a search. The best homes that a round found, those of its start included, are sent before the next one.
Tasks = Generator[Task, IntArray, None]


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
    sacrificed
        A server that processes less than this share of its publications locally counts as sacrificed.
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
    sacrificed: float = 0.75
    region_blur: float = 0.3


PARAMS = AnnealParams()
# With capacities larger by this factor no server is full.
UNLIMITED = 1e9
ROUND_PER_CLIENT = PARAMS.round_per_client
# The rounds follow one another in this order, again and again. Priced rounds find good homes when many servers are
# full, warm rounds improve the assignment locally, and hot rounds escape from a local optimum, which small overloaded
# instances need.
ROUNDS = (Round(0.2, priced=True), Round(0.2, priced=False), Round(1.0, priced=False))
# Where capacity is scarce, chains follow instead. A chain begins with one of these coolings in turn. A cooling without
# prices is better where a server is sacrificed, one with prices where all servers can be just full.
SCARCE_COOLINGS = (
    Round(3.5, priced=True, scarce=True, effort=0.6),
    Round(3.5, priced=False, scarce=True, effort=2.0),
)
# After its cooling a chain has rounds of the first kind on all servers until several in sequence do not find better
# homes, and then rounds on regions. The homes that a chain reaches depend on the cooling more than on these rounds.
WARM_ROUNDS = (
    Round(1.2, priced=True, extra_capacity=0.1, scarce=True, effort=0.3),
    Round(1.2, priced=True, extra_capacity=0.2, scarce=True, effort=0.3),
)
WARM_PATIENCE = 4
# The effort of a round on a region is for a region of all servers; it is shorter as far as the region is smaller.
REGION_ROUNDS = (Round(1.2, priced=True, extra_capacity=0.1, scarce=True, effort=0.1, region=6),)
REGION_PATIENCE = 32
# After this many chains the best homes of all are improved by longer rounds, and longer chains follow.
CHAINS = 8
MOST_DOUBLINGS = 10
# Costs that differ by less than this share are equal up to rounding.
SAME_COST = 1e-9


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
    trace = [(time.perf_counter() - begin, best, -math.inf)]
    report(on_progress, best_home, trace[0])
    made = 0

    def time_is_left() -> bool:
        # The first round always starts: the set-up alone may take longer than a short time limit.
        return time_limit > 0 and (made == 0 or time.perf_counter() - begin < time_limit)

    while (moves == 0 or made < moves) and time_is_left():
        task = next(rounds) if made == 0 else rounds.send(search.best_home)
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
    """Run one round of annealing that prefers the likely homes, and return the best homes found.

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
        The best homes found, one server per client.
    """
    search = _Search(instance, start, seed, _near(instance) if likely is None else _likely(instance, likely))
    length = int(mode.effort * max(PARAMS.round_per_client * len(search.around.moving), PARAMS.shortest_round))
    search.begin_round(length, mode)
    done, progress, used = 0, 0.0, time_used()
    while max(progress, used) < 1:
        done += search.run_batch(length - done, progress)
        used = time_used()
        progress = max(done / length, used)
    return search.best_home


def capacity_is_scarce(instance: Instance, home: IntArray, seed: int) -> bool:
    """Return whether most proposals change the loads of full servers, so that :func:`scarce_rounds` find better homes.

    Parameters
    ----------
    instance, seed
        As for every method.
    home
        Good homes.

    Returns
    -------
    bool
        Whether the typical change of the objective is many times that of the delays alone, and there are many clients.
    """
    if instance.n_clients < PARAMS.scarce_clients:
        return False
    search = _Search(instance, home, seed, _near(instance))
    return search.typical_change() > PARAMS.scarce_change * search.typical_change_of_delays()


def scarce_rounds(instance: Instance) -> Tasks:
    """Yield the rounds for scarce capacity, without end: chains, and then longer chains.

    Parameters
    ----------
    instance
        The problem.

    Yields
    ------
    Task
        A round and its start. The caller sends the best homes of the round, those of its start included.
    """
    start = best = nearest_server(instance)
    cost = evaluate(instance, best).objective
    for cycle in itertools.count():
        effort = 2.0 ** min(cycle, MOST_DOUBLINGS)
        for number in range(CHAINS + 1):
            if number < CHAINS:
                home = yield Task(_longer(SCARCE_COOLINGS[number % len(SCARCE_COOLINGS)], effort), start)
                home = yield from _improve(instance, home, effort)
            else:
                home = yield from _improve(instance, best, 2 * effort)
            now = evaluate(instance, home).objective
            if now < cost:
                best, cost = home, now


def _improve(instance: Instance, home: IntArray, effort: float) -> Generator[Task, IntArray, IntArray]:
    """Yield the rounds of a chain after its cooling, and return the best homes of the chain."""
    home = yield from _while_better(instance, home, [_longer(mode, effort) for mode in WARM_ROUNDS], WARM_PATIENCE)
    regions = [_longer(mode, effort * min(1.0, mode.region / instance.n_servers)) for mode in REGION_ROUNDS]
    return (yield from _while_better(instance, home, regions, REGION_PATIENCE))


def _while_better(
    instance: Instance, home: IntArray, modes: Sequence[Round], patience: int
) -> Generator[Task, IntArray, IntArray]:
    """Yield rounds until ``patience`` of them in sequence do not find better homes, and return the best homes."""
    cost, failures = evaluate(instance, home).objective, 0
    for mode in itertools.cycle(modes):
        if failures == patience:
            break
        found = yield Task(mode, home)
        now = evaluate(instance, found).objective
        failures += 1
        if now < cost * (1 - SAME_COST):
            home, cost, failures = found, now, 0
    return home


def _longer(mode: Round, effort: float) -> Round:
    """Return the same round with another length."""
    return replace(mode, effort=mode.effort * effort)


def _repeated(modes: Sequence[Round]) -> Tasks:
    """Yield rounds again and again, each from the best homes so far."""
    for mode in itertools.cycle(modes):
        yield Task(mode)


def _rounds(instance: Instance, search: "_Search", seed: int) -> Tasks:
    """Yield the rounds of :func:`solve` without end."""
    for mode in ROUNDS:
        yield Task(mode)
    scarce = capacity_is_scarce(instance, search.best_home, seed)
    yield from scarce_rounds(instance) if scarce else _repeated(ROUNDS)


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
        typical = unit = self.typical_change()
        final_heat = self._params.final_heat if mode.final_heat is None else mode.final_heat
        refits, sacrificed = 0, np.zeros(self._state.instance.n_servers, np.bool_)
        if mode.scarce:
            unit = self.typical_change_of_delays()
            # A refit may move clients to any server, so there are none in a round on a region.
            final_heat, refits = self._params.scarce_final_heat, 0 if mode.region else self._params.refits
            sacrificed = self._state.arrays.server["theta"] < self._params.sacrificed
        self.around = self.around._replace(refits=refits)
        self._length, self._hot, self._cold = length, mode.heat * unit, final_heat * unit
        self._prices = None
        if mode.priced:
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
        batch = max(params.smallest_batch, self._length // params.batches_per_round)
        steps = min(most, params.largest_batch, batch)
        cooling = self._cold / self._hot
        now_hot = self._hot * cooling**progress
        now_cold = self._hot * cooling ** (progress + steps / self._length)
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
