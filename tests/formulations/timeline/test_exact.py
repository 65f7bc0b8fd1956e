"""The exact methods for timelines agree with each other and with the definition."""

import itertools

import numpy as np
import pytest

from relocbench.formulations.timeline import enumeration, milp
from relocbench.formulations.timeline.schedule import Schedule
from relocbench.instances.errors import InputError
from relocbench.instances.timeline.timeline import Timeline
from relocbench.runs.timeline.solve_timeline import solve_timeline
from tests.samples import random_instance
from tests.timelines import literal_schedule_cost, timeline_of, tiny_timeline, two_servers


@pytest.mark.parametrize("seed", range(40))
def test_enumeration_and_the_model_over_time_find_the_same_cost(seed):
    timeline = tiny_timeline(seed)
    least = enumeration.solve(timeline)
    literal = literal_schedule_cost(timeline, least.homes)["total"]
    assert least.bound == pytest.approx(literal, rel=1e-9, abs=1e-9)
    model = milp.solve(timeline)
    assert model.cost.total == pytest.approx(literal, rel=1e-6, abs=1e-9)
    assert model.bound == pytest.approx(literal, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("seed", [4, 5, 12, 28])
def test_no_schedule_at_all_costs_less_than_the_enumerated_one(seed):
    timeline = tiny_timeline(seed, n_epochs=2, most=30)
    sizes = [epoch.instance.n_clients for epoch in timeline.epochs()]
    every = [list(itertools.product(range(timeline.n_servers), repeat=size)) for size in sizes]
    least = min(literal_schedule_cost(timeline, homes)["total"] for homes in itertools.product(*every))
    assert enumeration.solve(timeline).cost.total == pytest.approx(least, rel=1e-12)


def test_relocation_happens_only_where_it_pays_off():
    near, far = two_servers([1, 1], [[0, 1]]), two_servers([9, 9], [[0, 1]])
    moved = [([0, 1], [0], near), ([0, 1], [0], far)]
    free = timeline_of(*moved, handover=0.0, spool=0.0)
    dear = timeline_of(*moved, handover=1e6, spool=0.0)
    for method in ("enumerate", "milp-strong"):
        assert [home.tolist() for home in solve_timeline(free, method).homes] == [[0, 0], [1, 1]]
        stays = solve_timeline(dear, method)
        assert stays.cost.handovers == 0
        assert stays.status == "optimal"
    # Copying the spool is as dear: only the arrival of a new topic is free.
    copied = timeline_of(*moved, handover=0.0, spool=1e6)
    new = timeline_of(moved[0], ([0, 1], [7], far), handover=0.0, spool=1e6)
    for method in ("enumerate", "milp-strong"):
        assert solve_timeline(copied, method).cost.spool_moved == 0
        assert solve_timeline(new, method).homes[1].tolist() == [1, 1]


def test_a_timeline_with_too_many_assignments_is_refused_in_one_line():
    instance = random_instance(3)
    while instance.n_servers**instance.n_clients <= 1 << 16:
        instance = random_instance(int(instance.n_clients) * 97 + 13 * instance.n_servers + 1000)
    timeline = Timeline.static(instance, n_epochs=2)
    with pytest.raises(InputError, match=r"^method enumerate: expected at most 65536 assignments of an epoch, got"):
        solve_timeline(timeline)
    with pytest.raises(InputError, match=r"^method: expected enumerate or milp-strong, got 'guess'$"):
        solve_timeline(timeline, "guess")


def test_a_bound_above_the_cost_is_an_error():
    timeline = tiny_timeline(4)
    homes = [np.zeros(epoch.instance.n_clients, int) for epoch in timeline.epochs()]
    cost = Schedule.of(timeline, homes).cost.total
    assert Schedule.of(timeline, homes, cost).status == "optimal"
    assert Schedule.of(timeline, homes, 0.9 * cost).status == "feasible"
    with pytest.raises(ArithmeticError, match="is above the cost"):
        Schedule.of(timeline, homes, 1.1 * cost)
