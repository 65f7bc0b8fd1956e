"""Annealing that pays for relocation: it counts what the evaluator counts, and finds the least sum."""

import itertools

import numpy as np
import pytest

from relocbench.heuristics.anneal import relocate
from relocbench.instances.timeline.relocation_state import RelocatingState, relocation_to
from relocbench.instances.timeline.schedule_cost import carried_homes, schedule_cost
from tests.timelines import random_homes, random_timeline, timeline_of, two_servers


def second_epoch(seed):
    """Return a timeline of two epochs, the homes of the first, homes to start from in the second, and its prices."""
    timeline = random_timeline(seed, n_epochs=2)
    before, epoch = timeline.epochs()
    first, second = random_homes(timeline, seed)
    prices = relocation_to(epoch, timeline.prices, epoch.length, (before, first))
    return timeline, epoch, first, second.astype(np.int32), prices


def can_be_enumerated(seed):
    timeline, epoch, *_ = second_epoch(seed)
    return 1 < timeline.n_servers**epoch.instance.n_clients <= 300


@pytest.mark.parametrize("seed", list(itertools.islice(filter(can_be_enumerated, itertools.count()), 20)))
def test_the_least_cost_of_the_schedule_is_found_on_small_instances(seed):
    timeline, epoch, first, start, prices = second_epoch(seed)
    found = relocate(epoch.instance, prices, start, seed=0, time_limit=60, moves=20_000)
    least = min(
        schedule_cost(timeline, [first, home]).total
        for home in itertools.product(range(timeline.n_servers), repeat=epoch.instance.n_clients)
    )
    assert schedule_cost(timeline, [first, found.home]).total == pytest.approx(least, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(16))
def test_the_sum_of_delay_and_relocation_never_rises(seed):
    timeline, epoch, first, start, prices = second_epoch(seed)
    found = relocate(epoch.instance, prices, start, seed=seed, time_limit=60, moves=3000)
    before, after = (schedule_cost(timeline, [first, home]).total for home in (start, found.home))
    assert after <= before * (1 + 1e-9) + 1e-9
    objective = RelocatingState(epoch.instance, found.home, prices).objective
    assert found.trace[-1][1] == pytest.approx(objective, rel=1e-9, abs=1e-9)


def test_when_relocation_is_very_dear_only_arrivals_choose_a_home():
    before = two_servers([1, 2], [[0, 1]])
    after = two_servers([9, 9, 9], [[0, 1, 2]])
    timeline = timeline_of(([0, 1], [0], before), ([0, 1, 2], [0], after), handover=1e9, spool=0.0)
    first, second = timeline.epochs()
    home = np.array([0, 0], np.int32)
    prices = relocation_to(second, timeline.prices, second.length, (first, home))
    start = carried_homes(first, home, second)
    start[start < 0] = 0
    found = relocate(second.instance, prices, start, seed=0, time_limit=60, moves=2000)
    assert found.home[:2].tolist() == [0, 0]
    free = relocation_to(second, timeline.with_prices(handover=0, spool=0).prices, second.length, (first, home))
    found = relocate(second.instance, free, start, seed=0, time_limit=60, moves=2000)
    assert found.home.tolist() == [1, 1, 1]
