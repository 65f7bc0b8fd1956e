"""Generated timelines: the same for the same seed, with the movement that their parameters say."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.generate import generate
from relocbench.instances.nearest_server import nearest_server
from relocbench.instances.timeline.movement import MOVEMENTS
from relocbench.instances.timeline.moving_generator import MOVING, SPEEDS, MovingCell, generate_timeline
from relocbench.instances.timeline.prices import Prices
from relocbench.instances.timeline.schedule_cost import CostMeter

SMALL = {"topics": 8, "servers": 4, "n_epochs": 6}
# They must never change: everybody's timelines are built from these draws.
GOLDEN = {
    "static": "37362411be14d20468327273f2a183a72265e6ed012d399b6ea3003c1fb351e7",
    "waypoint": "39d9674d7204c2130e5cb5c2e80d8f66c61807d90bf0f4cb3207379543396a9f",
    "gauss-markov": "b413900fc4ea869bf18a584e351270e847c316bf0a791581a1484f58ce2b4547",
    "commuters": "701df7c9581c7c5ac794047af8a9dc8e87f4a0d0517268c4153486426781dd82",
}


def positions(timeline):
    return [np.column_stack([epoch.instance.client_x, epoch.instance.client_y]) for epoch in timeline.epochs()]


@pytest.mark.parametrize("movement", MOVEMENTS)
def test_a_timeline_is_determined_by_its_parameters_and_its_seed(movement):
    timeline = generate_timeline(5, movement=movement, topic_churn=2.0, **SMALL)
    assert timeline.hash == GOLDEN[movement]
    assert timeline.hash == generate_timeline(5, movement=movement, topic_churn=2.0, **SMALL).hash
    assert timeline.hash != generate_timeline(6, movement=movement, topic_churn=2.0, **SMALL).hash


def test_another_process_generates_the_same():
    program = (
        "from relocbench.instances.timeline.moving_generator import generate_timeline\n"
        f"print(generate_timeline(5, movement='waypoint', topic_churn=2.0, **{SMALL}).hash)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == GOLDEN["waypoint"]


@pytest.mark.parametrize("movement", ["static", "waypoint", "gauss-markov"])
def test_the_first_epoch_is_the_instance_of_the_family_paper(movement):
    timeline = generate_timeline(2, movement=movement, sigma=10, load=1.2, **SMALL)
    expected = generate("paper", seed=2, sigma=10, load=1.2, topics=8, servers=4)
    assert timeline.instance(0).hash == expected.hash


@pytest.mark.parametrize("parameters", [{"movement": "static"}, {"speed": 0.0}])
def test_without_movement_every_epoch_reproduces_the_numbers_of_the_instance(parameters):
    timeline = generate_timeline(2, epoch_length=1.0, **parameters, **SMALL)
    instance = generate("paper", seed=2, sigma=5, topics=8, servers=4)
    home = nearest_server(instance)
    meter = CostMeter(timeline.prices)
    for epoch in timeline.epochs():
        assert epoch.instance.hash == instance.hash
        assert meter.add(epoch, home).total == evaluate(instance, home).objective


@pytest.mark.parametrize("movement", ["waypoint", "gauss-markov"])
def test_a_path_does_not_depend_on_how_often_it_is_sampled(movement):
    often = positions(generate_timeline(1, movement=movement, topics=8, n_epochs=9, epoch_length=30.0))
    seldom = positions(generate_timeline(1, movement=movement, topics=8, n_epochs=3, epoch_length=120.0))
    for one, other in zip(often[::4], seldom, strict=True):
        assert np.abs(one - other).max() <= 1e-6


@pytest.mark.parametrize(("movement", "expected"), [("waypoint", 36.0), ("gauss-markov", 36.0)])
def test_clients_move_at_their_speed_and_stay_in_the_field(movement, expected):
    timeline = generate_timeline(
        4, movement=movement, speed=36.0, pause=0.0, memory=30.0, n_epochs=60, epoch_length=10.0, sigma=20
    )
    places = positions(timeline)
    assert all((place >= 0).all() and (place <= 25).all() for place in places)
    steps = [np.hypot(*(one - other).T) for one, other in itertools.pairwise(places)]
    # Straight lines between samples are a little shorter than the paths.
    assert np.mean(steps) * 360 == pytest.approx(expected, rel=0.05)


def test_clients_pause_at_waypoints():
    timeline = generate_timeline(4, speed=36.0, pause=600.0, n_epochs=40, epoch_length=10.0, sigma=1)
    still = [
        (one == other).all(axis=1) for one, other in zip(positions(timeline), positions(timeline)[1:], strict=False)
    ]
    assert np.mean(still) > 0.3


def test_waypoints_keep_the_members_of_a_topic_together():
    def spread(sigma):
        timeline = generate_timeline(
            1, speed=100.0, sigma=sigma, n_epochs=2, epoch_length=3600.0, max_topics_per_client=1
        )
        last = timeline.instance(1)
        return np.mean([last.client_x[members].std() for members in last.members if len(members) > 3])

    assert 0.5 < spread(1.0) < 1.5
    assert spread(20.0) > 4


def test_commuters_go_to_work_and_come_back():
    timeline = generate_timeline(3, movement="commuters", speed=200.0, sigma=1.0, n_epochs=101, epoch_length=60.0)
    places = positions(timeline)
    away = np.hypot(*(places[50] - places[0]).T)
    assert away.min() > 8
    assert np.abs(places[100] - places[0]).max() < 1e-6


def test_topics_are_replaced_at_their_rate_by_new_ones_and_clients_without_a_topic_leave():
    timeline = generate_timeline(7, movement="static", topic_churn=3.0, n_epochs=60, topics=40)
    epochs = list(timeline.epochs())
    replaced = sum(len(set(one.topics) - set(other.topics)) for one, other in itertools.pairwise(epochs))
    assert replaced == pytest.approx(3.0 * 40 * 59 / 60, rel=0.25)
    for one, other in itertools.pairwise(epochs):
        new = set(other.topics) - set(one.topics)
        assert not new or min(new) > max(one.topics)
        sizes = {int(topic): len(members) for topic, members in zip(other.topics, other.instance.members, strict=True)}
        assert min(sizes.values()) >= 2
        assert (other.instance.topics.sizes > 0).all()
        assert np.array_equal(other.instance.spool, 2.0 * other.instance.members.sizes)
    assert len({len(epoch.clients) for epoch in epochs}) > 1


def test_the_family_moving_varies_speed_price_and_period():
    assert len(MOVING) == len({(cell.speed, cell.price, cell.period) for cell in MOVING}) == 72
    assert {cell.speed for cell in MOVING} == set(SPEEDS)
    timeline = MovingCell(30.0, 4.0, 5).build(2, **SMALL)
    assert timeline.name == "moving-v30-x4-2"
    assert timeline.prices == Prices(handover=4 * Prices.handover, spool=4 * Prices.spool)
    # The same movement whatever relocation costs, so that the cells can be compared seed by seed.
    assert timeline.instance(3).hash == MovingCell(30.0, 0.0, 1).build(2, **SMALL).instance(3).hash


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        (
            {"movement": "teleport"},
            "movement: expected one of static, waypoint, gauss-markov, commuters, got 'teleport'",
        ),
        ({"speed": -1.0}, "speed: expected a number from 0 to 1e+09, got -1.0"),
        ({"n_epochs": 0}, "n_epochs: expected a whole number above 0 to 1e+07, got 0"),
        ({"epoch_length": 0.0}, "epoch_length: expected a number above 0 to 1e+09, got 0.0"),
        ({"memory": float("nan")}, "memory: expected a number above 0 to 1e+09, got nan"),
        ({"handover_price": -1.0}, "prices.handover: expected a number from 0 to 1e+12, got -1.0"),
        ({"spead": 3.0}, "spead: expected one of topics, servers,"),
    ],
)
def test_a_wrong_parameter_is_refused(parameters, problem):
    with pytest.raises(InputError) as error:
        generate_timeline(0, **parameters)
    assert str(error.value).startswith(problem)
