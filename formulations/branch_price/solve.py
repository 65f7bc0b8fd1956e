"""Branch and price: column generation over the client sets of the servers, then branching on homes.

Every column of the master problem (:mod:`formulations.branch_price.master`) has its exact ``θ``. The only relaxation of
the capacities is that a server may have a convex combination of client sets.
"""

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from relocbench.formulations.branch_price.master import Master, MasterSolution
from relocbench.formulations.branch_price.pricing import PricingResult, price_columns
from relocbench.formulations.branch_price.pricing_problem import BoolArray, PricingProblem
from relocbench.formulations.branch_price.tree import Node, Tree
from relocbench.formulations.incumbent import Incumbent, OutOfTimeError
from relocbench.formulations.local_search import descend
from relocbench.formulations.scaling import ScaledModel
from relocbench.formulations.solvers.availability import require
from relocbench.instances.evaluation import evaluate
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray
from relocbench.instances.solution import Progress, Solution


@dataclass(frozen=True)
class BranchPriceParams:
    """The parameters of branch and price.

    Attributes
    ----------
    columns_per_server
        The largest number of columns that one pricing search returns.
    refinement_gain
        At the root the messages are distinguished by pairs instead of groups if this closes at least this share of the
        gap.
    close
        When the bound is within this share of the value of the master problem, its dual variables are used without
        stabilisation.
    most_nodes
        Upper limit on the nodes of a pricing search; a time limit always ends the search before.
    nodes_per_second
        Assumed speed of a pricing search until it has been measured.
    measured_nodes
        The speed is measured if a search has visited more nodes than this without an end.
    spare_nodes
        Nodes that a pricing search may visit even if no time is left.
    roundings
        The number of assignments drawn from each solution of the master problem.
    local_optima
        The number of local optima whose columns the master problem starts with.
    redrawn_homes
        The share of the incumbent's homes that are redrawn before each of them.
    dual_tolerance
        HiGHS solves the master problem to this relative tolerance; a reduced cost closer to 0 counts as 0.
    bound_rounding
        The bound is lowered by this share of its terms, because they are rounded sums.
    closed
        A node is closed when its bound is within this share of the cost of the incumbent. The rest of the tolerance of
        10⁻⁶ is for the rounding of a certificate.
    """

    columns_per_server: int = 30
    refinement_gain: float = 0.3
    close: float = 0.005
    most_nodes: int = 10**15
    nodes_per_second: float = 1e7
    measured_nodes: int = 10**5
    spare_nodes: int = 1000
    roundings: int = 10
    local_optima: int = 100
    redrawn_homes: float = 0.5
    dual_tolerance: float = 1e-7
    bound_rounding: float = 1e-9
    closed: float = 7e-7


PARAMS = BranchPriceParams()


def solve(
    instance: Instance,
    *,
    seed: int,
    time_limit: float,
    start: npt.ArrayLike | None = None,
    on_progress: Progress | None = None,
    log: bool = False,
) -> Solution:
    """Find homes and prove that they are optimal.

    Parameters
    ----------
    instance
        The problem.
    seed
        Seed of the rounding of fractional solutions to assignments.
    time_limit
        Seconds.
    start
        Homes to start from.
    on_progress
        Called with (seconds, incumbent, bound).
    log
        Whether to print a line for each iteration.

    Returns
    -------
    Solution
        The best homes and the lower bound.
    """
    incumbent = Incumbent(instance, start, on_progress)
    finished, _, facts = grow_tree(incumbent, seed, time_limit, log)
    return incumbent.solution(finished, facts)


