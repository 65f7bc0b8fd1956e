from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from relocbench.formulations import enumeration
from relocbench.formulations.bounding.block_relaxation import Capacities, fitted_shares, improve_block
from relocbench.formulations.certificates.block_bound import (
    FINER,
    MESSAGE_BITS,
    MOST_MULTIPLIER,
    MOST_PRICE,
    MULTIPLIER_BITS,
    UNIT_BITS,
    DualBlock,
    Multipliers,
    block_bound,
    check_delegation,
    completed_messages,
    triangle_violation,
)
from relocbench.formulations.certificates.certificate import Dual
from relocbench.formulations.certificates.exact_bound import DualBound
from relocbench.formulations.certificates.integer_problem import WEIGHT_BITS, IntegerProblem
from relocbench.formulations.certificates.region import root_region
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.instance import PUBLISHES, SUBSCRIBES, Instance
from relocbench.instances.kernels.ragged import Ragged, offsets

LABELS = 3


def make_instance(seed, topics=((0, 1, 2), (2, 3, 4), (4, 5), (5, 6, 0), (6,)), storage=1e9, roles=False):
    rng = np.random.default_rng(seed)
    members = Ragged.of([sorted(topic) for topic in topics])
    role = (
        np.random.default_rng([seed, 2]).integers(1, 4, len(members.item)) if roles else np.full(len(members.item), 3)
    )
    return Instance(
        name="blocks",
        cloud_delay=5.0,
        delay_per_km=0.1,
        server_x=rng.uniform(0, 25, 5).round(3),
        server_y=rng.uniform(0, 25, 5).round(3),
        storage_capacity=np.full(5, storage),
        compute_capacity=np.full(5, storage),
        client_x=rng.uniform(0, 25, 7).round(3),
        client_y=rng.uniform(0, 25, 7).round(3),
        spool=2.0 * members.sizes,
        publishers=with_role(members, role, PUBLISHES),
        subscribers=with_role(members, role, SUBSCRIBES),
    )


def with_role(members, role, part):
    kept = (role & part) > 0
    return Ragged(offsets(np.bincount(members.owner()[kept], minlength=len(members.sizes))), members.item[kept])


def receivers_of(instance, pair):
    """Return ``|R|`` of what each client of a pair publishes to their topic; 0 if the other one does not receive it."""
    topic, *ends = pair
    publishers, subscribers = set(instance.publishers[topic].tolist()), set(instance.subscribers[topic].tolist())
    return [
        len(subscribers - {sender}) if sender in publishers and receiver in subscribers else 0
        for sender, receiver in (ends, ends[::-1])
    ]


def make_dual(instance, seed):
    """Return random labels and messages of an instance, by client and by pair."""
    rng = np.random.default_rng(seed)
    labels = np.sort([rng.permutation(5)[:LABELS] for _ in range(7)], axis=1)
    topics = [sorted(topic.tolist()) for topic in instance.members]
    pairs = [(n, a, b) for n, topic in enumerate(topics) for i, a in enumerate(topic) for b in topic[i + 1 :]]
    messages = rng.integers(-30_000, 30_000, (len(pairs), LABELS))
    # Two clients of which neither sends to the other one have messages of 0.
    return labels, pairs, messages * [[any(receivers_of(instance, pair))] for pair in pairs]


