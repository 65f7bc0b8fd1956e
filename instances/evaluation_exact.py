"""The exact evaluator: the cost of an assignment as a rational number. Proofs compare these costs.

In the symbols of docs/model.md it computes, without rounding, the same regrouped form as :mod:`instances.evaluation`:

    ``ΣD = Σ_m w_m·dH[m,home_m] + Σ_l ( 2·dC·F_l·(1-θ_l) + θ_l·Q_l )``,  ``θ_l = min(A_l/a_l, B_l/v_l, 1)``,

    ``Q_l = Σ_n ( Σ_{i of n homed at l} 1/|R_i| )·( Σ_k s[n,k]·dS[l,k] )``,

    ``w_m = publications of m + Σ_{n: m ∈ S_n} Σ_{i of n by another publisher} 1/|R_i|``,

where ``s[n,k]`` is the number of subscribers of topic ``n`` whose home is ``k``. A publisher that subscribes to its own
topic may be counted among its receivers in ``Q_l``, because ``dS[l,l] = 0``.
"""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy.typing as npt

from relocbench.instances.evaluation import checked_home
from relocbench.instances.instance import PUBLISHES, SUBSCRIBES, Instance


@dataclass(frozen=True)
class ExactEvaluation:
    """The fields of :class:`instances.evaluation.Evaluation` as rational numbers."""

    n_publications: int
    distance_cost: Fraction
    processing_cost: Fraction
    theta: tuple[Fraction, ...]
    storage_load: tuple[Fraction, ...]
    compute_load: tuple[Fraction, ...]
    sent: tuple[int, ...]
    spread: tuple[Fraction, ...]

    @property
    def objective(self) -> Fraction:
        """``ΣD``, the total delay of all publications."""
        return self.distance_cost + self.processing_cost


def evaluate_exact(instance: Instance, home: npt.ArrayLike) -> ExactEvaluation:
    """Evaluate an assignment without rounding.

    Every float of the instance is converted to the rational number it represents. A Euclidean delay is by definition
    the float64 result of ``γ·√(dx² + dy²)`` under IEEE 754, so it is converted in the same way.

    Parameters
    ----------
    instance
        The problem.
    home
        One server index per client.

    Returns
    -------
    ExactEvaluation
        ``ΣD`` and its parts as rational numbers.

    Raises
    ------
    InputError
        If ``home`` is not an assignment of the instance.
    """
    homes = [int(server) for server in checked_home(instance, home)]
    servers = range(instance.n_servers)
    spool = [Fraction(float(u)) for u in instance.spool]
    storage = [Fraction(0)] * len(servers)
    compute = [Fraction(0)] * len(servers)
    sent = [0] * len(servers)
    spread = [Fraction(0)] * len(servers)
    weight = [Fraction(0)] * instance.n_clients

    start = instance.members.start
    for topic, u in enumerate(spool):
        entries = range(start[topic], start[topic + 1])
        members = [(int(instance.members.item[e]), int(instance.member_role[e])) for e in entries]
        receivers = sum(role & SUBSCRIBES > 0 for _, role in members)
        subscribers_at = Counter(homes[m] for m, role in members if role & SUBSCRIBES)
        publishers: Counter[int] = Counter()
        share_at: dict[int, Fraction] = {}  # Σ 1/|R| over the publications of this topic homed at a server
        own_share = {}
        for m, role in members:
            if not role & PUBLISHES:
                continue
            publishers[homes[m]] += 1
            reached = receivers - (role & SUBSCRIBES > 0)
            if reached:
                own_share[m] = Fraction(1, reached)
                share_at[homes[m]] = share_at.get(homes[m], Fraction(0)) + own_share[m]
                sent[homes[m]] += 1
                weight[m] += 1
        all_shares = sum(own_share.values(), Fraction(0))
        for m, role in members:
            if role & SUBSCRIBES:
                weight[m] += all_shares - own_share.get(m, 0)
        for server, count in publishers.items():
            storage[server] += u
            compute[server] += count * u
        for server, share in share_at.items():
            reach = sum(
                (
                    count * Fraction(float(instance.server_delay[server, other]))
                    for other, count in subscribers_at.items()
                ),
                Fraction(0),
            )
            spread[server] += share * reach

    theta = [
        min(
            Fraction(1),
            Fraction(float(instance.storage_capacity[l])) / storage[l] if storage[l] else Fraction(1),
            Fraction(float(instance.compute_capacity[l])) / compute[l] if compute[l] else Fraction(1),
        )
        for l in servers
    ]
    detour = 2 * Fraction(instance.cloud_delay)
    distance = sum((w * Fraction(float(instance.client_delay(m, homes[m]))) for m, w in enumerate(weight)), Fraction(0))
    processing = sum((detour * sent[l] * (1 - theta[l]) + theta[l] * spread[l] for l in servers), Fraction(0))
    return ExactEvaluation(
        instance.n_publications,
        distance,
        processing,
        tuple(theta),
        tuple(storage),
        tuple(compute),
        tuple(sent),
        tuple(spread),
    )
