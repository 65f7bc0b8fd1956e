"""Bounds of epochs: valid, close to the optimum, the same each time."""

import pytest

import relocbench
from relocbench.instances.timeline.prices import Prices
from relocbench.runs.timeline.epoch_bounds import EpochBoundParams, epoch_bounds, timeline_bound

PARAMETERS = {"n_epochs": 4, "topics": 4, "servers": 3, "max_topic_size": 4, "speed": 80.0}


@pytest.fixture(scope="module")
def timeline():
    return relocbench.generate_timeline(2, topic_churn=20.0, **PARAMETERS)


def test_bounds_are_below_good_homes_and_close_to_them(timeline):
    for epoch, bound in zip(timeline.epochs(), epoch_bounds(timeline.epochs()), strict=True):
        best = relocbench.solve(epoch.instance, "anneal[moves=20000]").objective
        assert 0.95 * best <= bound <= best


def test_every_schedule_costs_at_least_the_bound(timeline):
    lengths = [epoch.length for epoch in timeline.epochs()]
    bound = timeline_bound(lengths, epoch_bounds(timeline.epochs()), timeline.prices)
    for policy, method in (("never", "nearest"), ("always", "adaptive")):
        replay = relocbench.replay(timeline, policy, method)
        assert bound.total <= replay.cost.total
        assert all(least <= row.total for least, row in zip(bound.epochs, replay.rows, strict=True))
    assert sum(bound.epochs) == pytest.approx(bound.total)


def test_the_bound_counts_rounds_of_publications():
    assert timeline_bound([60.0, 30.0], [2.0, 4.0], Prices(publication_period=3.0)).epochs == (40.0, 40.0)


def test_a_large_epoch_gets_the_distances(timeline):
    epoch = timeline.epoch(0)
    instance = epoch.instance
    [bound] = epoch_bounds([epoch], params=EpochBoundParams(most_pairs=0))
    nearest = relocbench.solve(instance, "nearest").home
    distances = sum(
        weight * instance.client_delay(client, server)
        for client, (weight, server) in enumerate(zip(instance.client_weight, nearest, strict=True))
    )
    assert bound == pytest.approx(distances, rel=1e-6)
    assert bound < epoch_bounds([epoch])[0]


def test_the_same_epochs_give_the_same_bounds(timeline):
    assert epoch_bounds(timeline.epochs()) == epoch_bounds(timeline.epochs())
