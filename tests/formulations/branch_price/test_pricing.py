"""The pricing search, compared with the enumeration of all client sets."""

import itertools

import numpy as np
import pytest

from relocbench.formulations.branch_price.pricing import price_columns
from relocbench.formulations.branch_price.pricing_problem import PricingProblem, theta_of


def read_only(numbers):
    """An array like those of instances. For arrays of another type the search would be compiled again, for 30 s."""
    array = np.asarray(numbers, float)
    array.setflags(write=False)
    return array


def random_problem(seed):
    """Values of every sign, capacities from 0 to more than needed."""
    rng = np.random.default_rng(seed)
    clients, topics = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    member = [sorted(rng.permutation(topics)[: rng.integers(0, topics + 1)].tolist()) for _ in range(clients)]
    spool = rng.uniform(0.5, 5, topics)
    pairs = [{} for _ in range(clients)]
    for m, r in itertools.combinations(range(clients), 2):
        if rng.random() < 0.5:
            pairs[m][r] = pairs[r][m] = rng.normal(size=2)
    largest_capacity = (0, 1, 3, 10)[seed % 4]
    return PricingProblem(
        fixed=2 * rng.normal(size=clients),
        local=2 * rng.normal(size=clients),
        start=np.cumsum([0, *map(len, pairs)]).astype(np.int64),
        neighbour=np.array([r for some in pairs for r in some], np.int64),
        pair_fixed=np.array([value[0] for some in pairs for value in some.values()]),
        pair_local=np.array([value[1] for some in pairs for value in some.values()]),
        demand=read_only([spool[topic].sum() for topic in member]),
        topic_start=np.cumsum([0, *map(len, member)]).astype(np.int64),
        topic=np.array([n for some in member for n in some], np.int64),
        spool=read_only(spool),
        storage_capacity=float(largest_capacity * rng.random()),
        compute_capacity=float(2 * largest_capacity * rng.random()),
    )


def random_fixed_clients(seed, clients):
    """Some required and some forbidden clients."""
    rng = np.random.default_rng(seed)
    required = rng.random(clients) < 0.15
    return required, (rng.random(clients) < 0.15) & ~required


def value(problem, flags):
    """The value of a set, by its definition."""
    members = np.flatnonzero(flags)
    fixed, local = problem.fixed[members].sum(), problem.local[members].sum()
    for m in members:
        for e in range(problem.start[m], problem.start[m + 1]):
            if flags[problem.neighbour[e]] and problem.neighbour[e] > m:
                fixed += problem.pair_fixed[e]
                local += problem.pair_local[e]
    return fixed + theta_of(problem, members) * local


def all_values(problem, required, forbidden):
    """The sorted values of all sets with the required and without the forbidden clients."""
    every = np.array(list(itertools.product((False, True), repeat=len(required))))
    every = every[~(required & ~every).any(axis=1) & ~(forbidden & every).any(axis=1)]
    owner = np.repeat(np.arange(len(required)), np.diff(problem.start))
    once = problem.neighbour > owner
    both = every[:, owner[once]] & every[:, problem.neighbour[once]]
    fixed = every @ problem.fixed + both @ problem.pair_fixed[once]
    local = every @ problem.local + both @ problem.pair_local[once]
    theta = np.array([theta_of(problem, np.flatnonzero(flags)) for flags in every])
    return sorted((fixed + theta * local).tolist())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_the_best_sets_are_found_in_order(seed):
    problem = random_problem(seed)
    required, forbidden = random_fixed_clients(seed, len(problem.fixed))
    found = price_columns(problem, required, forbidden, limit=np.inf, most=4, most_nodes=10**6)
    expected = all_values(problem, required, forbidden)
    assert found.complete
    assert found.least == pytest.approx(expected[0], abs=1e-9)
    assert found.values == pytest.approx(expected[:4], abs=1e-9)
    assert [value(problem, flags) for flags in found.client_sets] == pytest.approx(found.values, abs=1e-9)
    assert not (found.client_sets & forbidden).any()
    assert (found.client_sets | ~required).all()


