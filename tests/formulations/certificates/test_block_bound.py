import numpy as np
import pytest

from relocbench.formulations import enumeration
from relocbench.formulations.bounding.block_relaxation import improve_block
from relocbench.formulations.certificates.block_bound import (
    FINER,
    MESSAGE_BITS,
    UNIT_BITS,
    DualBlock,
    block_bound,
    check_delegation,
    client_weights,
)
from relocbench.formulations.certificates.certificate import Dual
from relocbench.formulations.certificates.exact_bound import DualBound
from relocbench.formulations.certificates.integer_problem import IntegerProblem
from relocbench.formulations.certificates.region import root_region
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.instance import PUBLISHES, SUBSCRIBES, Instance
from relocbench.instances.kernels.ragged import Ragged

LABELS = 3


def make_instance(seed, topics=((0, 1, 2), (2, 3, 4), (4, 5), (5, 6, 0), (6,)), storage=1e9, roles=False):
    rng = np.random.default_rng(seed)
    members = publishers = subscribers = Ragged.of([sorted(topic) for topic in topics])
    if roles:
        role = np.random.default_rng([seed, 1]).integers(1, 4, len(members.item)).tolist()
        pairs = [(n, m) for n, topic in enumerate(members) for m in topic.tolist()]
        publishers, subscribers = (
            Ragged.of(
                [[m for (k, m), r in zip(pairs, role, strict=True) if k == n and r & part] for n in range(len(topics))]
            )
            for part in (PUBLISHES, SUBSCRIBES)
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
        publishers=publishers,
        subscribers=subscribers,
    )


def members_of(instance):
    """Return the members of each topic, ascending, with their roles."""
    roles = np.split(instance.member_role, instance.members.start[1:-1])
    return [
        sorted(zip(topic.tolist(), role.tolist(), strict=True))
        for topic, role in zip(instance.members, roles, strict=True)
    ]


def make_dual(instance, seed):
    """Return random labels and messages of an instance, by client and by pair."""
    rng = np.random.default_rng(seed)
    labels = np.sort([rng.permutation(5)[:LABELS] for _ in range(7)], axis=1)
    pairs = [
        (n, a, b)
        for n, topic in enumerate(members_of(instance))
        for i, (a, _) in enumerate(topic)
        for b, _ in topic[i + 1 :]
    ]
    return labels, pairs, rng.integers(-30_000, 30_000, (len(pairs), LABELS))


def make_block(instance, dual, own):
    """Return the block of some clients, numbered as :mod:`spark.dual_tables` numbers them."""
    labels, pairs, messages = dual
    mine = [n for n, topic in enumerate(instance.members) if set(topic.tolist()) & set(own)]
    near = sorted({client for n in mine for client in instance.members[n].tolist()} - set(own))
    nodes = [*own, *near]
    kept = [e for e, (n, _, _) in enumerate(pairs) if n in mine]
    roles = [dict(topic) for topic in members_of(instance)]
    subscribers = instance.subscribers.sizes
    entries = np.array([(own.index(m), role, n) for n in mine for m, role in roles[n].items() if m in own])
    owner, role, topic = entries.T
    sizes = (lists.sizes[topic] for lists in (instance.members, instance.publishers, instance.subscribers))

    def receivers(sender, receiver):
        return [
            (roles[n][m] & PUBLISHES > 0 and roles[n][k] & SUBSCRIBES > 0)
            * (subscribers[n] - (roles[n][m] & SUBSCRIBES > 0))
            for n, m, k in ((pairs[e][0], pairs[e][sender], pairs[e][receiver]) for e in kept)
        ]

    servers = np.arange(5)
    return DualBlock(
        own=len(own),
        distance=instance.client_delay(np.array(own)[:, None], servers[None, :]),
        weight=client_weights(owner, role, *sizes, len(own)),
        server_delay=instance.server_delay,
        labels=labels[nodes],
        first=np.array([nodes.index(pairs[e][1]) for e in kept]),
        second=np.array([nodes.index(pairs[e][2]) for e in kept]),
        forward=np.array(receivers(1, 2)),
        backward=np.array(receivers(2, 1)),
        topic=np.array([mine.index(pairs[e][0]) for e in kept]),
        messages=messages[kept],
    )


EVERY = list(range(7))
DIVISIONS = ([EVERY], [[0, 1, 2], [3, 4], [5, 6]], [[m] for m in EVERY])


