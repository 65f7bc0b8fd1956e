"""The pricing problem of one server: the value of a client set."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, OffsetArray

BoolArray = npt.NDArray[np.bool_]


class PricingProblem(NamedTuple):
    """The pricing problem of one server.

    Attributes
    ----------
    fixed, local
        Value of each client in the set: ``fixed + θ·local``.
    start, neighbour, pair_fixed, pair_local
        The clients that client ``m`` forms a valued pair with are ``neighbour[start[m]:start[m+1]]``. A pair adds
        ``pair_fixed + θ·pair_local`` if both clients are in the set. Each pair is listed at both of its clients.
    demand
        ``U``.
    topic_start, topic
        The topics that client ``m`` publishes to are ``topic[topic_start[m]:topic_start[m+1]]``.
    spool
        ``u``.
    storage_capacity, compute_capacity
        ``A`` and ``B`` of the server.
    """

    fixed: FloatArray
    local: FloatArray
    start: OffsetArray
    neighbour: OffsetArray
    pair_fixed: FloatArray
    pair_local: FloatArray
    demand: FloatArray
    topic_start: OffsetArray
    topic: OffsetArray
    spool: FloatArray
    storage_capacity: float
    compute_capacity: float


def theta_of(problem: PricingProblem, clients: npt.NDArray[np.intp]) -> float:
    """Compute ``θ`` of a set of clients.

    Parameters
    ----------
    problem
        The pricing problem of the server.
    clients
        The indices of the clients in the set.

    Returns
    -------
    float
        ``θ(S)``.
    """
    topics = {int(n) for m in clients for n in problem.topic[problem.topic_start[m] : problem.topic_start[m + 1]]}
    storage_load = float(problem.spool[sorted(topics)].sum())
    compute_load = float(problem.demand[clients].sum())
    return float(theta_of_loads(problem.storage_capacity, problem.compute_capacity, storage_load, compute_load))


@compiled
def theta_of_loads(storage_capacity: float, compute_capacity: float, storage_load: float, compute_load: float) -> float:
    """Compute ``θ`` of given loads.

    Parameters
    ----------
    storage_capacity, compute_capacity
        ``A`` and ``B``.
    storage_load, compute_load
        The loads.

    Returns
    -------
    float
        ``min(1, A/a, B/v)``.
    """
    theta = 1.0
    if storage_load > storage_capacity:
        theta = storage_capacity / storage_load
    if compute_load > compute_capacity:
        theta = min(theta, compute_capacity / compute_load)
    return float(theta)
