"""The coefficients of an instance from which every exact model is built, computed once.

Start here to write a model of your own: ``linearise(instance)`` returns the coefficients. Their symbols are those of
docs/formulations.md. With them the objective is

    Σ_m w_m·dH[m,home_m] + 2·dC·Σ_m f_m·(1 - θ_{home_m}) + Σ_{(m,r)} W[m,r]·θ_{home_m}·dS[home_m, home_r]

where ``θ_l = min(1, A_l/a_l, B_l/v_l)``, and the loads of a server are ``a_l = Σ_n u_n·max_{m∈P_n} x[m,l]`` and ``v_l =
Σ_m U_m·x[m,l]``. Here ``x[m,l]`` is 1 if ``l`` is the home of ``m``. A model must represent two nonlinear terms: the
products of ``θ`` with ``x``, and the products of two ``x``.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from relocbench.instances.instance import PUBLISHES, SUBSCRIBES, Instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray, frozen


@dataclass(frozen=True, eq=False)
class Linearisation:
    """The coefficients of an instance.

    Attributes
    ----------
    weight
        ``w``: the weight of the delay between each client and its home in the objective.
    publications
        ``f``: the number of publications of each client, which is the weight of the delay to the cloud.
    demand
        ``U``: the total spool of the topics that each client publishes to. A client adds it to the compute load of its
        home, and its home stores at least as much.
    client_delay, server_delay
        ``dH`` (``M×L``) and ``dS`` (``L×L``).
    detour
        ``2·dC``.
    storage_capacity, compute_capacity
        ``A`` and ``B`` of each server.
    spool
        ``u`` of the topics that load a server: those with a publisher and a spool above 0.
    publishers
        ``P`` of the same topics.
    sender, receiver, pair_weight
        The ordered pairs ``(m, r)`` with ``W[m,r] > 0``, in lexicographic order, and ``W``.
    cloud_is_far
        Whether ``2·dC ≥ max dS``. Then a larger ``θ`` never costs more, and a minimisation model needs only upper
        bounds on ``θ``. Otherwise the model must also bound ``θ`` from below.
    negligible_share
        A share ``θ`` below this value counts as 0 in models that have variables for ``θ``
        (:mod:`formulations.scaling`).
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
    negligible_share: float = 0.0

    @property
    def n_clients(self) -> int:
        """``M``, the number of clients."""
        return len(self.weight)

    @property
    def n_servers(self) -> int:
        """``L``, the number of servers."""
        return len(self.storage_capacity)

    @cached_property
    def client_topics(self) -> tuple[tuple[int, ...], ...]:
        """The topics that each client publishes to, as indices into ``spool``."""
        topics: list[list[int]] = [[] for _ in range(self.n_clients)]
        for n, publishers in enumerate(self.publishers):
            for m in publishers:
                topics[m].append(n)
        return tuple(map(tuple, topics))

    @cached_property
    def largest_share(self) -> FloatArray:
        """``min(1, A_l/U_m, B_l/U_m)``: an upper bound on ``θ_l`` if ``l`` is the home of ``m`` (``M×L``)."""
        room = np.minimum(self.storage_capacity, self.compute_capacity)[None, :]
        demand = np.broadcast_to(self.demand[:, None], (self.n_clients, self.n_servers))
        share = np.ones_like(demand)
        np.divide(room, demand, out=share, where=demand > room)
        return share

    @cached_property
    def client_share(self) -> FloatArray:
        """``largest_share``, but 0 where it is negligible: the upper bound on ``q[m,l]`` in a model (``M×L``)."""
        share = self.largest_share
        return np.where(share < self.negligible_share, 0.0, share)

    @cached_property
    def topic_share(self) -> FloatArray:
        """``min(1, A_l/u_n)``, but 0 where it is negligible: the upper bound on ``w[n,l]`` in a model (``N×L``)."""
        room = self.storage_capacity[None, :]
        spool = np.broadcast_to(self.spool[:, None], (len(self.spool), self.n_servers))
        share = np.ones_like(spool)
        np.divide(room, spool, out=share, where=spool > room)
        return np.where(share < self.negligible_share, 0.0, share)

    @cached_property
    def least_share(self) -> FloatArray:
        """``θ_l`` if server ``l`` has all loads: a lower bound on ``θ_l``."""
        share = np.ones(self.n_servers)
        for capacity, load in (
            (self.storage_capacity, self.spool.sum()),
            (self.compute_capacity, self.demand.sum()),
        ):
            share = np.minimum(share, np.where(load > capacity, capacity / (load or 1.0), 1.0))
        return share

    @cached_property
    def surely_local(self) -> npt.NDArray[np.bool_]:
        """A mask of the servers with ``θ_l = 1`` in every assignment: their capacities exceed the total loads."""
        most_stored, most_computed = self.spool.sum(), self.demand.sum()
        margin = 1 + 1e-9  # covers the rounding errors of the sums
        mask: npt.NDArray[np.bool_] = (self.storage_capacity >= most_stored * margin) & (
            self.compute_capacity >= most_computed * margin
        )
        return mask

    @property
    def least_distance_cost(self) -> float:
        """The cost of the client delays if every client is at its nearest server: a simple lower bound on ``ΣD``."""
        return float((self.weight * self.client_delay.min(axis=1)).sum())


def linearise(instance: Instance) -> Linearisation:
    """Compute the coefficients of an instance.

    Parameters
    ----------
    instance
        The problem.

    Returns
    -------
    Linearisation
        The coefficients.
    """
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
