import json
from fractions import Fraction

import pytest

from benchmarks.trials.odd_instances import MAGNITUDES, SHAPES, odd_case
from benchmarks.trials.rational_cost import cost, least_cost
from relocbench.instances.evaluation_exact import evaluate_exact
from relocbench.instances.files.instance_json import to_json
from relocbench.instances.instance_source import read_instance
from tests.samples import KINDS, random_home, random_instance, worked_example


def test_the_worked_example_of_the_paper():
    case = json.loads(to_json(worked_example()))
    # θ = (1, 10/14): see docs/model.md. The clients are 1, 2, 1 and 1 km away from their servers.
    own = [Fraction(0.1 * 1.0), Fraction(0.1 * 2.0), Fraction(0.1 * 1.0), Fraction(0.1 * 1.0)]
    between, share = Fraction(0.1 * 10.0), Fraction(10, 14)
    from_first_server = own[0] + own[1] + 2 * (between + own[3])
    from_second_server = 2 * (own[2] + 10 * (1 - share) + own[3])
    assert cost(case, (0, 0, 1, 1)) == from_first_server + from_second_server


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_the_cost_is_that_of_the_exact_evaluator(seed):
    instance = random_instance(seed)
    home = random_home(instance, seed)
    assert cost(json.loads(to_json(instance)), home.tolist()) == evaluate_exact(instance, home).objective


def test_the_least_cost_is_that_of_an_assignment_and_no_random_one_is_below():
    for seed in range(4):
        _, _, case = odd_case(0, seed, 100)
        least, home = least_cost(case)
        assert cost(case, home) == least
        assert all(cost(case, [server] * len(home)) >= least for server in range(len(case["servers"]["x"])))


def test_every_shape_meets_every_magnitude_and_the_reader_accepts_them(tmp_path):
    pairs = len(SHAPES) * len(MAGNITUDES)
    found = set()
    path = tmp_path / "instance.json"
    for number in range(pairs):
        shape, magnitude, case = odd_case(1, number)
        found.add((shape, magnitude))
        path.write_text(json.dumps(case))
        instance = read_instance(path)
        assert instance.n_servers**instance.n_clients <= 500
    assert len(found) == pairs


def test_the_seed_and_the_number_determine_the_instance():
    assert odd_case(5, 17) == odd_case(5, 17)
    assert odd_case(5, 17) != odd_case(6, 17)
