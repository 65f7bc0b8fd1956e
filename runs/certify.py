"""Certified gaps: search for homes and raise the lower bound at the same time, and certify both.

One thread anneals; the other solves the root relaxation and then runs branch and bound on it. Each uses the results of
the other. Where capacity is scarce, contents of servers give a stronger bound: branch and price for small instances, a
relaxation with prices of homes for larger ones. At the end the certificate of the better bound is written and verified.
"""

import math
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from relocbench.formulations.bounding.branch_and_bound import BranchAndBound, Node
from relocbench.formulations.bounding.certificate_steps import certificate_steps, dual_to_step, home_prices_to_step
from relocbench.formulations.bounding.client_graph import client_graph
from relocbench.formulations.bounding.contents_relaxation import ContentsRelaxation, HomePricesDual
from relocbench.formulations.bounding.dual_bound import Dual, least_cost_with
from relocbench.formulations.bounding.region import Region
from relocbench.formulations.bounding.root_relaxation import RootRelaxation
from relocbench.formulations.bounding.scaling import Scaling, scaling_of
from relocbench.formulations.branch_price.solve import grow_tree
from relocbench.formulations.branch_price.tree import Tree
from relocbench.formulations.certificates.certificate import MOST_STEPS, Certificate
from relocbench.formulations.certificates.exact_bound import DualBound
from relocbench.formulations.certificates.integer_problem import IntegerProblem, check_size
from relocbench.formulations.certificates.region import root_region
from relocbench.formulations.certificates.verification import Verdict, rounded_down, verify
from relocbench.formulations.incumbent import Incumbent
from relocbench.formulations.local_search import descend
from relocbench.formulations.solvers.availability import missing
from relocbench.heuristics.anneal import ROUND_PER_CLIENT, anneal_among, scarce_unit
from relocbench.heuristics.anneal_prices import FirstPrices
from relocbench.heuristics.anneal_rounds import Round, Tasks
from relocbench.heuristics.anneal_scarce import scarce_rounds
from relocbench.instances.checks import checked_seed, checked_time_limit
from relocbench.instances.errors import InputError, plural
from relocbench.instances.evaluation import checked_home, evaluate
from relocbench.instances.files.homes_file import read_homes
from relocbench.instances.generators.families import family
from relocbench.instances.instance import Instance, require_instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray
from relocbench.instances.nearest_server import nearest_server
from relocbench.instances.notebook_card import card, percent
from relocbench.instances.solution import Progress, Solution, report
from relocbench.runs.certify_budget import TimeBudget
from relocbench.runs.certify_params import PARAMS
from relocbench.runs.isolation.import_guard import refuse_during_import
from relocbench.runs.solve import Result, warm_up


class _Incumbent:
    """The best homes of the scaled instance, shared by the two threads."""

    def __init__(self, instance: Instance, home: IntArray) -> None:
        self.instance = instance
        self.home = home
        self.cost = evaluate(instance, home).objective
        self._lock = threading.Lock()

    def offer(self, home: IntArray) -> None:
        """Keep homes if they are better."""
        cost = evaluate(self.instance, home).objective
        with self._lock:
            if cost < self.cost * (1 - PARAMS.search.same_cost):
                self.home, self.cost = home, cost

    def offer_rounded(self, home: IntArray) -> None:
        """Improve homes from rounding by local search, and keep them if they are better."""
        swaps = self.instance.n_clients <= PARAMS.search.most_clients_to_swap
        if not swaps or evaluate(self.instance, home).objective < self.cost * (1 + PARAMS.search.close):
            self.offer(descend(self.instance, home, swaps))

    @property
    def overloaded(self) -> bool:
        """Whether delegation is a considerable part of the cost."""
        cost = evaluate(self.instance, self.home)
        delegated = 2 * self.instance.cloud_delay * float((cost.sent * (1 - cost.theta)).sum())
        return delegated > PARAMS.root.overloaded * self.cost


@dataclass(frozen=True, eq=False)
class _Guidance:
    """What the search uses of the bound.

    Attributes
    ----------
    least
        A lower bound on the assignments with each home (``M×L``).
    bound
        A lower bound on all assignments.
    rounded
        The rounded relaxation.
    """

    least: FloatArray
    bound: float
    rounded: IntArray


