"""The fast evaluator: the cost of an assignment in float64. All reported costs come from it.

In the symbols of docs/model.md, with ``c[n,l]`` the publishers of topic ``n`` whose home is server ``l``, it computes
for each server

    ``a_l = Σ_{n: c[n,l] > 0} u_n``,  ``v_l = Σ_n c[n,l]·u_n``,  ``θ_l = min(A_l/a_l, B_l/v_l, 1)``

and the objective in its regrouped form

    ``ΣD = Σ_m w_m·dH[m,home_m] + Σ_l ( 2·dC·F_l·(1-θ_l) + θ_l·Q_l )``.

``F_l`` is the number of publications homed at ``l``, ``Q_l`` the sum over these publications of the mean ``dS`` to
their receivers, ``w_m`` the weight of client ``m``. The time is ``O(Σ_n (|C_n| + k_n²))``, where ``k_n`` is the number
of servers with members of topic ``n``.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.instances.errors import InputError, shown
from relocbench.instances.instance import PUBLISHES, SUBSCRIBES, Instance, require_instance
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray
from relocbench.instances.notebook_card import card


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The cost of one assignment and its parts, in the symbols of docs/model.md.

    Attributes
    ----------
    n_publications
        ``I``, the number of publications.
    distance_cost
        ``Σ_m w_m·dH[m,home_m]``, the part of ``ΣD`` between clients and their homes.
    processing_cost
        ``Σ_l (2·dC·F_l·(1-θ_l) + θ_l·Q_l)``, the part of ``ΣD`` for the way to the cloud and between servers.
    theta
        ``θ``, the share of the load that each server processes locally.
    storage_load, compute_load
        ``a`` and ``v``, the loads of each server.
    sent
        ``F``, the number of publications homed at each server.
    spread
        ``Q``, the sum of the mean server-to-server delays of the publications homed at each server.

    Examples
    --------
    >>> import relocbench
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> cost = relocbench.evaluate(instance, [0, 0, 1, 1])
    >>> round(cost.y, 6), round(cost.y1 + cost.y2, 6)
    (7.969334, 7.969334)
    >>> cost.theta.tolist()
    [0.375, 0.625, 1.0, 1.0]
    """

    n_publications: int
    distance_cost: float
    processing_cost: float
    theta: FloatArray
    storage_load: FloatArray
    compute_load: FloatArray
    sent: FloatArray
    spread: FloatArray

    def __repr__(self) -> str:
        parts = f"Y {self.y:.6g} ms = Y1 {self.y1:.6g} + Y2 {self.y2:.6g}"
        return f"<Evaluation ΣD {self.objective:.8g}: {parts}, least θ {self.theta.min():.3g}>"

    def _repr_html_(self) -> str:
        values = {
            "Y": f"{self.y:.6g} ms",
            "Y1 + Y2": f"{self.y1:.6g} + {self.y2:.6g} ms",
            "ΣD": f"{self.objective:.8g}",
            "publications": self.n_publications,
        }
        columns = ("server", "θ", "storage load", "compute load", "publications")
        loads = zip(self.theta, self.storage_load, self.compute_load, self.sent, strict=True)
        rows = [(str(server), *(f"{number:.4g}" for number in numbers)) for server, numbers in enumerate(loads)]
        return card("Evaluation", values, columns, rows)

    @property
    def objective(self) -> float:
        """``ΣD``, the total delay of all publications."""
        return self.distance_cost + self.processing_cost

    @cached_property
    def y(self) -> float:
        """``Y = ΣD / I``, the mean delay of a publication; 0 if there is no publication."""
        return self.y1 + self.y2

    @property
    def y1(self) -> float:
        """``Y1``, the part of ``Y`` between clients and their homes."""
        return self.distance_cost / max(self.n_publications, 1)

    @property
    def y2(self) -> float:
        """``Y2``, the part of ``Y`` between servers and to the cloud."""
        return self.processing_cost / max(self.n_publications, 1)

    def values(self) -> dict[str, Any]:
        """Return the evaluation as plain values.

        Returns
        -------
        dict
            The values by the names that ``relocbench evaluate --json`` prints.

        Examples
        --------
        >>> import relocbench
        >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
        >>> sorted(relocbench.evaluate(instance, [0, 0, 1, 1]).values())
        ['Y', 'Y1', 'Y2', 'compute', 'objective', 'publications', 'sent', 'spread', 'storage', 'theta']
        """
        return {
            "Y": self.y,
            "Y1": self.y1,
            "Y2": self.y2,
            "objective": self.objective,
            "publications": self.n_publications,
            "theta": self.theta.tolist(),
            "storage": self.storage_load.tolist(),
            "compute": self.compute_load.tolist(),
            "sent": self.sent.tolist(),
            "spread": self.spread.tolist(),
        }