def grow_tree(
    incumbent: Incumbent, seed: int, time_limit: float, log: bool = False
) -> tuple[bool, Tree | None, dict[str, float]]:
    """Improve an incumbent and its bound, and return the tree that proves the bound.

    Parameters
    ----------
    incumbent
        The homes to start from.
    seed, time_limit, log
        As for :func:`solve`.

    Returns
    -------
    finished
        Whether the search is complete.
    tree
        The tree; None if the homes cost 0.
    facts
        The size of the master problem and of the search.
    """
    require("method branch-price", "highspy")
    rng = np.random.default_rng(seed)
    facts: dict[str, float] = {}
    finished, tree = False, None
    for scaled in incumbent.scaled_models():
        search = _Search(incumbent.instance, incumbent, scaled, rng, incumbent.begin + time_limit, log)
        search.run()
        variables, constraints = search.master.size
        facts |= {
            "variables": variables,
            "constraints": constraints,
            "nodes": search.nodes,
            "searched": search.pricing_nodes,
        }
        if np.isfinite(search.root_bound):
            facts["root_bound"] = scaled.to_cost(search.root_bound)
        tree = Tree(search.root, scaled.unit, incumbent.cost)
        finished = search.finished
        if not finished:
            break
    return finished, tree, facts


class _Search:
    """The branch-and-bound tree."""

    def __init__(
        self,
        instance: Instance,
        incumbent: Incumbent,
        scaled: ScaledModel,
        rng: np.random.Generator,
        deadline: float,
        log: bool,
    ) -> None:
        self.instance, self.incumbent, self.rng, self.deadline, self.log = instance, incumbent, rng, deadline, log
        # All bounds of nodes are in units of the scaled model.
        self.scaled = scaled
        self.model = model = scaled.linear
        self.master = Master(model, grouped=True)
        everywhere = np.ones((model.n_clients, model.n_servers), np.bool_)
        self.root = Node(everywhere, model.least_distance_cost, self._distance_duals(), np.zeros(model.n_servers))
        self.nodes = 0
        self.pricing_nodes = 0
        self.root_bound = -np.inf
        self.finished = False
        self._nodes_per_second = PARAMS.nodes_per_second
        # The stability centre of the current node: the dual variables with the best bound, that bound, the least value
        # of each server's pricing problem, and the nodes of these pricing searches.
        self._centre = self._first_duals()
        self._centre_bound = -np.inf
        self._centre_least: FloatArray = np.empty(0)
        self._centre_nodes = 0

    @property
    def _cost(self) -> float:
        """The cost of the incumbent in units of the scaled model."""
        return self.scaled.to_model(self.incumbent.cost)

    def run(self) -> None:
        """Explore nodes until none is open or the time limit is reached."""
        model = self.model
        self.incumbent.offer(descend(self.instance, self.incumbent.home))
        open_nodes = [self.root]
        for single_client in np.eye(model.n_clients, dtype=np.bool_):
            for l in range(model.n_servers):
                self.master.add(l, single_client)
        try:
            self._add_local_optima()
            while open_nodes:
                node = min(open_nodes, key=lambda each: each.bound)
                self.incumbent.raise_model_bound_of_better(node.bound)
                if self._closes(node.bound):
                    break  # no other open node has a smaller bound
                children = self._explore(node)
                open_nodes.remove(node)  # only now: if the time limit ends the exploration, the node stays open
                open_nodes += children
        except OutOfTimeError:
            # The bound of the current node may have risen above those of other open nodes.
            self.incumbent.raise_model_bound_of_better(min(node.bound for node in open_nodes))
            return
        self.finished = True
        self.incumbent.raise_bound(self.incumbent.cost)

    def _closes(self, bound: float) -> bool:
        """Return whether a bound, in units of the scaled model, closes a node."""
        return self.incumbent.cost == 0 or bound >= self._cost * (1 - PARAMS.closed)

    def _explore(self, node: Node) -> tuple[Node, ...]:
        """Generate columns until the node is fathomed or its bound is final; return its children."""
        self.nodes += 1
        allowed = node.allowed
        is_root = self.nodes == 1
        self._centre, self._centre_bound = self._first_duals() if is_root else node.duals, -np.inf
        refined = False
        while True:
            self._add_columns_of_incumbent(allowed)
            solution = self.master.solve(allowed, self._time_left())
            if solution is None:
                raise OutOfTimeError
            self._round(solution, allowed)
            bound, new_columns = self._generate_columns(solution, allowed)
            if bound > node.bound:
                node.bound, node.duals, node.least = bound, self._centre, self._centre_least
                node.pricing_nodes = self._centre_nodes
                if is_root:
                    self.root_bound = bound
                    self.incumbent.raise_model_bound_of_better(bound)
            if self.log:
                value, least = self.scaled.to_cost(solution.value), self.scaled.to_cost(node.bound)
                print(
                    f"{self.incumbent.seconds:8.1f} s  node {self.nodes}  value {value:.6f}  "
                    f"bound {least:.6f}  cost {self.incumbent.cost:.6f}  new columns {new_columns}  "
                    f"pricing nodes {self.pricing_nodes:.3g}  allowed homes {int(allowed.sum())}",
                    flush=True,
                )
            if self._closes(node.bound):
                return ()
            if not new_columns:
                if is_root and not refined and self._refine(solution, allowed):
                    refined = True
                    continue
                return self._branch(node, solution)

    def _refine(self, solution: MasterSolution, allowed: BoolArray) -> bool:
        """Distinguish the messages by pairs if this promises to raise the bound; return whether it does.

        Further columns can only lower the value of the refined master problem. So its value with the present columns
        limits what is gained.
        """
        refined = Master(self.model, grouped=False)
        refined.add_all(self.master)
        found = refined.solve(allowed, self._time_left())
        if found is None:
            raise OutOfTimeError
        if found.value - solution.value < PARAMS.refinement_gain * (self._cost - solution.value):
            return False
        self.master = refined
        return True

    def _generate_columns(self, solution: MasterSolution, allowed: BoolArray) -> tuple[float, int]:
        """Solve the pricing problem of every server; return the best bound and the number of new columns.

        The dual variables of successive master problems oscillate. Columns are therefore priced half-way between them
        and the stability centre. The dual variables themselves are used when this finds no new column or the bound is
        close; then only columns of negative reduced cost are searched for.
        """
        bound = -np.inf
        new_columns = 0
        close = solution.value - self._centre_bound < PARAMS.close * abs(solution.value)
        for duals in (solution,) if close else (solution.midpoint(self._centre), solution):
            least, begin = np.empty(self.model.n_servers), self.pricing_nodes
            for l in range(self.model.n_servers):
                required, forbidden = _fixed_clients(allowed, l)
                limit = float(solution.server_dual[l]) if duals is solution else np.inf
                found = self._price(self.master.pricing_problem(duals, allowed, l), required, forbidden, limit)
                least[l] = found.least
                for client_set in found.client_sets:
                    reduced_cost = self.master.reduced_cost(solution, l, client_set)
                    if reduced_cost < -PARAMS.dual_tolerance * max(1.0, abs(solution.value)):
                        new_columns += self.master.add(l, client_set)
            size = max(1.0, self._cost, 1e-3 * float(np.abs(duals.client_dual).sum() + np.abs(least).sum()))
            value = float(duals.client_dual.sum() + least.sum()) - PARAMS.bound_rounding * size
            if value > bound:
                bound = value
            if value > self._centre_bound:
                self._centre, self._centre_bound, self._centre_least = duals, value, least
                self._centre_nodes = self.pricing_nodes - begin
            if new_columns:
                break
        return bound, new_columns

    def _price(self, problem: PricingProblem, required: BoolArray, forbidden: BoolArray, limit: float) -> PricingResult:
        """Solve a pricing problem; raise OutOfTimeError if the time limit ends the search."""
        while True:
            begin = time.perf_counter()
            most_nodes = int(min(self._time_left() * self._nodes_per_second, PARAMS.most_nodes)) + PARAMS.spare_nodes
            found = price_columns(
                problem, required, forbidden, limit=limit, most=PARAMS.columns_per_server, most_nodes=most_nodes
            )
            self.pricing_nodes += found.nodes
            if found.complete:
                return found
            # The process may have had to wait: the speed of a short search says nothing.
            if found.nodes > PARAMS.measured_nodes:
                self._nodes_per_second = found.nodes / (time.perf_counter() - begin)

    def _branch(self, node: Node, solution: MasterSolution) -> tuple[Node, ...]:
        """Branch on the home of the client whose shares are most fractional."""
        has_choice = node.allowed.sum(axis=1) > 1
        if not has_choice.any():
            self.incumbent.offer(node.allowed.argmax(axis=1))
            return ()
        fractionality = (1 - (solution.shares**2).sum(axis=1)) * (1 + self.model.demand)
        client = int(np.where(has_choice, fractionality, -1).argmax())
        server = int(np.where(node.allowed[client], solution.shares[client], -1).argmax())
        return node.split(client, server)

    def _distance_duals(self) -> MasterSolution:
        """Return the dual variables that prove the least distance cost: with them no content has a value below 0."""
        model = self.model
        least = (model.weight[:, None] * model.client_delay).min(axis=1)
        receiver_dual = np.zeros((len(model.sender), model.n_servers))
        return MasterSolution(0.0, np.empty(0), least, np.empty(0), receiver_dual, np.empty(0))

    def _first_duals(self) -> MasterSolution:
        """Return initial dual variables: each client's part of the incumbent's cost."""
        model, home = self.model, self.incumbent.home
        theta = evaluate(self.instance, home).theta[home]
        dual = model.weight * model.client_delay[np.arange(model.n_clients), home]
        dual += model.detour * model.publications * (1 - theta)
        sent = model.pair_weight * model.server_delay[home[model.sender], home[model.receiver]]
        dual += theta * np.bincount(model.sender, sent, model.n_clients)
        receiver_dual = np.zeros((len(model.sender), model.n_servers))
        return MasterSolution(0.0, np.empty(0), dual, np.empty(0), receiver_dual, np.empty(0))

    def _round(self, solution: MasterSolution, allowed: BoolArray) -> None:
        """Draw assignments with the shares as probabilities, improve them by local search and offer them."""
        shares = np.where(allowed, np.maximum(solution.shares, 0), 0) + 1e-9 * allowed
        probability = shares / shares.sum(axis=1, keepdims=True)
        for number in range(PARAMS.roundings + 1):
            # A number is drawn even for the first assignment, which takes the largest shares.
            draw = self.rng.random((len(probability), 1))
            home = (probability.cumsum(axis=1) < draw).sum(axis=1).clip(max=probability.shape[1] - 1)
            self.incumbent.offer(descend(self.instance, probability.argmax(axis=1) if number == 0 else home))

    def _add_local_optima(self) -> None:
        """Add the columns of local optima around the incumbent, so that the first dual variables are meaningful."""
        model = self.model
        for _ in range(PARAMS.local_optima):
            self._time_left()
            drawn = self.rng.integers(model.n_servers, size=model.n_clients)
            redraw = self.rng.random(model.n_clients) < PARAMS.redrawn_homes
            home = descend(self.instance, np.where(redraw, drawn, self.incumbent.home))
            self.incumbent.offer(home)
            for l in range(model.n_servers):
                self.master.add(l, home == l)

    def _add_columns_of_incumbent(self, allowed: BoolArray) -> None:
        """Add the columns of the incumbent, with the nearest allowed server for each home that is not allowed."""
        model, best = self.model, self.incumbent.home
        nearest = np.where(allowed, model.client_delay, np.inf).argmin(axis=1)
        home = np.where(allowed[np.arange(model.n_clients), best], best, nearest)
        for l in range(model.n_servers):
            self.master.add(l, home == l)

    def _time_left(self) -> float:
        """Return the seconds until the time limit; raise OutOfTimeError if there are none."""
        seconds = self.deadline - time.perf_counter()
        if seconds <= 0:
            raise OutOfTimeError
        return seconds


def _fixed_clients(allowed: BoolArray, server: int) -> tuple[BoolArray, BoolArray]:
    """Return the clients that must be at a server, and those that must not."""
    return allowed[:, server] & (allowed.sum(axis=1) == 1), ~allowed[:, server]