class _Search:
    """Annealing in its own thread, guided by the bound."""

    def __init__(self, incumbent: _Incumbent, seed: int, budget: TimeBudget, reserve: float) -> None:
        params = PARAMS.search
        self._incumbent, self._seed = incumbent, seed
        last = min(params.end * budget.time_limit, budget.time_limit - reserve)
        self._end = time.perf_counter() + last - budget.seconds
        self._first_round_time = params.first_round_time * budget.time_limit
        usual_round = ROUND_PER_CLIENT * incumbent.instance.n_clients / params.proposals_per_second
        self.is_long = usual_round > params.long_round
        self._stop = threading.Event()
        self._guidance: _Guidance | None = None
        self._prices: FirstPrices | None = None

    def guide(self, guidance: _Guidance) -> None:
        """Use new guidance from the next round on."""
        self._guidance = guidance

    def price(self, prices: FirstPrices) -> None:
        """Use new multipliers of the capacities as initial prices from the next round on."""
        self._prices = prices

    def wait(self) -> None:
        """Wait until the last round must have cooled."""
        self._stop.wait(max(0.0, self._end - time.perf_counter()))

    def stop(self) -> None:
        """End the current round and the search."""
        self._stop.set()

    def run(self) -> None:
        """Anneal in rounds until stopped."""
        incumbent, params = self._incumbent, PARAMS.search
        every_client = np.arange(incumbent.instance.n_clients)
        gap_part = min(1.0, params.gap_clients / incumbent.instance.n_clients)
        guided_rounds = 0
        tasks: Tasks | None = None
        result: IntArray | None = None
        for number in range(1, 1 << 30):
            likely, start, mode, is_task = None, incumbent.home, Round(1.0, priced=True), False
            guidance = self._guidance
            gap = incumbent.cost - (0.0 if guidance is None else guidance.bound)
            if self.is_long:
                mode = Round(
                    params.long_first_heat if number == 1 else params.long_heat,
                    priced=True,
                    effort=params.long_first_effort * 2.0 ** min(max(number - 2, 0), 10),
                    first_prices=self._prices,
                    final_heat=params.long_final_heat,
                )
            elif number > 1 and gap > params.scarce_gap * incumbent.cost and (tasks := tasks or self._scarce_tasks()):
                # Guidance is of no use as long as it is not known which topics are on which servers.
                task = next(tasks) if result is None else tasks.send(result)
                mode, start, is_task = task.mode, incumbent.home if task.start is None else task.start, True
            elif guidance is not None:
                this_round = params.rounds[guided_rounds % len(params.rounds)]
                likely = guidance.least < guidance.bound + this_round.gap_share * gap_part * gap
                likely[every_client, guidance.rounded] = likely[every_client, incumbent.home] = True
                start = guidance.rounded if this_round.from_relaxation else incumbent.home
                effort = min(1.0, params.first_effort * 2.0 ** min(guided_rounds // len(params.rounds), 10))
                mode = Round(this_round.heat, this_round.priced, effort=effort)
                guided_rounds += 1
            begin = time.perf_counter()
            unguided = likely is None and (number == 1 or not self.is_long)
            end = min(self._end, begin + self._first_round_time) if unguided else self._end
            found = anneal_among(
                incumbent.instance,
                likely,
                start,
                seed=self._seed * 1_000_003 + number,
                mode=mode,
                time_used=partial(self._time_used, begin, end),
            )
            incumbent.offer(found)
            if is_task:
                result = found
            if self._stop.is_set():
                return

    def _scarce_tasks(self) -> Tasks | None:
        """Return the rounds for scarce capacity, or None where it is not scarce."""
        instance, home = self._incumbent.instance, self._incumbent.home
        unit = scarce_unit(instance, home, self._seed, PARAMS.search.scarce_change)
        return None if unit is None else scarce_rounds(instance, home, unit, self._seed)

    def _time_used(self, begin: float, end: float) -> float:
        """Return the used share of a round's time, by which a round that is too long cools faster."""
        if self._stop.is_set():
            return 1.0
        return (time.perf_counter() - begin) / (end - begin) if begin < end else 0.0


@dataclass(frozen=True, eq=False)
class Certified:
    """The result of a certification.

    Attributes
    ----------
    solution
        The best homes, the bound that the certificate proves, and the trace of both.
    certificate
        The certificate.
    verdict
        The result of the verifier, in exact numbers. It has proved the claim.

    Examples
    --------
    >>> import relocbench
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> certified = relocbench.certify(instance, time_limit=60)
    >>> certified.status, certified.gap
    ('optimal', 0.0)
    >>> certified.bound <= certified.objective
    True
    >>> certified.verdict.proved
    True
    """

    solution: Solution
    certificate: Certificate
    verdict: Verdict

    def __repr__(self) -> str:
        numbers = f"ΣD {self.objective:.8g}, bound {self.bound:.8g}, gap {percent(self.gap)}"
        return f"<Certified {self.status}: {numbers}>"

    def _repr_html_(self) -> str:
        values = {
            "status": self.status,
            "ΣD": f"{self.objective:.8g}",
            "bound": f"{self.bound:.8g}",
            "gap": percent(self.gap),
            "homes": len(self.home),
            "proof": plural(self.verdict.steps, "step"),
            "seconds": f"{self.solution.trace[-1][0]:.3g}" if self.solution.trace else None,
        }
        return card("Certified homes", values)

    @property
    def home(self) -> IntArray:
        """The best homes: one server per client."""
        return self.solution.home

    @property
    def objective(self) -> float:
        """``ΣD`` of the homes. The verdict has the exact number."""
        return float(self.verdict.objective or 0)

    @property
    def bound(self) -> float:
        """The proved lower bound on ``ΣD``, rounded down. The verdict has the exact number."""
        return self.solution.bound

    @property
    def gap(self) -> float | None:
        """The gap as commands print it: 0 if the status is ``optimal``."""
        return self.verdict.stated_gap

    @property
    def status(self) -> str:
        """``optimal`` if the gap is at most 10⁻⁶, otherwise ``feasible``."""
        return self.verdict.status


def solve(
    instance: Instance,
    *,
    seed: int,
    time_limit: float,
    start: npt.ArrayLike | None = None,
    on_progress: Progress | None = None,
) -> Solution:
    """Find homes and a verified bound: :func:`certify` as a method.

    Parameters
    ----------
    instance, seed, time_limit, start, on_progress
        As in :func:`certify`.

    Returns
    -------
    Solution
        The best homes and the proved bound.
    """
    check_size(instance)
    return _certify(instance, start, seed, time_limit, on_progress).solution


def certify(
    instance: Instance,
    *,
    seed: int = 0,
    time_limit: float = 60.0,
    start: npt.ArrayLike | Path | Result | None = None,
    on_progress: Progress | None = None,
) -> Certified:
    """Find good homes, prove a lower bound, and verify the proof.

    Parameters
    ----------
    instance
        The problem.
    seed
        Seed of the search for homes.
    time_limit
        Seconds, including verification, without loading and compiling, which happen once per process. If they are too
        few for a relaxation of a large instance and its proof, the bound is the sum of the distances to the nearest
        servers, or 0. An interrupt (Ctrl-C) ends the search early; the current homes and bound are certified.
    start
        Homes to start from: one server per client, a file of homes, or a result; by default the nearest servers.
    on_progress
        Called with (seconds, incumbent, bound).

    Returns
    -------
    Certified
        The homes, the bound and the certificate.

    Raises
    ------
    InputError
        If the instance is too large for the verifier.

    Examples
    --------
    >>> import relocbench
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> relocbench.certify(instance, time_limit=60)
    <Certified optimal: ΣD 7.7531518, bound 7.7531..., gap 0%>
    """
    refuse_during_import("relocbench.certify")
    require_instance(instance)
    seed, time_limit = checked_seed(seed), checked_time_limit(time_limit)
    check_size(instance)
    warm_up("bound")
    if isinstance(start, str | Path):
        start = read_homes(start, instance)
    elif isinstance(start, Result):
        start = start.home
    return _certify(instance, start, seed, time_limit, on_progress)


def _certify(
    instance: Instance,
    start: npt.ArrayLike | None,
    seed: int,
    time_limit: float,
    on_progress: Progress | None,
) -> Certified:
    if _contents_are_priced(instance):
        warm_up("branch-price")
    if instance.n_clients >= PARAMS.home_prices.least_clients:
        _load_contents()
    run = _Run(instance, start, seed, time_limit, on_progress)
    run.search()
    return run.certified()


@cache
def _load_contents() -> None:
    """Load and compile the relaxation with contents, before the time of a run is measured."""
    small = family("tiny").cells({"regime": "overloaded", "clients": 3, "servers": 2})[0].build(0)
    relaxation = ContentsRelaxation(client_graph(small), nearest_server(small), 1.0)
    relaxation.step()
    relaxation.prove(1)
    relaxation.guidance()


def _contents_are_priced(instance: Instance) -> bool:
    """Return whether branch and price may be used: for small instances, if its solver is installed."""
    return instance.n_clients <= PARAMS.contents.most_clients and missing("highspy") is None


def _verifier_speed(has_pairs: bool) -> float:
    """Return the assumed number of nodes of a proof by prices that the verifier processes in a second."""
    params = PARAMS.home_prices
    return params.nodes_per_second_with_pairs if has_pairs else params.nodes_per_second


class _Run:
    """One certification: the incumbent, the bound and the clock."""

    def __init__(
        self,
        instance: Instance,
        start: npt.ArrayLike | None,
        seed: int,
        time_limit: float,
        on_progress: Progress | None,
    ) -> None:
        self._budget = TimeBudget(instance, time_limit)
        self._instance, self._seed, self._on_progress = instance, seed, on_progress
        self._trace: list[tuple[float, float, float]] = []
        self._bound = self._root_bound = -math.inf
        self._home_prices: HomePricesDual | None = None
        self._content_tree: Tree | None = None
        self._has_root, self._interrupted = True, False
        home = nearest_server(instance) if start is None else checked_home(instance, start)
        self._scaling, self._incumbent = self._find_first_homes(home)
        incumbent = self._incumbent
        self._graph = client_graph(self._scaling.capped)
        self._budget.count_pairs(self._graph.n_edges, self._graph.n_servers)
        self._tree = BranchAndBound(self._graph, lambda: incumbent.cost, incumbent.offer_rounded, self._has_time)

    def search(self) -> None:
        """Raise the bound and lower the cost until they meet or the time limit is reached."""
        if not self._incumbent.cost:
            return  # no cost is below 0
        budget = self._budget
        if budget.is_large and budget.allows(2 * budget.without_messages):
            budget.rehearse(lambda: self._verdict(self._without_messages(), math.inf))
        self._has_root = not budget.is_large or budget.allows(budget.proof(1) + 2 * budget.bound)
        reserve = budget.proof(1) if self._has_root else budget.without_messages
        self._search = _Search(self._incumbent, self._seed, budget, reserve)
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(self._search.run)
            try:
                if self._has_root:
                    self._raise_bound()
                else:
                    self._search.wait()
            except KeyboardInterrupt:
                pass  # the current homes and bound are certified
            finally:
                self._search.stop()
            running.result()

    def certified(self) -> Certified:
        """Write the certificate and verify it."""
        tree, instance = self._tree, self._instance
        if self._has_root and tree.root is None and self._incumbent.cost:
            raise KeyboardInterrupt  # interrupted before there was a bound
        for certificate, seconds in self._certificates(tree.root):
            verdict = self._verdict(certificate, seconds)
            if verdict.proved and verdict.bound is not None:
                break
        else:
            raise ArithmeticError(f"the verifier does not accept the claim that no cost is below 0: {verdict.reason}")
        cost = evaluate(instance, certificate.home).objective
        bound = rounded_down(verdict.bound)
        self._record(math.ldexp(bound, -self._scaling.delay_exponent))
        solution = Solution(
            certificate.home,
            bound=min(bound, cost),
            status="optimal" if verdict.status == "optimal" else "time_limit",
            trace=tuple(self._trace),
            facts={"nodes": tree.explored, "steps": verdict.steps, "root_bound": self._given(self._root_bound)},
        )
        return Certified(solution, certificate, verdict)

    def _verdict(self, certificate: Certificate, seconds: float) -> Verdict:
        return verify(self._instance, certificate, time_limit=seconds, memory_limit=math.inf, max_steps=MOST_STEPS)

    def _plain(self) -> Certificate:
        """Return the certificate that claims nothing but that no cost is below 0."""
        return Certificate(
            instance=self._instance.hash,
            home=self._incumbent.home,
            claim=0,
            bits=PARAMS.certificate.claim_bits - self._scaling.delay_exponent,
            proof=(),
            made={"method": "bound", "seed": self._seed, "regions": self._tree.explored},
        )

    def _without_messages(self) -> Certificate:
        """Return the certificate that every client is at least as far from its home as from its nearest server."""
        scaling, params = self._scaling, PARAMS.certificate
        claimed = self._graph.distance_cost.min(axis=1).sum() * (1 - params.claim_margins[0])
        claim = math.floor(claimed * 2**params.claim_bits)
        step = dual_to_step(Dual.silent(Region.root(self._graph)))
        capped = replace(self._plain(), delay_cap=scaling.delay_cap, cloud_cap=scaling.cloud_cap)
        return replace(capped, claim=claim, proof=(step,))

    def _certificates(self, root: Node | None) -> Iterator[tuple[Certificate, float]]:
        """Yield certificates, the best first, and the seconds to verify them; the verifier accepts at least the last.

        The bound was computed in floating point. With delays and loads of very different magnitudes it may be above
        what the verifier proves.
        """
        scaling, params, budget = self._scaling, PARAMS.certificate, self._budget
        plain = self._plain()
        about = replace(plain, delay_cap=scaling.delay_cap, cloud_cap=scaling.cloud_cap)
        exponents = scaling.delay_exponent, scaling.load_exponent
        bound = self._tree.bound
        prices = self._home_prices
        if prices is not None and prices.value > bound:
            priced = home_prices_to_step(prices, *exponents)
            for margin in params.claim_margins:
                claim = math.floor(min(prices.value, self._tree.cutoff) * (1 - margin) * 2**params.claim_bits)
                yield replace(about, claim=claim, proof=(priced,)), self._verify_time
                if not budget.allows(0.0):
                    break  # the verifier has used the time
        contents = self._content_tree
        if contents is not None and self._of_contents(contents) > bound:
            for margin in params.claim_margins:
                claimed = contents.bound * (1 - margin)
                claim, proof = math.floor(Fraction(claimed) * Fraction(2) ** plain.bits), tuple(contents.steps(claimed))
                yield replace(plain, claim=claim, proof=proof), self._verify_time
        has_bound = math.isfinite(bound) and bound > 0
        if root is not None and has_bound:
            steps = tuple(certificate_steps(root, self._graph.loading, *exponents))
            for margin in params.claim_margins:
                claim = math.floor(bound * (1 - margin) * 2**params.claim_bits)
                if budget.allows_late(budget.proof(len(steps))):
                    left = budget.until_twice - budget.without_messages if budget.is_large else math.inf
                    yield replace(about, claim=claim, proof=steps), left
        if budget.is_large and budget.allows_late(budget.without_messages):
            yield self._without_messages(), math.inf
        elif root is not None and has_bound and not budget.is_large:
            # What the verifier computes for a single dual it also accepts.
            problem = IntegerProblem(self._instance, scaling.delay_cap, scaling.cloud_cap)
            for dual in (root.fixings[0] if root.fixings else root.dual, Dual.silent(root.region)):
                step = dual_to_step(dual, *exponents)
                with suppress(InputError):  # such as multipliers that do not fit their shares
                    value = DualBound(problem, root_region(problem), step).value
                    claim = math.floor(value * Fraction(2) ** plain.bits)
                    yield replace(about, claim=claim, proof=(step,)), math.inf
        yield plain, math.inf

    def _given(self, value: float) -> float:
        """Return a cost of the scaled instance in the unit of the given one."""
        return math.ldexp(value, self._scaling.delay_exponent)

    def _has_time(self, step: float = 0.0) -> bool:
        """Return whether a step of the given seconds leaves enough time to write and verify the certificate."""
        steps = 1 + PARAMS.certificate.steps_per_node * self._tree.explored
        if self._home_prices is not None:
            step += self._budget.slowed(self._home_prices.nodes / _verifier_speed(self._home_prices.has_pairs))
        # No file has more than MOST_STEPS steps. Fixing homes at a node needs steps of its own, so half of them
        # are kept in reserve.
        if self._interrupted or steps >= MOST_STEPS / 2:
            return False
        return self._budget.allows(step + self._budget.proof(steps))

    def _record(self, bound: float) -> None:
        """Add the incumbent and the bound to the trace, and report them."""
        self._bound = max(self._bound, min(bound, self._incumbent.cost))
        self._trace.append((self._budget.seconds, self._given(self._incumbent.cost), self._given(self._bound)))
        report(self._on_progress, self._incumbent.home, self._trace[-1])

    def _find_first_homes(self, home: IntArray) -> tuple[Scaling, _Incumbent]:
        """Anneal for a short time, to learn the scale of the cost and whether the servers are overloaded."""
        params = PARAMS.first_homes
        budget = self._budget
        most = max(params.time_share * budget.time_limit, min(params.seconds, budget.time_limit / 2), 1e-9)
        scaling = scaling_of(self._instance, home)
        for _ in range(params.most_scalings):
            incumbent = _Incumbent(scaling.instance, home)
            before = incumbent.cost
            if not before:
                break
            found = anneal_among(
                scaling.instance,
                None,
                home,
                seed=self._seed,
                mode=Round(
                    1.0,
                    priced=True,
                    effort=max(params.effort, min(1.0, params.full_effort_clients / self._instance.n_clients)),
                ),
                time_used=lambda: budget.seconds / most,
            )
            incumbent.offer(found)
            home, same = incumbent.home, scaling_of(self._instance, incumbent.home)
            if (scaling.is_plain and same.is_plain) or incumbent.cost > params.same_scale * before:
                break
            scaling = same
            incumbent = _Incumbent(scaling.instance, home)
        return scaling, incumbent

    def _raise_bound(self) -> None:
        """Solve the root relaxation, then run branch and bound."""
        incumbent, tree = self._incumbent, self._tree
        # Limits on the loads themselves help branch and bound, which splits by θ; contents need none.
        root = RootRelaxation(self._graph, incumbent.home, incumbent.overloaded and not self._can_price_homes)
        try:
            self._solve_root(root)
        except KeyboardInterrupt:
            self._interrupted = True
            raise
        finally:
            self._root_bound = root.bound.value
            forbid = root.relaxation.pairs <= PARAMS.root.most_pairs
            tree.start(root.relaxation, root.dual, root.bound, forbid=forbid)
        if root.relaxation.pairs > PARAMS.root.most_pairs:
            return  # the root phase has used the time
        if self._lacks_capacity(root):
            self._price_homes()
        priced = self._is_scarce(root) and _contents_are_priced(self._instance)
        while self._has_time() and tree.step():
            self._record(tree.bound)
            if priced and tree.explored >= PARAMS.contents.first_nodes:
                priced = False
                if self._price_contents():
                    break

    def _price_contents(self) -> bool:
        """Run branch and price; return whether its bound is the better one."""
        seconds = PARAMS.contents.time_share * (self._budget.time_limit - self._budget.seconds)
        if seconds <= 0:
            return False
        # Its bounds are not recorded: they count when the verifier has accepted them.
        incumbent = Incumbent(self._instance, self._incumbent.home, lambda *_: self._record(self._tree.bound))
        _, self._content_tree, _ = grow_tree(incumbent, self._seed, seconds)
        self._incumbent.offer(incumbent.home)
        return self._content_tree is not None and self._of_contents(self._content_tree) > self._tree.bound

    @property
    def _verify_time(self) -> float:
        """The time that the verification of a bound by contents may take."""
        return max(
            self._budget.time_limit - self._budget.seconds, PARAMS.contents.least_verify_share * self._budget.time_limit
        )

    def _of_contents(self, tree: Tree) -> float:
        """Return the bound of branch and price in the unit of the scaled instance."""
        return math.ldexp(tree.bound, -self._scaling.delay_exponent)

    @property
    def _can_price_homes(self) -> bool:
        """Whether the relaxation with contents is made for instances of this size."""
        params, graph = PARAMS.home_prices, self._graph
        fits = graph.n_servers <= params.most_servers and graph.n_edges * graph.n_servers**2 <= PARAMS.root.most_pairs
        return fits and graph.n_clients >= params.least_clients

    def _lacks_capacity(self, root: RootRelaxation) -> bool:
        """Return whether capacities are the likely reason for the gap of the root relaxation."""
        cost = self._incumbent.cost
        open_gap = cost - root.bound.value > PARAMS.home_prices.least_gap * cost
        return self._can_price_homes and self._is_scarce(root) and open_gap

    def _is_scarce(self, root: RootRelaxation) -> bool:
        """Return whether capacity is scarce: a server is overloaded, or a capacity has a price in the relaxation."""
        return self._incumbent.overloaded or bool(root.dual.alpha.any() or root.dual.beta.any())

    def _price_homes(self) -> None:
        """Raise the bound with contents of servers, as long as it makes progress."""
        incumbent, params = self._incumbent, PARAMS.home_prices
        relaxation = ContentsRelaxation(self._graph, incumbent.home, incumbent.cost)
        budget = self._budget
        began, proving, step, proof, best, stalled = budget.seconds, 0.0, 0.0, 0.0, -math.inf, 0
        while self._has_time(step + proof) and stalled < params.patience:
            begin = budget.seconds
            relaxation.step()
            step = budget.seconds - begin
            begin += step
            if proving > params.prove_share * (begin - began) or relaxation.estimate() <= max(self._tree.bound, best):
                continue
            # The search and a thread of the relaxation compute all the time; this thread waits for the latter.
            budget.measure_load(threads=2)
            speed = _verifier_speed(relaxation.has_pairs) / budget.slowed(1.0)
            relaxation.prove(int(min(params.verify_share * budget.time_limit, params.most_verify_seconds) * speed))
            proof = budget.seconds - begin
            proving += proof
            if relaxation.dual is None:
                continue
            self._home_prices = relaxation.dual
            value = relaxation.dual.value
            self._record(value)
            if value >= self._tree.cutoff:
                break
            gap = incumbent.cost - value
            stalled = 0 if value > best + params.progress * gap else stalled + 1
            best = max(best, value)
            reduced_cost, rounded = relaxation.guidance()
            self._search.guide(_Guidance(value + reduced_cost, value, rounded))

    def _solve_root(self, root: RootRelaxation) -> None:
        """Run steps of the root relaxation until the bound makes no more progress."""
        incumbent, params = self._incumbent, PARAMS.root
        stalled, guided_gap, bound = 0, PARAMS.search.guidance_gap * incumbent.cost, self._budget.bound
        while self._has_time(bound) and (stalled < params.patience or root.relaxation.pairs > params.most_pairs):
            gain = root.step(lambda: self._has_time(bound))
            self._budget.measure_load()
            self._record(root.bound.value)
            gap = incumbent.cost - root.bound.value
            if root.bound.value >= self._tree.cutoff:
                break
            if gap < params.small_gap * incumbent.cost and root.relaxation.pairs <= params.most_pairs:
                break
            stalled = 0 if gain > params.progress * gap else stalled + 1
            if self._search.is_long:
                if not root.region.hard.any() and gap < guided_gap:
                    self._search.price((root.dual.alpha, root.dual.beta))
            elif gap < PARAMS.search.guidance_progress * guided_gap or stalled == params.patience:
                self._guide_search(root)
                guided_gap = incumbent.cost - root.bound.value

    def _guide_search(self, root: RootRelaxation) -> None:
        """Give the search the current bounds and the rounded relaxation."""
        least = least_cost_with(root.dual, root.bound, root.region)
        rounded = root.relaxation.shares.argmax(axis=1).astype(np.int32)
        self._incumbent.offer_rounded(rounded)
        self._search.guide(_Guidance(least, root.bound.value, rounded))