@pytest.mark.parametrize("roles", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_parts_of_the_blocks_add_up_to_the_bound_of_the_local_verifier(seed, roles):
    instance = make_instance(seed, roles=roles)
    dual = make_dual(instance, seed)
    problem = IntegerProblem(instance)
    edges = list(zip(problem.first.tolist(), problem.second.tolist(), strict=True))
    # The local problem has no pair of clients that never send anything to each other.
    dual[2][[pair[1:] not in edges for pair in dual[1]]] = 0
    sums = [sum(block_bound(make_block(instance, dual, own)) for own in division) for division in DIVISIONS]
    labels, pairs, messages = dual
    order = sorted((e for e in range(len(pairs)) if pairs[e][1:] in edges), key=lambda e: pairs[e][1:])
    assert [pairs[e][1:] for e in order] == edges
    assert roles == (len(edges) < len(pairs))
    active = np.zeros((7, 5), np.int64)
    np.put_along_axis(active, labels, 1, axis=1)
    zeros, empty = (0,) * 5, active.sum(axis=1)[problem.publisher_client].sum()
    local = Dual(
        bits=MESSAGE_BITS,
        multiplier_bits=0,
        fix=False,
        alpha=zeros,
        beta=zeros,
        hard=zeros,
        active=active,
        messages=messages[order].ravel(),
        shares=np.zeros(int(empty), np.int64),
    )
    assert sums == [DualBound(problem, root_region(problem), local, finer=FINER).total] * 3


@pytest.mark.parametrize("seed", range(6))
def test_no_messages_prove_more_than_the_optimum(seed):
    # Pairs of clients share several topics, and capacities bind, as the bound ignores.
    topics = ((0, 1, 2, 3), (0, 1, 4), (0, 1), (2, 3, 5, 6), (5, 6), (4,))
    instance = make_instance(seed, topics, storage=9.0 if seed % 2 else 1e9, roles=seed >= 3)
    optimum = evaluate(instance, enumeration.solve(instance, seed=0, time_limit=60).home).objective
    dual = make_dual(instance, seed)
    wild = block_bound(make_block(instance, dual, EVERY))
    assert wild <= optimum * 2**UNIT_BITS
    # From random messages, coordinate ascent and the first-order method come close to the optimum where nothing binds.
    labels, pairs, messages = np.broadcast_to(np.arange(5), (7, 5)), dual[1], np.zeros((len(dual[1]), 5), np.int64)
    block = make_block(instance, (labels, pairs, messages), EVERY)
    free = np.ones(len(pairs), np.bool_)
    result = improve_block(block, np.zeros(7, np.int32), free, sweeps=10, iterations=200, checks=2)
    better = sum(
        block_bound(make_block(instance, (labels, pairs, result.messages), own)) for own in ([0, 1], [2, 3, 4, 5, 6])
    )
    assert better <= optimum * 2**UNIT_BITS
    assert better / 2**UNIT_BITS == pytest.approx(result.after, abs=1e-6)
    assert result.before <= result.after
    if seed % 2 == 0:
        assert result.after > 0.97 * optimum


def test_fixed_messages_stay_and_the_bound_of_a_block_does_not_fall():
    instance = make_instance(1)
    _, pairs, some = make_dual(instance, 1)
    labels, messages = np.broadcast_to(np.arange(5), (7, 5)), np.pad(some, ((0, 0), (0, 2)))
    own = [0, 1, 2]
    block = make_block(instance, (labels, pairs, messages), own)
    free = (block.first < 3) & (block.second < 3) & (block.topic == 0)
    result = improve_block(block, labels[own, 0].astype(np.int32), free, sweeps=3, iterations=30, checks=1)
    assert np.array_equal(result.messages[~free], block.messages[~free])
    assert result.after > result.before
    assert result.before == pytest.approx(block_bound(block) / 2**UNIT_BITS, abs=1e-6)


def test_a_field_where_delegation_may_pay_is_refused():
    delay = np.array([[0.0, 3.0], [3.0, 0.0]])
    check_delegation(1.5, delay)
    with pytest.raises(InputError, match="cloud_delay: expected at least 1"):
        check_delegation(1.499, delay)
    with pytest.raises(InputError, match="symmetric"):
        check_delegation(5.0, np.array([[0.0, 3.0], [2.0, 0.0]]))
