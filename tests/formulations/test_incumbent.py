import dataclasses

import numpy as np
import pytest

from relocbench.formulations.incumbent import Incumbent
from relocbench.formulations.scaling import Negligible
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.nearest_server import nearest_server
from tests.samples import random_home, random_instance, scaled_delays

INSTANCE = random_instance(9)


def cost(home):
    return evaluate(INSTANCE, home).objective


def test_without_a_start_the_nearest_servers_are_the_incumbent():
    incumbent = Incumbent(INSTANCE, None, None)
    solution = incumbent.solution(finished=False)
    assert solution.home.tolist() == nearest_server(INSTANCE).tolist()
    assert (solution.status, solution.bound) == ("time_limit", -np.inf)


def test_only_homes_of_lower_cost_become_the_incumbent():
    homes = sorted((random_home(INSTANCE, seed) for seed in range(20)), key=cost, reverse=True)
    incumbent = Incumbent(INSTANCE, homes[0], None)
    for home in [homes[-1], homes[3]]:
        assert incumbent.offer(home) == cost(home)
    assert incumbent.home.tolist() == homes[-1].tolist()


def test_progress_is_reported_with_homes_to_a_callback_with_keep():
    class Recorder:
        def __init__(self):
            self.points, self.homes = [], []

        def __call__(self, *point):
            self.points.append(point[1:])

        def keep(self, home):
            self.homes.append(home.tolist())

    homes = sorted((random_home(INSTANCE, seed) for seed in range(20)), key=cost, reverse=True)
    recorder = Recorder()
    incumbent = Incumbent(INSTANCE, homes[0], recorder)
    incumbent.raise_bound(cost(homes[-1]) / 2)
    incumbent.raise_bound(cost(homes[-1]) / 4)
    incumbent.raise_bound(float("nan"))
    incumbent.offer(homes[-1])
    half = cost(homes[-1]) / 2
    assert recorder.points == [(cost(homes[0]), -np.inf), (cost(homes[0]), half), (cost(homes[-1]), half)]
    assert recorder.homes[-1] == homes[-1].tolist()
    assert [point[1:] for point in incumbent.trace] == recorder.points


def test_a_bound_at_the_cost_proves_optimality_and_is_not_reported_above_it():
    incumbent = Incumbent(INSTANCE, None, None)
    incumbent.raise_bound(incumbent.cost * (1 + 1e-7))
    solution = incumbent.solution(finished=True)
    assert solution.status == "optimal"
    assert solution.bound <= incumbent.cost * (1 + 1e-15)


def test_a_bound_above_a_cost_is_an_error():
    incumbent = Incumbent(INSTANCE, None, None)
    incumbent.raise_bound(incumbent.cost * 1.001)
    with pytest.raises(ArithmeticError, match="is above the cost"):
        incumbent.solution(finished=False)


def test_a_complete_search_with_a_bound_below_the_cost_is_an_error():
    incumbent = Incumbent(INSTANCE, None, None)
    incumbent.raise_bound(incumbent.cost * 0.99)
    with pytest.raises(ArithmeticError, match="the solver reports an optimum"):
        incumbent.solution(finished=True)


def scaled_incumbent(error):
    """An incumbent with a scaled model whose solver has an error, relative to the cost."""
    incumbent = Incumbent(INSTANCE, None, None)
    model = next(incumbent.scaled_models())
    incumbent.error = error * incumbent.cost
    return incumbent, model


def test_a_bound_that_the_tolerances_support_proves_optimality():
    incumbent, model = scaled_incumbent(1e-8)
    incumbent.raise_model_bound(model.to_model(incumbent.cost))
    solution = incumbent.solution(finished=True)
    assert solution.status == "optimal"
    assert solution.bound == pytest.approx(incumbent.cost, rel=1.1e-8)


def test_a_complete_search_whose_tolerances_do_not_support_the_proof_is_claimed_with_a_lower_bound():
    incumbent, model = scaled_incumbent(1e-5)
    incumbent.raise_model_bound(model.to_model(incumbent.cost))
    solution = incumbent.solution(finished=True)
    assert solution.status == "claimed"
    assert solution.bound <= incumbent.cost * (1 - 1e-5)
    assert solution.trace[-1][2] == solution.bound


def test_a_complete_search_is_claimed_if_what_the_scaling_lost_explains_the_gap_and_an_error_otherwise():
    """Shares below 1e-2 count as 0. With all servers as small, the loss exceeds the tolerance."""
    tiny = dataclasses.replace(INSTANCE, storage_capacity=INSTANCE.spool.min() * np.full(INSTANCE.n_servers, 1e-3))
    for share, failed in ((1.0, False), (0.5, True)):
        incumbent = Incumbent(tiny, None, None)
        model = next(incumbent.scaled_models(Negligible(0.0, 1e-2)))
        assert model.to_cost(model.loss) > 1e-6 * incumbent.cost
        incumbent.raise_model_bound(share * model.to_model(incumbent.cost))
        if failed:
            with pytest.raises(ArithmeticError, match="the solver reports an optimum"):
                incumbent.solution(finished=True)
        else:
            assert incumbent.solution(finished=True).status == "claimed"


def test_an_error_that_was_negligible_beside_a_worse_incumbent_is_subtracted():
    """The bound of a model at the scale of bad homes says nothing about homes of a far smaller cost."""
    homes = sorted((random_home(INSTANCE, seed) for seed in range(20)), key=cost)
    incumbent = Incumbent(INSTANCE, homes[-1], None)
    model = next(incumbent.scaled_models())
    incumbent.error = cost(homes[-1])
    incumbent.raise_model_bound(model.to_model(cost(homes[-1])))
    incumbent.offer(homes[0])
    assert incumbent.bound <= 0


@pytest.mark.parametrize("unfinished", ["time_limit", "feasible"])
def test_a_search_that_is_not_complete_has_the_given_status(unfinished):
    assert Incumbent(INSTANCE, None, None).solution(False, unfinished=unfinished).status == unfinished


@pytest.mark.parametrize("factor", [1e-9, 1.0, 1e9])
def test_the_tolerance_is_relative_at_every_scale(factor):
    instance = scaled_delays(INSTANCE, factor)
    for share, status in ((1 - 1e-7, "optimal"), (1 - 1e-5, "time_limit")):
        incumbent = Incumbent(instance, None, None)
        incumbent.raise_bound(share * incumbent.cost)
        assert incumbent.solution(finished=False).status == status


def test_an_invalid_start_is_refused():
    with pytest.raises(InputError, match="home"):
        Incumbent(INSTANCE, [0], None)
