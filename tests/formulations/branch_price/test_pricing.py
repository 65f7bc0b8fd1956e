"""The search for the best content of a server, against all contents."""

import itertools

import numpy as np
import pytest

from relocbench.formulations.branch_price.pricing import Prices, best_contents, share


def random_prices(seed):
    """Prices of every sign, capacities from none to plenty."""
    rng = np.random.default_rng(seed)
    clients, topics = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    member = [sorted(rng.permutation(topics)[: rng.integers(0, topics + 1)].tolist()) for _ in range(clients)]
    spool = rng.uniform(0.5, 5, topics)
    pairs = [{} for _ in range(clients)]
    for m, r in itertools.combinations(range(clients), 2):
        if rng.random() < 0.5:
            pairs[m][r] = pairs[r][m] = rng.normal(size=2)
    plenty = (0, 1, 3, 10)[seed % 4]
    return Prices(
        fixed=2 * rng.normal(size=clients),
        local=2 * rng.normal(size=clients),
        start=np.cumsum([0, *map(len, pairs)]).astype(np.int64),
        neighbour=np.array([r for some in pairs for r in some], np.int64),
        pair_fixed=np.array([value[0] for some in pairs for value in some.values()]),
        pair_local=np.array([value[1] for some in pairs for value in some.values()]),
        demand=np.array([spool[topic].sum() for topic in member]),
        topic_start=np.cumsum([0, *map(len, member)]).astype(np.int64),
        topic=np.array([n for some in member for n in some], np.int64),
        spool=spool,
        storage_capacity=float(plenty * rng.random()),
        compute_capacity=float(2 * plenty * rng.random()),
    )


def random_prescription(seed, clients):
    rng = np.random.default_rng(seed)
    inside = rng.random(clients) < 0.15
    return inside, (rng.random(clients) < 0.15) & ~inside


def value(prices, flags):
    members = np.flatnonzero(flags)
    fixed, local = prices.fixed[members].sum(), prices.local[members].sum()
    for m in members:
        for e in range(prices.start[m], prices.start[m + 1]):
            if flags[prices.neighbour[e]] and prices.neighbour[e] > m:
                fixed += prices.pair_fixed[e]
                local += prices.pair_local[e]
    return fixed + share(prices, members) * local


def all_values(prices, inside, outside):
    every = (np.array(bits) for bits in itertools.product((False, True), repeat=len(inside)))
    return sorted(value(prices, bits) for bits in every if not (inside & ~bits).any() and not (outside & bits).any())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_the_best_contents_are_found_in_order(seed):
    prices = random_prices(seed)
    inside, outside = random_prescription(seed, len(prices.fixed))
    found = best_contents(prices, inside, outside, limit=np.inf, most=4, most_nodes=10**6)
    expected = all_values(prices, inside, outside)
    assert found.complete
    assert found.least == pytest.approx(expected[0], abs=1e-9)
    assert found.values == pytest.approx(expected[:4], abs=1e-9)
    assert [value(prices, flags) for flags in found.contents] == pytest.approx(found.values, abs=1e-9)
    assert not (found.contents & outside).any()
    assert (found.contents | ~inside).all()


@pytest.mark.parametrize("seed", range(60))
def test_only_contents_below_the_limit_are_of_interest(seed):
    prices = random_prices(seed)
    inside, outside = random_prescription(seed, len(prices.fixed))
    expected = all_values(prices, inside, outside)
    middle = len(expected) // 2
    between = 0.5 * (expected[middle] + expected[min(middle + 1, len(expected) - 1)]) + 1e-6
    found = best_contents(prices, inside, outside, limit=between, most=1000, most_nodes=10**6)
    assert len(found.values) == sum(each < between for each in expected)
    nothing = best_contents(prices, inside, outside, limit=expected[0] - 1e-6, most=1000, most_nodes=10**6)
    assert (len(nothing.values), nothing.least, nothing.complete) == (0, expected[0] - 1e-6, True)


@pytest.mark.parametrize("seed", range(60))
def test_a_search_that_is_cut_short_still_bounds_every_content(seed):
    prices = random_prices(seed)
    inside, outside = random_prescription(seed, len(prices.fixed))
    for nodes in (1, 3, 10):
        found = best_contents(prices, inside, outside, limit=np.inf, most=4, most_nodes=nodes)
        assert found.least <= all_values(prices, inside, outside)[0] + 1e-9


def test_any_content_will_do_where_asked_for():
    prices = random_prices(7)
    nobody = np.zeros(len(prices.fixed), np.bool_)
    every = all_values(prices, nobody, nobody)
    found = best_contents(prices, nobody, nobody, limit=every[-1], most=1, most_nodes=10**6, any_will_do=True)
    assert len(found.values) == 1
    assert not found.complete
    assert found.nodes < 10
