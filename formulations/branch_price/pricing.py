"""The pricing problem of branch and price: find the client sets of least reduced cost for one server.

A column is a server together with the set ``S`` of the clients whose home it is. For given dual variables the value of
a set is

    value(S) = fixed(S) + θ(S)·local(S),    θ(S) = min(1, A/a(S), B/v(S)),

where ``fixed`` and ``local`` are sums over the clients of ``S`` and over the pairs of clients inside ``S``. The pricing
problem is solved by a compiled depth-first search (:mod:`formulations.branch_price.pricing_search`), once for each of
several intervals of ``θ``.
"""

from typing import NamedTuple

import numpy as np

from relocbench.formulations.branch_price.pricing_problem import BoolArray, PricingProblem, theta_of
from relocbench.formulations.branch_price.pricing_search import search
from relocbench.instances.kernels.ragged import FloatArray, OffsetArray

# Each interval of θ begins at this share of its upper end. Narrow intervals give better bounds, but there are more of
# them. With 30 clients, 0.9 and 0.97 needed the same number of nodes, 0.8 needed three times as many.
INTERVAL_RATIO = 0.93
# Below this value of θ a single interval reaches down to the least θ. With a capacity of 0 the number of intervals of
# constant ratio would be infinite.
SMALLEST_INTERVAL_END = 0.01
# Clients are branched on in the order of their value at this θ.
THETA_OF_BRANCHING_ORDER = 0.7


class PricingResult(NamedTuple):
    """The result of a pricing search.

    Attributes
    ----------
    client_sets
        The best sets with a value below the limit, best first (one row of flags per set).
    values
        Their values.
    least
        A lower bound on the value of every set. It is attained, or equal to the limit, if the search is complete.
    complete
        Whether the whole tree was searched.
    nodes
        Number of nodes visited.
    """

    client_sets: BoolArray
    values: FloatArray
    least: float
    complete: bool
    nodes: int


def price_columns(
    problem: PricingProblem,
    required: BoolArray,
    forbidden: BoolArray,
    *,
    limit: float,
    most: int,
    most_nodes: int,
) -> PricingResult:
    """Find the client sets of least value.

    Parameters
    ----------
    problem
        The pricing problem of a server.
    required, forbidden
        Clients that must and that must not be in the set.
    limit
        Only sets with a smaller value are returned.
    most
        The largest number of sets to return.
    most_nodes
        The search stops after this number of nodes.

    Returns
    -------
    PricingResult
        The sets and a lower bound on all values.
    """
    ends = _interval_ends(theta_of(problem, np.flatnonzero(~forbidden)))
    client_sets = np.zeros((most, len(problem.fixed)), np.bool_)
    values = np.zeros(most)
    count, bound, complete, nodes = search(
        problem,
        required,
        _topic_order(problem, required, forbidden),
        _client_order(problem, required, forbidden),
        ends,
        limit,
        most_nodes,
        client_sets,
        values,
    )
    least = (values[0] if count else limit) if complete else min(bound, limit)
    return PricingResult(client_sets[:count], values[:count], float(least), bool(complete), int(nodes))


def _client_order(problem: PricingProblem, required: BoolArray, forbidden: BoolArray) -> OffsetArray:
    """Return the clients to decide, those of least value first."""
    free = np.flatnonzero(~forbidden & ~required)
    value = problem.fixed + THETA_OF_BRANCHING_ORDER * problem.local
    return free[np.argsort(value[free], kind="stable")].astype(np.int64)


def _topic_order(problem: PricingProblem, required: BoolArray, forbidden: BoolArray) -> OffsetArray:
    """Return the topics to decide, the largest first.

    They load storage, no required client opens them, and they have a possible publisher.
    """
    publisher = np.repeat(np.arange(len(required)), np.diff(problem.topic_start))
    wanted = problem.spool > 0
    wanted[problem.topic[required[publisher]]] = False
    possible = np.zeros(len(problem.spool), np.bool_)
    possible[problem.topic[~forbidden[publisher]]] = True
    topics = np.flatnonzero(wanted & possible)
    return topics[np.argsort(-problem.spool[topics], kind="stable")].astype(np.int64)


def _interval_ends(least_theta: float) -> FloatArray:
    """Divide the range of ``θ`` into intervals: return 1 and then the lower end of each interval."""
    ends = [1.0]
    while ends[-1] > least_theta:
        end = ends[-1] * INTERVAL_RATIO
        ends.append(end if end > max(least_theta, SMALLEST_INTERVAL_END) else least_theta)
    return np.array(ends)
