"""The part of a bound that some of the clients contribute, in integers.

At full scale a dual is verified in blocks. A block has *own* clients and, beside them, all clients with which these
share a topic. It contains all topics of its own clients, and the messages along all pairs of their members. The bound
is the sum, over all blocks, of the least costs of the own clients. It is a bound because each message is computed from
its own topic alone: both blocks that contain a pair of clients compute the same messages for it, in the same unit. For
this the caller must give both blocks the same labels, messages and shares of a topic.

Members of a topic publish, subscribe or both. Multipliers ``α_l, β_l ≥ 0`` charge the loads of servers, as in
docs/certificates.md: a client pays ``β_l·U_m`` and shares of ``α_l·u_n`` where its messages are processed, or at least
``f_m·(2·dC - the largest dS from l)`` where they are delegated. The smaller of the two holds for every ``θ``. The bound
without multipliers holds if delegation never makes an assignment cheaper, which :func:`check_delegation` verifies.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from relocbench.formulations.certificates.budget import Budget, Size
from relocbench.formulations.certificates.certificate import Dual
from relocbench.formulations.certificates.exact_bound import DualBound
from relocbench.formulations.certificates.integer_problem import (
    DELAY_MANTISSA,
    WEIGHT_BITS,
    AddedCosts,
    BoolArray,
    IntegerArray,
    IntegerProblem,
    Rounded,
    exact_integers,
    integer_array,
    rounded_delays,
    rounded_weights,
)
from relocbench.formulations.certificates.packed_arrays import Int64Array
from relocbench.formulations.certificates.region import root_region
from relocbench.instances.errors import InputError, shown
from relocbench.instances.kernels.ragged import FloatArray

# Messages are integer multiples of 2^-MESSAGE_BITS. The sums are computed in units that are finer by FINER bits.
MESSAGE_BITS = 16
FINER = 12
UNIT_BITS = MESSAGE_BITS + FINER
# Multipliers are integer multiples of 2^-MULTIPLIER_BITS.
MULTIPLIER_BITS = 40
MOST_MULTIPLIER = 1 << 62
# Larger shares, and larger costs of a delegated publication, are of no use: this many units are 2^24 ms or 2^12 ms.
MOST_PRICE = 1 << 40
# Pairs are processed in blocks of about this number of pairs of an active and any server.
ENTRIES = 1 << 17
# The delays between servers are integers below 2^VIOLATION_BITS where the triangle inequality is checked.
VIOLATION_BITS = 60


@dataclass(frozen=True)
class Multipliers:
    """The multipliers of all capacities, which are the same in all blocks.

    Attributes
    ----------
    alpha, beta
        The multipliers of storage and compute of each server, in units of ``2^-MULTIPLIER_BITS``.
    """

    alpha: tuple[int, ...]
    beta: tuple[int, ...]

    def __post_init__(self) -> None:
        for name, values in (("alpha", self.alpha), ("beta", self.beta)):
            for server, value in enumerate(values):
                if type(value) is not int or not 0 <= value <= MOST_MULTIPLIER:
                    problem = f"expected a whole number from 0 to {MOST_MULTIPLIER}, got {shown(value)}"
                    raise InputError(f"{name}[{server}]", problem)

    @classmethod
    def none(cls, servers: int) -> "Multipliers":
        """Create multipliers of 0.

        Parameters
        ----------
        servers
            The number of servers.

        Returns
        -------
        Multipliers
            The multipliers, which charge nothing for loads.
        """
        return cls((0,) * servers, (0,) * servers)

    @property
    def charging(self) -> bool:
        """Whether any multiplier is above 0."""
        return any(self.alpha) or any(self.beta)

    def capacity_cost(self, storage_capacity: FloatArray, compute_capacity: FloatArray) -> int:
        """Compute what the multipliers pay for the capacities, which the bound loses.

        Parameters
        ----------
        storage_capacity, compute_capacity
            ``A`` and ``B``.

        Returns
        -------
        int
            ``Σ_l α_l·A_l + β_l·B_l`` in units of ``2^-UNIT_BITS``, rounded up for each server.
        """
        capacities, bits = exact_integers(storage_capacity, compute_capacity)
        prices = integer_array(list(self.alpha)) * capacities[0] + integer_array(list(self.beta)) * capacities[1]
        by = MULTIPLIER_BITS + bits - UNIT_BITS
        return sum(-(-price >> by) for price in prices.tolist())


@dataclass(frozen=True, eq=False)
class DualBlock:
    """A dual, as far as the own clients of a block need it.

    Attributes
    ----------
    own
        The number of own clients, which come first.
    distance
        ``dH`` of the own clients (``own×L``).
    publications
        ``f``: the number of topics to which each own client publishes and that have another receiver.
    received
        ``w - f`` of each own client: the parts of publications that it receives, in units of ``2^-WEIGHT_BITS`` and
        rounded down.
    server_delay
        ``dS``, symmetric.
    cloud_delay
        ``dC``.
    labels
        The active servers of every client, ascending (one row for each client, all of the same length).
    first, second
        The two clients of each pair of members of a topic. A pair that shares several topics is there several times.
    receivers
        ``|R|`` of what the first client of each pair publishes to its topic, and of what the second one publishes; 0
        if the other client does not receive it (pairs × 2).
    topic
        The topic of each pair, ascending.
    messages
        One number for each pair and each active server of its first client, in units of ``2^-MESSAGE_BITS``.
    spool
        ``u`` of each topic.
    member, member_topic
        The client and the topic of each publisher; topics ascend. Each topic of an own client has all its publishers.
    shares
        One number for each publisher and each active server of the client, in units of ``2^-MESSAGE_BITS``: what it
        pays of the topic's storage.
    """

    own: int
    distance: FloatArray
    publications: Int64Array
    received: Int64Array
    server_delay: FloatArray
    cloud_delay: float
    labels: Int64Array
    first: Int64Array
    second: Int64Array
    receivers: Int64Array
    topic: Int64Array
    messages: Int64Array
    spool: FloatArray
    member: Int64Array
    member_topic: Int64Array
    shares: Int64Array

    @property
    def interacting(self) -> BoolArray:
        """The pairs of which at least one client sends to the other one. The messages of other pairs do not count."""
        return np.asarray(self.receivers.any(axis=1))


class BlockProblem(IntegerProblem):
    """The pairs of a block with at least one own client, as an integer problem without capacities.

    Parameters
    ----------
    block
        The block.
    kept
        The pairs (one truth value for each).
    """

    def __init__(self, block: DualBlock, kept: BoolArray) -> None:
        clients, servers = len(block.labels), len(block.server_delay)
        self.added = None
        self.budget = Budget()
        self.n_clients, self.n_servers, self.n_topics = clients, servers, 1
        self.size = Size(clients, servers, 1, 0, 2 * int(kept.sum()))
        self.region_memory = 3 * self.size.region_bytes
        # One topic without a publisher, and no demand: nothing loads a server.
        self.storage_capacity, self.compute_capacity = (integer_array([1] * servers) for _ in range(2))
        self.spool, self.demand, self.load_bits = integer_array([0]), integer_array([0] * clients), 0
        none = np.empty(0, np.int64)
        self.publisher_client, self.publisher_topic = none, none
        self._publishing, self._client_start, self._by_topic, self._loading, self._topic_start = (none,) * 5
        self._publisher_spool = none
        self.detour = Fraction(0)
        self.server_delay, self.between = block.server_delay, rounded_delays(block.server_delay)
        distance = np.zeros((clients, servers))
        distance[: block.own] = block.distance
        # The part of a client does not depend on the other clients of its block.
        self.distance = rounded_delays(distance, one_unit=False)
        self.publications = np.zeros(clients, np.int64)
        weight = np.zeros(clients, np.int64)
        weight[: block.own] = (block.publications << WEIGHT_BITS) + block.received
        self.weight = rounded_weights(weight)
        self.first, self.second = block.first[kept], block.second[kept]
        receivers = block.receivers[kept]
        sent = np.where(receivers > 0, (1 << WEIGHT_BITS) // np.maximum(receivers, 1), 0)
        self.edge_weights = [rounded_weights(sent.sum(axis=1))]
        ends = np.concatenate([self.first, self.second])
        self.degree = int(np.bincount(ends, minlength=1).max())
        self.sender, self.receiver = none, none
        self.sent = self.sent_least = rounded_weights(none)


class BlockBound(DualBound):
    """The bound of a block, in which each inactive server of a client has a message that follows from the active ones.

    Along a pair ``(i, j)`` with the messages ``μ_i`` to the active servers ``T_i`` of the first client,

        t(b) = min over a in T_i of  pair(a,b) - μ_i(a),    g(a) = min over b in T_j of  pair(a,b) - t(b)

    are the largest messages to the second client, and to the first one, that the others allow. The first client gets
    ``(g - t - ε)/2`` at its other servers, where ``pair(a,c) ≤ pair(a,b) + pair(b,c) + ε`` for any servers. The second
    client gets ``t`` at its active servers, the largest message that the pair allows at those of the first client, and
    ``(t - g - ε)/2`` at all others. docs/scale.md shows that no pair costs less than its two messages.

    Parameters
    ----------
    problem, dual
        The pairs and the messages.
    labels
        The active servers of each client, as in :class:`DualBlock`.
    violation
        By how much the delays between servers violate the triangle inequality at most.
    """

    def __init__(self, problem: IntegerProblem, dual: Dual, labels: Int64Array, violation: Fraction) -> None:
        self._labels, self._violation = labels, violation
        super().__init__(problem, root_region(problem), dual, finer=FINER)

    def _add_all_messages(self) -> None:
        problem, labels = self._problem, self._labels
        (weight,) = problem.edge_weights
        kinds, kind = np.unique(np.column_stack([weight.mantissa, weight.exponent]), axis=0, return_inverse=True)
        given = self._messages.reshape(len(problem.first), labels.shape[1]).astype(self._dtype)
        messages = given << (self.unit - self._dual.bits)
        size = max(1, ENTRIES // (problem.n_servers * labels.shape[1]))
        for number, (mantissa, exponent) in enumerate(kinds.tolist()):
            cost = self._product(Rounded(np.array([[mantissa]]), np.array([[exponent]])), problem.between)
            # Two products are rounded down by less than a unit each.
            epsilon = 2 + math.ceil(self._violation * mantissa * Fraction(2) ** (exponent + self.unit))
            edges = np.flatnonzero(kind == number)
            for begin in range(0, len(edges), size):
                problem.budget.check_time()
                some = edges[begin : begin + size]
                i, j = problem.first[some], problem.second[some]
                first, second = completed_messages(cost, labels[i], labels[j], messages[some], epsilon)
                np.add.at(self._unary, i, first)
                np.add.at(self._unary, j, second)


def completed_messages(
    cost: IntegerArray, active_i: Int64Array, active_j: Int64Array, given: IntegerArray, epsilon: int
) -> tuple[IntegerArray, IntegerArray]:
    """Compute the messages of pairs to all servers of both clients, as :class:`BlockBound` defines them.

    Parameters
    ----------
    cost
        The symmetric costs of a pair (``L×L``), with ``pair(a,c) ≤ pair(a,b) + pair(b,c) + epsilon``.
    active_i, active_j
        The active servers of both clients (one row for each pair).
    given
        The messages to the active servers of the first client.
    epsilon
        ``ε``.

    Returns
    -------
    first, second
        The messages to the first and to the second clients (one row for each pair, one column for each server).
    """
    to_second = (cost[active_i] - given[:, :, None]).min(axis=1)
    at_active = np.take_along_axis(to_second, active_j, axis=1)
    to_first = (cost[active_j] - at_active[:, :, None]).min(axis=1)
    first, second = (to_first - to_second - epsilon) >> 1, (to_second - to_first - epsilon) >> 1
    np.put_along_axis(first, active_i, given, axis=1)
    np.put_along_axis(second, active_i, (cost[active_i] - first[:, None, :]).min(axis=2), axis=1)
    np.put_along_axis(second, active_j, at_active, axis=1)
    return first, second


def triangle_violation(server_delay: FloatArray) -> Fraction:
    """Compute by how much the delays of an integer problem violate the triangle inequality at most.

    Parameters
    ----------
    server_delay
        ``dS``.

    Returns
    -------
    Fraction
        A number that is at least ``dS[a,c] - dS[a,b] - dS[b,c]`` for any servers, with the delays rounded down as an
        integer problem rounds them.
    """
    largest = Fraction(float(server_delay.max()))
    shift = VIOLATION_BITS - math.frexp(server_delay.max())[1]
    delay = np.floor(np.ldexp(server_delay, shift)).astype(np.int64)
    found = 0
    for b in range(len(delay)):
        found = max(found, int((delay - delay[:, b, None] - delay[b]).max()))
    # The first delay may be larger by a unit than its integer, and the other two lose their last bits.
    violation: Fraction = (found + 1) * Fraction(2) ** -shift + 4 * largest / 2**DELAY_MANTISSA
    return violation


def block_bound(block: DualBlock, multipliers: Multipliers, violation: Fraction | None) -> int:
    """Compute what the own clients of a block contribute to the bound.

    Parameters
    ----------
    block
        The block.
    multipliers
        The multipliers. What they pay for the capacities is not part of any block.
    violation
        By how much the delays between servers violate the triangle inequality at most (:func:`triangle_violation`).
        None for a certificate of the first version, where inactive servers have other messages.

    Returns
    -------
    int
        The sum of their least costs, in units of ``2^-UNIT_BITS``.

    Raises
    ------
    InputError
        If the shares of a topic are not from 0 on, or are more than its price.
    """
    if not block.own:
        return 0
    kept = ((block.first < block.own) | (block.second < block.own)) & block.interacting
    problem = BlockProblem(block, kept)
    check_shares(block, multipliers)
    if multipliers.charging:
        charges = np.zeros((problem.n_clients, problem.n_servers), np.int64)
        charges[: block.own] = least_charges(block, multipliers)
        problem.added = AddedCosts(charges, Fraction(1, 1 << UNIT_BITS))
    active = np.zeros((problem.n_clients, problem.n_servers), np.bool_)
    np.put_along_axis(active, block.labels, True, axis=1)
    zeros = (0,) * problem.n_servers
    # The charges are costs of homes, so the multipliers of this dual are 0.
    dual = Dual(
        bits=MESSAGE_BITS,
        multiplier_bits=0,
        fix=False,
        alpha=zeros,
        beta=zeros,
        hard=zeros,
        active=active.astype(np.int64),
        messages=block.messages[kept].ravel(),
        shares=np.empty(0, np.int64),
    )
    if violation is None:
        bound = DualBound(problem, root_region(problem), dual, finer=FINER)
    else:
        bound = BlockBound(problem, dual, block.labels, violation)
    return sum(bound.least[: block.own].tolist())


def topic_prices(block: DualBlock, multipliers: Multipliers) -> tuple[Int64Array, Int64Array]:
    """Compute how much the shares of a topic at a server may be together.

    Parameters
    ----------
    block, multipliers
        The block and the multipliers.

    Returns
    -------
    prices
        ``α_l·u_n`` in units of ``2^-MESSAGE_BITS``, rounded down and at most ``MOST_PRICE``: one row for each spool.
    row
        The row of each topic.
    """
    spools, row = np.unique(block.spool, return_inverse=True)
    (integers,), bits = exact_integers(spools)
    exact = integers[:, None] * integer_array(list(multipliers.alpha))[None, :] >> MULTIPLIER_BITS + bits - MESSAGE_BITS
    return np.minimum(exact, MOST_PRICE).astype(np.int64), row


def check_shares(block: DualBlock, multipliers: Multipliers) -> None:
    """Check that all shares are from 0 on, and those of a topic at a server at most its price: ``Σ_m λ ≤ α_l·u_n``.

    Parameters
    ----------
    block, multipliers
        The block and the multipliers.

    Raises
    ------
    InputError
        If a share is below 0, or the shares of a topic are too large.
    """
    shares, servers = block.shares, len(block.server_delay)
    if shares.shape != (len(block.member), block.labels.shape[1]):
        raise InputError("shares", "expected one for each publisher and active server")
    if not shares.any():
        return
    if (shares < 0).any() or (shares > MOST_PRICE).any():
        raise InputError("shares", f"expected numbers from 0 to {MOST_PRICE}")
    prices, row = topic_prices(block, multipliers)
    # Fewer than 2^22 members have sums below 2^62.
    total = np.zeros((len(block.spool), servers), np.int64)
    np.add.at(total, (block.member_topic[:, None], block.labels[block.member]), shares)
    if (total > prices[row]).any():
        raise InputError("shares", "expected no more than the price of each topic, got more")


def least_charges(block: DualBlock, multipliers: Multipliers) -> Int64Array:
    """Compute what each own client pays at least at each server for its load, processed there or delegated.

    Parameters
    ----------
    block, multipliers
        The block and the multipliers.

    Returns
    -------
    array
        The charges in units of ``2^-UNIT_BITS``, rounded down (``own×L``).
    """
    mine = block.member < block.own
    client, topic = block.member[mine], block.member_topic[mine]
    (spool,), bits = exact_integers(block.spool)
    demand = integer_array([0] * block.own)
    np.add.at(demand, client, spool[topic])
    # Demands are few different numbers.
    demands, row = np.unique(demand, return_inverse=True)
    by = MULTIPLIER_BITS + bits - UNIT_BITS
    compute = demands[:, None] * integer_array(list(multipliers.beta))[None, :] >> by
    local = np.minimum(compute, MOST_PRICE << FINER).astype(np.int64)[row]
    np.add.at(local, (client[:, None], block.labels[client]), block.shares[mine] << FINER)
    # No message saves more than the largest delay from the server.
    saved = [Fraction(float(delay)) for delay in block.server_delay.max(axis=1)]
    detour = 2 * Fraction(float(block.cloud_delay))
    delegated = [min(math.floor((detour - most) * 2**UNIT_BITS), MOST_PRICE) for most in saved]
    charges: Int64Array = np.minimum(local, np.array(delegated, np.int64)[None, :] * block.publications[:, None])
    return charges


def check_delegation(cloud_delay: float, server_delay: FloatArray) -> None:
    """Check that an assignment never becomes cheaper by delegation, so that capacities may be ignored in a bound.

    Parameters
    ----------
    cloud_delay
        ``dC``.
    server_delay
        ``dS``.

    Raises
    ------
    InputError
        If ``2·dC`` is below the largest ``dS``, or ``dS`` is not symmetric.
    """
    if not (server_delay == server_delay.T).all():
        raise InputError("server_server_delay", "expected symmetric delays between servers for a bound at full scale")
    largest = float(server_delay.max())
    if 2 * Fraction(cloud_delay) < Fraction(largest):
        raise InputError(
            "cloud_delay",
            f"expected at least {largest / 2:g}, half the largest delay between servers, got {cloud_delay:g}",
        )
