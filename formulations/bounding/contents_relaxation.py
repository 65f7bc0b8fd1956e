"""A relaxation that knows what a server can hold: prices of homes, and the least content of each server.

For any prices ``ν`` of homes, no assignment costs less than

    label(w·dH + ν) + Σ_l min over contents S of ( (1-θ_l(S))·Σ_{m∈S} c0[m,l] - Σ_{m∈S} ν[m,l] )

with the bound ``label`` of a labelling without capacities. The linear relaxation lets a topic be half open on twice as
many servers, and lets each client of a server delegate another share; contents do neither. The prices are found by
PDHG: the shares of homes at a server must be a convex combination of known contents, and new contents are those that
are best at the current prices. docs/bounds.md has more.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from relocbench.formulations.bounding.client_graph import ClientGraph
from relocbench.formulations.bounding.dual_bound import BITS
from relocbench.formulations.bounding.least_content import ThetaRanges, least_content, loads_of, theta_ranges
from relocbench.formulations.bounding.region import Region
from relocbench.formulations.bounding.relaxation import LEAST_COLUMN_SUM, PRIMAL_WEIGHT, Relaxation
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray

SingleArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class ContentsParams:
    """The parameters of the relaxation.

    Attributes
    ----------
    iterations
        PDHG iterations between two searches for new contents.
    price_weight
        The weight of the rows that tie shares to contents; their prices move faster with a larger one.
    quick_nodes
        The largest number of nodes in a search for new contents, for each range of ``θ``.
    tolerance
        How far the profit of a content may be from the largest one, as a share of the best cost.
    margin
        The limit that a certificate states for a server is below the least content by this share of the tolerance,
        because the verifier rounds.
    coarser
        A proof that needs too many nodes is repeated later with a tolerance that is larger by this factor.
    most_contents
        From this number of contents of a server on, those that were not used for a while are forgotten.
    patience
        The number of searches after which a content that was not used is forgotten.
    first_price
        The first price of compute, as a share of the price at which everything is delegated.
    """

    iterations: int = 30
    price_weight: float = 0.5
    quick_nodes: int = 1000
    tolerance: float = 1e-5
    margin: float = 0.2
    coarser: float = 2.0
    most_contents: int = 80
    patience: int = 40
    first_price: float = 0.1


PARAMS = ContentsParams()


@dataclass(frozen=True, eq=False)
class HomePricesDual:
    """Prices of homes with everything that proves their bound.

    Attributes
    ----------
    value
        The bound.
    messages
        For each edge, one number for each home of its first client (edges × ``L``).
    prices
        ``ν`` (``M×L``).
    least
        For each server, a number that no content is worth less than.
    ranges
        The ranges of ``θ`` of each server.
    compute_price
        A price of compute for each server and range, which speeds up the search.
    nodes
        The number of nodes of the searches for the least contents.
    """

    value: float
    messages: FloatArray
    prices: FloatArray
    least: FloatArray
    ranges: tuple[ThetaRanges, ...]
    compute_price: tuple[FloatArray, ...]
    nodes: int


class _Contents:
    """The known contents of one server and the weights of their combination."""

    def __init__(self, clients: int) -> None:
        self.members = np.zeros((0, clients))
        self.cost = np.zeros(0)
        self.weight = np.zeros(0)
        self.common = np.zeros((0, 0))
        self._unused = np.zeros(0, np.int64)

    def add(self, members: FloatArray, cost: float) -> None:
        """Add a content unless it is known."""
        if len(self.cost) and (np.abs(self.members - members).max(axis=1) < 1e-9).any():
            return
        common = self.members @ members
        self.common = np.block([[self.common, common[:, None]], [common[None, :], members @ members]])
        self.members = np.vstack([self.members, members])
        self.cost = np.append(self.cost, cost)
        self.weight = np.append(self.weight, 0.0 if len(self.weight) else 1.0)
        self._unused = np.append(self._unused, 0)

    def forget(self, most: int, patience: int) -> None:
        """Forget contents that were not used for a while, if there are many."""
        self._unused = np.where(self.weight > 1e-9, 0, self._unused + 1)
        if len(self.cost) > most:
            kept = self._unused < patience
            kept[~self.members.any(axis=1)] = True  # the empty content is always a choice
            self.common = np.ascontiguousarray(self.common[np.ix_(kept, kept)])
            self.members, self.cost = self.members[kept], self.cost[kept]
            self.weight, self._unused = self.weight[kept], self._unused[kept]

    def step(self, point: FloatArray, weight: float) -> FloatArray:
        """Move the combination to the point as far as its cost is worth it (a proximal step)."""
        _combine(self.common, self.cost, self.members @ point, self.weight, weight, 40)
        found: FloatArray = self.weight @ self.members
        return found


class ContentsRelaxation:
    """The relaxation with contents, and the best dual found so far.

    Parameters
    ----------
    graph
        The instance.
    home
        Good homes; what the servers hold there are the first contents.
    best_cost
        Their cost.
    params
        The parameters.

    Attributes
    ----------
    dual
        The dual of the best bound; None before the first call of :meth:`prove`.
    """

    def __init__(self, graph: ClientGraph, home: IntArray, best_cost: float, params: ContentsParams = PARAMS) -> None:
        self.graph, self._params, self._best_cost = graph, params, best_cost
        self.dual: HomePricesDual | None = None
        clients, servers, edges = graph.n_clients, graph.n_servers, graph.n_edges
        self._loads = loads_of(graph)
        self._delegation_cost = np.ascontiguousarray(Region.root(graph).delegation_cost.T)
        self._ranges = tuple(theta_ranges(graph, l) for l in range(servers))
        largest_price = _largest_price(graph)
        self._compute_price = tuple(
            np.full(len(ranges.least_delegated), params.first_price * largest_price) for ranges in self._ranges
        )
        self._last_range = np.zeros(servers, np.int64)
        self._searches = 0
        self._tolerance = params.tolerance * best_cost
        self._weight = PRIMAL_WEIGHT * graph.typical_cost
        degree = graph.incident_edges.sizes + params.price_weight
        self._step = 1 / (degree + LEAST_COLUMN_SUM)
        self._shares = np.full((clients, servers), 1 / servers)
        self._extrapolated = self._shares.copy()
        self._pairs = np.full((edges, servers, servers), 1 / servers**2, np.float32)
        delay = graph.server_delay
        self._pair_cost = (
            graph.forward[:, None, None] * delay[None] + graph.backward[:, None, None] * delay.T[None]
        ).astype(np.float32)
        self._to_first, self._to_second = np.zeros((edges, servers)), np.zeros((edges, servers))
        self.prices = np.zeros((clients, servers))
        self._contents = [_Contents(clients) for _ in range(servers)]
        self._combined = np.zeros((clients, servers))
        for l, contents in enumerate(self._contents):
            contents.add(*self._content_at(home, l))
            contents.add(np.zeros(clients), 0.0)
            self._combined[:, l] = contents.members[0]

    def warm_start(self, relaxation: Relaxation) -> None:
        """Start from the variables of a linear relaxation, whose charges for capacity become prices.

        Parameters
        ----------
        relaxation
            A relaxation of the same graph in which all homes are labels.
        """
        graph, variables = self.graph, relaxation.variables
        shape = graph.n_edges, graph.n_servers
        self._shares = relaxation.shares
        self._extrapolated = self._shares.copy()
        self._pairs[:] = variables.z.reshape(self._pairs.shape)
        self._to_first = variables.message_first.reshape(shape).copy()
        self._to_second = variables.message_second.reshape(shape).copy()
        self.prices = relaxation.beta[None, :] * graph.demand[:, None]
        np.add.at(self.prices, graph.topic_owner, variables.share.reshape(-1, graph.n_servers))

    def _content_at(self, home: IntArray, l: int) -> tuple[FloatArray, float]:
        """Return what a server holds, and what it pays for delegation."""
        graph = self.graph
        members = (home == l).astype(np.float64)
        opened = np.zeros(len(graph.spool), np.bool_)
        opened[graph.topic[members[graph.topic_owner] > 0]] = True
        loads = float(graph.spool[opened].sum()), float(graph.demand @ members)
        capacities = float(graph.storage_capacity[l]), float(graph.compute_capacity[l])
        theta = min([1.0, *(limit / load for load, limit in zip(loads, capacities, strict=True) if load > limit)])
        return members, (1 - theta) * float(self._delegation_cost[l] @ members)

    def step(self) -> None:
        """Run some iterations, then search for new contents at the current prices."""
        # With few contents the prices go astray, so the first steps are short.
        self._searches += 1
        self._iterate(min(self._params.iterations, self._searches))
        for l, (contents, ranges) in enumerate(zip(self._contents, self._ranges, strict=True)):
            last, count = int(self._last_range[l]), len(ranges.least_delegated)
            # The best range of the last time and its neighbours, θ = 1, and one of the others in turn.
            turn = self._searches % min(count, 8)
            some = [last, 0, turn, last - 1, last + 1]
            for i in dict.fromkeys(i for i in some if 0 <= i < count):
                which = np.array([i], np.int32)
                self._search(l, which, self._params.tolerance * self._best_cost, self._params.quick_nodes)
            contents.forget(self._params.most_contents, self._params.patience)

    def prove(self, most_nodes: int) -> float:
        """Compute the bound of the current prices, rounded as a certificate stores them.

        Parameters
        ----------
        most_nodes
            The largest number of nodes that a proof may have. If more would be needed, the best dual is not changed,
            and the tolerance of the next proof is larger.

        Returns
        -------
        float
            The bound, which is the best one or not.
        """
        unit = 2.0**BITS
        kept = self.prices
        self.prices = np.floor(kept * unit) / unit
        messages = np.floor(self._to_first * unit) / unit
        # The verifier rounds the value of every topic, and a few more numbers, by up to one unit.
        margin = self._params.margin * self._tolerance + (len(self.graph.spool) + 16) / unit
        nodes, profits = 0, []
        for l, ranges in enumerate(self._ranges):
            every = np.arange(len(ranges.least_delegated), dtype=np.int32)
            profit, count = self._search(l, every, self._tolerance, max(1, most_nodes - nodes))
            profits.append(profit + margin)
            nodes += count
        least = np.floor(-np.array(profits) * unit) / unit
        value = self._label_bound(messages) + float(least.sum())
        if nodes > most_nodes:
            self._tolerance *= self._params.coarser
        elif self.dual is None or value > self.dual.value:
            prices = tuple(price.copy() for price in self._compute_price)
            self.dual = HomePricesDual(value, messages, self.prices, least, self._ranges, prices, nodes)
        self.prices = kept
        return value

    def estimate(self) -> float:
        """Compute what the bound would be if no server had a better content than the known ones.

        Returns
        -------
        float
            A number that :meth:`prove` does not exceed.
        """
        known = (
            float((contents.members @ self.prices[:, l] - contents.cost).max())
            for l, contents in enumerate(self._contents)
        )
        return self._label_bound(self._to_first) - sum(known)

    def guidance(self) -> tuple[FloatArray, IntArray]:
        """Return what a search for homes can use.

        Returns
        -------
        reduced_cost
            How much each home costs more than the best home of its client at the current prices (``M×L``).
        rounded
            The home with the largest share of each client.
        """
        cost = self._label_cost(self._to_first)
        return cost - cost.min(axis=1, keepdims=True), self._shares.argmax(axis=1).astype(np.int32)

    def _label_bound(self, messages: FloatArray) -> float:
        return float(self._label_cost(messages).min(axis=1).sum())

    def _label_cost(self, messages: FloatArray) -> FloatArray:
        graph = self.graph
        cost = graph.distance_cost + self.prices
        _add_messages(cost, graph.first, graph.second, graph.forward, graph.backward, graph.server_delay, messages)
        return cost

    def _search(self, l: int, which: IntArray, tolerance: float, most_nodes: int) -> tuple[float, int]:
        """Search for the best content of a server, keep it, and return an upper bound on its profit and the nodes."""
        contents, ranges = self._contents[l], self._ranges[l]
        price = np.ascontiguousarray(self.prices[:, l])
        known = float((contents.members @ price - contents.cost).max())
        members = np.zeros(self.graph.n_clients)
        _, bound, found, nodes = least_content(
            self._loads,
            price,
            self._delegation_cost[l],
            ranges.least_delegated,
            ranges.most_delegated,
            ranges.storage_limit,
            ranges.compute_limit,
            self._compute_price[l],
            which,
            known,
            tolerance,
            most_nodes,
            members,
        )
        if found >= 0:
            self._last_range[l] = found
            contents.add(members, float(ranges.delegation_cost(found, self._delegation_cost[l]) @ members))
        return bound, nodes

    def _iterate(self, times: int) -> None:
        graph, weight = self.graph, self._weight
        price_step = weight * self._params.price_weight
        edges = graph.incident_edges
        for _ in range(times):
            _step_shares(
                self._shares,
                self._extrapolated,
                graph.distance_cost + self.prices,
                edges.start,
                edges.item,
                graph.first,
                self._to_first,
                self._to_second,
                self._step / weight,
            )
            before = self._combined.copy()
            for l, contents in enumerate(self._contents):
                self._combined[:, l] = contents.step(before[:, l] + self.prices[:, l] / price_step, price_step)
            _step_edges(
                graph.first,
                graph.second,
                self._pair_cost,
                self._extrapolated,
                self._to_first,
                self._to_second,
                self._pairs,
                weight,
            )
            self.prices += 0.5 * price_step * (self._extrapolated - (2 * self._combined - before))


def _largest_price(graph: ClientGraph) -> float:
    """Return the price of compute at which delegating is cheaper for every client."""
    loads = graph.demand > 0
    return float((graph.detour[loads] / graph.demand[loads]).max(initial=0.0))


@compiled
def _combine(
    common: FloatArray, cost: FloatArray, target: FloatArray, share: FloatArray, weight: float, times: int
) -> None:
    """Minimise ``cost·share + weight/2·|combination - point|²`` over shares that sum to 1, two shares at a time."""
    gradient = cost + weight * (common @ share - target)
    for _ in range(times):
        low, high = 0, -1
        for j in range(len(share)):
            if gradient[j] < gradient[low]:
                low = j
            if share[j] > 1e-12 and (high < 0 or gradient[j] > gradient[high]):
                high = j
        if gradient[high] - gradient[low] < 1e-7:
            break
        curvature = weight * (common[low, low] + common[high, high] - 2 * common[low, high])
        moved = share[high]
        if curvature > 0:
            moved = min(moved, (gradient[high] - gradient[low]) / curvature)
        share[low] += moved
        share[high] -= moved
        for j in range(len(share)):
            gradient[j] += weight * moved * (common[j, low] - common[j, high])


@compiled
def _step_shares(
    shares: FloatArray,
    extrapolated: FloatArray,
    unary: FloatArray,
    incident_start: OffsetArray,
    incident: IntArray,
    first: IntArray,
    to_first: FloatArray,
    to_second: FloatArray,
    step: FloatArray,
) -> None:
    """Primal step of the shares, projected onto the simplex of each client."""
    clients, servers = shares.shape
    point, falling = np.empty(servers), np.empty(servers)
    for m in range(clients):
        point[:] = unary[m]
        for g in range(incident_start[m], incident_start[m + 1]):
            e = incident[g]
            point += to_first[e] if first[e] == m else to_second[e]
        for a in range(servers):
            point[a] = shares[m, a] - step[m] * point[a]
            b = a
            while b > 0 and falling[b - 1] < point[a]:
                falling[b] = falling[b - 1]
                b -= 1
            falling[b] = point[a]
        total, level = 0.0, 0.0
        for a in range(servers):
            total += falling[a]
            if falling[a] * (a + 1) > total - 1:
                level = (total - 1) / (a + 1)
        for a in range(servers):
            new = max(0.0, point[a] - level)
            extrapolated[m, a] = 2 * new - shares[m, a]
            shares[m, a] = new


@compiled
def _step_edges(
    first: IntArray,
    second: IntArray,
    cost: SingleArray,
    extrapolated: FloatArray,
    to_first: FloatArray,
    to_second: FloatArray,
    pairs: SingleArray,
    weight: float,
) -> None:
    """Primal step of the pairs of homes, then dual step of the messages."""
    servers = cost.shape[1]
    column, message = np.empty(servers, np.float32), np.empty(servers, np.float32)
    step, zero = np.float32(0.5 / weight), np.float32(0.0)
    row_step = weight / (1 + servers)
    for e in range(len(first)):
        for b in range(servers):
            message[b] = to_second[e, b]
            column[b] = zero
        for a in range(servers):
            to_row, row = np.float32(to_first[e, a]), zero
            for b in range(servers):
                old = pairs[e, a, b]
                new = max(zero, old - step * (cost[e, a, b] - to_row - message[b]))
                pairs[e, a, b] = new
                row += new + new - old
                column[b] += new + new - old
            to_first[e, a] += row_step * (extrapolated[first[e], a] - row)
        for b in range(servers):
            to_second[e, b] += row_step * (extrapolated[second[e], b] - column[b])


@compiled
def _add_messages(
    cost: FloatArray,
    first: IntArray,
    second: IntArray,
    forward: FloatArray,
    backward: FloatArray,
    delay: FloatArray,
    messages: FloatArray,
) -> None:
    """Add the given messages to the first clients, and the largest ones that the pairs allow to the second clients."""
    servers = cost.shape[1]
    for e in range(len(first)):
        for a in range(servers):
            cost[first[e], a] += messages[e, a]
        for b in range(servers):
            least = np.inf
            for a in range(servers):
                least = min(least, forward[e] * delay[a, b] + backward[e] * delay[b, a] - messages[e, a])
            cost[second[e], b] += least