@pytest.mark.parametrize("seed", range(60))
def test_only_sets_below_the_limit_are_returned(seed):
    problem = random_problem(seed)
    required, forbidden = random_fixed_clients(seed, len(problem.fixed))
    expected = all_values(problem, required, forbidden)
    middle = len(expected) // 2
    between = 0.5 * (expected[middle] + expected[min(middle + 1, len(expected) - 1)]) + 1e-6
    found = price_columns(problem, required, forbidden, limit=between, most=1000, most_nodes=10**6)
    assert len(found.values) == sum(each < between for each in expected)
    nothing = price_columns(problem, required, forbidden, limit=expected[0] - 1e-6, most=1000, most_nodes=10**6)
    assert (len(nothing.values), nothing.least, nothing.complete) == (0, expected[0] - 1e-6, True)


@pytest.mark.parametrize("seed", range(60))
def test_a_search_that_is_cut_short_still_bounds_every_set(seed):
    problem = random_problem(seed)
    required, forbidden = random_fixed_clients(seed, len(problem.fixed))
    least = all_values(problem, required, forbidden)[0]
    for nodes in (1, 3, 10):
        found = price_columns(problem, required, forbidden, limit=np.inf, most=4, most_nodes=nodes)
        assert found.least <= least + 1e-9


@pytest.mark.parametrize("seed", range(40))
def test_the_least_value_is_found_if_few_topics_fit_and_some_need_no_storage(seed):
    """Many topics, each client in up to three, storage for about two of them, and topics without a spool."""
    rng = np.random.default_rng(seed)
    clients, topics = 9, 7
    member = [sorted(rng.permutation(topics)[: rng.integers(0, 4)].tolist()) for _ in range(clients)]
    spool = rng.integers(0, 4, topics).astype(float)
    problem = random_problem(4 * seed + 1)._replace(
        fixed=rng.normal(size=clients),
        local=-2 * rng.random(clients),
        start=np.arange(clients + 1) * (clients - 1),
        neighbour=np.array([r for m in range(clients) for r in range(clients) if r != m], np.int64),
        demand=read_only([spool[topic].sum() for topic in member]),
        topic_start=np.cumsum([0, *map(len, member)]).astype(np.int64),
        topic=np.array([n for some in member for n in some], np.int64),
        spool=read_only(spool),
        storage_capacity=float(rng.integers(1, 7)),
        compute_capacity=float(rng.integers(1, 12)),
    )
    pairs = rng.normal(size=(2, clients, clients))
    off_diagonal = ~np.eye(clients, dtype=bool)
    pair_fixed, pair_local = ((each + each.T)[off_diagonal] for each in pairs)
    problem = problem._replace(pair_fixed=pair_fixed, pair_local=pair_local)
    required, forbidden = random_fixed_clients(seed, clients)
    found = price_columns(problem, required, forbidden, limit=np.inf, most=3, most_nodes=10**6)
    assert found.values == pytest.approx(all_values(problem, required, forbidden)[:3], abs=1e-9)


def test_topics_are_decided_first():
    """Five topics fit of twenty with two publishers each. The best set has the ten clients of five topics."""
    topics, clients = 20, 40
    gain = np.random.default_rng(0).uniform(50, 60, clients)
    problem = random_problem(0)._replace(
        fixed=np.full(clients, 1000.0),
        local=-1000 - gain,
        start=np.zeros(clients + 1, np.int64),
        neighbour=np.zeros(0, np.int64),
        pair_fixed=np.zeros(0),
        pair_local=np.zeros(0),
        demand=read_only(np.ones(clients)),
        topic_start=np.arange(clients + 1),
        topic=np.arange(clients) % topics,
        spool=read_only(np.ones(topics)),
        storage_capacity=5.0,
        compute_capacity=float(clients),
    )
    none = np.zeros(clients, np.bool_)
    found = price_columns(problem, none, none, limit=np.inf, most=1, most_nodes=200_000)
    assert found.complete
    assert found.least == pytest.approx(-np.sort(gain[:topics] + gain[topics:])[-5:].sum())
