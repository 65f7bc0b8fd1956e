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

from heuristics.proposals import Journal, Neighbourhood, anneal_batch, nearest_servers, sample_changes
from instances.errors import InputError
from instances.groups import IntArray
from instances.instance import Instance
from instances.nearest import nearest_server
from instances.randomness import random_words
from instances.solution import Progress, Solution
from instances.state import State

# Temperatures, as shares of the median change that a proposal makes. Rounds begin warm and hot in turn: warm ones
# polish, hot ones leave a valley for good, which small overloaded instances need.
HEATS, COLD = (0.2, 1.0), 0.005
# Proposals of one round, for each client and with a floor for small instances.
ROUND_PER_CLIENT, SHORTEST_ROUND = 10_000, 500_000
# Proposals between two looks at the clock.
BATCH = 1 << 16
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
    heats = itertools.cycle(HEATS)

    def time_is_left() -> bool:
        # Some proposals are made in any case: setting up may take longer than a short limit.
        return time_limit > 0 and (made == 0 or time.perf_counter() - begin < time_limit)

    while (moves == 0 or made < moves) and time_is_left():
        length = min(round_length, moves - made) if moves else round_length
        typical = search.typical_change()
        hot, cold = next(heats) * typical, COLD * typical
        done, progress = 0, 0.0
        round_begin = time.perf_counter() - begin
        while progress < 1:
            before = search.best
            done += search.batch(min(BATCH, length - done), hot, cold, progress, length)
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
    effort: float,
    go_on: Callable[[], bool],
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
    effort
        How long the round is, against one of :func:`solve`.
    go_on
        Asked now and then; the round ends early when it says no.
    """
    search = _Search(instance, start, seed, _near(instance) if likely is None else _likely(instance, likely))
    length = int(effort * max(ROUND_PER_CLIENT * len(search.around.moving), SHORTEST_ROUND))
    typical = search.typical_change()
    hot, cold = heat * typical, COLD * typical
    done = 0
    while done < length and go_on():
        done += search.batch(min(BATCH, length - done), hot, cold, done / length, length)
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

    def typical_change(self) -> float:
        """Return what proposals do around here: the median of the changes that are not 0."""
        change = np.abs(sample_changes(self._state.arrays, self.around, self._random, 2000))
        return float(np.median(change[change > 0])) if change.any() else 1.0

    def batch(self, steps: int, hot: float, cold: float, progress: float, length: int) -> int:
        """Make some proposals of a round of the given length; return how many."""
        now_hot = hot * (cold / hot) ** progress
        now_cold = hot * (cold / hot) ** (progress + steps / length)
        best, self._now, done = anneal_batch(
            self._state.arrays,
            self.around,
            self._journal,
            self._random,
            steps,
            now_hot,
            now_cold,
            self.best,
            self._now,
            self.best_home,
        )
        self.best = best
        # Rounding errors of many applied moves end here.
        self._state.refresh()
        self._now = self._state.objective
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
