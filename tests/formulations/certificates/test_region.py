import dataclasses

import numpy as np
import pytest

from relocbench.formulations.certificates.certificate import SplitClient, SplitShare, SplitTopic
from relocbench.formulations.certificates.integer_problem import WholeProblem
from relocbench.formulations.certificates.region import THETA_BITS, cases, restricted, root, theta_range
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation_exact import evaluate_exact
from tests.formulations.certificates.duals import Costs, instances_of_every_kind, random_split, random_state
from tests.samples import worked_example


def state_of_example(homes):
    problem = WholeProblem(worked_example())
    return problem, dataclasses.replace(root(problem), allowed=np.array(homes, bool))


def test_theta_is_within_its_range_and_the_range_is_narrow():
    narrow = 0
    for seed, instance in instances_of_every_kind(3):
        rng = np.random.default_rng(seed)
        problem, costs = WholeProblem(instance), Costs(instance)
        state = random_state(problem, rng, costs)
        state = restricted(problem, state, state.allowed)
        least, most = theta_range(problem, state)
        inside = costs.homes[costs.inside(state)]
        shares = np.array([evaluate_exact(instance, home).theta for home in inside])
        unit = 1 << THETA_BITS
        for l in range(instance.n_servers):
            assert least[l] <= min(shares[:, l]) * unit
            for m in range(instance.n_clients):
                there = inside[:, m] == l
                if there.any():
                    assert max(shares[there, l]) * unit <= most[m, l]
        # With one home for each client there is one θ.
        one = dataclasses.replace(root(problem), allowed=np.arange(instance.n_servers)[None, :] == inside[0][:, None])
        least, most = theta_range(problem, one)
        for l in set(inside[0].tolist()):
            client = np.flatnonzero(inside[0] == l)[0]
            share = evaluate_exact(instance, inside[0]).theta[l] * unit
            assert share - 1 < least[l] <= share <= most[client, l] < share + 1
            narrow += share < unit
    assert narrow > 50


def test_open_topics_and_lone_homes_are_certainly_there_each_once():
    # Storage 10 each; topics of 8 (clients 0, 1, 2) and 6 (client 2).
    problem, state = state_of_example([[1, 0], [1, 1], [1, 1], [1, 1]])
    _, most = theta_range(problem, state)
    one = 1 << THETA_BITS
    assert most[:, 0].tolist() == [one, one, -(-10 * one // 14), one]
    state.open[1, 0] = True
    _, most = theta_range(problem, state)
    assert most[:, 0].tolist() == [-(-10 * one // 14)] * 4
    assert most[:, 1].tolist() == [one, one, -(-10 * one // 14), one]


def test_split_cases_leave_nothing_out():
    twice = set()
    for seed, instance in instances_of_every_kind(6):
        rng = np.random.default_rng(seed)
        problem, costs = WholeProblem(instance), Costs(instance)
        state = random_state(problem, rng)
        split = random_split(problem, state, rng)
        found = [case for case in cases(problem, state, split) if case is not None]
        times = sum((costs.inside(case).astype(int) for case in found), 0)
        assert ((times > 0) == costs.inside(state)).all()
        if np.max(times) > 1:
            twice.add(type(split))
    # Only a share can be right at the border.
    assert twice <= {SplitShare}


def test_a_share_is_split_where_it_still_matters():
    problem, state = state_of_example(np.ones((4, 2)))
    below, above = cases(problem, state, SplitShare(1, 700))
    assert (below.low.tolist(), below.high.tolist()) == ([0, 0], [1024, 700])
    assert (above.low.tolist(), above.high.tolist()) == ([0, 700], [1024, 1024])
    again = cases(problem, above, SplitShare(1, 600))
    assert [(case.low.tolist(), case.high.tolist()) for case in again] == [
        ([0, 700], [1024, 600]),  # which nothing belongs to
        ([0, 700], [1024, 1024]),
    ]


def test_an_open_topic_with_one_possible_publisher_has_it():
    problem, state = state_of_example([[1, 0], [1, 0], [1, 1], [1, 1]])
    _, opened = cases(problem, state, SplitTopic(0, 1))
    assert opened.allowed.tolist() == [[True, False], [True, False], [False, True], [True, True]]
    elsewhere, there = cases(problem, opened, SplitClient(2, (0,)))
    assert elsewhere is None
    assert there.allowed.tolist() == opened.allowed.tolist()


def test_a_case_in_which_nobody_can_be_the_publisher_needs_no_proof():
    problem, state = state_of_example([[1, 0], [1, 0], [1, 0], [1, 1]])
    rest, nothing = cases(problem, state, SplitTopic(0, 1))
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
def test_splits_of_what_is_not_there_are_refused(split, reason):
    problem, state = state_of_example(np.ones((4, 2)))
    with pytest.raises(InputError) as caught:
        cases(problem, state, split)
    assert str(caught.value) == reason
