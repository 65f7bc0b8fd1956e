"""Branch and price: every server's content at once, by column generation; then branching on homes.

The linear program of :mod:`formulations.branch_price.master` knows of each content its exact ``θ``, so nothing of the
capacities is relaxed but that a server may hold a mixture of contents.
"""

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from relocbench.formulations.branch_price.master import Master, Point
from relocbench.formulations.branch_price.pricing import Flags, Found, Prices, best_contents
from relocbench.formulations.incumbent import Incumbent, OutOfTimeError, slack
from relocbench.formulations.linearisation import linearise
from relocbench.formulations.local_search import descend
from relocbench.formulations.solvers.availability import require
from relocbench.instances.evaluation import evaluate
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray
from relocbench.instances.solution import Progress, Solution

CONTENTS_AT_ONCE = 15  # a server, an iteration
CLOSE = 0.005  # how near the bound is to the value of the linear program when its prices are taken as they are
MOST_NODES = 10**15  # of any search: no time limit is that long
QUICK_NODES = 200_000  # of a search whose failure costs little
ROUNDINGS = 10  # of each point, into assignments
# Prices come from a linear program solved to 1e-7: a content that looks better by less is not.
PRICE_TOLERANCE = 1e-7


def solve(
    instance: Instance,
    *,
    seed: int,
    time_limit: float,
    start: npt.ArrayLike | None = None,
    on_progress: Progress | None = None,
    log: bool = False,
) -> Solution:
    """Prove the best homes.

    Parameters
    ----------
    instance
        The problem.
    seed
        Steers the rounding of fractional points into assignments.
    time_limit
        Seconds.
    start
        Homes to begin with.
    on_progress
        Called with (seconds, incumbent, bound).
    log
        Whether to print what goes on.
    """
    require("method branch-price", "highspy")
    proof = Incumbent(instance, start, on_progress)
    search = _Search(instance, proof, np.random.default_rng(seed), proof.begin + time_limit, log)
    search.run()
    variables, constraints = search.master.size
    facts: dict[str, float] = {
        "variables": variables,
        "constraints": constraints,
        "nodes": search.nodes,
        "searched": search.searched,
    }
    if np.isfinite(search.root_bound):
        facts["root_bound"] = search.root_bound
    return proof.solution(search.finished, facts)


@dataclass(eq=False)
class _Node:
    """Assignments with the homes that are allowed (``M×L``), none of which costs less than the bound."""

    bound: float
    allowed: Flags
    prices: Point  # good ones to begin with


