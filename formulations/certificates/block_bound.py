"""The part of a bound that some of the clients contribute, in integers.

At full scale a dual is verified in blocks. A block has *own* clients and, beside them, all clients with which these
share a topic. It contains all topics of its own clients, and the messages along all pairs of their members. The bound
is the sum, over all blocks, of the least costs of the own clients. It is a bound because each message is computed from
its own topic alone: both blocks that contain a pair of clients compute the same messages for it, in the same unit.

No capacity is charged. So the bound holds if delegation never makes an assignment cheaper, which
:func:`check_delegation` verifies.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from relocbench.formulations.certificates.budget import Budget, Size
from relocbench.formulations.certificates.certificate import Dual
from relocbench.formulations.certificates.exact_bound import DualBound
from relocbench.formulations.certificates.integer_problem import (
    WEIGHT_BITS,
    BoolArray,
    IntegerProblem,
    integer_array,
    rounded_delays,
    rounded_weights,
)
from relocbench.formulations.certificates.packed_arrays import Int64Array
from relocbench.formulations.certificates.region import root_region
from relocbench.instances.errors import InputError
from relocbench.instances.instance import PUBLISHES, SUBSCRIBES
from relocbench.instances.kernels.ragged import FloatArray
from relocbench.instances.role_weights import receiver_counts

# Messages are integer multiples of 2^-MESSAGE_BITS. The sums are computed in units that are finer by FINER bits.
MESSAGE_BITS = 16
FINER = 12
UNIT_BITS = MESSAGE_BITS + FINER


@dataclass(frozen=True, eq=False)
class DualBlock:
    """A dual, as far as the own clients of a block need it.

    Attributes
    ----------
    own
        The number of own clients, which come first.
    distance
        ``dH`` of the own clients (``own×L``).
    weight
        ``w`` of each own client in units of ``2^-WEIGHT_BITS``, as :func:`client_weights` computes it.
    server_delay
        ``dS``, symmetric.
    labels
        The active servers of every client, ascending (one row for each client, all of the same length).
    first, second
        The two clients of each pair of members of a topic. A pair that shares several topics is there several times.
    forward, backward
        ``|R|`` of what the first client of each pair publishes to the topic and the second receives, and the other way
        round; 0 where this is nothing.
    topic
        The topic of each pair, ascending.
    messages
        One number for each pair and each active server of its first client, in units of ``2^-MESSAGE_BITS``.
    """

    own: int
    distance: FloatArray
    weight: Int64Array
    server_delay: FloatArray
    labels: Int64Array
    first: Int64Array
    second: Int64Array
    forward: Int64Array
    backward: Int64Array
    topic: Int64Array
    messages: Int64Array


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
        self.distance = rounded_delays(distance)
        self.publications = np.zeros(clients, np.int64)
        weight = np.zeros(clients, np.int64)
        weight[: block.own] = block.weight
        self.weight = rounded_weights(weight)
        self.first, self.second = block.first[kept], block.second[kept]
        self.edge_weights = [rounded_weights(_shares(block.forward[kept]) + _shares(block.backward[kept]))]
        ends = np.concatenate([self.first, self.second])
        self.degree = int(np.bincount(ends, minlength=1).max())
        self.sender, self.receiver = none, none
        self.sent = self.sent_least = rounded_weights(none)


def _shares(receivers: Int64Array) -> Int64Array:
    """Return ``1/|R|`` in units of ``2^-WEIGHT_BITS``, rounded down; 0 where there is no receiver."""
    return np.where(receivers > 0, (1 << WEIGHT_BITS) // np.maximum(receivers, 1), 0)


def client_weights(
    owner: Int64Array, role: Int64Array, size: Int64Array, publishers: Int64Array, subscribers: Int64Array, clients: int
) -> Int64Array:
    """Return the weight ``w`` of each client, as an integer.

    Parameters
    ----------
    owner, role, size, publishers, subscribers, clients
        As for :func:`instances.role_weights.publications_and_weights`.

    Returns
    -------
    array
        The weights in units of ``2^-WEIGHT_BITS``, each term rounded down.
    """
    weight = np.bincount(owner[receiver_counts(role, subscribers) > 0], minlength=clients).astype(np.int64)
    weight <<= WEIGHT_BITS
    only = size - subscribers
    both = publishers - only - (role == (PUBLISHES | SUBSCRIBES))
    # The sum over all other publishers with as many receivers is rounded, not its terms: so it is an integer where all
    # members publish and subscribe.
    received = (only << WEIGHT_BITS) // np.maximum(subscribers, 1) + (both << WEIGHT_BITS) // np.maximum(
        subscribers - 1, 1
    )
    np.add.at(weight, owner, np.where(role & SUBSCRIBES, received, 0))
    return weight


def block_bound(block: DualBlock) -> int:
    """Compute what the own clients of a block contribute to the bound.

    Parameters
    ----------
    block
        The block.

    Returns
    -------
    int
        The sum of their least costs, in units of ``2^-UNIT_BITS``.
    """
    if not block.own:
        return 0
    kept = (block.first < block.own) | (block.second < block.own)
    problem = BlockProblem(block, kept)
    active = np.zeros((problem.n_clients, problem.n_servers), np.bool_)
    np.put_along_axis(active, block.labels, True, axis=1)
    zeros = (0,) * problem.n_servers
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
    bound = DualBound(problem, root_region(problem), dual, finer=FINER)
    return sum(bound.least[: block.own].tolist())


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
