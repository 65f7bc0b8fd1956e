"""The coefficients that every exact model is written with, computed once.

The letters are those of docs/formulations.md. A model reads ``ΣD`` as

    Σ_m w_m·dH[m,home_m] + 2·dC·Σ_m f_m·(1 - θ_{home_m}) + Σ_{(m,r)} W[m,r]·θ_{home_m}·dS[home_m, home_r]

and the loads of a server as ``a_l = Σ_n u_n·max_{m∈P_n} x[m,l]`` and ``v_l = Σ_m U_m·x[m,l]``.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from relocbench.instances.instance import PUBLISHES, SUBSCRIBES, Instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray, frozen


@dataclass(frozen=True, eq=False)
class Linearisation:
    """What an instance looks like to a model.

    Attributes
    ----------
    weight
        ``w``: what one ms between a client and its home costs.
    publications
        ``f``: what one ms of detour costs a client.
    demand
        ``U``: what a client adds to the compute load of its home, and the least its home stores.
    client_delay, server_delay
        ``dH`` (``M×L``) and ``dS`` (``L×L``).
    detour
        ``2·dC``.
    storage, compute
        ``A`` and ``B``, per server.
    spool
        ``u`` of the topics that load a server: those with a publisher and a spool above 0.
    publishers
        ``P`` of the same topics.
    sender, receiver, pair_weight
        The ordered pairs ``(m, r)`` with ``W[m,r] > 0``, in lexicographic order, and ``W``.
    cloud_is_far
        Whether ``2·dC ≥ max dS``: then an upper bound on ``θ`` is enough in a minimisation.
    """

    weight: FloatArray
    publications: FloatArray
    demand: FloatArray
    client_delay: FloatArray
    server_delay: FloatArray
    detour: float
    storage_capacity: FloatArray
    compute_capacity: FloatArray
    spool: FloatArray
    publishers: tuple[tuple[int, ...], ...]
    sender: IntArray
    receiver: IntArray
    pair_weight: FloatArray
    cloud_is_far: bool

    @property
    def n_clients(self) -> int:
        """``M``."""
        return len(self.weight)

    @property
    def n_servers(self) -> int:
        """``L``."""
        return len(self.storage_capacity)

    @cached_property
    def client_topics(self) -> tuple[tuple[int, ...], ...]:
        """For each client the loading topics (indices into ``spool``) that it publishes to."""
        topics: list[list[int]] = [[] for _ in range(self.n_clients)]
        for n, publishers in enumerate(self.publishers):
            for m in publishers:
                topics[m].append(n)
        return tuple(map(tuple, topics))

    @cached_property
    def largest_share(self) -> FloatArray:
        """``min(1, A_l/U_m, B_l/U_m)``: more than this of a client's messages no home can process (``M×L``)."""
        room = np.minimum(self.storage_capacity, self.compute_capacity)[None, :]
        demand = np.broadcast_to(self.demand[:, None], (self.n_clients, self.n_servers))
        share = np.ones_like(demand)
        np.divide(room, demand, out=share, where=demand > room)
        return share

    @cached_property
    def surely_local(self) -> npt.NDArray[np.bool_]:
        """The servers that process everything themselves whatever their clients: ``θ_l = 1`` (mask)."""
        most_stored, most_computed = self.spool.sum(), self.demand.sum()
        safely = 1 + 1e-9  # the sums are rounded
        mask: npt.NDArray[np.bool_] = (self.storage_capacity >= most_stored * safely) & (
            self.compute_capacity >= most_computed * safely
        )
        return mask

    @property
    def least_distance_cost(self) -> float:
        """What the clients' own delays cost at least: a bound on ``ΣD``, as nothing costs less than nothing."""
        return float((self.weight * self.client_delay.min(axis=1)).sum())


def linearise(instance: Instance) -> Linearisation:
    """Compute the coefficients of an instance."""
    loading = (instance.publishers.sizes > 0) & (instance.spool > 0)
    pairs = _pair_weights(instance)
    keys = sorted(pairs)
    every_client, every_server = np.arange(instance.n_clients), np.arange(instance.n_servers)
    return Linearisation(
        weight=instance.client_weight,
        publications=frozen(instance.client_publications, np.float64),
        demand=instance.client_demand,
        client_delay=frozen(instance.client_delay(every_client[:, None], every_server[None, :]), np.float64),
        server_delay=instance.server_delay,
        detour=2 * instance.cloud_delay,
        storage_capacity=instance.storage_capacity,
        compute_capacity=instance.compute_capacity,
        spool=frozen(instance.spool[loading], np.float64),
        publishers=tuple(tuple(int(m) for m in topic) for n, topic in enumerate(instance.publishers) if loading[n]),
        sender=frozen([m for m, _ in keys], np.int32),
        receiver=frozen([r for _, r in keys], np.int32),
        pair_weight=frozen([pairs[key] for key in keys], np.float64),
        cloud_is_far=instance.cloud_is_far,
    )


def _pair_weights(instance: Instance) -> dict[tuple[int, int], float]:
    """Return ``W[m,r] = Σ 1/|R|`` over the publications of ``m`` that reach ``r``."""
    weights: dict[tuple[int, int], float] = {}
    start, member, role = instance.members.start, instance.members.item, instance.member_role
    for n in range(instance.n_topics):
        entries = range(start[n], start[n + 1])
        subscribers = [int(member[e]) for e in entries if role[e] & SUBSCRIBES]
        for e in entries:
            reached = len(subscribers) - bool(role[e] & SUBSCRIBES)
            if not role[e] & PUBLISHES or not reached:
                continue
            m = int(member[e])
            for r in subscribers:
                if r != m:
                    weights[m, r] = weights.get((m, r), 0.0) + 1.0 / reached
    return weights
