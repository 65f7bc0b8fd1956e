"""Regions of the verifier: parts of all assignments, as the steps of a proof make them.

A region is given by the allowed homes, the topics known to be open on a server, and a range of ``θ`` for each server.
The prover has a region of its own, :mod:`formulations.bounding.region`, in floating point.
"""

from dataclasses import dataclass

import numpy as np

from relocbench.formulations.certificates.certificate import SHARE_UNITS, Split, SplitClient, SplitTopic
from relocbench.formulations.certificates.integer_problem import BoolArray, IntegerArray, IntegerProblem
from relocbench.formulations.certificates.packed_arrays import Int64Array
from relocbench.instances.errors import InputError, shown

# θ is computed in units of 2^-60.
THETA_BITS = 60
# θ = 1 in these units.
ONE = 1 << THETA_BITS


@dataclass(frozen=True, eq=False)
class Region:
    """All assignments with allowed homes, the given topics open, and ``θ`` within its range.

    Attributes
    ----------
    allowed
        The homes each client may have (``M×L``); at least one per client.
    open
        The topics that have a publisher at each server (``N×L``).
    low, high
        The range of ``θ`` in units of 1/1024, per server.
    """

    allowed: BoolArray
    open: BoolArray
    low: Int64Array
    high: Int64Array


def root_region(problem: IntegerProblem) -> Region:
    """Create the region of all assignments.

    Parameters
    ----------
    problem
        The instance.

    Returns
    -------
    Region
        The root region.
    """
    clients, servers, topics = problem.n_clients, problem.n_servers, problem.n_topics
    return Region(
        np.ones((clients, servers), np.bool_),
        np.zeros((topics, servers), np.bool_),
        np.zeros(servers, np.int64),
        np.full(servers, SHARE_UNITS, np.int64),
    )


def restricted(
    problem: IntegerProblem, region: Region, allowed: BoolArray, opened: BoolArray | None = None
) -> Region | None:
    """Allow only some homes and open more topics.

    If only one client can be the publisher that an open topic has at a server, this server is the client's home.

    Parameters
    ----------
    problem, region
        The instance and the region.
    allowed
        The homes to keep (``M×L``).
    opened
        Topics that are open on a server in addition (``N×L``).

    Returns
    -------
    Region or None
        The part of the region; None if it has no assignment.
    """
    allowed = allowed & region.allowed
    opened = region.open if opened is None else opened | region.open
    topic, server = np.nonzero(opened)
    pair, client = _publishers(problem, topic)
    changed = len(topic) > 0
    while changed:
        problem.budget.check_time()
        candidate = allowed[client, server[pair]]
        count = np.bincount(pair[candidate], minlength=len(topic))
        if not count.all():
            return None
        only = candidate & (count == 1)[pair]
        fixed, home = client[only], server[pair[only]]
        wanted = np.full(problem.n_clients, -1, np.int64)
        wanted[fixed] = home
        if (wanted[fixed] != home).any():
            return None  # a client would need two homes
        changed = bool((allowed[fixed].sum(axis=1) > 1).any())
        allowed[fixed] = False
        allowed[fixed, home] = True
    return Region(allowed, opened, region.low, region.high) if allowed.any(axis=1).all() else None


