"""A relaxation that knows what a server can hold: prices of homes, and the least content of each server.

A client has two labels for each server: ``(l,1)``, processed there, and ``(l,0)``, delegated by it. For any prices
``ν`` of labels, no assignment costs less than

    label(w·dH + (1-s)·2·dC·f + ν) - Σ_l max over contents S of Σ_{m∈S} ( θ_l(S)·ν[m,l,1] + (1-θ_l(S))·ν[m,l,0] )

with the bound ``label`` of a labelling without capacities, in which a pair of clients costs ``s·W·dS + t·W·dS``. The
linear relaxation lets a topic be half open on twice as many servers, and lets each client of a server delegate another
share; contents do neither. The prices are found by PDHG: the shares of labels at a server must be a convex combination
of known contents, and new contents are those that are best at the current prices.

Two clients that each need a topic of their own can be at a server in different contents, and still count as if they
were there together. So some pairs of clients have prices, too: what both pay for having the same label is what a
content with both of them earns. docs/bounds.md has more.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

from relocbench.formulations.bounding.client_graph import ClientGraph, Mask
from relocbench.formulations.bounding.dual_bound import BITS
from relocbench.formulations.bounding.known_contents import KnownContents
from relocbench.formulations.bounding.label_steps import add_messages, step_edges, step_shares
from relocbench.formulations.bounding.least_content import ThetaRanges, least_content, loads_of, theta_ranges
from relocbench.formulations.bounding.region import Region
from relocbench.formulations.bounding.relaxation import LEAST_COLUMN_SUM, PRIMAL_WEIGHT
from relocbench.instances.kernels.ragged import FloatArray, IntArray

Found = TypeVar("Found")

# The cost of a pair of labels that no assignment has.
FORBIDDEN = np.float32(1e9)


@dataclass(frozen=True)
class ContentsParams:
    """The parameters of the relaxation.

    Attributes
    ----------
    least_iterations, most_iterations
        PDHG iterations between two searches for new contents. Between these limits, they take about as long as the
        searches.
    pairs_per_node
        The number of pairs of labels along edges that an iteration processes in the time of a node of a search.
    price_weight
        The weight of the rows that tie shares of clients and of pairs to contents; their prices move faster with a
        larger one.
    quick_nodes
        The largest number of nodes in a search for new contents, for each range of ``θ``, at first.
    more_nodes, most_quick_nodes
        The factor by which it grows when a proof finds much better contents, and its limit.
    missed
        What counts as much better, as a share of the best cost.
    tolerance
        How far the profit of a content may be from the largest one, as a share of the best cost.
    margin
        The limit that a certificate states for a server is below the least content by this share of the tolerance,
        because the verifier rounds.
    coarser, few_nodes, finest
        If proofs need too many nodes, even near the best dual, the tolerance becomes larger by this factor. After a
        proof that needs less than this share of the nodes it may have, the tolerance is smaller by the same factor, but
        not below the finest one, which is a share of the best cost.
    least_way
        A proof is made at a point between the best dual and the current prices. After a proof that is no better the way
        from the best dual is halved, and after a better one it is doubled. Below this share it starts at 1 again.
    most_contents
        From this number of contents of a server on, those that were not used for a while are forgotten.
    patience
        The number of searches after which a content that was not used is forgotten.
    delegated_weight
        The share of the delegation cost of a client that counts for the size of the steps.
    first_price
        The first price of compute, as a share of the price at which everything is delegated.
    first_pairs, next_pairs
        Pairs get prices after this number of searches, and again after each ``next_pairs`` further ones.
    violated
        A pair gets a price at a server if its share there is above the share of the contents with both clients by
        this much.
    most_pairs
        The largest number of pairs with prices at a server.
    nodes_for_pairs
        Pairs get prices only if the best proof has at most this number of nodes, because they make each node dearer
        for the verifier.
    threads
        The number of threads. Servers are searched at the same time, and so are parts of the edges in an iteration.
    """

    least_iterations: int = 30
    most_iterations: int = 300
    pairs_per_node: float = 16_000.0
    price_weight: float = 0.5
    quick_nodes: int = 1000
    more_nodes: float = 1.5
    most_quick_nodes: int = 20_000
    missed: float = 0.002
    tolerance: float = 1e-4
    margin: float = 0.2
    coarser: float = 2.0
    few_nodes: float = 0.25
    finest: float = 1e-5
    least_way: float = 0.125
    most_contents: int = 80
    patience: int = 40
    delegated_weight: float = 0.5
    first_price: float = 0.1
    first_pairs: int = 40
    next_pairs: int = 15
    violated: float = 0.03
    most_pairs: int = 80
    nodes_for_pairs: int = 50_000
    threads: int = 2


PARAMS = ContentsParams()


@dataclass(frozen=True, eq=False)
class HomePricesDual:
    """Prices of homes with everything that proves their bound.

    Attributes
    ----------
    value
        The bound.
    messages
        For each edge, one number for each label of its first client (edges × ``2·L``).
    prices
        ``ν``, first those of the labels of local processing (``M×2·L``).
    pair_prices
        What the clients of each edge pay for each label if both have it (edges × ``2·L``).
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
    pair_prices: FloatArray
    least: FloatArray
    ranges: tuple[ThetaRanges, ...]
    compute_price: tuple[FloatArray, ...]
    nodes: int

    @property
    def has_pairs(self) -> bool:
        """Whether pairs of clients have prices."""
        return bool(self.pair_prices.any())


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
        self._pool = ThreadPoolExecutor(params.threads)
        clients, servers, edges = graph.n_clients, graph.n_servers, graph.n_edges
        self._ranges = tuple(theta_ranges(graph, l) for l in range(servers))
        largest_price = _largest_price(graph)
        self._compute_price = tuple(
            np.full(len(ranges.least_delegated), params.first_price * largest_price) for ranges in self._ranges
        )
        self._last_range, self._proof_nodes = np.zeros((2, servers), np.int64)
        self._searches, self._nodes, self._quick_nodes = 0, 0, params.quick_nodes
        self._tolerance, self._way = params.tolerance * best_cost, 1.0
        degree = graph.incident_edges.sizes + params.price_weight
        self._step = 1 / (degree + LEAST_COLUMN_SUM)
        labels = 2 * servers
        self._shares = np.full((clients, labels), 1 / labels)
        self._extrapolated = self._shares.copy()
        self._pairs = np.full((edges, labels, labels), 1 / labels**2, np.float32)
        delay = graph.server_delay.astype(np.float32)
        sent = graph.forward.astype(np.float32)[:, None, None] * delay[None]
        received = graph.backward.astype(np.float32)[:, None, None] * delay.T[None]
        self._pair_cost = np.block([[sent + received, sent], [received, np.zeros_like(sent)]])
        # The clients of a server are all processed there, or all delegated.
        same = np.arange(labels)
        self._pair_cost[:, same, (same + servers) % labels] = FORBIDDEN
        self._same_label = np.ascontiguousarray(self._pair_cost[:, same, same])
        self._pair_step = np.full(edges, 0.5, np.float32)
        self._extrapolated_same = np.zeros((edges, labels))
        self.pair_prices = np.zeros((edges, labels))
        self._may_be_apart = _may_be_apart(graph)
        self._unary = np.hstack([graph.distance_cost, graph.distance_cost + graph.detour[:, None]])
        self._to_first, self._to_second = np.zeros((edges, labels)), np.zeros((edges, labels))
        # At first, delegation costs what it costs at least.
        self.prices = np.hstack([np.zeros((clients, servers)), -Region.root(graph).delegation_cost])
        loads = loads_of(graph, np.zeros(0, np.int32))
        self._contents = [KnownContents(graph, loads) for _ in range(servers)]
        self._combined = [np.zeros(2 * clients) for _ in range(servers)]
        delegated = 0.0
        for l, contents in enumerate(self._contents):
            members = (home == l).astype(np.float64)
            theta = self._theta(members, l)
            delegated += (1 - theta) * float(graph.detour @ members)
            contents.add(members, theta)
            contents.add(np.zeros(clients), 1.0)
            self._combined[l] = contents.shares[0]
        # Where much is delegated, the prices are larger, and so are the steps towards them. Too large steps give prices
        # that need many nodes to prove.
        self._weight = PRIMAL_WEIGHT * (graph.typical_cost + params.delegated_weight * delegated / max(clients, 1))

    def _theta(self, members: FloatArray, l: int) -> float:
        """Return ``θ`` of a content of a server."""
        graph = self.graph
        opened = np.zeros(len(graph.spool), np.bool_)
        opened[graph.topic[members[graph.topic_owner] > 0]] = True
        loads = float(graph.spool[opened].sum()), float(graph.demand @ members)
        capacities = float(graph.storage_capacity[l]), float(graph.compute_capacity[l])
        return min([1.0, *(limit / load for load, limit in zip(loads, capacities, strict=True) if load > limit)])

    def _prices_at(self, l: int) -> FloatArray:
        """Return the prices of the labels of a server, as the contents have their shares."""
        pairs, delegated = self._contents[l].pairs, self.graph.n_servers + l
        of_clients, of_pairs = self.prices, self.pair_prices
        return np.concatenate(
            [of_clients[:, l], of_pairs[pairs, l], of_clients[:, delegated], of_pairs[pairs, delegated]]
        )

    def step(self) -> None:
        """Run some iterations, then search for new contents at the current prices."""
        # With few contents the prices go astray, so the first steps are short.
        params = self._params
        self._searches += 1
        balanced = int(self._nodes * params.pairs_per_node / max(self._pairs.size, 1))
        iterations = min(max(balanced, params.least_iterations), params.most_iterations)
        self._iterate(min(iterations, 2 * self._searches))
        self._nodes = sum(self._of_servers(self._search_some_ranges, range(self.graph.n_servers)))
        if self._searches >= params.first_pairs and (self._searches - params.first_pairs) % params.next_pairs == 0:
            self._price_pairs()

    def _of_servers(self, search: Callable[[int], Found], servers: Iterable[int]) -> list[Found]:
        """Call a function for some servers. The threads share nothing: a server has contents and prices of its own."""
        return list(self._pool.map(search, servers))

    def _search_some_ranges(self, l: int) -> int:
        """Search for new contents of a server, and forget old ones; return the number of nodes."""
        params, count = self._params, len(self._ranges[l].least_delegated)
        # The best range of the last time and its neighbours, θ = 1, and one of the others in turn.
        last, turn = int(self._last_range[l]), self._searches % min(count, 8)
        nodes = 0
        for i in dict.fromkeys(i for i in (last, 0, turn, last - 1, last + 1) if 0 <= i < count):
            which = np.array([i], np.int32)
            nodes += self._search(l, which, params.tolerance * self._best_cost, self._quick_nodes)[1]
        self._contents[l].forget(params.most_contents, params.patience)
        return nodes

    def _search_all_ranges(self, most_nodes: int) -> tuple[FloatArray, int]:
        """Search for the best content of each server; return upper bounds on their profits, and the number of nodes.

        Servers that are left when the nodes are used up have no bound. The threads search as many servers at a time as
        there are threads, so that the result does not depend on their speed.
        """

        def search(l: int) -> tuple[float, int]:
            every = np.arange(len(self._ranges[l].least_delegated), dtype=np.int32)
            return self._search(l, every, self._tolerance, most_nodes - nodes)

        nodes, profits, threads = 0, np.full(self.graph.n_servers, np.inf), self._params.threads
        # Servers with similar numbers of nodes are searched at the same time, and those with the most nodes first.
        order = np.argsort(-self._proof_nodes, kind="stable")
        for begin in range(0, len(order), threads):
            if nodes >= most_nodes:
                break
            some = order[begin : begin + threads]
            found = self._of_servers(search, some.tolist())
            profits[some], self._proof_nodes[some] = zip(*found, strict=True)
            nodes += int(self._proof_nodes[some].sum())
        return profits, nodes

    def _price_pairs(self) -> None:
        """Give prices to pairs of clients whose shares no combination of known contents has."""
        if self.dual is not None and self.dual.nodes > self._params.nodes_for_pairs:
            return
        servers, possible = self.graph.n_servers, np.flatnonzero(self._may_be_apart).astype(np.int32)
        for l, contents in enumerate(self._contents):
            labels = np.array([l, servers + l])
            excess = (self._pairs[possible[:, None], labels, labels] - contents.together(possible)).max(axis=1)
            excess[np.isin(possible, contents.pairs)] = 0.0
            largest = np.argsort(-excess, kind="stable")[: max(self._params.most_pairs - len(contents.pairs), 0)]
            pairs = np.sort(possible[largest[excess[largest] > self._params.violated]])
            if len(pairs):
                contents.price_pairs(pairs)
                self._combined[l] = contents.weight @ contents.shares
                self._pair_step[pairs] = 1 / (2 + self._params.price_weight)

    @property
    def has_pairs(self) -> bool:
        """Whether pairs of clients have prices."""
        return any(len(contents.pairs) for contents in self._contents)

    def prove(self, most_nodes: int) -> float:
        """Compute the bound of the current prices, or of a point between them and the best dual.

        The bound is a concave function of prices and messages. Prices that have gone too far, where no known content
        shows it, have a worse bound than the best dual, but points on the way to them may have a better one. The prices
        are rounded as a certificate stores them.

        Parameters
        ----------
        most_nodes
            The largest number of nodes that a proof may have. If more would be needed, the best dual is not changed,
            and the tolerance of the next proof is larger.

        Returns
        -------
        float
            The bound, which is the best one or not; ``-inf`` if the nodes were used up before all servers were
            searched.
        """
        unit, params, way = 2.0**BITS, self._params, self._way
        kept, kept_pairs, messages = self.prices, self.pair_prices, self._to_first
        if self.dual is not None and way < 1:
            best = self.dual
            self.prices, self.pair_prices, messages = (
                near + way * (far - near)
                for near, far in (
                    (best.prices, self.prices),
                    (best.pair_prices, self.pair_prices),
                    (best.messages, messages),
                )
            )
        self.prices, self.pair_prices, messages = (
            np.floor(values * unit) / unit for values in (self.prices, self.pair_prices, messages)
        )
        # The verifier rounds the value of every topic, and a few more numbers, by up to one unit.
        margin = params.margin * self._tolerance + (len(self.graph.spool) + 16) / unit
        known = self._known_profits()
        profits, nodes = self._search_all_ranges(most_nodes)
        profits += margin
        searched = np.isfinite(profits)
        if (profits - known)[searched].sum() > params.missed * self._best_cost:
            self._quick_nodes = min(int(self._quick_nodes * params.more_nodes), params.most_quick_nodes)
        least = np.floor(-profits * unit) / unit
        value = self._label_bound(messages) + float(least.sum())
        fits = nodes <= most_nodes and bool(searched.all())
        if fits and nodes < params.few_nodes * most_nodes:
            self._tolerance = max(self._tolerance / params.coarser, params.finest * self._best_cost)
        elif not fits and (self.dual is None or way <= params.least_way):
            self._tolerance *= params.coarser
        if fits and (self.dual is None or value > self.dual.value):
            compute_prices = tuple(price.copy() for price in self._compute_price)
            self.dual = HomePricesDual(
                value, messages, self.prices, self.pair_prices, least, self._ranges, compute_prices, nodes
            )
            self._way = min(2 * way, 1.0)
        elif self.dual is not None:
            self._way = way / 2 if way > params.least_way else 1.0
        self.prices, self.pair_prices = kept, kept_pairs
        return value

    def estimate(self) -> float:
        """Compute what the bound would be if no server had a better content than the known ones.

        Returns
        -------
        float
            A number that :meth:`prove` does not exceed.
        """
        return self._label_bound(self._to_first) - float(self._known_profits().sum())

    def _known_profits(self) -> FloatArray:
        return np.array([contents.largest_profit(self._prices_at(l)) for l, contents in enumerate(self._contents)])

    def guidance(self) -> tuple[FloatArray, IntArray]:
        """Return what a search for homes can use.

        Returns
        -------
        reduced_cost
            How much each home costs more than the best home of its client at the current prices (``M×L``).
        rounded
            The home with the largest share of each client.
        """
        servers = self.graph.n_servers
        cost = self._label_cost(self._to_first)
        cost = np.minimum(cost[:, :servers], cost[:, servers:])
        share = self._shares[:, :servers] + self._shares[:, servers:]
        return cost - cost.min(axis=1, keepdims=True), share.argmax(axis=1).astype(np.int32)

    def _label_bound(self, messages: FloatArray) -> float:
        return float(self._label_cost(messages).min(axis=1).sum())

    def _label_cost(self, messages: FloatArray) -> FloatArray:
        graph = self.graph
        cost = self._unary + self.prices
        weights = graph.forward, graph.backward
        add_messages(cost, graph.first, graph.second, *weights, graph.server_delay, messages, self.pair_prices)
        return cost

    def _search(self, l: int, which: IntArray, tolerance: float, most_nodes: int) -> tuple[float, int]:
        """Search for the best content of a server, keep it, and return an upper bound on its profit and the nodes."""
        contents, ranges, clients = self._contents[l], self._ranges[l], self.graph.n_clients
        prices = self._prices_at(l)
        local, delegated = np.split(prices, 2)
        known = contents.largest_profit(prices)
        taken = np.zeros(len(local))
        _, bound, found, nodes = least_content(
            contents.loads,
            local,
            local - delegated,
            ranges.least_delegated,
            ranges.most_delegated,
            ranges.storage_limit,
            ranges.compute_limit,
            self._compute_price[l],
            which,
            known,
            tolerance,
            most_nodes,
            taken,
        )
        if found >= 0:
            self._last_range[l] = found
            members = taken[:clients]
            contents.add(members, self._theta(members, l))
        return bound, nodes

    def _iterate(self, times: int) -> None:
        graph, weight = self.graph, self._weight
        clients, servers = graph.n_clients, graph.n_servers
        price_step = weight * self._params.price_weight
        edges, same = graph.incident_edges, np.arange(2 * servers)
        priced = np.unique(np.concatenate([contents.pairs for contents in self._contents]))
        ends = np.linspace(0, graph.n_edges, self._params.threads + 1).astype(int).tolist()
        parts = [slice(*part) for part in pairwise(ends)]
        for _ in range(times):
            step_shares(
                self._shares,
                self._extrapolated,
                self._unary + self.prices,
                edges.start,
                edges.item,
                graph.first,
                self._to_first,
                self._to_second,
                self._step / weight,
            )
            before = self._combined
            self._combined = [
                contents.step(before[l] + self._prices_at(l) / price_step, price_step)
                for l, contents in enumerate(self._contents)
            ]
            self._pair_cost[priced[:, None], same, same] = self._same_label[priced] + self.pair_prices[priced]
            list(self._pool.map(self._step_some_edges, parts))
            for l, contents in enumerate(self._contents):
                combined = 2 * self._combined[l] - before[l]
                for label, part in zip((l, servers + l), np.split(combined, 2), strict=True):
                    self.prices[:, label] += 0.5 * price_step * (self._extrapolated[:, label] - part[:clients])
                    over = self._extrapolated_same[contents.pairs, label] - part[clients:]
                    moved = self.pair_prices[contents.pairs, label] + 0.5 * price_step * over
                    self.pair_prices[contents.pairs, label] = np.maximum(moved, 0.0)
            # A content may have more clients than the labelling puts there, so local processing has no price below 0.
            np.maximum(self.prices[:, :servers], 0.0, out=self.prices[:, :servers])

    def _step_some_edges(self, some: slice) -> None:
        step_edges(
            self.graph.first[some],
            self.graph.second[some],
            self._pair_cost[some],
            self._extrapolated,
            self._to_first[some],
            self._to_second[some],
            self._pairs[some],
            self._extrapolated_same[some],
            self._pair_step[some],
            self._weight,
        )


def _largest_price(graph: ClientGraph) -> float:
    """Return the price of compute at which delegating is cheaper for every client."""
    loads = graph.demand > 0
    return float((graph.detour[loads] / graph.demand[loads]).max(initial=0.0))


def _may_be_apart(graph: ClientGraph) -> Mask:
    """Return for each edge whether each of its clients needs a topic that the other does not need.

    Otherwise a content that has the one client has room for the other.
    """
    topics = [set(part.tolist()) for part in np.split(graph.topic, graph.topic_start[1:-1])]
    ends = zip(graph.first.tolist(), graph.second.tolist(), strict=True)
    return np.array([not (topics[i] <= topics[j] or topics[j] <= topics[i]) for i, j in ends], np.bool_)
