"""Simulated annealing on the incremental state: single clients, whole groups of a topic, and exchanges.

Rounds of annealing follow one another, each from the best assignment so far and heated anew; in trials on the
paper's instances that beat one slow cooling of the same length.
"""

import itertools
import math
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from relocbench.heuristics.anneal_kernel import Journal, Neighbourhood, anneal_batch, nearest_servers, sample_changes
from relocbench.heuristics.anneal_prices import Prices
from relocbench.instances.errors import InputError
from relocbench.instances.incremental_state import State
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.kernels.random_numbers import random_words
from relocbench.instances.nearest_server import nearest_server
from relocbench.instances.solution import Progress, Solution

# Rounds, in turn: how hot they begin, as a share of the median change that a proposal makes, and whether loads have a
# price until shortly before the end. Priced ones find good homes between full servers, warm ones polish, hot ones leave
# a valley for good, which small overloaded instances need.
ROUNDS = ((0.2, True), (0.2, False), (1.0, False))
COLD, PRICED_PART = 0.005, 0.85
# Proposals of one round, for each client and with a floor for small instances.
ROUND_PER_CLIENT, SHORTEST_ROUND = 10_000, 500_000
# Proposals between two looks at the clock and at the loads: at most, and of a round at least.
BATCH, SMALLEST_BATCH = 1 << 16, 1 << 11
LOOKS = 100  # in a round, if batches are not too small then
JOURNAL = 1 << 18
NEAR_SERVERS = 4
# Where to, of every 1024: to a server where the topic is, to one of the client's nearest; else to any.
TO_TOPIC, TO_NEAR = 560, 400
# The same among homes that a bound has left: there the likely ones are worth more than the near ones.
TO_TOPIC_LIKELY, TO_LIKELY = 200, 824


def solve(
    instance: Instance,
    *,
    seed: int,
    time_limit: float,
    start: IntArray | None = None,
    on_progress: Progress | None = None,
    moves: int = 0,
) -> Solution:
    """Anneal.

    Parameters
    ----------
    instance, seed
        As for every method.
    time_limit
        Seconds after which it stops.
    start
        An assignment to begin from; by default the nearest servers.
    on_progress
        Called whenever a better assignment is found.
    moves
        Proposals to make; the same number and seed give the same homes as long as the time limit is not reached. 0 goes
        on until the time limit.
    """
    if moves < 0:
        raise InputError("method anneal: moves", f"expected at least 0, got {moves}")
    begin = time.perf_counter()
    search = _Search(instance, nearest_server(instance) if start is None else start, seed, _near(instance))
    round_length = max(ROUND_PER_CLIENT * instance.n_clients, SHORTEST_ROUND)
    trace = [(time.perf_counter() - begin, search.best, -math.inf)]
    made = 0
    rounds = itertools.cycle(ROUNDS)

    def time_is_left() -> bool:
        # Some proposals are made in any case: setting up may take longer than a short limit.
        return time_limit > 0 and (made == 0 or time.perf_counter() - begin < time_limit)

    while (moves == 0 or made < moves) and time_is_left():
        length = min(round_length, moves - made) if moves else round_length
        search.begin_round(length, *next(rounds))
        done, progress = 0, 0.0
        round_begin = time.perf_counter() - begin
        while progress < 1:
            before = search.best
            done += search.batch(length - done, progress)
            progress = done / length
            now = time.perf_counter() - begin
            if search.best < before:
                trace.append((now, search.best, -math.inf))
                if on_progress is not None:
                    on_progress(*trace[-1])
            if moves == 0:
                # A round that the time is too short for cools faster, and still ends cold.
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
    heat: float,
    priced: bool,
    effort: float,
    time_used: Callable[[], float],
) -> IntArray:
    """Anneal for one round where the best homes are likely to be, and return the best homes met.

    Parameters
    ----------
    instance, start, seed
        As for every method.
    likely
        The homes that proposals mostly draw from (``M×L``); a client with only one stays where it is, unless its whole
        topic moves. None: the nearest servers, as usual.
    heat
        The temperature to begin with, as a share of the median change that a proposal makes.
    priced
        Whether loads have a price on the way.
    effort
        How long the round is, against one of :func:`solve`.
    time_used
        Asked now and then, for a share of the time there is: a round that the time is too short for cools faster, and
        ends at 1.
    """
    search = _Search(instance, start, seed, _near(instance) if likely is None else _likely(instance, likely))
    length = int(effort * max(ROUND_PER_CLIENT * len(search.around.moving), SHORTEST_ROUND))
    search.begin_round(length, heat, priced)
    done, progress, used = 0, 0.0, time_used()
    while max(progress, used) < 1:
        done += search.batch(length - done, progress)
        used = time_used()
        progress = max(done / length, used)
    return search.best_home


