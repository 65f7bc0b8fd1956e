"""What an assignment costs: the one fast evaluator that every reported number comes from."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.instances.errors import InputError, shown
from relocbench.instances.instance import PUBLISHES, SUBSCRIBES, Instance
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The cost of one assignment and what it is made of, in the symbols of docs/model.md.

    Attributes
    ----------
    n_publications
        ``I``.
    distance_cost
        The ``dH`` terms of ``ΣD``.
    processing_cost
        The rest of ``ΣD``: cloud detours and server-to-server delays.
    theta
        ``θ``, the share that each server processes itself.
    storage_load, compute_load
        ``a`` and ``v``, what each server is asked to hold and to process.
    sent
        ``F``, publications homed at each server.
    spread
        ``Q``, summed mean server-to-server delay of each server's publications.
    """

    n_publications: int
    distance_cost: float
    processing_cost: float
    theta: FloatArray
    storage_load: FloatArray
    compute_load: FloatArray
    sent: FloatArray
    spread: FloatArray

    @property
    def objective(self) -> float:
        """``ΣD``."""
        return self.distance_cost + self.processing_cost

    @cached_property
    def y(self) -> float:
        """``Y``, the mean delay of a publication; 0 where nothing is published."""
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
        """Return plain values, under the names that ``relocbench evaluate --json`` gives them."""
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
    """Return loads as shares of what there is; infinite where something is asked of nothing."""
    share = np.full(len(load), np.inf)
    np.divide(load, capacity, out=share, where=capacity > 0)
    share[load == 0] = 0.0
    return share


def mean_distance(instance: Instance, home: IntArray) -> float:
    """Return how far clients are from their homes on average, in km."""
    distance = np.hypot(instance.client_x - instance.server_x[home], instance.client_y - instance.server_y[home])
    return float(distance.mean())


def evaluate(instance: Instance, home: npt.ArrayLike) -> Evaluation:
    """Evaluate an assignment.

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
    """
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
    """Return the evaluation, from the sums of :func:`topic_loads` over all topics and of ``w·dH`` over all clients."""
    storage_load, compute_load, sent, spread = loads
    theta = local_share(storage_capacity, compute_capacity, storage_load, compute_load)
    processing = (2 * cloud_delay * sent * (1 - theta) + theta * spread).sum()
    return Evaluation(publications, distance, float(processing), theta, storage_load, compute_load, sent, spread)


def checked_home(instance: Instance, home: npt.ArrayLike) -> IntArray:
    """Return an assignment as an array, or say what is wrong with it."""
    try:
        homes = np.asarray(home)
    except ValueError as error:
        raise InputError("home", f"expected a list of servers, got {shown(home)}") from error
    if homes.shape != (instance.n_clients,):
        found = len(homes) if homes.ndim == 1 else f"shape {homes.shape}"
        raise InputError("home", f"expected {instance.n_clients} servers, one per client, got {found}")
    if homes.dtype.kind not in "iu":
        raise InputError("home", f"expected whole numbers, got {shown(home)}")
    outside = (homes < 0) | (homes >= instance.n_servers)
    if outside.any():
        where = int(outside.argmax())
        raise InputError(f"home[{where}]", f"expected a server from 0 to {instance.n_servers - 1}, got {homes[where]}")
    return homes.astype(np.int32)


def local_share(
    storage_capacity: FloatArray, compute_capacity: FloatArray, storage_load: FloatArray, compute_load: FloatArray
) -> FloatArray:
    """Return ``θ = min(A/a, B/v, 1)`` for loads ``a, v``; 1 where nothing is asked."""
    theta = np.ones(len(storage_capacity))
    # Divided only where the capacity is exceeded: no division by zero, and the minimum with 1 comes for free.
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
    """Return ``a, v, F, Q`` per server, from the counts of each topic on the servers it touches."""
    servers = len(delay)
    storage = np.zeros(servers)
    compute = np.zeros(servers)
    sent = np.zeros(servers)
    spread = np.zeros(servers)
    only = np.zeros(servers, np.int64)  # publishers that do not subscribe
    both = np.zeros(servers, np.int64)  # publishers that do
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
        # Whoever also subscribes does not receive what it publishes itself.
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