def make_block(instance, dual, own, shares=None):
    """Return the block of some clients, numbered as :mod:`spark.dual_tables` numbers them."""
    labels, pairs, messages = dual
    mine = [n for n, topic in enumerate(instance.members) if set(topic.tolist()) & set(own)]
    near = sorted({client for n in mine for client in instance.members[n].tolist()} - set(own))
    nodes = [*own, *near]
    kept = [e for e, (n, _, _) in enumerate(pairs) if n in mine]
    size = instance.publishers.sizes
    servers = np.arange(5)
    unit = 1 << WEIGHT_BITS
    received = np.zeros(7, np.int64)
    for n, topic in enumerate(instance.subscribers):
        for client in topic.tolist():
            senders = set(instance.publishers[n].tolist()) - {client}
            others = [receivers_of(instance, (n, sender, client))[0] for sender in senders]
            received[client] += sum(others.count(count) * unit // count for count in set(others) - {0})
    return DualBlock(
        own=len(own),
        distance=instance.client_delay(np.array(own)[:, None], servers[None, :]),
        publications=instance.client_publications[own],
        received=received[own],
        server_delay=instance.server_delay,
        cloud_delay=instance.cloud_delay,
        labels=labels[nodes],
        first=np.array([nodes.index(pairs[e][1]) for e in kept], np.int64),
        second=np.array([nodes.index(pairs[e][2]) for e in kept], np.int64),
        receivers=np.array([receivers_of(instance, pairs[e]) for e in kept], np.int64).reshape(-1, 2),
        topic=np.array([mine.index(pairs[e][0]) for e in kept], np.int64),
        messages=messages[kept],
        spool=instance.spool[mine],
        member=np.array([nodes.index(client) for n in mine for client in instance.publishers[n].tolist()], np.int64),
        member_topic=np.array([i for i, n in enumerate(mine) for _ in range(size[n])], np.int64),
        shares=np.zeros((int(size[mine].sum()), labels.shape[1]), np.int64)
        if shares is None
        else shares[np.isin(instance.publishers.owner(), mine)],
    )


EVERY = list(range(7))
NONE = Multipliers.none(5)
DIVISIONS = ([EVERY], [[0, 1, 2], [3, 4], [5, 6]], [[m] for m in EVERY])


def local_bound(instance, dual, multipliers=NONE, shares=None):
    """Return the bound that the verifier of local certificates computes for the same dual."""
    labels, pairs, messages = dual
    problem = IntegerProblem(instance)
    order = sorted((e for e in range(len(pairs)) if any(receivers_of(instance, pairs[e]))), key=lambda e: pairs[e][1:])
    assert [pairs[e][1:] for e in order] == list(zip(problem.first.tolist(), problem.second.tolist(), strict=True))
    active = np.zeros((7, 5), np.int64)
    np.put_along_axis(active, labels, 1, axis=1)
    member, topic = instance.publishers.item, instance.publishers.owner()
    by_client = np.lexsort((topic, member))
    assert np.array_equal(member[by_client], problem.publisher_client)
    shares = np.zeros((len(member), labels.shape[1]), np.int64) if shares is None else shares
    local = Dual(
        bits=MESSAGE_BITS,
        multiplier_bits=MULTIPLIER_BITS,
        fix=False,
        alpha=multipliers.alpha,
        beta=multipliers.beta,
        hard=(0,) * 5,
        active=active,
        messages=messages[order].ravel(),
        shares=shares[by_client].ravel(),
    )
    return DualBound(problem, root_region(problem), local, finer=FINER).total


def random_multipliers(instance, dual, seed, largest=0.05):
    """Return random multipliers, and shares that use most of every price."""
    rng = np.random.default_rng([seed, 1])
    values = (rng.uniform(0, largest, (2, 5)) * 2**MULTIPLIER_BITS).astype(np.int64).tolist()
    multipliers = Multipliers(tuple(values[0]), tuple(values[1]))
    labels, item, topic = dual[0], instance.publishers.item, instance.publishers.owner()
    price = np.array(values[0])[labels[item]] * instance.spool[topic][:, None] / 2 ** (MULTIPLIER_BITS - MESSAGE_BITS)
    part = rng.uniform(0.5, 1.0, labels[item].shape) / instance.publishers.sizes[topic][:, None]
    return multipliers, np.floor(price * part).astype(np.int64)


def lost(instance, multipliers):
    return multipliers.capacity_cost(instance.storage_capacity, instance.compute_capacity)


def completed_bound(instance, dual):
    """Return the bound of the messages that docs/scale.md defines, in floating point and pair by pair."""
    labels, pairs, messages = dual
    cost = instance.client_weight[:, None] * instance.client_delay(np.arange(7)[:, None], np.arange(5)[None, :])
    for (n, i, j), given in zip(pairs, messages / 2.0**MESSAGE_BITS, strict=True):
        pair = instance.server_delay * sum(1 / count for count in receivers_of(instance, (n, i, j)) if count)
        most_second = (pair[labels[i]] - given[:, None]).min(axis=0)
        most_first = (pair[labels[j]] - most_second[labels[j], None]).min(axis=0)
        first = (most_first - most_second) / 2
        first[labels[i]] = given
        # No larger messages to the second client are possible.
        second = (pair - first[:, None]).min(axis=0)
        cost[i] += first
        cost[j] += second
    return cost.min(axis=1).sum()


@pytest.mark.parametrize("roles", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_parts_of_the_blocks_add_up_to_one_bound(seed, roles):
    instance = make_instance(seed, roles=roles)
    dual = make_dual(instance, seed)
    violation = triangle_violation(instance.server_delay)
    sums = [
        [sum(block_bound(make_block(instance, dual, own), NONE, rule) for own in division) for division in DIVISIONS]
        for rule in (violation, None)
    ]
    assert [len(set(of_rule)) for of_rule in sums] == [1, 1]
    assert sums[0][0] / 2**UNIT_BITS == pytest.approx(completed_bound(instance, dual), abs=1e-6)
    # The local verifier rounds all distances in one unit.
    assert 0 <= sums[1][0] - local_bound(instance, dual) < 16


@pytest.mark.parametrize("seed", range(40))
def test_no_pair_costs_less_than_its_two_messages(seed):
    # Also where the triangle inequality does not hold.
    rng = np.random.default_rng(seed)
    servers, count, edges = int(rng.integers(1, 9)), int(rng.integers(1, 4)), 30
    count = min(count, servers)
    place = rng.integers(0, 3, (servers, 2)) if seed % 2 else rng.uniform(0, 3, (servers, 2))
    delay = np.hypot(*(place[:, None] - place[None]).transpose(2, 0, 1)) * 10.0 ** rng.integers(-3, 4)
    if seed % 4 == 0:
        delay = rng.uniform(0, 3, (servers, servers))
        delay = np.minimum(delay, delay.T) * (1 - np.eye(servers))
    cost = np.floor(delay * 1000).astype(np.int64)
    epsilon = max(0, int((cost[:, None, :] - cost[:, :, None] - cost[None]).max()))
    active = [np.sort([rng.permutation(servers)[:count] for _ in range(edges)], axis=1) for _ in range(2)]
    given = rng.integers(-4000, 4000, (edges, count))
    first, second = completed_messages(cost, *active, given, epsilon)
    assert (first[:, :, None] + second[:, None, :] <= cost).all()
    assert np.array_equal(np.take_along_axis(first, active[0], axis=1), given)
    if epsilon > 2:
        # Without this, there are pairs that cost less.
        first, second = completed_messages(cost, *active, given, 0)
        assert (first[:, :, None] + second[:, None, :] > cost).any()
    # Rounding to integers and the delays of the problem are within the violation that the verifier computes.
    exact = triangle_violation(delay)
    found = max(
        Fraction(float(delay[a, c])) - Fraction(float(delay[a, b])) - Fraction(float(delay[b, c]))
        for a in range(servers)
        for b in range(servers)
        for c in range(servers)
    )
    assert found <= exact <= max(found, 0) + Fraction(float(delay.max())) / 2**30 + Fraction(1, 2**50)


def test_a_block_whose_clients_are_alone_in_their_topics_contributes_nothing():
    instance = make_instance(0, ((0,), (1,), (2, 3, 4, 5, 6)))
    block = make_block(instance, make_dual(instance, 0), [0, 1])
    assert len(block.first) == 0
    assert block_bound(block, NONE, triangle_violation(instance.server_delay)) == 0


def test_the_bound_does_not_depend_on_the_blocks_where_delays_are_large():
    instance = make_instance(0)
    instance = replace(instance, delay_per_km=1000 * instance.delay_per_km, cloud_delay=5000.0)
    dual = make_dual(instance, 0)
    violation = triangle_violation(instance.server_delay)
    sums = {
        sum(block_bound(make_block(instance, dual, own), NONE, violation) for own in division) for division in DIVISIONS
    }
    assert len(sums) == 1


@pytest.mark.parametrize("roles", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_multipliers_give_the_bound_of_the_local_verifier(seed, roles):
    # Charges below the cost of delegation are those of the local verifier, which knows a least θ.
    instance = make_instance(seed, storage=12.0, roles=roles)
    dual = make_dual(instance, seed)
    multipliers, shares = random_multipliers(instance, dual, seed)
    sums = [
        sum(block_bound(make_block(instance, dual, own, shares), multipliers, None) for own in division)
        - lost(instance, multipliers)
        for division in DIVISIONS
    ]
    assert len(set(sums)) == 1
    difference = sums[0] - local_bound(instance, dual, multipliers, shares)
    assert difference < 16
    # Publications that nobody receives load a server, and cost nothing if they are delegated; the local verifier
    # charges a part.
    unheard = instance.publishers.sizes.sum() - instance.client_publications.sum()
    assert difference >= 0 or (roles and unheard > 0)
    free = sum(block_bound(make_block(instance, dual, own), NONE, None) for own in DIVISIONS[0])
    assert sums[0] + lost(instance, multipliers) > free


def test_shares_that_charge_more_than_a_topic_costs_are_refused():
    instance = make_instance(0, storage=12.0)
    dual = make_dual(instance, 0)
    multipliers, shares = random_multipliers(instance, dual, 0)
    block = make_block(instance, dual, EVERY, shares)
    block_bound(block, multipliers, None)
    for share, problem in ((1 << 24, "no more than the price"), (-1, "from 0"), (MOST_PRICE + 1, "from 0")):
        tampered = shares.copy()
        tampered[1, 1] = share
        with pytest.raises(InputError, match=f"shares: expected.*{problem}"):
            block_bound(replace(block, shares=tampered), multipliers, None)
        # Blocks of other clients see the share too, as long as they have the topic.
        with pytest.raises(InputError, match=problem):
            block_bound(make_block(instance, dual, [0], tampered), multipliers, None)
    with pytest.raises(InputError, match="no more than the price"):
        block_bound(block, replace(multipliers, alpha=tuple(value // 3 for value in multipliers.alpha)), None)
    for value in (-1, 0.5, True, (1 << 62) + 1):
        with pytest.raises(InputError, match=r"beta\[4\]: expected a whole number"):
            replace(multipliers, beta=(*multipliers.beta[:4], value))


# Pairs of clients share several topics.
SHARED = ((0, 1, 2, 3), (0, 1, 4), (0, 1), (2, 3, 5, 6), (5, 6), (4,))


@pytest.mark.parametrize("roles", [False, True])
@pytest.mark.parametrize("storage", [1e9, 14.0, 9.0, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_no_dual_proves_more_than_the_optimum(seed, storage, roles):
    # From loose capacities over scarce ones to servers that delegate nearly everything.
    instance = make_instance(seed, SHARED, storage=storage, roles=roles)
    optimum = evaluate(instance, enumeration.solve(instance, seed=0, time_limit=60).home).objective
    dual = make_dual(instance, seed)
    violation = triangle_violation(instance.server_delay)
    for largest in (0.0, 0.02, 0.5, 20.0):
        multipliers, shares = random_multipliers(instance, dual, seed, largest)
        for rule in (violation, None):
            wild = block_bound(make_block(instance, dual, EVERY, shares), multipliers, rule)
            assert wild - lost(instance, multipliers) <= Fraction(optimum) * 2**UNIT_BITS
    # From messages of 0, the ascent comes close to the optimum where nothing binds.
    labels, pairs, messages = np.broadcast_to(np.arange(5), (7, 5)), dual[1], np.zeros((len(dual[1]), 5), np.int64)
    block = make_block(instance, (labels, pairs, messages), EVERY)
    free = np.ones(len(pairs), np.bool_)
    capacities = Capacities(instance.storage_capacity, instance.compute_capacity, None, adjust=True)
    multipliers = NONE
    for temperature in (0.3, 0.1, 0.03, 0.01, 0.003):
        result = improve_block(block, free, multipliers, temperature, 20, capacities)
        multipliers, block = result.multipliers, replace(block, messages=result.messages, shares=result.shares)
    dual = labels, pairs, result.messages
    better = sum(
        block_bound(make_block(instance, dual, own, result.shares), multipliers, violation)
        for own in ([0, 1], [2, 3, 4, 5, 6])
    )
    assert better / 2**UNIT_BITS == pytest.approx(result.after, abs=1e-6)
    better -= lost(instance, multipliers)
    assert better <= Fraction(optimum) * 2**UNIT_BITS
    if storage == 1e9:
        assert multipliers == NONE
        assert result.after > 0.97 * optimum
    else:
        without = improve_block(make_block(instance, (labels, pairs, messages), EVERY), free, NONE, 0.003, 50).after
        assert better / 2**UNIT_BITS > without


def test_fixed_messages_stay_and_the_bound_of_a_block_does_not_fall():
    instance = make_instance(1)
    _, pairs, some = make_dual(instance, 1)
    labels, messages = np.broadcast_to(np.arange(5), (7, 5)), np.pad(some, ((0, 0), (0, 2)))
    own = [0, 1, 2]
    block = make_block(instance, (labels, pairs, messages), own)
    free = (block.first < 3) & (block.second < 3) & (block.topic == 0)
    result = improve_block(block, free, NONE, 0.02, 10)
    assert np.array_equal(result.messages[~free], block.messages[~free])
    assert result.after > result.before
    assert result.before == pytest.approx(
        block_bound(block, NONE, triangle_violation(instance.server_delay)) / 2**UNIT_BITS, abs=1e-6
    )
    # At a temperature that is too high, the given messages are better.
    again = improve_block(replace(block, messages=result.messages), free, NONE, 30.0, 1)
    assert np.array_equal(again.messages, result.messages)
    assert again.after == again.before


def test_a_block_changes_only_the_shares_of_its_own_clients():
    instance = make_instance(2, SHARED, storage=9.0)
    dual = make_dual(instance, 2)
    multipliers, shares = random_multipliers(instance, dual, 2)
    block = make_block(instance, dual, [0, 1], shares)
    fitted = fitted_shares(block, multipliers)
    free = (block.first < 2) & (block.second < 2)
    capacities = Capacities(instance.storage_capacity, instance.compute_capacity, np.ones((2, 5)), adjust=False)
    result = improve_block(block, free, multipliers, 0.02, 5, capacities)
    assert result.multipliers == multipliers
    others = block.member >= 2
    assert np.array_equal(result.shares[others], fitted[others])
    assert not np.array_equal(result.shares, fitted)
    assert result.after == pytest.approx(
        block_bound(
            replace(block, messages=result.messages, shares=result.shares),
            multipliers,
            triangle_violation(instance.server_delay),
        )
        / 2**UNIT_BITS,
        abs=1e-6,
    )


def test_multipliers_remain_within_the_limit_of_a_certificate():
    # Small loads and large delays need large multipliers.
    instance = make_instance(0, SHARED, storage=1e-9)
    spool = 1e-6 * instance.spool
    instance = replace(instance, delay_per_km=1e6, cloud_delay=5e7, spool=spool)
    labels, pairs = np.broadcast_to(np.arange(5), (7, 5)), make_dual(instance, 0)[1]
    messages = np.zeros((len(pairs), 5), np.int64)
    block = make_block(instance, (labels, pairs, messages), EVERY)
    capacities = Capacities(instance.storage_capacity, instance.compute_capacity, None, adjust=True)
    result = improve_block(block, np.ones(len(pairs), np.bool_), NONE, 1e6, 20, capacities)
    assert max(result.multipliers.alpha) == MOST_MULTIPLIER


def test_a_field_where_delegation_may_pay_is_refused():
    delay = np.array([[0.0, 3.0], [3.0, 0.0]])
    check_delegation(1.5, delay)
    with pytest.raises(InputError, match="cloud_delay: expected at least 1"):
        check_delegation(1.499, delay)
    with pytest.raises(InputError, match="symmetric"):
        check_delegation(5.0, np.array([[0.0, 3.0], [2.0, 0.0]]))