class _Search:
    """A state under annealing, and the best it has been in."""

    def __init__(self, instance: Instance, start: IntArray, seed: int, around: Neighbourhood) -> None:
        self._state = State(instance, start)
        self.around = around
        size = JOURNAL + 2 * instance.n_clients
        self._journal = Journal(np.empty(size, np.int32), np.empty(size, np.int32))
        self._random = random_words(seed)
        self.best = self._now = self._state.objective
        self.best_home = self._state.home
        self._prices: Prices | None = None

    def begin_round(self, length: int, heat: float, priced: bool) -> None:
        """Get ready for a round of so many proposals."""
        change = np.abs(sample_changes(self._state.arrays, self.around, self._random, 2000))
        # The median of the changes that are not 0 tells what a temperature means around here.
        typical = float(np.median(change[change > 0])) if change.any() else 1.0
        self._length, self._hot, self._cold = length, heat * typical, COLD * typical
        self._prices = Prices(self._state.instance, typical) if priced else None

    def batch(self, most: int, progress: float) -> int:
        """Make some proposals of a round that is so far on; return how many."""
        steps = min(most, BATCH, max(SMALLEST_BATCH, self._length // LOOKS))
        cooling = self._cold / self._hot
        now_hot = self._hot * cooling**progress
        now_cold = self._hot * cooling ** (progress + steps / self._length)
        if self._prices is not None:
            if progress < PRICED_PART:
                self._prices.impose(self._state, progress / PRICED_PART)
            else:
                self._prices = None
                self._state.restore_capacities()
            self._now = self._state.objective
        # What is least under prices is not what costs least.
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
        )
        # Rounding errors of many applied moves end here.
        self._state.refresh()
        self._now = self._state.objective
        if self._prices is None:
            self.best = least
            return done
        if self._state.cost < self.best:
            self.best, self.best_home = self._state.cost, self._state.home
        return done

    def return_to_best(self) -> None:
        """Begin the next round where the cost was least."""
        self._state = State(self._state.instance, self.best_home)
        self.best = self._now = self._state.objective


def _near(instance: Instance) -> Neighbourhood:
    near = nearest_servers(
        instance.client_x,
        instance.client_y,
        instance.server_x,
        instance.server_y,
        instance.explicit_client_delay,
        min(NEAR_SERVERS, instance.n_servers),
    )
    every = np.arange(instance.n_clients, dtype=np.int32)
    count = np.full(instance.n_clients, near.shape[1], np.int32)
    return Neighbourhood(instance.members.start, instance.members.item, every, near, count, TO_TOPIC, TO_NEAR)


def _likely(instance: Instance, likely: npt.NDArray[np.bool_]) -> Neighbourhood:
    count = likely.sum(axis=1).astype(np.int32)
    moving = np.flatnonzero(count > 1).astype(np.int32)
    if not len(moving):
        moving = np.arange(instance.n_clients, dtype=np.int32)
    # The likely servers first, in any order: which ones count is told by their number.
    order = np.argsort(~likely, axis=1, kind="stable").astype(np.int32)[:, : max(1, int(count.max()))]
    return Neighbourhood(
        instance.members.start,
        instance.members.item,
        moving,
        np.ascontiguousarray(order),
        np.maximum(count, 1),
        TO_TOPIC_LIKELY,
        TO_LIKELY,
    )
