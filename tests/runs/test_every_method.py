"""What holds for every method in the registry; a new method is tested here without a line of its own.

For exact methods ``tests/formulations/test_exactness.py`` tests more than valid homes on every kind of instance.
"""

import math

import numpy as np
import pytest

from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import FAMILIES
from relocbench.runs.methods import METHODS
from relocbench.runs.selectors import parse_selector
from relocbench.runs.solve import solve_here as solve
from tests.samples import KINDS, enumerable_instance, random_instance

# Annealing runs until its time is up. A fixed number of moves makes its runs comparable.
SELECTORS = [f"{name}[moves=3000]" if name == "anneal" else name for name in METHODS if not METHODS[name].unavailable()]
INEXACT = [selector for selector in SELECTORS if parse_selector(selector).method.proves != "optimality"]
# Exact methods and enumeration solve instances with at most so many assignments to the end.
MOST_ASSIGNMENTS = 5000
# The same for a method that proves a bound for instances of any size.
MOST_ASSIGNMENTS_TO_BOUND = 200


@pytest.mark.parametrize("selector", [*INEXACT, "enumerate"])
@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_homes_are_valid_on_every_kind_of_instance(selector, seed):
    if selector == "enumerate":
        instance = enumerable_instance(seed, MOST_ASSIGNMENTS)
    elif parse_selector(selector).method.proves == "bound":
        instance = enumerable_instance(seed, MOST_ASSIGNMENTS_TO_BOUND)
    else:
        instance = random_instance(seed)
    result = solve(instance, selector, seed=seed)
    assert result.solution.home.shape == (instance.n_clients,)
    assert 0 <= result.solution.home.min() <= result.solution.home.max() < instance.n_servers
    assert math.isfinite(result.evaluation.objective)
    assert result.solution.bound <= result.evaluation.objective + 1e-9
    assert result.stored().objective == evaluate(instance, result.solution.home).objective


@pytest.mark.parametrize("selector", SELECTORS)
def test_the_same_seed_gives_the_same_homes(selector):
    if parse_selector(selector).method.proves == "nothing":
        instance = FAMILIES["paper"].cells({"sigma": 5})[0].build(0)
    else:
        instance = FAMILIES["tiny"].cells({"regime": "scarce", "shape": "roles"})[0].build(1)
    first, second = (solve(instance, selector, seed=3).solution.home for _ in range(2))
    assert first.tolist() == second.tolist()


@pytest.mark.parametrize("selector", SELECTORS)
def test_instances_with_one_server_or_one_client_are_solved(selector):
    for seed in range(400):
        instance = random_instance(seed)
        one = instance.n_servers == 1 or instance.n_clients == 1
        if one and instance.n_servers**instance.n_clients <= MOST_ASSIGNMENTS:
            home = solve(instance, selector, seed=0, time_limit=10).solution.home
            assert np.isin(home, np.arange(instance.n_servers)).all()
            if seed > 100:
                break


def test_a_start_runs_first_and_the_result_is_no_worse():
    instance = FAMILIES["paper"].cells({"sigma": 5})[0].build(0)
    start = solve(instance, "reloc[relation=exact]", seed=0).evaluation.objective
    result = solve(instance, "anneal[start=reloc[relation=exact],moves=2000]", seed=0)
    assert result.solution.trace[0][1] == pytest.approx(start)
    assert result.evaluation.objective <= start
