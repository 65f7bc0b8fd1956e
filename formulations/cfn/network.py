"""The cost function network: a relaxation of the problem over finite domains.

The variables are, for each client ``m``, a label ``(l, τ)``: its home and the level of its home; for each server that
may have ``θ < 1``, its level ``t_l``; and for each topic on such a server, ``y[n,l]``: closed or open. The levels
``lo_τ ≤ θ_l ≤ hi_τ`` and their largest loads ``A_τ`` and ``B_τ`` come from :mod:`formulations.cfn.levels`. The
constraints are

- (F1) ``label_m = (l,τ) ⇒ t_l = τ``
- (F2) ``label_m = (l,τ) ⇒ y[n,l] = 1`` for ``m ∈ P_n``
- (F3) ``Σ_n u_n·y[n,l] ≤ A_τ`` and ``Σ_m U_m·[home_m = l] ≤ B_τ``, where ``τ = t_l``

The objective is the sum of

- (F4) ``w_m·dH[m,l] + 2·dC·f_m·(1 - hi_τ)`` for each client, where ``(l,τ)`` is its label
- (F5) ``W[m,r]·hi_τ·dS[l,k]`` for each pair, where ``(l,τ)`` is the label of ``m`` and ``k`` the home of ``r``

If the cloud is far, no assignment costs less than its value in the network. If it is near, (F5) uses ``lo_τ``,
``t_l`` also states which capacity limits ``θ_l``, and there are two more constraints:

- (F6) ``y[n,l] = 1`` only if a publisher of ``n`` is on ``l``
- (F7) the load of the capacity that limits ``θ_l`` is at least the least load of the level
"""

import math
import time
from dataclasses import dataclass, field

import numpy as np

from relocbench.formulations.cfn.levels import Levels
from relocbench.formulations.incumbent import OutOfTimeError
from relocbench.formulations.integer_scaling import WholeArray, down
from relocbench.formulations.linearisation import Linearisation
from relocbench.instances.kernels.ragged import FloatArray, IntArray

# The cost of a combination that a table forbids.
FORBIDDEN = -1
# The value of the level variable that names no limiting capacity; otherwise 0 stands for storage and 1 for compute.
NO_LIMIT = -1


# A variable, one of its values, and the coefficient that counts if the variable has this value.
Term = tuple[int, int, int]


@dataclass
class Network:
    """A cost function network.

    Attributes
    ----------
    domains
        The number of values of each variable.
    functions
        Cost functions: the variables, and a table of costs with ``FORBIDDEN`` entries.
    rows
        Linear constraints: terms (variable, value, coefficient), which count if the variable has the value; the sense;
        and the right-hand side.
    """

    domains: list[int] = field(default_factory=list)
    functions: list[tuple[tuple[int, ...], WholeArray]] = field(default_factory=list)
    rows: list[tuple[list[Term], str, int]] = field(default_factory=list)

    def variable(self, size: int) -> int:
        """Add a variable.

        Parameters
        ----------
        size
            The number of its values.

        Returns
        -------
        int
            Its index.
        """
        self.domains.append(size)
        return len(self.domains) - 1


@dataclass(frozen=True)
class Labels:
    """All labels ``(l, τ)`` in order.

    Attributes
    ----------
    server, level
        ``l`` and ``τ`` of each label.
    lo, hi
        The ends of its level.
    """

    server: IntArray
    level: IntArray
    lo: FloatArray
    hi: FloatArray

    def of(self, l: int) -> list[int]:
        """Return the labels of a server.

        Parameters
        ----------
        l
            The server.

        Returns
        -------
        list
            The indices of the labels.
        """
        found: list[int] = np.flatnonzero(self.server == l).tolist()
        return found


