"""What a part of a proof is about: the homes still possible, topics known to be open, and how much servers do."""

from dataclasses import dataclass

import numpy as np

from relocbench.formulations.certificates.certificate import SHARE_UNITS, Split, SplitClient, SplitTopic
from relocbench.formulations.certificates.integer_problem import Bools, Whole, WholeProblem
from relocbench.formulations.certificates.packed_arrays import Array
from relocbench.instances.errors import InputError, shown

# θ is computed in units of 2^-60.
THETA_BITS = 60
ONE = 1 << THETA_BITS


@dataclass(frozen=True, eq=False)
class State:
    """All assignments that keep to the following.

    Attributes
    ----------
    allowed
        ``M×L``: the homes of each client; at least one.
    open
        ``N×L``: these topics have a publisher at these servers.
    low, high
        ``L``: ``θ`` is within these, in units of 1/1024.
    """

    allowed: Bools
    open: Bools
    low: Array
    high: Array


def root(problem: WholeProblem) -> State:
    """Return the state of all assignments."""
    clients, servers, topics = problem.n_clients, problem.n_servers, problem.n_topics
    return State(
        np.ones((clients, servers), np.bool_),
        np.zeros((topics, servers), np.bool_),
        np.zeros(servers, np.int64),
        np.full(servers, SHARE_UNITS, np.int64),
    )


def restricted(problem: WholeProblem, state: State, allowed: Bools, opened: Bools | None = None) -> State | None:
    """Return the state with only these homes left and these topics open; None if no assignment is left.

    Where only one client can be the publisher that an open topic has at its server, that client is there.
    """
    allowed = allowed & state.allowed
    opened = state.open if opened is None else opened | state.open
    changed = True
    while changed:
        changed = False
        for topic, server in np.argwhere(opened):
            publishers = problem.instance.publishers[int(topic)]
            candidates = publishers[allowed[publishers, server]]
            if not len(candidates):
                return None
            if len(candidates) == 1 and allowed[candidates[0]].sum() > 1:
                allowed[candidates[0]] = False
                allowed[candidates[0], server] = True
                changed = True
    return State(allowed, opened, state.low, state.high) if allowed.any(axis=1).all() else None


def settled(problem: WholeProblem, state: State | None) -> State | None:
    """Return the state without homes that nobody can have, as ``θ`` would be too small there; None if it is empty."""
    if state is None or (not state.low.any() and (state.high == SHARE_UNITS).all()):
        return state
    left: State | None = state
    while left is not None:
        least, most = theta_range(problem, left)
        impossible = (most < least[None, :]).astype(np.bool_) & left.allowed
        if not impossible.any():
            break
        left = restricted(problem, left, ~impossible)
    return left


def cases(problem: WholeProblem, state: State, split: Split) -> list[State | None]:
    """Return the two states of a split, first case first; None for one without an assignment."""
    if isinstance(split, SplitClient):
        _check(split.client, problem.n_clients, "client")
        for server in split.servers:
            _check(server, problem.n_servers, "servers")
        first, second = state.allowed.copy(), state.allowed.copy()
        second[split.client, list(split.servers)] = False
        first[split.client] &= ~second[split.client]
        states: list[State | None] = [restricted(problem, state, first), restricted(problem, state, second)]
    elif isinstance(split, SplitTopic):
        _check(split.topic, problem.n_topics, "topic")
        _check(split.server, problem.n_servers, "server")
        without, opened = state.allowed.copy(), state.open.copy()
        without[problem.instance.publishers[split.topic], split.server] = False
        opened[split.topic, split.server] = True
        states = [restricted(problem, state, without), restricted(problem, state, state.allowed, opened)]
    else:
        _check(split.server, problem.n_servers, "server")
        _check(split.share - 1, SHARE_UNITS - 1, "share", 1)
        low, high = state.low.copy(), state.high.copy()
        low[split.server] = max(low[split.server], split.share)
        high[split.server] = min(high[split.server], split.share)
        states = [State(state.allowed, state.open, *share) for share in ((state.low, high), (low, state.high))]
    return [settled(problem, case) for case in states]


def theta_range(problem: WholeProblem, state: State) -> tuple[Whole, Whole]:
    """Return between what each server's ``θ`` must lie, in units of ``2^-60``, rounded outwards.

    Returns
    -------
    ``L``: the least, whatever the clients do; ``M×L``: the most with this client at the server (and any number where it
    cannot be there).
    """
    allowed = state.allowed
    stored = np.where(problem.open_topics(allowed), problem.spool[:, None], 0).sum(axis=0)
    computed = np.where(allowed, problem.demand[:, None], 0).sum(axis=0)
    least = np.minimum(_theta(problem.storage_capacity, stored), _theta(problem.compute_capacity, computed))
    least = np.maximum(least, state.low.astype(object) * (ONE // SHARE_UNITS))

    fixed = allowed & (allowed.sum(axis=1) == 1)[:, None]
    certain = problem.open_topics(fixed) | state.open
    stored = np.where(certain, problem.spool[:, None], 0).sum(axis=0)
    computed = np.where(fixed, problem.demand[:, None], 0).sum(axis=0)
    known = state.high.astype(object) * (ONE // SHARE_UNITS)
    most: Whole = np.repeat(known[None, :], len(allowed), axis=0)
    for l in np.flatnonzero((least < ONE).astype(np.bool_)):
        more_stored = stored[l] + problem.topic_sums(~certain[:, l])
        more_computed = computed[l] + np.where(fixed[:, l], 0, problem.demand)
        theta = np.minimum(
            _theta(problem.storage_capacity[l], more_stored, upwards=True),
            _theta(problem.compute_capacity[l], more_computed, upwards=True),
        )
        most[:, l] = np.minimum(theta, known[l])
    return least, most


def _theta(capacity: Whole, load: Whole, upwards: bool = False) -> Whole:
    """Return ``min(1, capacity / load)``, which is 1 without a load."""
    divisor = np.maximum(load, 1)
    theta = ((capacity << THETA_BITS) + (divisor - 1 if upwards else 0)) // divisor
    return np.where(load <= capacity, ONE, np.minimum(theta, ONE))


def _check(index: int, count: int, what: str, begin: int = 0) -> None:
    if not 0 <= index < count:
        problem = f"expected a number from {begin} to {begin + count - 1}, got {shown(begin + index)}"
        raise InputError(what, problem)
