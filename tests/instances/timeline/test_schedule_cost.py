"""The cost of a schedule: the evaluator and the incremental one agree with the definition on every timeline."""

import dataclasses

import numpy as np
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.incremental_state import State
from relocbench.instances.kernels.ragged import Ragged
from relocbench.instances.timeline.relocation_state import RelocatingState, relocation_to
from relocbench.instances.timeline.schedule_cost import CostMeter, relocation, schedule_cost
from relocbench.instances.timeline.timeline import Timeline
from tests.samples import random_instance
from tests.timelines import literal_schedule_cost, random_homes, random_timeline, timeline_of, two_servers


@pytest.mark.parametrize("seed", range(64))
def test_the_cost_is_the_literal_one(seed):
    timeline = random_timeline(seed)
    homes = random_homes(timeline, seed)
    cost = schedule_cost(timeline, homes)
    for name, value in literal_schedule_cost(timeline, homes).items():
        assert getattr(cost, name) == pytest.approx(value, rel=1e-12, abs=1e-12), name


@pytest.mark.parametrize("seed", range(32))
def test_a_move_changes_the_incremental_cost_by_what_the_literal_cost_of_the_schedule_changes(seed):
    """The schedule has two epochs; the moves are in the second one."""
    timeline = random_timeline(seed, n_epochs=2)
    before, epoch = timeline.epochs()
    first, second = random_homes(timeline, seed)
    rounds = epoch.length / timeline.prices.publication_period
    moves = relocation_to(epoch, timeline.prices, epoch.length, (before, first))
    state = RelocatingState(epoch.instance, second, moves)
    rng = np.random.default_rng(seed)
    constant = literal_schedule_cost(timeline, [first, second])["total"] - rounds * state.objective
    for _ in range(12):
        client, server = int(rng.integers(epoch.instance.n_clients)), int(rng.integers(timeline.n_servers))
        expected = state.objective + state.delta(client, server)
        state.move(client, server)
        assert state.objective == pytest.approx(expected, rel=1e-9, abs=1e-9)
        total = literal_schedule_cost(timeline, [first, state.home])["total"]
        assert constant + rounds * state.objective == pytest.approx(total, rel=1e-9, abs=1e-9)
    state.refresh()
    assert state.cost == pytest.approx(state.objective, rel=1e-12, abs=1e-12)


def test_without_homes_before_the_incremental_cost_is_that_of_the_instance():
    timeline = random_timeline(3)
    epoch = timeline.epoch(0)
    home = np.zeros(epoch.instance.n_clients, int)
    nothing = relocation_to(epoch, timeline.prices, 1.0, None)
    assert RelocatingState(epoch.instance, home, nothing).objective == State(epoch.instance, home).objective


@pytest.mark.parametrize("seed", range(0, 32, 5))
def test_a_static_timeline_costs_in_each_epoch_exactly_what_the_instance_costs(seed):
    instance = random_instance(seed)
    home = np.random.default_rng(seed).integers(instance.n_servers, size=instance.n_clients)
    timeline = Timeline.static(instance, n_epochs=3, length=1)
    meter = CostMeter(timeline.prices)
    for epoch in timeline.epochs():
        cost = meter.add(epoch, home)
        assert cost.total == cost.delay_cost == evaluate(instance, home).objective
        assert (cost.handovers, cost.spool_moved) == (0, 0.0)
    assert meter.total.seconds == 3


def test_a_client_that_arrives_or_returns_is_no_handover():
    here = two_servers([1, 9], [[0, 1]])
    alone = two_servers([9], [[0]])
    timeline = timeline_of(([4, 7], [0], here), ([7], [0], alone), ([4, 7], [0], here))
    # Client 4 leaves and returns to another server; client 7 stays where it is.
    assert schedule_cost(timeline, [[0, 1], [1], [1, 1]]).handovers == 0
    assert schedule_cost(timeline, [[0, 1], [0], [1, 1]]).handovers == 2


def test_a_topic_that_appears_or_reappears_copies_nothing_and_one_that_spreads_copies_its_spool():
    one = two_servers([1, 9], [[0, 1]])
    both = two_servers([1, 9], [[0, 1], [0]], spool=3.0)
    appears = timeline_of(([0, 1], [5], one), ([0, 1], [5, 6], both), spool=2.0)
    assert schedule_cost(appears, [[0, 1], [0, 1]]).spool_moved == 0
    # Topic 5 opens on server 0, where it was not; it has the spool of the later epoch.
    spreads = schedule_cost(appears, [[1, 1], [0, 1]])
    assert (spreads.spool_moved, spreads.spool_cost, spreads.handovers) == (3.0, 6.0, 1)
    reappears = timeline_of(([0, 1], [5], one), ([0, 1], [6], one), ([0, 1], [5], one))
    assert schedule_cost(reappears, [[0, 0], [0, 0], [1, 1]]).spool_moved == 0


def test_a_topic_with_subscribers_only_has_no_spool_to_copy():
    spoken = two_servers([1, 9], [[0, 1]])
    silent = dataclasses.replace(spoken, publishers=Ragged.of([[]]))
    timeline = timeline_of(([0, 1], [5], silent), ([0, 1], [5], spoken))
    assert schedule_cost(timeline, [[0, 0], [1, 1]]).spool_moved == 0


def test_homes_that_change_within_an_epoch_are_counted_in_parts():
    instance = two_servers([1, 9], [[0, 1]])
    [epoch] = timeline_of(([0, 1], [0], instance), handover=7.0).epochs()
    timeline = timeline_of(([0, 1], [0], instance), handover=7.0, spool=0.0)
    meter = CostMeter(timeline.prices)
    meter.add(epoch, [0, 0], 4.0)
    meter.add(epoch, [0, 1], 6.0)
    expected = 4 * evaluate(instance, [0, 0]).objective + 6 * evaluate(instance, [0, 1]).objective + 7
    assert meter.total.total == pytest.approx(expected)
    assert (meter.total.seconds, meter.total.handovers) == (10.0, 1)


def test_prices_of_zero_leave_only_the_delay():
    timeline = random_timeline(8).with_prices(handover=0, spool=0)
    homes = random_homes(timeline, 1)
    cost = schedule_cost(timeline, homes)
    assert cost.total == cost.delay_cost
    assert cost.handovers > 0


def test_relocation_is_found_in_any_order_of_clients_and_topics():
    instance = two_servers([1, 9, 5], [[0, 1], [2]])
    shuffled = two_servers([9, 5, 1], [[1], [2, 0]])
    before, epoch = timeline_of(([3, 1, 2], [8, 4], instance), ([1, 2, 3], [4, 8], shuffled)).epochs()
    same = relocation(before, np.array([0, 1, 1]), epoch, np.array([1, 1, 0]))
    assert same == (0, 0.0)


def test_homes_for_too_few_or_too_many_epochs_are_refused():
    timeline = timeline_of(([0], [0], two_servers([1], [[0]])), ([0], [0], two_servers([2], [[0]])))
    with pytest.raises(InputError, match=r"^homes: expected homes for 2 epochs, got 1$"):
        schedule_cost(timeline, [[0]])
    with pytest.raises(InputError, match=r"^homes: expected homes for 2 epochs, got more$"):
        schedule_cost(timeline, [[0]] * 3)
    with pytest.raises(InputError, match=r"^homes\[1\]: home\[0\]: expected a server from 0 to 1, got 2$"):
        schedule_cost(timeline, [[0], [2]])
