import dataclasses

import numpy as np
import pytest

from relocbench.formulations.certificates.certificate import SplitClient, SplitShare, SplitTopic
from relocbench.formulations.certificates.integer_problem import IntegerProblem
from relocbench.formulations.certificates.region import THETA_BITS, restricted, root_region, split_region, theta_range
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation_exact import evaluate_exact
from tests.formulations.certificates.duals import Costs, instances_of_every_kind, random_region, random_split
from tests.samples import worked_example


def region_of_example(homes):
    problem = IntegerProblem(worked_example())
    return problem, dataclasses.replace(root_region(problem), allowed=np.array(homes, bool))


def test_theta_is_within_its_range_and_the_range_is_narrow():
    narrow = 0
    for seed, instance in instances_of_every_kind(3):
        rng = np.random.default_rng(seed)
        problem, costs = IntegerProblem(instance), Costs(instance)
        region = random_region(problem, rng, costs)
        region = restricted(problem, region, region.allowed)
        least, most = theta_range(problem, region)
        inside = costs.homes[costs.inside(region)]
        shares = np.array([evaluate_exact(instance, home).theta for home in inside])
        unit = 1 << THETA_BITS
        for l in range(instance.n_servers):
            assert least[l] <= min(shares[:, l]) * unit
            for m in range(instance.n_clients):
                there = inside[:, m] == l
                if there.any():
                    assert max(shares[there, l]) * unit <= most[m, l]
        # With one home for each client there is one θ.
        one = dataclasses.replace(
            root_region(problem), allowed=np.arange(instance.n_servers)[None, :] == inside[0][:, None]
        )
        least, most = theta_range(problem, one)
        for l in set(inside[0].tolist()):
            client = np.flatnonzero(inside[0] == l)[0]
            share = evaluate_exact(instance, inside[0]).theta[l] * unit
            assert share - 1 < least[l] <= share <= most[client, l] < share + 1
            narrow += share < unit
    assert narrow > 50


def test_open_topics_and_fixed_homes_load_a_server_once():
    # The storage capacity is 10 on each server; topics of 8 (clients 0, 1, 2) and 6 (client 2).
    problem, region = region_of_example([[1, 0], [1, 1], [1, 1], [1, 1]])
    _, most = theta_range(problem, region)
    one = 1 << THETA_BITS
    assert most[:, 0].tolist() == [one, one, -(-10 * one // 14), one]
    region.open[1, 0] = True
    _, most = theta_range(problem, region)
    assert most[:, 0].tolist() == [-(-10 * one // 14)] * 4
    assert most[:, 1].tolist() == [one, one, -(-10 * one // 14), one]


def test_the_parts_of_a_split_cover_the_region():
    twice = set()
    for seed, instance in instances_of_every_kind(6):
        rng = np.random.default_rng(seed)
        problem, costs = IntegerProblem(instance), Costs(instance)
        region = random_region(problem, rng)
        split = random_split(problem, region, rng)
        parts = [part for part in split_region(problem, region, split) if part is not None]
        times = sum((costs.inside(part).astype(int) for part in parts), 0)
        assert ((times > 0) == costs.inside(region)).all()
        if np.max(times) > 1:
            twice.add(type(split))
    # Only a θ that is equal to the splitting value belongs to both parts.
    assert twice <= {SplitShare}


def test_a_split_by_theta_narrows_the_range():
    problem, region = region_of_example(np.ones((4, 2)))
    below, above = split_region(problem, region, SplitShare(1, 700))
    assert (below.low.tolist(), below.high.tolist()) == ([0, 0], [1024, 700])
    assert (above.low.tolist(), above.high.tolist()) == ([0, 700], [1024, 1024])
    again = split_region(problem, above, SplitShare(1, 600))
    assert [(part.low.tolist(), part.high.tolist()) for part in again] == [
        ([0, 700], [1024, 600]),  # has no assignment
        ([0, 700], [1024, 1024]),
    ]


def test_the_only_possible_publisher_of_an_open_topic_is_fixed():
    problem, region = region_of_example([[1, 0], [1, 0], [1, 1], [1, 1]])
    _, opened = split_region(problem, region, SplitTopic(0, 1))
    assert opened.allowed.tolist() == [[True, False], [True, False], [False, True], [True, True]]
    elsewhere, there = split_region(problem, opened, SplitClient(2, (0,)))
    assert elsewhere is None
    assert there.allowed.tolist() == opened.allowed.tolist()


def test_a_part_without_a_possible_publisher_is_empty():
    problem, region = region_of_example([[1, 0], [1, 0], [1, 0], [1, 1]])
    rest, nothing = split_region(problem, region, SplitTopic(0, 1))
    assert nothing is None
    assert not rest.open.any()


@pytest.mark.parametrize(
    ("split", "reason"),
    [
        (SplitClient(4, (0,)), "client: expected a number from 0 to 3, got 4"),
        (SplitClient(0, (0, -1)), "servers: expected a number from 0 to 1, got -1"),
        (SplitTopic(2, 0), "topic: expected a number from 0 to 1, got 2"),
        (SplitTopic(0, 2), "server: expected a number from 0 to 1, got 2"),
        (SplitShare(-1, 5), "server: expected a number from 0 to 1, got -1"),
        (SplitShare(0, 0), "share: expected a number from 1 to 1023, got 0"),
        (SplitShare(0, 1024), "share: expected a number from 1 to 1023, got 1024"),
    ],
)
def test_splits_with_a_wrong_index_are_refused(split, reason):
    problem, region = region_of_example(np.ones((4, 2)))
    with pytest.raises(InputError) as caught:
        split_region(problem, region, split)
    assert str(caught.value) == reason
