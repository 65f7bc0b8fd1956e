"""Better messages and shares for one block of clients, with all messages across its border fixed.

The block is a labelling problem: the messages that arrive from outside are added to the costs of the homes of its own
clients. Smoothed block coordinate ascent (:mod:`formulations.bounding.smooth_ascent`) improves its messages, the shares
of its clients in the storage of their topics and, if wanted, the multipliers of the capacities.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from relocbench.formulations.bounding.smooth_ascent import (
    Charges,
    Pairs,
    add_messages,
    begin,
    charge_compute,
    compute_loads,
    newton_step,
    visit_clients,
    visit_topics,
)
from relocbench.formulations.certificates.block_bound import (
    MESSAGE_BITS,
    MOST_MULTIPLIER,
    MULTIPLIER_BITS,
    UNIT_BITS,
    DualBlock,
    Multipliers,
    least_charges,
    topic_prices,
)
from relocbench.formulations.certificates.integer_problem import WEIGHT_BITS, BoolArray
from relocbench.formulations.certificates.packed_arrays import Int64Array
from relocbench.instances.incremental_state import StateArrays, move_delta
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray, offsets
from relocbench.instances.region_state import RegionState

# Shares are scaled down by this much, because the sum that they are scaled by is rounded.
SHARE_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Capacities:
    """The capacities for the clients of a block, and what a step may do with their multipliers.

    Attributes
    ----------
    storage, compute
        ``A`` and ``B``.
    load
        The storage and the compute load of each server in the smoothed relaxation of all blocks (``2×L``). The block
        gets a part of the capacities in proportion to its own loads. None if it is the only block.
    adjust
        Whether the multipliers may change.
    """

    storage: FloatArray
    compute: FloatArray
    load: FloatArray | None
    adjust: bool


@dataclass(frozen=True, eq=False)
class BlockResult:
    """The dual of a block after some sweeps.

    Attributes
    ----------
    messages, shares
        All messages and shares, as in :class:`formulations.certificates.block_bound.DualBlock`. Those of fixed pairs
        are the same, and those of other clients are fitted to the multipliers.
    multipliers
        The multipliers of this block.
    load
        The storage and the compute load of each server in the smoothed relaxation (``2×L``).
    before, after
        The part of the bound that the own clients contribute, in floating point, with the former and the present
        multipliers.
    """

    messages: Int64Array
    shares: Int64Array
    multipliers: Multipliers
    load: FloatArray
    before: float
    after: float


def fitted_shares(block: DualBlock, multipliers: Multipliers) -> Int64Array:
    """Scale the shares of each topic at each server to its price; divide it equally if there are none.

    The result for a topic depends on its row alone, so it is the same in all blocks.

    Parameters
    ----------
    block, multipliers
        The block and the multipliers.

    Returns
    -------
    array
        The shares.
    """
    if not any(multipliers.alpha):
        return np.zeros_like(block.shares)
    prices, row = topic_prices(block, multipliers)
    total, members = (_by_topic(block, values) for values in (block.shares, np.ones_like(block.shares)))
    place = block.member_topic[:, None], block.labels[block.member]
    price = prices[row]
    scale = np.divide(price, total, out=np.zeros(total.shape), where=total > 0) * (1 - SHARE_ROUNDING)
    # What was lost by rounding is not worth another rounding.
    scale[(total <= price) & (price <= total + members)] = 1.0
    equal = price // np.maximum(members, 1)
    return np.where(total[place] > 0, np.floor(block.shares * scale[place]).astype(np.int64), equal[place])


def _by_topic(block: DualBlock, values: Int64Array) -> Int64Array:
    """Add up values of publishers and active servers by topic and server."""
    total = np.zeros((len(block.spool), len(block.server_delay)), np.int64)
    np.add.at(total, (block.member_topic[:, None], block.labels[block.member]), values)
    return total


def improve_block(
    block: DualBlock,
    free: BoolArray,
    multipliers: Multipliers,
    temperature: float,
    sweeps: int,
    capacities: Capacities | None = None,
) -> BlockResult:
    """Improve the messages along the free pairs of a block, and the shares of its own clients.

    Parameters
    ----------
    block
        The block.
    free
        The pairs whose messages may change, if one client sends to the other. Both are own clients.
    multipliers
        The multipliers of the capacities.
    temperature
        By which minima are smoothed, in ms.
    sweeps
        The number of sweeps over all clients and topics.
    capacities
        The capacities; None if all multipliers are 0 and remain so.

    Returns
    -------
    BlockResult
        The dual. Without other multipliers its bound is not below that of the given one.
    """
    own, servers = block.own, len(block.server_delay)
    block = replace(block, shares=fitted_shares(block, multipliers))
    delays = _PairCosts.of(block)
    weight = block.publications + np.ldexp(block.received.astype(np.float64), -WEIGHT_BITS)
    outside = weight[:, None] * block.distance
    free = free & block.interacting
    fixed = ~free & block.interacting & ((block.first < own) | (block.second < own))
    delays.add_to(outside, fixed, block.messages)
    before = _value(block, multipliers, delays, outside, free)
    labels = block.labels[:own]
    charges = _charges(block, multipliers, capacities)
    pairs = _pairs(block, delays, free, np.take_along_axis(outside, labels, axis=1))
    pairs.cost[:] += np.minimum(charges.charge, charges.most)
    begin(pairs)
    factor = np.exp(-delays.cost / temperature).astype(np.float32)
    load = np.zeros((2, servers))
    most = [
        temperature / max(float(values.mean()), np.finfo(float).tiny) if values.size else 0.0
        for values in (block.spool, charges.demand)
    ]
    for sweep in range(sweeps):
        visit_clients(pairs, factor, temperature, bool(sweep % 2))
        if capacities is None:
            continue
        load[0], slope = visit_topics(pairs, charges, temperature)
        load[1], compute_slope = compute_loads(pairs, charges, temperature)
        if sweep == 0 and capacities.load is not None:
            _take_part(charges, load, capacities)
        if capacities.adjust and sweep < sweeps - 1:
            charges.alpha[:] = _stored(newton_step(charges.alpha, load[0], slope, charges.storage, most[0]))
            beta = newton_step(charges.beta, load[1], compute_slope, charges.compute, most[1])
            charge_compute(pairs, charges, _stored(beta))
    changed = Multipliers(_integers(charges.alpha), _integers(charges.beta))
    better = replace(block, messages=block.messages.copy(), shares=block.shares.copy())
    better.messages[free] = np.floor(np.ldexp(pairs.to_first, MESSAGE_BITS)).astype(np.int64)
    if capacities is not None:
        mine = block.member < own
        better.shares[mine] = np.floor(np.ldexp(charges.share * (1 - SHARE_ROUNDING), MESSAGE_BITS)).astype(np.int64)
    after = _value(better, changed, delays, outside, free)
    if changed == multipliers and after < before:
        return BlockResult(block.messages, block.shares, multipliers, load, before, before)
    return BlockResult(better.messages, better.shares, changed, load, before, after)


@dataclass(frozen=True, eq=False)
class _PairCosts:
    """The costs of the pairs of a block, for each amount that two clients send to each other."""

    block: DualBlock
    kind: Int64Array
    cost: FloatArray

    @classmethod
    def of(cls, block: DualBlock) -> "_PairCosts":
        sent = np.divide(1.0, block.receivers, out=np.zeros(block.receivers.shape), where=block.receivers > 0)
        amount, kind = np.unique(sent.sum(axis=1), return_inverse=True)
        cost = amount[:, None, None] * block.server_delay[None, :, :]
        return cls(block, kind.astype(np.int64), cost)

    def add_to(self, cost: FloatArray, kept: BoolArray, messages: Int64Array) -> None:
        """Add the messages of some pairs to the costs of the own clients."""
        block, given = self.block, np.ldexp(messages[kept].astype(np.float64), -MESSAGE_BITS)
        add_messages(cost, block.first[kept], block.second[kept], self.kind[kept], self.cost, block.labels, given)


def _value(
    block: DualBlock, multipliers: Multipliers, delays: _PairCosts, outside: FloatArray, free: BoolArray
) -> float:
    """Return the sum of the least costs of the own clients."""
    cost = outside.copy()
    if multipliers.charging:
        cost += np.ldexp(least_charges(block, multipliers).astype(np.float64), -UNIT_BITS)
    delays.add_to(cost, free, block.messages)
    return float(cost.min(axis=1).sum()) if block.own else 0.0


def _pairs(block: DualBlock, delays: _PairCosts, free: BoolArray, cost: FloatArray) -> Pairs:
    first, second = block.first[free], block.second[free]
    ends = np.concatenate([first, second])
    incident = np.argsort(ends, kind="stable") % max(len(first), 1)
    given = np.ldexp(block.messages[free].astype(np.float64), -MESSAGE_BITS)
    return Pairs(
        first=first,
        second=second,
        kind=delays.kind[free],
        pair_cost=delays.cost,
        incident_start=offsets(np.bincount(ends, minlength=block.own)),
        incident=incident,
        label=block.labels[: block.own],
        cost=cost,
        to_first=given,
        to_second=np.zeros_like(given),
    )


def _charges(block: DualBlock, multipliers: Multipliers, capacities: Capacities | None) -> Charges:
    """Return the charges of the own clients, with the fitted shares of the block."""
    own, servers, labels = block.own, len(block.server_delay), block.labels[: block.own]
    mine = block.member < own
    member, topic = block.member[mine], block.member_topic[mine]
    demand = np.asarray(np.bincount(member, block.spool[topic], minlength=own), np.float64)
    alpha, beta = (
        np.ldexp(np.array(values, np.float64), -MULTIPLIER_BITS) for values in (multipliers.alpha, multipliers.beta)
    )
    share = np.ldexp(block.shares[mine].astype(np.float64), -MESSAGE_BITS)
    charge: FloatArray = beta[labels] * demand[:, None]
    np.add.at(charge, member, share)
    delegated = 2 * block.cloud_delay - block.server_delay.max(axis=1)
    part = np.ones((len(block.spool) if capacities is not None else 0, servers))
    if capacities is not None and not mine.all():
        # The own clients pay the part of the price that their shares have now; they count if there are none.
        everyone = np.ones_like(block.shares)
        counts = _by_topic(block, everyone * mine[:, None]), _by_topic(block, everyone)
        shares = _by_topic(block, block.shares * mine[:, None]), _by_topic(block, block.shares)
        of, total = (np.where(shares[1] > 0, shares[k], counts[k]) for k in range(2))
        part = of / np.maximum(total, 1)
    capacity = (
        [np.array(values) for values in (capacities.storage, capacities.compute)]
        if capacities
        else [np.zeros(servers)] * 2
    )
    return Charges(
        start=offsets(np.bincount(topic, minlength=len(block.spool))),
        member=member,
        spool=block.spool,
        part=part,
        share=share,
        demand=demand,
        most=delegated[labels] * block.publications[:, None],
        charge=charge,
        alpha=alpha,
        beta=beta,
        storage=capacity[0],
        compute=capacity[1],
    )


def _take_part(charges: Charges, load: FloatArray, capacities: Capacities) -> None:
    """Give the block a part of the capacities in proportion to its part of the loads of all blocks."""
    assert capacities.load is not None
    part = np.divide(load, capacities.load, out=np.zeros_like(load), where=capacities.load > 0)
    charges.storage[:] *= part[0]
    charges.compute[:] *= part[1]


def _integers(values: FloatArray) -> tuple[int, ...]:
    return tuple(np.floor(np.ldexp(values, MULTIPLIER_BITS)).astype(np.int64).tolist())


def _stored(values: FloatArray) -> FloatArray:
    """Return multipliers as a certificate can store them."""
    integers = np.minimum(np.floor(np.ldexp(values, MULTIPLIER_BITS)), MOST_MULTIPLIER)
    return np.ldexp(integers, -MULTIPLIER_BITS)


def likely_labels(state: RegionState, count: int) -> npt.NDArray[np.int32]:
    """Choose the servers for which each client gets messages: its home, and those that cost least if it alone moved.

    Parameters
    ----------
    state
        The state of a part of the instance.
    count
        The number of servers for each client.

    Returns
    -------
    array
        ``count`` servers for each client, ascending.
    """
    chosen = np.empty((len(state.arrays.home), count), np.int32)
    _choose_labels(state.arrays, chosen)
    return np.sort(chosen, axis=1)


@compiled
def _choose_labels(s: StateArrays, chosen: IntArray) -> None:
    cost = np.empty(len(s.server))
    for m in range(len(s.home)):
        for l in range(len(s.server)):
            cost[l] = move_delta(s, m, l)
        cost[s.home[m]] = -np.inf
        for i in range(chosen.shape[1]):
            chosen[m, i] = np.argmin(cost)
            cost[chosen[m, i]] = np.inf
