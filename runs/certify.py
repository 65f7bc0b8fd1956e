"""Certified gaps: a bound that rises and homes that get better, side by side, and a certificate of both."""

import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from relocbench.formulations.bounding.branch_and_bound import Closing
from relocbench.formulations.bounding.certificate_steps import steps
from relocbench.formulations.bounding.client_graph import client_graph
from relocbench.formulations.bounding.dual_bound import least_cost_with
from relocbench.formulations.bounding.root_relaxation import Root
from relocbench.formulations.certificates.certificate import Certificate
from relocbench.formulations.certificates.verification import Verdict, rounded_down, verify
from relocbench.formulations.incumbent import report, slack
from relocbench.formulations.local_search import descend
from relocbench.heuristics.anneal import ROUND_PER_CLIENT, anneal_among
from relocbench.instances.evaluation import checked_home, evaluate
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray
from relocbench.instances.nearest_server import nearest_server
from relocbench.instances.solution import Progress, Solution

# The root is left for the tree when a look gains less than this share of the gap, twice in a row, and a tree of so many
# pairs of labels at each node would get anywhere.
ROOT_PROGRESS = 0.01
ROOT_PATIENCE = 2
NEARLY_CLOSED = 1e-3
MOST_PAIRS = 3_000_000
# The search is told of the relaxation when the gap is below this share of the cost, and anew when it has shrunk so far.
WORTH_A_HINT = 0.05
HINT_PROGRESS = 0.8
# Rounds of annealing, in turn: from the rounded relaxation or from the best; how hot; whether with prices; how much of
# the gap a home may cost to be likely: the gap of so many clients at most, as homes far apart share no more. They begin
# short.
GAP_OF = 400
ROUNDS = (
    (True, 0.2, True, 0.25),
    (False, 0.2, False, 0.5),
    (True, 1.0, False, 0.25),
    (False, 0.2, True, 0.25),
    (True, 0.2, False, 0.5),
    (False, 1.0, True, 0.5),
)
FIRST_EFFORT = 0.25
# Where a round takes long (seconds, at so many proposals a second), the first one may take this share of the time.
LONG_ROUND, PROPOSALS_A_SECOND = 10.0, 2e6
FIRST_ROUND, MOST_EFFORT = 0.4, 2.0
# A round that is under way at this share of the time has cooled by then: the rest may go into sealing.
SEARCHING = 0.9
# The first homes, before anything else: what annealing finds in this share of a round (a whole one for so many
# clients), and of the time; a second is enough for small instances, whose homes then do not depend on the clock.
QUICK_EFFORT, QUICK_CLIENTS = 0.1, 50
QUICK_TIME, QUICK_SECONDS = 0.03, 1.0
# The claim of a certificate is this much below what was computed (relative, from 1 up): more than rounding takes.
CLAIM_MARGIN, CLAIM_BITS = 2e-7, 40
STEPS_A_NODE = 1.5  # of a proof
SECONDS_A_PAIR = 1.5e-8  # of homes along an edge, to write down and to verify
# An instance counts as overloaded when delegation is more than this share of the cost.
OVERLOADED = 0.01
# Homes found by rounding are improved by exchanging pairs if they are this close to the best and not too many.
CLOSE, MOST_TO_SWAP = 0.004, 500
# Of two assignments that cost the same but for rounding the first one found is kept.
ROUNDING = 1e-12


class _Best:
    """The best homes known to both sides."""

    def __init__(self, instance: Instance, home: IntArray) -> None:
        self.instance = instance
        self.home = home
        self.cost = evaluate(instance, home).objective
        self._lock = threading.Lock()

    def offer(self, home: IntArray) -> None:
        """Take note of homes."""
        cost = evaluate(self.instance, home).objective
        with self._lock:
            if cost < self.cost * (1 - ROUNDING):
                self.home, self.cost = home, cost

    def offer_rounded(self, home: IntArray) -> None:
        """Take note of homes that may lie near better ones."""
        swaps = self.instance.n_clients <= MOST_TO_SWAP
        if not swaps or evaluate(self.instance, home).objective < self.cost * (1 + CLOSE):
            self.offer(descend(self.instance, home, swaps))

    @property
    def overloaded(self) -> bool:
        """Whether delegation is a good part of the cost."""
        cost = evaluate(self.instance, self.home)
        delegated = 2 * self.instance.cloud_delay * float((cost.sent * (1 - cost.theta)).sum())
        return delegated > OVERLOADED * self.cost