def use(load: FloatArray, capacity: FloatArray) -> FloatArray:
    """Return loads as shares of the capacities.

    Parameters
    ----------
    load, capacity
        Load and capacity of each server.

    Returns
    -------
    array
        Load divided by capacity; 0 for a load of 0, infinite for a positive load on a capacity of 0.
    """
    share = np.full(len(load), np.inf)
    np.divide(load, capacity, out=share, where=capacity > 0)
    share[load == 0] = 0.0
    return share


def mean_distance(instance: Instance, home: IntArray) -> float:
    """Return the mean distance between clients and their homes.

    Parameters
    ----------
    instance
        The problem.
    home
        One server per client.

    Returns
    -------
    float
        The distance in km.
    """
    distance = np.hypot(instance.client_x - instance.server_x[home], instance.client_y - instance.server_y[home])
    return float(distance.mean())


def evaluate(instance: Instance, home: npt.ArrayLike) -> Evaluation:
    """Evaluate an assignment by ``ΣD = Σ_m w_m·dH[m,home_m] + Σ_l (2·dC·F_l·(1-θ_l) + θ_l·Q_l)``.

    Parameters
    ----------
    instance
        The problem.
    home
        One server index per client.

    Returns
    -------
    Evaluation
        ``ΣD`` and its parts, in float64.

    Raises
    ------
    InputError
        If ``home`` is not an assignment of the instance.

    Examples
    --------
    >>> import relocbench
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> relocbench.evaluate(instance, [0, 0, 1, 1])
    <Evaluation ΣD 31.877335: Y 7.96933 ms = Y1 2.17409 + Y2 5.79524, least θ 0.375>
    """
    require_instance(instance)
    homes = checked_home(instance, home)
    loads = topic_loads(
        instance.members.start,
        instance.members.item,
        instance.member_role,
        instance.spool,
        instance.server_delay,
        homes,
    )
    distance = instance.client_weight @ instance.client_delay(np.arange(instance.n_clients), homes)
    return costs(
        loads,
        float(distance),
        instance.n_publications,
        instance.storage_capacity,
        instance.compute_capacity,
        instance.cloud_delay,
    )


def costs(
    loads: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    distance: float,
    publications: int,
    storage_capacity: FloatArray,
    compute_capacity: FloatArray,
    cloud_delay: float,
) -> Evaluation:
    """Return the evaluation from sums over topics and clients that have been computed already.

    Parameters
    ----------
    loads
        ``a, v, F, Q`` for each server, as returned by :func:`topic_loads`.
    distance
        ``Σ_m w_m·dH[m,home_m]``.
    publications
        ``I``.
    storage_capacity, compute_capacity
        ``A`` and ``B``.
    cloud_delay
        ``dC``.

    Returns
    -------
    Evaluation
        ``θ``, and ``ΣD`` with its parts.
    """
    storage_load, compute_load, sent, spread = loads
    theta = local_share(storage_capacity, compute_capacity, storage_load, compute_load)
    processing = (2 * cloud_delay * sent * (1 - theta) + theta * spread).sum()
    return Evaluation(publications, distance, float(processing), theta, storage_load, compute_load, sent, spread)


def checked_home(instance: Instance, home: npt.ArrayLike) -> IntArray:
    """Check an assignment and return it as an array.

    Parameters
    ----------
    instance
        The problem.
    home
        One server index per client. A float such as 3.0 that is a whole number counts as one.

    Returns
    -------
    array
        A copy as 32-bit integers.

    Raises
    ------
    InputError
        If the number of entries is not the number of clients, or an entry is not the index of a server.
    """
    ordered = _in_the_order_of_clients(instance, home)
    try:
        homes = np.asarray(ordered)
    except ValueError as error:
        raise InputError("home", f"expected a list of servers, got {shown(home)}") from error
    if homes.shape != (instance.n_clients,):
        found = str(len(homes)) if homes.ndim == 1 else f"shape {homes.shape}" if homes.ndim else shown(home)
        raise InputError("home", f"expected {instance.n_clients} servers, one per client, got {found}")
    if homes.dtype.kind not in "iuf":
        raise InputError("home", f"expected whole numbers, got {shown(home)}")
    broken = homes != np.floor(homes)
    if broken.any():
        where = int(broken.argmax())
        raise InputError(f"home[{where}]", f"expected a whole number, got {shown(homes[where].item())}")
    outside = (homes < 0) | (homes >= instance.n_servers)
    if outside.any():
        where = int(outside.argmax())
        raise InputError(f"home[{where}]", f"expected a server from 0 to {instance.n_servers - 1}, got {homes[where]}")
    return homes.astype(np.int32)


