"""Simulated annealing on the incremental state of an assignment.

Proposals move a single client, move all members of a topic on one server together, or exchange two clients. The search
consists of rounds. Each round starts from the best assignment so far, heats up again and cools down; in trials on the
paper's instances this was better than one slow cooling of the same length.

Where capacity is scarce, most proposals open a topic on a full server, and the changes of the objective are many times
larger than the differences between delays. Temperatures relative to these changes are too high. After the first rounds
such an instance gets rounds of its own: slower, with temperatures relative to delays, and with proposals that replace a
topic on a server by another one.
"""

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from relocbench.heuristics.anneal_kernel import Journal, Neighbourhood, anneal_batch, nearest_servers, sample_changes
from relocbench.heuristics.anneal_prices import FirstPrices, Prices
from relocbench.instances.errors import InputError
from relocbench.instances.incremental_state import State
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.kernels.random_numbers import random_words
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
    """

    heat: float
    priced: bool
    extra_capacity: float = 0.2
    scarce: bool = False
    effort: float = 1.0
    first_prices: FirstPrices | None = None
    final_heat: float | None = None


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


PARAMS = AnnealParams()
# With capacities larger by this factor no server is full.
UNLIMITED = 1e9
ROUND_PER_CLIENT = PARAMS.round_per_client
# The rounds follow one another in this order, again and again. Priced rounds find good homes when many servers are
# full, warm rounds improve the assignment locally, and hot rounds escape from a local optimum, which small overloaded
# instances need.
ROUNDS = (Round(0.2, priced=True), Round(0.2, priced=False), Round(1.0, priced=False))
# Where capacity is scarce, these rounds follow instead. They are twice as long each time they are repeated. A slow
# cooling decides which topics are where and which server is sacrificed; three shorter rounds improve this. A cooling
# without prices is better where a server is sacrificed, one with prices where all servers can be just full.
_IMPROVING = (
    Round(0.6, priced=True, extra_capacity=0.05, scarce=True, effort=1.5),
    Round(1.2, priced=False, scarce=True, effort=1.5),
    Round(0.6, priced=True, extra_capacity=0.1, scarce=True, effort=1.5),
)
SCARCE_ROUNDS = (
    Round(3.5, priced=False, scarce=True, effort=5.0),
    *_IMPROVING,
    Round(3.5, priced=True, scarce=True, effort=2.5),
    *_IMPROVING,
)
MOST_DOUBLINGS = 10


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
    return _in_rounds(search, itertools.cycle(ROUNDS), begin, time_limit, moves, None)


def _in_rounds(
    search: "_Search",
    rounds: Iterator[Round],
    begin: float,
    time_limit: float,
    moves: int,
    on_progress: Progress | None,
) -> Solution:
    """Run rounds until the time limit or the number of proposals is reached."""
    instance = search.instance
    round_length = max(PARAMS.round_per_client * instance.n_clients, PARAMS.shortest_round)
    trace = [(time.perf_counter() - begin, search.best, -math.inf)]
    report(on_progress, search.best_home, trace[0])
    made = 0

    def time_is_left() -> bool:
        # The first round always starts: the set-up alone may take longer than a short time limit.
        return time_limit > 0 and (made == 0 or time.perf_counter() - begin < time_limit)

    while (moves == 0 or made < moves) and time_is_left():
        mode = next(rounds)
        length = int(mode.effort * round_length)
        if moves:
            length = min(length, moves - made)
        search.begin_round(length, mode)
        done, progress = 0, 0.0
        round_begin = time.perf_counter() - begin
        while progress < 1:
            before = search.best
            done += search.run_batch(length - done, progress)
            progress = done / length
            now = time.perf_counter() - begin
            if search.best < before:
                trace.append((now, search.best, -math.inf))
                report(on_progress, search.best_home, trace[-1])
            if moves == 0:
                # If the remaining time is too short for the round, it cools faster, so that it still ends cold.
                progress = max(progress, (now - round_begin) / max(time_limit - round_begin, 1e-9))
            elif now >= time_limit:
                break
        made += done
        search.return_to_best()
    return Solution(search.best_home, trace=tuple(trace))


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


def scarce_rounds() -> Iterator[Round]:
    """Return the rounds for scarce capacity, without end and longer and longer.

    Returns
    -------
    iterator of Round
        The rounds.
    """
    for cycle in itertools.count():
        for mode in SCARCE_ROUNDS:
            yield replace(mode, effort=mode.effort * 2 ** min(cycle, MOST_DOUBLINGS))


def _rounds(instance: Instance, search: "_Search", seed: int) -> Iterator[Round]:
    """Yield the rounds of :func:`solve` without end."""
    yield from ROUNDS
    scarce = capacity_is_scarce(instance, search.best_home, seed)
    yield from scarce_rounds() if scarce else itertools.cycle(ROUNDS)


class _Search:
    """The current assignment, the best assignment found, and the temperature schedule of the current round."""

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
        self.around = around
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
        typical = unit = self.typical_change()
        final_heat = self._params.final_heat if mode.final_heat is None else mode.final_heat
        refits, sacrificed = 0, np.zeros(self._state.instance.n_servers, np.bool_)
        if mode.scarce:
            unit = self.typical_change_of_delays()
            final_heat, refits = self._params.scarce_final_heat, self._params.refits
            sacrificed = self._state.arrays.server["theta"] < self._params.sacrificed
        self.around = self.around._replace(refits=refits)
        self._length, self._hot, self._cold = length, mode.heat * unit, final_heat * unit
        self._prices = None
        if mode.priced:
            instance = self._state.instance
            self._prices = Prices(instance, typical, mode.extra_capacity, sacrificed, mode.first_prices)

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
