"""The search over the contents of a server, compared with all contents in exact numbers."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from relocbench.formulations.certificates import least_content
from relocbench.formulations.certificates.budget import Budget
from relocbench.formulations.certificates.integer_problem import integer_array
from relocbench.formulations.certificates.least_content import ContentValues, ServerLoads, content_below
from relocbench.instances.errors import InputError


def random_server(rng, clients=None):
    """Loads, values, required and possible clients of a server; loads may need more than 64 bits."""
    clients, topics = clients or int(rng.integers(1, 8)), int(rng.integers(1, 5))
    bits = int(rng.choice([0, 3, 40, 80]))
    spool = [(int(x) << bits) + int(rng.integers(1 << min(bits, 50))) for x in rng.integers(0, 20, topics)]
    publishes = rng.random((clients, topics)) < 0.5
    client, topic = (axis.astype(np.int64) for axis in np.nonzero(publishes))
    capacities = (int(rng.integers(0, 60)) << bits, int(rng.integers(0, 90)) << bits)
    pairs = np.array([pair for pair in itertools.combinations(range(clients), 2) if rng.random() < 0.5], np.int64)
    first, second = pairs.reshape(-1, 2).T
    size = int(rng.choice([5, 1000, 1 << 35]))
    numbers = [rng.integers(-size, size + 1, count) for count in (clients, clients, len(first), len(first))]
    values = ContentValues(*numbers[:2], first, second, *numbers[2:])
    if rng.random() < 0.2:  # without pairs
        none = np.empty(0, np.int64)
        values = ContentValues(*numbers[:2], none, none, none, none)
    kind = rng.integers(0, 6, clients)
    return ServerLoads(*capacities, integer_array(spool), client, topic), values, kind == 0, kind != 1


def value_of(loads, values, content):
    """The exact value of a content."""
    inside = content[loads.publisher_client]
    compute = sum(loads.spool[n] for n in loads.publisher_topic[inside])
    storage = sum(loads.spool[n] for n in set(loads.publisher_topic[inside].tolist()))
    theta = Fraction(1)
    for capacity, load in ((loads.storage_capacity, storage), (loads.compute_capacity, compute)):
        theta = min(theta, Fraction(capacity, load)) if load else theta
    both = content[values.first] & content[values.second]
    fixed = sum(values.fixed[content].tolist()) + sum(values.pair_fixed[both].tolist())
    return fixed + theta * (sum(values.local[content].tolist()) + sum(values.pair_local[both].tolist()))


def least_value(loads, values, required, possible):
    """The least value of all contents, by enumeration."""
    contents = (np.array(flags, bool) for flags in itertools.product((False, True), repeat=len(required)))
    kept = (each for each in contents if not (required & ~each).any() and not (each & ~possible).any())
    return min(value_of(loads, values, content) for content in kept)


@pytest.mark.slow
@pytest.mark.parametrize(("block", "seeds"), [(1 << 12, range(150)), (3, range(150, 230))])
def test_the_search_agrees_with_all_contents(block, seeds, monkeypatch):
    monkeypatch.setattr(least_content, "BLOCK", block)
    exact = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        loads, values, required, possible = random_server(rng)
        server = loads, values, required, possible
        least = least_value(*server)
        found = content_below(*server, math.floor(least) + 1, Budget())
        assert (found is not None) or least > math.floor(least)
        above = content_below(*server, math.ceil(least) + 1, Budget())
        assert above is not None
        content = np.zeros(len(required), bool)
        content[above] = True
        assert required[~content].sum() == 0
        assert possible[content].all()
        size = sum(int(abs(column).sum()) for column in (values.local, values.pair_local))
        # θ is rounded to 2^-30, and loads of more than 46 bits are rounded.
        assert value_of(loads, values, content) < math.ceil(least) + 2 + (size >> 28)
        assert content_below(*server, math.floor(least) - 1 - (size >> 28), Budget()) is None
        exact += content_below(*server, math.floor(least), Budget()) is None
    assert exact > 0.75 * len(seeds)


def test_a_capacity_of_0_delegates_everything_of_a_server_that_is_not_empty():
    loads = ServerLoads(0, 5, integer_array([1]), np.array([0]), np.array([0]))
    none = np.empty(0, np.int64)
    values = ContentValues(np.array([10]), np.array([-30]), none, none, none, none)
    free = np.zeros(1, bool), np.ones(1, bool)
    assert content_below(loads, values, *free, 0, Budget()) is None
    assert content_below(loads, values, *free, 1, Budget()).tolist() == []
    required = np.ones(1, bool), np.ones(1, bool)
    assert content_below(loads, values, *required, 10, Budget()) is None
    assert content_below(loads, values, *required, 11, Budget()).tolist() == [0]


def test_a_topic_is_stored_once_and_computed_for_each_publisher():
    loads = ServerLoads(4, 6, integer_array([4]), np.array([0, 1]), np.array([0, 0]))
    none = np.empty(0, np.int64)
    values = ContentValues(np.array([0, 0]), np.array([-100, -100]), none, none, none, none)
    free = np.zeros(2, bool), np.ones(2, bool)
    # Storage is 4 of 4, compute is 8 of 6: θ = 3/4.
    assert content_below(loads, values, *free, -150, Budget()) is None
    assert content_below(loads, values, *free, -149, Budget()).tolist() == [0, 1]


def test_numbers_that_could_overflow_are_refused():
    loads, values, required, _ = random_server(np.random.default_rng(1), clients=3)
    for change in (1 << 46, -(1 << 46), (1 << 63) - 1, -(1 << 63)):
        values.fixed[:] = 0
        values.fixed[2] = change
        with pytest.raises(InputError, match=r"expected values that sum to less than 2\^46 units"):
            content_below(loads, values, required, np.ones(3, bool), 0, Budget())
    values.fixed[:] = 0
    with pytest.raises(InputError, match="expected values that sum to less than"):
        content_below(loads, values, required, np.ones(3, bool), 1 << 47, Budget())


def test_values_at_the_limit_do_not_overflow():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        loads, values, required, possible = random_server(rng)
        columns = [values.fixed, values.local, values.pair_fixed, values.pair_local]
        total = sum(int(abs(column).sum()) for column in columns) or 1
        for column in columns:
            column *= ((1 << 46) - (1 << 40)) // (total + 1)
        server = loads, values, required, possible
        least = least_value(*server)
        assert content_below(*server, math.ceil(least) + 1, Budget()) is not None
        assert content_below(*server, math.floor(least) - (1 << 18), Budget()) is None


def test_time_and_memory_have_limits():
    loads, values, required, possible = random_server(np.random.default_rng(3), clients=7)
    with pytest.raises(InputError, match="raise it with --memory-limit"):
        content_below(loads, values, required, possible, -(1 << 40), Budget(memory_limit=10**6))
    with pytest.raises(InputError, match="raise it with --time-limit"):
        content_below(loads, values, required, possible, 0, Budget(time_limit=0))


def test_too_many_clients_are_refused(monkeypatch):
    monkeypatch.setattr(least_content, "MOST_CLIENTS", 2)
    loads, values, _, _ = random_server(np.random.default_rng(3), clients=3)
    with pytest.raises(InputError, match="expected at most 2 clients of a server to decide, got 3"):
        content_below(loads, values, np.zeros(3, bool), np.ones(3, bool), 0, Budget())


def test_loads_that_are_rounded_never_hide_a_content(monkeypatch):
    monkeypatch.setattr(least_content, "LOAD_BITS", 5)
    for seed in range(150):
        server = random_server(np.random.default_rng(seed))
        assert content_below(*server, math.floor(least_value(*server)) + 1, Budget()) is not None


class CountingBudget(Budget):
    """A budget of a few blocks of states."""

    blocks = 0

    def check_time(self):
        self.blocks += 1
        assert self.blocks < 100


def test_topics_are_decided_first():
    """Five topics fit of twenty with two publishers each. The best content has the ten clients of five topics."""
    clients, topics = 40, 20
    rng = np.random.default_rng(0)
    none = np.zeros(0, np.int64)
    loads = ServerLoads(5, clients, integer_array([1] * topics), np.arange(clients), np.arange(clients) % topics)
    gain = rng.integers(50, 60, clients)
    values = ContentValues(np.full(clients, 1000), -1000 - gain, none, none, none, none)
    best = np.sort(gain[:topics] + gain[topics:])[-5:].sum()
    every = np.ones(clients, bool)
    assert content_below(loads, values, ~every, every, -best, CountingBudget()) is None
    assert len(content_below(loads, values, ~every, every, 1 - best, CountingBudget())) == 10
