import itertools

import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import FAMILIES
from relocbench.runs.solve import solve_here as solve
from tests.samples import KINDS, enumerable_instance


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_the_optimum_equals_that_of_a_plain_loop(seed):
    instance = enumerable_instance(seed)
    homes = itertools.product(range(instance.n_servers), repeat=instance.n_clients)
    least = min(evaluate(instance, home).objective for home in homes)
    result = solve(instance, "enumerate")
    assert result.evaluation.objective == pytest.approx(least, rel=1e-12)
    assert result.solution.status == "optimal"
    assert result.solution.facts["assignments"] == instance.n_servers**instance.n_clients


def test_too_many_assignments_are_refused():
    instance = FAMILIES["small"].cells({"regime": "loose", "clients": 20})[0].build(0)
    with pytest.raises(InputError, match=r"expected at most 1e\+09 assignments, got 4\^20"):
        solve(instance, "enumerate")


def test_the_time_limit_leaves_the_incumbent_and_no_bound():
    instance = FAMILIES["small"].cells({"regime": "loose", "clients": 15, "servers": 3})[0].build(0)
    result = solve(instance, "enumerate", time_limit=0.0)
    assert result.solution.status == "time_limit"
    assert result.solution.bound == float("-inf")
    assert 1 < result.solution.facts["assignments"] < 3**15