class _Search:
    def __init__(
        self, instance: Instance, proof: Incumbent, rng: np.random.Generator, deadline: float, log: bool
    ) -> None:
        self.instance, self.proof, self.rng, self.deadline, self.log = instance, proof, rng, deadline, log
        self.model = model = linearise(instance)
        self.master = Master(model)
        self.nodes = 0
        self.searched = 0  # sets looked at in all searches for contents
        self.root_bound = -np.inf
        self.finished = False
        self._speed = 1e7  # sets a second, until measured
        # Of the node at hand: the prices with the best bound, that bound, and the least value for each server.
        self._centre = self._guess()
        self._centre_bound = -np.inf
        self._centre_least: FloatArray = np.empty(0)

    def run(self) -> None:
        """Branch until nothing is left, or no time."""
        model = self.model
        everywhere = np.ones((model.n_clients, model.n_servers), np.bool_)
        self.proof.offer(descend(self.instance, self.proof.home))
        open_nodes = [_Node(model.least_distance_cost, everywhere, self._guess())]
        for inside in np.eye(model.n_clients, dtype=np.bool_):
            for l in range(model.n_servers):
                self.master.add(l, inside)
        try:
            while open_nodes:
                node = min(open_nodes, key=lambda each: each.bound)
                self.proof.raise_bound_of_better(node.bound)
                if self.proof.closes(node.bound):
                    break  # the least of all
                children = self._explore(node)
                open_nodes.remove(node)  # not before: if the time ends, it is still open
                open_nodes += children
        except OutOfTimeError:
            # The node at hand may have got a better bound than others that are still open.
            self.proof.raise_bound_of_better(min(node.bound for node in open_nodes))
            return
        self.finished = True
        self.proof.raise_bound(self.proof.cost)

    def _explore(self, node: _Node) -> list[_Node]:
        """Generate contents until the node is closed or its bound is final, then split it."""
        self.nodes += 1
        allowed = node.allowed.copy()
        root = self.nodes == 1
        self._centre, self._centre_bound = node.prices, -np.inf
        while True:
            self._add_homes(allowed)
            point = self.master.solve(allowed, self._left())
            if point is None:
                raise OutOfTimeError
            self._round(point, allowed)
            bound, more = self._generate(point, allowed)
            if bound > node.bound:
                node.bound = bound
                if root:
                    self.root_bound = bound
                    self.proof.raise_bound_of_better(bound)
            if self.log:
                print(
                    f"{self.proof.seconds:8.1f} s  node {self.nodes}  value {point.value:.6f}  bound {node.bound:.6f}  "
                    f"cost {self.proof.cost:.6f}  new contents {more}  searched {self.searched:.3g}  "
                    f"homes left {int(allowed.sum())}",
                    flush=True,
                )
            if self.proof.closes(node.bound):
                return []
            if more:
                continue
            if not self._forbid_homes(allowed):
                return self._split(node, point, allowed)

    def _generate(self, point: Point, allowed: Flags) -> tuple[float, int]:
        """Search better contents for every server; return the best bound that came out, and how many are new.

        The prices of one linear program after the other swing wildly. So contents are priced half-way between them and
        the prices with the best bound so far; only when that finds nothing new, or the bound is close, at the prices
        themselves, where only contents that improve the linear program are of interest.
        """
        bound = -np.inf
        more = 0
        close = point.value - self._centre_bound < CLOSE * abs(point.value)
        for prices in (point,) if close else (point.between(self._centre), point):
            least = np.empty(self.model.n_servers)
            for l in range(self.model.n_servers):
                inside, outside = _decided(allowed, l)
                limit = float(point.server_price[l]) if prices is point else np.inf
                found = self._search(self.master.prices(prices, allowed, l), inside, outside, limit)
                least[l] = found.least
                for content in found.contents:
                    worth = self.master.reduced_cost(point, l, content)
                    if worth < -PRICE_TOLERANCE * max(1.0, abs(point.value)):
                        more += self.master.add(l, content)
            # A margin for the rounding of the sums.
            size = max(1.0, self.proof.cost, 1e-3 * float(np.abs(prices.client_price).sum() + np.abs(least).sum()))
            shown = float(prices.client_price.sum() + least.sum()) - 1e-9 * size
            if shown > bound:
                bound = shown
            if shown > self._centre_bound:
                self._centre, self._centre_bound, self._centre_least = prices, shown, least
            if more:
                break
        return bound, more

    def _search(self, prices: Prices, inside: Flags, outside: Flags, limit: float) -> Found:
        """Search the best contents, as long as there is time."""
        begin = time.perf_counter()
        most_nodes = int(min(self._left() * self._speed, MOST_NODES)) + 1000
        found = best_contents(prices, inside, outside, limit=limit, most=CONTENTS_AT_ONCE, most_nodes=most_nodes)
        if (seconds := time.perf_counter() - begin) > 0.1:
            self._speed = found.nodes / seconds
        self.searched += found.nodes
        return found

    def _forbid_homes(self, allowed: Flags) -> bool:
        """Forbid every home that only assignments costlier than the best known have; tell whether there were some.

        An assignment costs at least the bound, plus what its content of a server is worth above that server's least.
        """
        point, least = self._centre, self._centre_least
        room = self.proof.cost - slack(self.proof.cost) - self._centre_bound
        forbidden = 0
        for l in range(self.model.n_servers):
            prices = self.master.prices(point, allowed, l)
            inside, outside = _decided(allowed, l)
            for m in np.flatnonzero(~inside & ~outside):
                with_m = inside.copy()
                with_m[m] = True
                found = best_contents(
                    prices,
                    with_m,
                    outside,
                    limit=float(least[l]) + room,
                    most=1,
                    most_nodes=QUICK_NODES,
                    any_will_do=True,
                )
                self.searched += found.nodes
                self._left()
                if found.complete and not len(found.values) and allowed[m].sum() > 1:
                    allowed[m, l] = False
                    forbidden += 1
        return forbidden > 0

    def _split(self, node: _Node, point: Point, allowed: Flags) -> list[_Node]:
        """Branch on the home of the client that the point is least sure of."""
        choice = allowed.sum(axis=1) > 1
        if not choice.any():
            self.proof.offer(allowed.argmax(axis=1))
            return []
        doubt = (1 - (point.shares**2).sum(axis=1)) * (1 + self.model.demand)
        client = int(np.where(choice, doubt, -1).argmax())
        server = int(np.where(allowed[client], point.shares[client], -1).argmax())
        there, elsewhere = allowed.copy(), allowed.copy()
        there[client] = False
        there[client, server] = True
        elsewhere[client, server] = False
        return [_Node(node.bound, each, self._centre) for each in (there, elsewhere)]

    def _guess(self) -> Point:
        """Return prices to begin with: what each client costs now, as far as it can be told apart from the others."""
        model, home = self.model, self.proof.home
        theta = evaluate(self.instance, home).theta[home]
        price = model.weight * model.client_delay[np.arange(model.n_clients), home]
        price += model.detour * model.publications * (1 - theta)
        sent = model.pair_weight * model.server_delay[home[model.sender], home[model.receiver]]
        price += theta * np.bincount(model.sender, sent, model.n_clients)
        nothing = np.zeros((len(model.sender), model.n_servers))
        return Point(0.0, np.empty(0), price, np.empty(0), nothing, np.empty(0))

    def _round(self, point: Point, allowed: Flags) -> None:
        """Draw assignments with the point's shares as chances, improve and offer them."""
        shares = np.where(allowed, np.maximum(point.shares, 0), 0) + 1e-9 * allowed
        chances = shares / shares.sum(axis=1, keepdims=True)
        for drawn in range(ROUNDINGS + 1):
            luck = self.rng.random((len(chances), 1))
            home = (chances.cumsum(axis=1) < luck).sum(axis=1).clip(max=chances.shape[1] - 1)
            self.proof.offer(descend(self.instance, chances.argmax(axis=1) if drawn == 0 else home))

    def _add_homes(self, allowed: Flags) -> None:
        """Add the contents of the best homes, or where these are not allowed, of the nearest that are."""
        model, best = self.model, self.proof.home
        nearest = np.where(allowed, model.client_delay, np.inf).argmin(axis=1)
        home = np.where(allowed[np.arange(model.n_clients), best], best, nearest)
        for l in range(model.n_servers):
            self.master.add(l, home == l)

    def _left(self) -> float:
        left = self.deadline - time.perf_counter()
        if left <= 0:
            raise OutOfTimeError
        return left


def _decided(allowed: Flags, server: int) -> tuple[Flags, Flags]:
    """Return the clients that must be at a server, and those that must not."""
    return allowed[:, server] & (allowed.sum(axis=1) == 1), ~allowed[:, server]