def build(
    linear: Linearisation, levels: Levels, exponent: int, limit: int, excluded: list[IntArray], deadline: float
) -> tuple[Network, Labels]:
    """Build the network.

    Parameters
    ----------
    linear
        The coefficients of the instance.
    levels
        The levels of ``θ``.
    exponent
        The costs are integers in units of ``2^-exponent``.
    limit
        The cut-off. Larger costs are cut at it: they would not fit into the integers.
    excluded
        Assignments to exclude.
    deadline
        The time limit, as a value of ``time.perf_counter``.

    Returns
    -------
    network, labels
        The network, in which variable ``m`` is client ``m``, and the labels of its clients.

    Raises
    ------
    OutOfTimeError
        If the deadline is reached first.
    """
    labels = labels_of(levels)
    network = Network()
    for _ in range(linear.n_clients):
        network.variable(len(labels.server))
    for l in np.flatnonzero(~linear.surely_local).tolist():
        _add_server(network, linear, labels, levels, l)
    for home in excluded:
        same = [(m, label, 1) for m, l in enumerate(home.tolist()) for label in labels.of(l)]
        network.rows.append((same, "<=", linear.n_clients - 1))
    _add_client_costs(network, linear, labels, exponent, limit)
    _add_pair_costs(network, linear, labels, exponent, limit, deadline)
    return network, labels


def labels_of(levels: Levels) -> Labels:
    """Return the labels of the clients.

    Parameters
    ----------
    levels
        The levels of ``θ``.

    Returns
    -------
    Labels
        All pairs of a server and one of its levels.
    """
    rows = [(l, t, level.lo, level.hi) for l in range(levels.linear.n_servers) for t, level in enumerate(levels.of(l))]
    server, level, lo, hi = (np.array(column) for column in zip(*rows, strict=True))
    return Labels(server, level, lo * (1 - levels.rounding), hi)


def _add_server(network: Network, linear: Linearisation, labels: Labels, levels: Levels, l: int) -> None:
    """Add the level of a server, its topics and its loads: (F1) to (F3), and (F6) and (F7) if the cloud is near."""
    server_labels, server_levels = labels.of(l), levels.of(l)
    spool, demand = levels.spool.tolist(), levels.demand.tolist()
    all_loads = (sum(spool), sum(demand))
    # Each value of the level variable is a level and the capacity (0 storage, 1 compute) that limits the share.
    values = [(t, NO_LIMIT) for t in range(len(server_levels))]
    if not linear.cloud_is_far:
        values = [(0, NO_LIMIT)] + [
            (t, load)
            for t, level in enumerate(server_levels)
            for load in (0, 1)
            if t and level.reached[load] <= all_loads[load]
        ]
    level = network.variable(len(values))
    _add_level(network, linear, labels, l, level, values)

    stored = []
    for n, publishers in enumerate(linear.publishers):
        topic = network.variable(2)
        _add_open_topic(network, labels, l, topic, publishers)
        stored.append((topic, 1, spool[n]))
        if not linear.cloud_is_far:
            _add_closed_topic(network, labels, l, topic, publishers)
    computed = [(m, label, demand[m]) for m in range(linear.n_clients) if demand[m] for label in server_labels]

    for load, terms in enumerate((stored, computed)):
        _add_capacity(
            network, terms, [(level, value, server_levels[t].holds[load]) for value, (t, _) in enumerate(values)]
        )
        least = [
            (level, value, server_levels[t].reached[load]) for value, (t, limit) in enumerate(values) if limit == load
        ]
        if least:
            _add_least_load(network, terms, least)


def _add_level(
    network: Network, linear: Linearisation, labels: Labels, l: int, level: int, values: list[tuple[int, int]]
) -> None:
    """(F1) ``label_m = (l,τ) ⇒ t_l = τ``."""
    server_labels = labels.of(l)
    level_of = np.array([t for t, _ in values])
    agrees = np.zeros((len(labels.server), len(values)), np.int64)
    agrees[server_labels] = np.where(np.arange(len(server_labels))[:, None] == level_of[None, :], 0, FORBIDDEN)
    network.functions += [((m, level), agrees) for m in range(linear.n_clients)]