class _Search:
    """Annealing in a thread of its own, guided by what the bound finds likely."""

    def __init__(self, best: _Best, seed: int, time_limit: float) -> None:
        self._best, self._seed = best, seed
        self._end = time.perf_counter() + SEARCHING * time_limit
        self._first_round = FIRST_ROUND * time_limit
        # The first round takes its part of the time where a usual one would be over soon.
        usual = ROUND_PER_CLIENT * best.instance.n_clients / PROPOSALS_A_SECOND
        self._first_effort = min(MOST_EFFORT, max(1.0, FIRST_ROUND * time_limit / usual)) if usual > LONG_ROUND else 1.0
        self._stop = threading.Event()
        self._hint: tuple[FloatArray, float, IntArray] | None = None

    def hint(self, least: FloatArray, bound: float, rounded: IntArray) -> None:
        """Say what assignments with each home cost at least, what all do, and where the relaxation leans."""
        self._hint = least, bound, rounded

    def stop(self) -> None:
        """End the round at hand, and with it the search."""
        self._stop.set()

    def run(self) -> None:
        """Anneal round after round."""
        best = self._best
        every = np.arange(best.instance.n_clients)
        few = min(1.0, GAP_OF / best.instance.n_clients)
        turn = 0
        for number in range(1, 1 << 30):
            likely, start, heat, priced, effort = None, best.home, 1.0, True, self._first_effort
            if self._hint is not None:
                least, bound, rounded = self._hint
                from_rounded, heat, priced, part = ROUNDS[turn % len(ROUNDS)]
                likely = least < bound + part * few * (best.cost - bound)
                likely[every, rounded] = likely[every, best.home] = True
                start = rounded if from_rounded else best.home
                effort = min(1.0, FIRST_EFFORT * 2.0 ** min(turn // len(ROUNDS), 10))
                turn += 1
            begin = time.perf_counter()
            end = self._end if likely is not None else min(self._end, begin + self._first_round)
            found = anneal_among(
                best.instance,
                likely,
                start,
                seed=self._seed * 1_000_003 + number,
                heat=heat,
                priced=priced,
                effort=effort,
                time_used=partial(self._time_used, begin, end),
            )
            best.offer(found)
            if self._stop.is_set():
                return

    def _time_used(self, begin: float, end: float) -> float:
        """Return how much of a round's time is over, so that one too long for it still ends cold."""
        if self._stop.is_set():
            return 1.0
        return (time.perf_counter() - begin) / (end - begin) if begin < end else 0.0


@dataclass(frozen=True, eq=False)
class Certified:
    """What was found and proved.

    Attributes
    ----------
    solution
        The best homes, the bound that the certificate proves, and how the two closed in.
    certificate
        The proof.
    verdict
        What the verifier says of it, in exact numbers.
    """

    solution: Solution
    certificate: Certificate
    verdict: Verdict


def solve(
    instance: Instance,
    *,
    seed: int,
    time_limit: float,
    start: npt.ArrayLike | None = None,
    on_progress: Progress | None = None,
) -> Solution:
    """Find homes and a verified bound: :func:`certify` as a method among others."""
    found = certify(instance, seed=seed, time_limit=time_limit, start=start, on_progress=on_progress)
    return found.solution


def certify(
    instance: Instance,
    *,
    seed: int = 0,
    time_limit: float = 60.0,
    start: npt.ArrayLike | None = None,
    on_progress: Progress | None = None,
) -> Certified:
    """Find good homes, prove how good they are, and have the proof verified.

    Parameters
    ----------
    instance
        The problem.
    seed
        Steers the search for homes.
    time_limit
        Seconds, verification included; where they are too few for a first bound and its proof, it takes longer. An
        interrupt (Ctrl-C) ends the search early; what is known by then is certified.
    start
        Homes to begin with; the nearest servers otherwise.
    on_progress
        Called with (seconds, incumbent, bound) now and then.

    Raises
    ------
    ArithmeticError
        If the verifier does not accept the proof.
    """
    run = _Run(instance, start, seed, time_limit, on_progress)
    run.search()
    return run.certified()


class _Run:
    """One certification: what is known, and the clock."""

    def __init__(
        self,
        instance: Instance,
        start: npt.ArrayLike | None,
        seed: int,
        time_limit: float,
        on_progress: Progress | None,
    ) -> None:
        self._begin = time.perf_counter()
        self._instance, self._seed, self._time_limit, self._on_progress = instance, seed, time_limit, on_progress
        self._best = _Best(instance, nearest_server(instance) if start is None else checked_home(instance, start))
        self._graph = client_graph(instance)
        self._search = _Search(self._best, seed, time_limit)
        self._closing = Closing(self._graph, lambda: self._best.cost, self._best.offer_rounded, self._time_is_left)
        self._trace: list[tuple[float, float, float]] = []
        self._bound = self._root_bound = -math.inf
        # What packing and verifying one step takes: mostly by the pairs of homes along edges.
        self._sealing_a_step = 0.001 + SECONDS_A_PAIR * self._graph.n_edges * self._graph.n_servers**2

    def search(self) -> None:
        """Raise the bound and lower the cost until both meet, or the time is over."""
        self._anneal_quickly()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(self._search.run)
            try:
                self._close()
            except KeyboardInterrupt:
                pass  # what is known is enough for a certificate
            finally:
                self._search.stop()
            running.result()

    def certified(self) -> Certified:
        """Write the proof down and verify it."""
        closing, instance = self._closing, self._instance
        root = closing.root
        if root is None:
            raise KeyboardInterrupt  # before there was anything to certify
        home, bound = self._best.home, closing.bound
        proof = tuple(steps(root, self._graph.loading))
        certificate = Certificate(
            instance=instance.hash,
            home=home,
            claim=math.floor((bound - slack(bound, CLAIM_MARGIN)) * 2**CLAIM_BITS),
            bits=CLAIM_BITS,
            proof=proof,
            made={"method": "bound", "seed": self._seed, "regions": closing.explored},
        )
        verdict = verify(instance, certificate)
        if not verdict.proved or verdict.bound is None:
            raise ArithmeticError(f"the verifier does not accept the proof: {verdict.reason}")
        self._note(float(verdict.bound))
        solution = Solution(
            home,
            bound=min(rounded_down(verdict.bound), self._best.cost),
            status="optimal" if verdict.status == "optimal" else "time_limit",
            trace=tuple(self._trace),
            facts={"nodes": closing.explored, "steps": len(proof), "root_bound": self._root_bound},
        )
        return Certified(solution, certificate, verdict)

    def _time_is_left(self, step: float = 0.0) -> bool:
        """Tell whether to go on for a step of so many seconds: the proof has to be written down and verified, too."""
        sealing = self._sealing_a_step * (1 + STEPS_A_NODE * self._closing.explored)
        return self._seconds() + step + sealing < self._time_limit

    def _seconds(self) -> float:
        return time.perf_counter() - self._begin

    def _note(self, bound: float) -> None:
        self._bound = max(self._bound, min(bound, self._best.cost))
        self._trace.append((self._seconds(), self._best.cost, self._bound))
        report(self._on_progress, self._best.home, self._trace[-1])

    def _anneal_quickly(self) -> None:
        """Find homes that tell whether the servers are overloaded."""
        most = max(QUICK_TIME * self._time_limit, min(QUICK_SECONDS, self._time_limit / 2), 1e-9)
        found = anneal_among(
            self._instance,
            None,
            self._best.home,
            seed=self._seed,
            heat=1.0,
            priced=True,
            effort=max(QUICK_EFFORT, min(1.0, QUICK_CLIENTS / self._instance.n_clients)),
            time_used=lambda: self._seconds() / most,
        )
        self._best.offer(found)

    def _close(self) -> None:
        """Raise the bound, first of all assignments at once, then part by part."""
        best, closing = self._best, self._closing
        root = Root(self._graph, best.home, best.overloaded)
        stalled, hinted, step = 0, WORTH_A_HINT * best.cost, 0.0
        try:
            while self._time_is_left(step) and (stalled < ROOT_PATIENCE or root.relaxation.pairs > MOST_PAIRS):
                begin = self._seconds()
                gain = root.step()
                step = self._seconds() - begin
                self._note(root.bound.value)
                gap = best.cost - root.bound.value
                if root.bound.value >= closing.cutoff:
                    break
                if gap < NEARLY_CLOSED * best.cost and root.relaxation.pairs <= MOST_PAIRS:
                    break  # so few homes will be left that the rest is quick
                stalled = 0 if gain > ROOT_PROGRESS * gap else stalled + 1
                if gap < HINT_PROGRESS * hinted or stalled == ROOT_PATIENCE:
                    self._give_hint(root)
                    hinted = best.cost - root.bound.value
        except KeyboardInterrupt:
            self._time_limit = 0.0
            raise
        finally:
            self._root_bound = root.bound.value
            closing.start(root.relaxation, root.dual, root.bound)
        if root.relaxation.pairs > MOST_PAIRS:
            return  # the time is over but for a moment, which is too short for a tree of this size
        while self._time_is_left() and closing.step():
            self._note(closing.bound)

    def _give_hint(self, root: Root) -> None:
        """Tell the search where the relaxation leans."""
        least = least_cost_with(root.dual, root.bound, root.region)
        rounded = root.relaxation.shares.argmax(axis=1).astype(np.int32)
        self._best.offer_rounded(rounded)
        self._search.hint(least, root.bound.value, rounded)