def _in_the_order_of_clients(instance: Instance, home: Any) -> Any:
    """Return homes that have labels, such as a Series of pandas, in the order of the clients; all others unchanged."""
    labels = getattr(home, "index", None)
    if labels is None or callable(labels) or not hasattr(home, "to_numpy"):
        return home
    positions = {label: position for position, label in enumerate(labels)}
    for known in (instance.client_ids, list(range(instance.n_clients))):
        if len(positions) == len(home) == len(known) and all(label in positions for label in known):
            return home.to_numpy()[[positions[label] for label in known]]
    raise InputError("home", "expected labels that are the ids of the clients or 0, 1, 2, …; to_numpy() removes them")


def local_share(
    storage_capacity: FloatArray, compute_capacity: FloatArray, storage_load: FloatArray, compute_load: FloatArray
) -> FloatArray:
    """Return ``θ_l = min(A_l/a_l, B_l/v_l, 1)`` for each server ``l``.

    Parameters
    ----------
    storage_capacity, compute_capacity
        ``A`` and ``B``.
    storage_load, compute_load
        ``a`` and ``v``.

    Returns
    -------
    array
        ``θ``; it is 1 for a server without load.
    """
    theta = np.ones(len(storage_capacity))
    # The division is done only where a load exceeds its capacity. This avoids a division by zero and implies the
    # minimum with 1.
    np.divide(storage_capacity, storage_load, out=theta, where=storage_load > storage_capacity)
    by_compute = np.ones(len(storage_capacity))
    np.divide(compute_capacity, compute_load, out=by_compute, where=compute_load > compute_capacity)
    return np.minimum(theta, by_compute)


@compiled
def topic_loads(
    member_start: OffsetArray,
    member: IntArray,
    role: npt.NDArray[np.int8],
    spool: FloatArray,
    delay: FloatArray,
    home: IntArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the loads ``a, v`` and the sums ``F, Q`` of each server.

    For topic ``n`` let ``s_k`` be its subscribers at server ``k`` and ``p_l = Σ 1/|R_i|`` over its publications ``i``
    homed at ``l``. The topic contributes ``p_l·Σ_k s_k·dS[l,k]`` to ``Q_l``; only servers with members of ``n`` are
    visited.

    Parameters
    ----------
    member_start, member, role
        The members of each topic in compressed form, with their roles.
    spool
        ``u``.
    delay
        ``dS``.
    home
        One server per client.

    Returns
    -------
    tuple of four arrays
        ``a``, ``v``, ``F`` and ``Q``.
    """
    servers = len(delay)
    storage = np.zeros(servers)
    compute = np.zeros(servers)
    sent = np.zeros(servers)
    spread = np.zeros(servers)
    only = np.zeros(servers, np.int64)  # publishers that do not subscribe
    both = np.zeros(servers, np.int64)  # publishers that also subscribe
    subscribers = np.zeros(servers, np.int64)
    touched = np.empty(servers, np.int64)
    for n in range(len(spool)):
        count = 0
        receivers = 0
        for e in range(member_start[n], member_start[n + 1]):
            l = home[member[e]]
            if only[l] + both[l] + subscribers[l] == 0:
                touched[count] = l
                count += 1
            if role[e] == PUBLISHES:
                only[l] += 1
            else:
                subscribers[l] += 1
                receivers += 1
                if role[e] != SUBSCRIBES:
                    both[l] += 1
        # A publisher that also subscribes does not receive its own publications, so |R| is one less.
        share_only = 1.0 / receivers if receivers > 0 else 0.0
        share_both = 1.0 / (receivers - 1) if receivers > 1 else 0.0
        for i in range(count):
            l = touched[i]
            publishers = only[l] + both[l]
            if publishers == 0:
                continue
            storage[l] += spool[n]
            compute[l] += publishers * spool[n]
            if receivers > 0:
                sent[l] += only[l]
            if receivers > 1:
                sent[l] += both[l]
            reach = 0.0
            for j in range(count):
                reach += subscribers[touched[j]] * delay[l, touched[j]]
            spread[l] += (only[l] * share_only + both[l] * share_both) * reach
        for i in range(count):
            only[touched[i]] = 0
            both[touched[i]] = 0
            subscribers[touched[i]] = 0
    return storage, compute, sent, spread