def _add_open_topic(network: Network, labels: Labels, l: int, topic: int, publishers: tuple[int, ...]) -> None:
    """(F2) ``label_m = (l,τ) ⇒ y[n,l] = 1`` for ``m ∈ P_n``."""
    opens = np.zeros((len(labels.server), 2), np.int64)
    opens[labels.of(l), 0] = FORBIDDEN
    network.functions += [((m, topic), opens) for m in publishers]


def _add_closed_topic(network: Network, labels: Labels, l: int, topic: int, publishers: tuple[int, ...]) -> None:
    """(F6) ``y[n,l] ≤ Σ_{m∈P_n} [home_m = l]``."""
    present = [(m, label, 1) for m in publishers for label in labels.of(l)]
    network.rows.append(([*present, (topic, 1, -1)], ">=", 0))


def _add_capacity(network: Network, load: list[Term], largest: list[Term]) -> None:
    """(F3) ``Σ_n u_n·y[n,l] ≤ A_τ``, or ``Σ_m U_m·[home_m = l] ≤ B_τ``, where ``τ = t_l``."""
    network.rows.append(([*load, *_negative(largest)], "<=", 0))


def _add_least_load(network: Network, load: list[Term], least: list[Term]) -> None:
    """(F7) The load is at least the least load of the level, if it limits the share."""
    network.rows.append(([*load, *_negative(least)], ">=", 0))


def _negative(terms: list[Term]) -> list[Term]:
    return [(variable, value, -coefficient) for variable, value, coefficient in terms]


def _add_client_costs(network: Network, linear: Linearisation, labels: Labels, exponent: int, limit: int) -> None:
    """(F4) ``w_m·dH[m,l] + 2·dC·f_m·(1 - hi_τ)``; a level above ``min(1, A_l/U_m, B_l/U_m)`` is forbidden."""
    most = linear.largest_share[:, labels.server]
    share = np.minimum(labels.hi[None, :], most)
    cost = linear.weight[:, None] * linear.client_delay[:, labels.server]
    cost = cost + linear.detour * linear.publications[:, None] * (1 - share)
    table = _whole_costs(cost, exponent, limit)
    table[labels.lo[None, :] > most * (1 + 1e-9)] = FORBIDDEN
    network.functions += [((m,), table[m]) for m in range(linear.n_clients)]


def _add_pair_costs(
    network: Network, linear: Linearisation, labels: Labels, exponent: int, limit: int, deadline: float
) -> None:
    """(F5) ``W[m,r]·hi_τ·dS[l,k]``, or ``lo_τ`` instead of ``hi_τ`` if the cloud is near.

    One table holds both directions of a pair. Two different levels of one server are forbidden, as (F1) implies.
    """
    if not linear.server_delay.any():
        return
    share = labels.hi if linear.cloud_is_far else labels.lo
    most = linear.largest_share[:, labels.server]
    delay = linear.server_delay[np.ix_(labels.server, labels.server)]
    clash = (labels.server[:, None] == labels.server[None, :]) & (labels.level[:, None] != labels.level[None, :])
    weight = {
        (int(m), int(r)): float(w) for m, r, w in zip(linear.sender, linear.receiver, linear.pair_weight, strict=True)
    }
    for m, r in sorted({(min(pair), max(pair)) for pair in weight}):
        if time.perf_counter() > deadline:
            raise OutOfTimeError
        there = weight.get((m, r), 0.0) * np.minimum(share, most[m])[:, None] * delay
        back = weight.get((r, m), 0.0) * np.minimum(share, most[r])[:, None] * delay
        table = _whole_costs(there + back.T, exponent, limit)
        table[clash] = FORBIDDEN
        network.functions.append(((m, r), table))


def _whole_costs(costs: FloatArray, exponent: int, limit: int) -> WholeArray:
    """Return costs as integers, rounded down and cut at the cut-off."""
    return np.minimum(down(np.minimum(costs, math.ldexp(2.0 * limit, -exponent)), exponent), limit)