def _publishers(problem: IntegerProblem, topics: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return all publishers of some topics, as indices into ``topics`` and the clients."""
    start, item = problem.instance.publishers.start.astype(np.int64), problem.instance.publishers.item
    sizes = start[topics + 1] - start[topics]
    pair = np.repeat(np.arange(len(topics)), sizes)
    place = np.arange(len(pair)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + start[topics][pair]
    return pair, item[place].astype(np.int64)


def propagated(problem: IntegerProblem, region: Region | None) -> Region | None:
    """Forbid the homes that the ranges of ``θ`` exclude.

    Parameters
    ----------
    problem, region
        The instance and the region; None for an empty region.

    Returns
    -------
    Region or None
        The same assignments with fewer allowed homes; None if there is no assignment.
    """
    if region is None or (not region.low.any() and (region.high == SHARE_UNITS).all()):
        return region
    rest: Region | None = region
    while rest is not None:
        problem.budget.check_time()
        least, most = theta_range(problem, rest)
        excluded = (most < least[None, :]).astype(np.bool_) & rest.allowed
        if not excluded.any():
            break
        rest = restricted(problem, rest, ~excluded)
    return rest


def split_region(problem: IntegerProblem, region: Region, split: Split) -> list[Region | None]:
    """Split a region.

    Parameters
    ----------
    problem, region
        The instance and the region.
    split
        The split step of the proof.

    Returns
    -------
    list of Region or None
        The two parts, first part first; None for a part without an assignment.
    """
    if isinstance(split, SplitClient):
        _check(split.client, problem.n_clients, "client")
        for server in split.servers:
            _check(server, problem.n_servers, "servers")
        first, second = region.allowed.copy(), region.allowed.copy()
        second[split.client, list(split.servers)] = False
        first[split.client] &= ~second[split.client]
        parts: list[Region | None] = [restricted(problem, region, first), restricted(problem, region, second)]
    elif isinstance(split, SplitTopic):
        _check(split.topic, problem.n_topics, "topic")
        _check(split.server, problem.n_servers, "server")
        without, opened = region.allowed.copy(), region.open.copy()
        without[problem.instance.publishers[split.topic], split.server] = False
        opened[split.topic, split.server] = True
        parts = [restricted(problem, region, without), restricted(problem, region, region.allowed, opened)]
    else:
        _check(split.server, problem.n_servers, "server")
        _check(split.share - 1, SHARE_UNITS - 1, "share", 1)
        low, high = region.low.copy(), region.high.copy()
        low[split.server] = max(low[split.server], split.share)
        high[split.server] = min(high[split.server], split.share)
        parts = [Region(region.allowed, region.open, *thetas) for thetas in ((region.low, high), (low, region.high))]
    return [propagated(problem, part) for part in parts]


def theta_range(problem: IntegerProblem, region: Region) -> tuple[IntegerArray, IntegerArray]:
    """Compute the range of each server's ``θ`` in a region, in units of ``2^-60``, rounded outwards.

    Parameters
    ----------
    problem, region
        The instance and the region.

    Returns
    -------
    least
        The least ``θ`` of each server (``L``).
    most
        The largest ``θ`` of each server with a client there (``M×L``); any number if the client cannot be there.
    """
    allowed = region.allowed
    storage_load = np.where(problem.open_topics(allowed), problem.spool[:, None], 0).sum(axis=0)
    compute_load = np.where(allowed, problem.demand[:, None], 0).sum(axis=0)
    least = np.minimum(_theta(problem.storage_capacity, storage_load), _theta(problem.compute_capacity, compute_load))
    least = np.maximum(least, region.low.astype(object) * (ONE // SHARE_UNITS))

    fixed = allowed & (allowed.sum(axis=1) == 1)[:, None]
    certain = problem.open_topics(fixed) | region.open
    storage_load = np.where(certain, problem.spool[:, None], 0).sum(axis=0)
    compute_load = np.where(fixed, problem.demand[:, None], 0).sum(axis=0)
    high = region.high.astype(object) * (ONE // SHARE_UNITS)
    most: IntegerArray = np.repeat(high[None, :], len(allowed), axis=0)
    largest = max(problem.demand)
    for l in np.flatnonzero((least < ONE).astype(np.bool_)):
        problem.budget.check_time()
        room = problem.storage_capacity[l] - storage_load[l], problem.compute_capacity[l] - compute_load[l]
        if largest <= min(room):
            continue  # no client overloads the server, so the largest θ is 1
        storage_with = storage_load[l] + problem.topic_sums(~certain[:, l])
        compute_with = compute_load[l] + np.where(fixed[:, l], 0, problem.demand)
        theta = np.minimum(
            _theta(problem.storage_capacity[l], storage_with, upwards=True),
            _theta(problem.compute_capacity[l], compute_with, upwards=True),
        )
        most[:, l] = np.minimum(theta, high[l])
    return least, most


def _theta(capacity: IntegerArray, load: IntegerArray, upwards: bool = False) -> IntegerArray:
    """Return ``min(1, capacity / load)`` in units of ``2^-60``; it is 1 without a load."""
    divisor = np.maximum(load, 1)
    theta = ((capacity << THETA_BITS) + (divisor - 1 if upwards else 0)) // divisor
    return np.where(load <= capacity, ONE, np.minimum(theta, ONE))


def _check(index: int, count: int, what: str, begin: int = 0) -> None:
    if not 0 <= index < count:
        problem = f"expected a number from {begin} to {begin + count - 1}, got {shown(begin + index)}"
        raise InputError(what, problem)
