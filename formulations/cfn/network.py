"""The cost function network: a relaxation of the problem over finite domains.

Variables: for each client ``m`` a label ``(l, τ)``, its home and the level of its home; for each server that may be
overloaded ``t_l``, its level; for each topic on such a server ``y[n,l]``, closed or open. With the levels
``lo_τ ≤ θ_l ≤ hi_τ`` of :mod:`formulations.cfn.levels` and the loads ``A_τ``, ``B_τ`` that they hold:

    label_m = (l,τ)  ⇒  t_l = τ,  and y[n,l] = 1 for m ∈ P_n
    Σ_n u_n·y[n,l] ≤ A_τ  and  Σ_m U_m·[home_m = l] ≤ B_τ,  where τ = t_l

    minimise  Σ_m ( w_m·dH[m,l] + 2·dC·f_m·(1 - hi_τ) ) + Σ_{(m,r)} W[m,r]·hi_τ·dS[l,k]

While the cloud is far, no assignment costs less than its network says. Where it is near, the second sum has ``lo_τ``,
and a level must be deserved: ``t_l`` also says which capacity is exceeded, that load has to reach the level, and
``y[n,l]`` is open only where a publisher is.
"""

import time
from dataclasses import dataclass, field

import numpy as np

from relocbench.formulations.cfn.levels import Levels
from relocbench.formulations.incumbent import OutOfTimeError
from relocbench.formulations.integer_scaling import WholeArray, down
from relocbench.formulations.linearisation import Linearisation
from relocbench.instances.kernels.ragged import FloatArray, IntArray

FORBIDDEN = -1


@dataclass
class Network:
    """Finite domains, tables of costs (``FORBIDDEN`` where there is none) and linear rows over values."""

    domains: list[int] = field(default_factory=list)
    functions: list[tuple[tuple[int, ...], WholeArray]] = field(default_factory=list)
    rows: list[tuple[list[tuple[int, int, int]], str, int]] = field(default_factory=list)

    def variable(self, size: int) -> int:
        """Add a variable and return its index."""
        self.domains.append(size)
        return len(self.domains) - 1


@dataclass(frozen=True)
class Labels:
    """All labels ``(l, τ)`` in order: the server of each, its level, and the ends of the level."""

    server: IntArray
    level: IntArray
    lo: FloatArray
    hi: FloatArray

    def of(self, l: int) -> list[int]:
        """Return the labels of a server."""
        found: list[int] = np.flatnonzero(self.server == l).tolist()
        return found


def build(
    linear: Linearisation, levels: Levels, exponent: int, excluded: list[IntArray], deadline: float
) -> tuple[Network, Labels]:
    """Build the network in units of ``2^-exponent``; variable ``m`` is client ``m``.

    Parameters
    ----------
    excluded
        Homes that are not to be found again.
    deadline
        By ``time.perf_counter``.

    Raises
    ------
    OutOfTimeError
        If the deadline comes first.
    """
    rows = [(l, t, level.lo, level.hi) for l in range(linear.n_servers) for t, level in enumerate(levels.of(l))]
    server, level, lo, hi = (np.array(column) for column in zip(*rows, strict=True))
    labels = Labels(server, level, lo * (1 - levels.rounding), hi)
    network = Network()
    for _ in range(linear.n_clients):
        network.variable(len(labels.server))
    for l in np.flatnonzero(~linear.surely_local).tolist():
        _add_server(network, linear, labels, levels, l)
    for home in excluded:
        same = [(m, label, 1) for m, l in enumerate(home.tolist()) for label in labels.of(l)]
        network.rows.append((same, "<=", linear.n_clients - 1))
    _add_clients(network, linear, labels, exponent)
    _add_pairs(network, linear, labels, exponent, deadline)
    return network, labels


def _add_server(network: Network, linear: Linearisation, labels: Labels, levels: Levels, l: int) -> None:
    """Add the level of a server, its topics and its capacities."""
    mine, own = labels.of(l), levels.of(l)
    spool, demand = levels.spool.tolist(), levels.demand.tolist()
    all_loads = (sum(spool), sum(demand))
    # Where a level must be deserved it comes once for each load (0 storage, 1 compute) that can be the reason.
    reasons = [
        (t, load) for t, level in enumerate(own) for load in (0, 1) if t and level.reached[load] <= all_loads[load]
    ]
    values = [(t, -1) for t in range(len(own))] if linear.cloud_is_far else [(0, -1), *reasons]
    level_of = np.array([t for t, _ in values])
    level = network.variable(len(values))
    agrees = np.zeros((len(labels.server), len(values)), np.int64)
    agrees[mine] = np.where(np.arange(len(own))[:, None] == level_of[None, :], 0, FORBIDDEN)
    network.functions += [((m, level), agrees) for m in range(linear.n_clients)]

    opens = np.zeros((len(labels.server), 2), np.int64)
    opens[mine, 0] = FORBIDDEN
    stored = []
    for n, publishers in enumerate(linear.publishers):
        topic = network.variable(2)
        network.functions += [((m, topic), opens) for m in publishers]
        stored.append((topic, 1, spool[n]))
        if not linear.cloud_is_far:
            network.rows.append(([*((m, label, 1) for m in publishers for label in mine), (topic, 1, -1)], ">=", 0))
    computed = [(m, label, demand[m]) for m in range(linear.n_clients) if demand[m] for label in mine]

    for load, terms in enumerate((stored, computed)):
        room = [(level, value, -own[t].holds[load]) for value, (t, _) in enumerate(values)]
        network.rows.append(([*terms, *room], "<=", 0))
        needed = [(level, value, -own[t].reached[load]) for value, (t, reason) in enumerate(values) if reason == load]
        if needed:
            network.rows.append(([*terms, *needed], ">=", 0))


def _add_clients(network: Network, linear: Linearisation, labels: Labels, exponent: int) -> None:
    """Add what a label costs by itself."""
    most = linear.largest_share[:, labels.server]
    share = np.minimum(labels.hi[None, :], most)
    cost = linear.weight[:, None] * linear.client_delay[:, labels.server]
    cost = cost + linear.detour * linear.publications[:, None] * (1 - share)
    table = down(cost, exponent)
    table[labels.lo[None, :] > most * (1 + 1e-9)] = FORBIDDEN
    network.functions += [((m,), table[m]) for m in range(linear.n_clients)]


def _add_pairs(network: Network, linear: Linearisation, labels: Labels, exponent: int, deadline: float) -> None:
    """Add what the labels of two clients cost together."""
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
        table = down(there + back.T, exponent)
        table[clash] = FORBIDDEN
        network.functions.append(((m, r), table))
