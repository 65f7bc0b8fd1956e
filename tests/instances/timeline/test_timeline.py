"""Timelines: epochs are instances with stable clients and topics, in the order of time."""

import dataclasses

import numpy as np
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.instance import Instance
from relocbench.instances.timeline.epoch import Epoch
from relocbench.instances.timeline.prices import Prices
from relocbench.instances.timeline.timeline import Timeline
from tests.samples import random_instance
from tests.timelines import random_timeline, timeline_of, two_servers

ONE = two_servers([1, 9], [[0, 1]])


def with_times(*times):
    epochs = [Epoch(number, start, length, [0, 1], [0], ONE) for number, (start, length) in enumerate(times)]
    return Timeline(ONE, lambda: iter(epochs), len(epochs))


def test_an_epoch_is_the_instance_that_it_was_made_of():
    timeline = random_timeline(5)
    for number, epoch in enumerate(timeline.epochs()):
        assert timeline.instance(number).hash == epoch.instance.hash
        assert timeline.epoch(number).clients.tolist() == epoch.clients.tolist()
    assert Timeline.static(ONE, n_epochs=4).instance(3) is ONE


def test_epochs_can_be_iterated_again_and_are_produced_only_when_needed():
    made = []

    def epochs():
        for number in range(10**6):
            made.append(number)
            yield Epoch(number, float(number), 1.0, [0, 1], [0], ONE)

    timeline = Timeline(ONE, epochs, 10**6)
    assert timeline.epoch(2).start == 2.0
    assert next(timeline.epochs()).number == 0
    assert made == [0, 1, 2, 0]


def test_the_hash_depends_on_everything_that_a_schedule_costs_and_on_nothing_else():
    timeline = timeline_of(([0, 1], [0], ONE), ([0, 1], [0], ONE))
    same = timeline_of(([0, 1], [0], ONE), ([0, 1], [0], dataclasses.replace(ONE, name="other")))
    assert timeline.hash == same.hash
    others = [
        timeline_of(([0, 1], [0], ONE)),
        timeline_of(([0, 1], [0], ONE), ([0, 2], [0], ONE)),
        timeline_of(([0, 1], [0], ONE), ([0, 1], [1], ONE)),
        timeline_of(([0, 1], [0], ONE), ([0, 1], [0], two_servers([1, 8], [[0, 1]]))),
        timeline.with_prices(handover=1),
        timeline.with_prices(spool=2),
        timeline.with_prices(publication_period=2),
        with_times((0, 10), (11, 10)),
        with_times((0, 10), (10, 11)),
    ]
    assert len({timeline.hash, *(other.hash for other in others)}) == 10


def test_instances_with_ids_become_epochs_with_stable_clients_and_topics():
    def epoch(clients, topics):
        servers = [(0, 0), (10, 0)]
        rows = [{"id": one, "x": x, "y": 0} for one, x in clients.items()]
        return Instance.of(servers=servers, clients=rows, topics=topics, storage=9, compute=9)

    timeline = Timeline.of(
        [epoch({"ann": 1, "bob": 2}, {"news": ["ann", "bob"]}), epoch({"bob": 3, "cid": 4}, {"chat": ["cid", "bob"]})],
        length=[5, 7],
    )
    first, second = timeline.epochs()
    assert timeline.client_ids == ["ann", "bob", "cid"]
    assert timeline.topic_ids == ["news", "chat"]
    assert (first.clients.tolist(), second.clients.tolist()) == ([0, 1], [1, 2])
    assert (first.topics.tolist(), second.topics.tolist()) == ([0], [1])
    assert (first.start, first.end, second.start, second.end) == (0, 5, 5, 12)


def test_gaps_between_epochs_are_allowed():
    assert [epoch.start for epoch in with_times((0, 10), (25, 10)).epochs()] == [0, 25]


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (
            lambda: with_times((0, 10), (20, 10), (10, 10)),
            "epochs[2]: start: expected at least 20, the start of the epoch before, got 10; sort the epochs by start",
        ),
        (
            lambda: with_times((0, 10), (8, 10)),
            "epochs[1]: start: expected at least 10, the end of the epoch before, got 8; "
            "shorten the epoch before or begin later",
        ),
        (
            lambda: Timeline(ONE, lambda: iter([Epoch(1, 0.0, 1.0, [0, 1], [0], ONE)]), 1),
            "epochs[0]: expected epoch 0, got 1; number the epochs from 0",
        ),
        (
            lambda: Timeline(
                ONE, lambda: iter([Epoch(0, 0, 1, [0, 4], [0], ONE)]), 1, parameters={"client_ids": ["a", "b"]}
            ),
            "epochs[0]: client[1]: expected a client from 0 to 1, got 4; add it to client_ids of the timeline",
        ),
        (
            lambda: Timeline(two_servers([1], [[0]], storage=7.0), lambda: iter([Epoch(0, 0, 1, [0, 1], [0], ONE)]), 1),
            "epochs[0]: storage_capacity: expected the same servers, capacities and delays in every epoch",
        ),
        (lambda: Timeline(ONE, lambda: iter([]), 1), "epochs: expected 1, got 0"),
        (
            lambda: with_times((0, -3)),
            "length: expected seconds above 0 to 1e+12, got -3.0",
        ),
        (lambda: with_times((0, float("nan"))), "length: expected seconds above 0 to 1e+12, got nan"),
        (
            lambda: timeline_of(([3, 3], [0], ONE)),
            "client[1]: client 3 is listed twice; list each client once per epoch",
        ),
        (lambda: timeline_of(([3], [0], ONE)), "client: expected 2 whole numbers, one for each client, got [3]"),
        (lambda: timeline_of(([3, -1], [0], ONE)), "client[1]: expected a number from 0 to 2147483647, got -1"),
        (lambda: Timeline.of([]), "epochs: expected at least one epoch, got none"),
        (lambda: Timeline.of([ONE], length=[1, 2]), "length: expected seconds, one number or 1 numbers, got [1, 2]"),
        (lambda: Prices(handover=-1), "prices.handover: expected a number from 0 to 1e+12, got -1"),
        (
            lambda: Prices(publication_period=0),
            "prices.publication_period: expected a number from 1e-12 to 1e+12, got 0",
        ),
    ],
)
def test_a_wrong_timeline_is_refused_in_one_line(make, problem):
    with pytest.raises(InputError) as error:
        list(make().epochs())
    assert str(error.value) == problem


def test_the_number_of_an_epoch_must_exist():
    with pytest.raises(InputError, match=r"^epoch: expected a number from 0 to 1, got 2$"):
        with_times((0, 1), (1, 1)).epoch(2)


def test_the_arrays_of_an_epoch_cannot_be_changed():
    epoch = Timeline.static(random_instance(1), n_epochs=1).epoch(0)
    with pytest.raises(ValueError, match="read-only"):
        epoch.clients[0] = 7
    assert epoch.clients.dtype == np.int32
