"""Certified bounds on timelines: a lower bound on the cost of every schedule, with a certificate."""

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt

from relocbench.formulations.bounding.certificate_steps import dual_to_step
from relocbench.formulations.bounding.timeline_relaxation import EvaluatedDual, TimelineDual, TimelineRelaxation
from relocbench.formulations.certificates.budget import Budget
from relocbench.formulations.certificates.certificate import MOST_STEPS
from relocbench.formulations.certificates.exact_bound import DualBound
from relocbench.formulations.certificates.integer_problem import IntegerProblem, check_size
from relocbench.formulations.certificates.packed_arrays import Int64Array, packed
from relocbench.formulations.certificates.potentials import Transition, added_costs
from relocbench.formulations.certificates.region import root_region
from relocbench.formulations.certificates.timeline_certificate import EpochProof, TimelineCertificate
from relocbench.formulations.certificates.timeline_verification import (
    TimelineVerdict,
    rounds,
    verify_timeline,
    with_next,
)
from relocbench.formulations.certificates.verification import rounded_down
from relocbench.instances.checks import checked_seed, checked_time_limit
from relocbench.instances.errors import InputError, shown
from relocbench.instances.kernels.ragged import FloatArray, IntArray
from relocbench.instances.notebook_card import card, percent
from relocbench.instances.timeline.schedule_cost import ScheduleCost, schedule_cost
from relocbench.instances.timeline.timeline import Epoch, Timeline
from relocbench.runs.isolation.import_guard import refuse_during_import
from relocbench.runs.solve import warm_up
from relocbench.runs.timeline.replay import Replay, replay
from relocbench.runs.timeline.schedule_file import checked_schedule, read_schedule

# Prices below 2 to this power get no potentials but 0.
LEAST_EXPONENT = -1000

# Called with (seconds, cost of the schedule, bound).
OnProgress = Callable[[float, float, float], None]
ScheduleLike = Iterable[npt.ArrayLike] | str | Path | Replay


@dataclass(frozen=True)
class TimelineCertifyParams:
    """The parameters of a certification of a timeline.

    Attributes
    ----------
    policy, method
        What finds a schedule if none is given.
    share
        The share of the time limit after which no more iterations are made; the rest is for writing and verification.
    window_bytes
        Epochs are bounded together as far as their relaxations fit into this memory. Between two such windows the
        potentials are 0.
    patience, progress
        Iterations end after this number of steps in which the bound rose by less than this share together.
    claim_bits
        Claims are in units of ``2^-claim_bits`` of the scaled cost.
    claim_margin
        The claim for an epoch is below the bound in floating point by this share of the costs that are added up.
    potential_bits
        Potentials are multiples of about ``2^-potential_bits`` of the larger price.
    """

    policy: str = "relocate[ahead=4]"
    method: str = "reloc"
    share: float = 0.8
    window_bytes: int = 1 << 30
    patience: int = 6
    progress: float = 2e-5
    claim_bits: int = 30
    claim_margin: float = 1e-9
    potential_bits: int = 16


PARAMS = TimelineCertifyParams()


@dataclass(frozen=True, eq=False)
class CertifiedTimeline:
    """A schedule with a proved lower bound on the cost of every schedule.

    Attributes
    ----------
    homes
        The best schedule known: for each epoch one server for each client that is present.
    cost
        Its cost.
    certificate
        The certificate.
    verdict
        The result of the verifier, in exact numbers. It has proved the claim.
    interrupted
        Whether an interrupt (Ctrl-C) ended the iterations early.

    Examples
    --------
    >>> import relocbench
    >>> timeline = relocbench.generate_timeline(seed=1, n_epochs=3, topics=4, speed=60)
    >>> certified = relocbench.certify_timeline(timeline, time_limit=5)
    >>> certified.bound <= certified.objective
    True
    >>> len(certified.epoch_bounds)
    3
    """

    homes: tuple[IntArray, ...]
    cost: ScheduleCost
    certificate: TimelineCertificate
    verdict: TimelineVerdict
    interrupted: bool = False

    def __repr__(self) -> str:
        numbers = f"cost {self.objective:.8g}, bound {self.bound:.8g}, gap {percent(self.gap)}"
        return f"<CertifiedTimeline {self.verdict.status}: {numbers}>"

    def _repr_html_(self) -> str:
        values = {
            "status": self.verdict.status,
            "cost": f"{self.objective:.8g}",
            "bound": f"{self.bound:.8g}",
            "gap": percent(self.gap),
            "epochs": len(self.homes),
        }
        return card("Certified schedule", values)

    @property
    def objective(self) -> float:
        """The cost of the schedule in ms. The verdict has the exact number."""
        return float(self.verdict.objective or 0)

    @property
    def bound(self) -> float:
        """The proved lower bound on the cost of every schedule, rounded down. The verdict has the exact number."""
        return rounded_down(self.verdict.bound or Fraction(0))

    @property
    def gap(self) -> float | None:
        """``(objective - bound) / objective``; 0 if that is at most 10⁻⁶."""
        return self.verdict.stated_gap

    @property
    def epoch_bounds(self) -> tuple[float, ...]:
        """The part of each epoch in the bound, in ms; empty if nothing is claimed."""
        return tuple(map(float, self.verdict.epoch_bounds))

    def ratio(self, cost: float) -> float:
        """Return the certified competitive ratio of a schedule: how many times the optimum it costs at most.

        Parameters
        ----------
        cost
            The cost of a schedule of this timeline.

        Returns
        -------
        float
            ``cost / bound``; infinite if the bound is 0 and the cost is not.

        Examples
        --------
        >>> import relocbench
        >>> timeline = relocbench.generate_timeline(seed=1, n_epochs=3, topics=4, speed=60)
        >>> certified = relocbench.certify_timeline(timeline, time_limit=5)
        >>> certified.ratio(relocbench.replay(timeline, "never", "nearest").cost.total) >= 1
        True
        """
        if not cost:
            return 1.0
        return cost / self.bound if self.bound else math.inf


def certify_timeline(
    timeline: Timeline,
    *,
    schedule: ScheduleLike | None = None,
    seed: int = 0,
    time_limit: float = 60.0,
    potentials: bool = True,
    on_progress: OnProgress | None = None,
) -> CertifiedTimeline:
    """Prove a lower bound on the cost of every schedule of a timeline, and verify the proof.

    Parameters
    ----------
    timeline
        The timeline.
    schedule
        A good schedule: homes for each epoch, a file of them, or a replay without staleness. By default the policy
        ``relocate[ahead=4]`` finds one. The bound does not depend on it, but the gap does.
    seed
        Seed of that policy.
    time_limit
        Seconds for the bound, including verification, without finding a schedule, loading and compiling. An interrupt
        (Ctrl-C) ends the iterations early; the current bound is certified.
    potentials
        Whether to count handovers and copied spools in the bound. Otherwise it is the sum of the epochs' own bounds.
    on_progress
        Called with (seconds, cost of the schedule, bound).

    Returns
    -------
    CertifiedTimeline
        The bound of each epoch, their sum, the gap and the certificate.

    Raises
    ------
    InputError
        If the timeline or the schedule is wrong, or an epoch is too large for the verifier.

    Examples
    --------
    >>> import relocbench
    >>> timeline = relocbench.generate_timeline(seed=1, n_epochs=3, topics=4, speed=60, handover_price=200)
    >>> both = relocbench.certify_timeline(timeline, time_limit=5)
    >>> apart = relocbench.certify_timeline(timeline, time_limit=5, potentials=False)
    >>> both.bound > apart.bound
    True
    """
    refuse_during_import("relocbench.certify_timeline")
    if not isinstance(timeline, Timeline):
        raise InputError("timeline", f"expected a Timeline, got {shown(timeline)}; read_timeline reads one from a file")
    seed, time_limit = checked_seed(seed), checked_time_limit(time_limit)
    _check_sizes(timeline)
    warm_up("bound")
    homes = _schedule(timeline, schedule, seed)
    return _Run(timeline, homes, time_limit, potentials, on_progress).certified()


def _check_sizes(timeline: Timeline) -> None:
    for epoch in timeline.epochs():
        try:
            check_size(epoch.instance)
        except InputError as error:
            raise error.inside(f"epochs[{epoch.number}]") from error


def _schedule(timeline: Timeline, given: ScheduleLike | None, seed: int) -> tuple[IntArray, ...]:
    if given is None:
        given = replay(timeline, PARAMS.policy, PARAMS.method, seed=seed)
    if isinstance(given, Replay):
        return checked_schedule(timeline, given.table()["home"].to_pylist())
    if isinstance(given, str | Path):
        return read_schedule(given, timeline)
    return checked_schedule(timeline, given)


class _Run:
    """One certification: the clock, and the proofs of the epochs so far."""

    def __init__(
        self,
        timeline: Timeline,
        homes: tuple[IntArray, ...],
        time_limit: float,
        potentials: bool,
        on_progress: OnProgress | None,
    ) -> None:
        self._timeline, self._homes, self._time_limit, self._on_progress = timeline, homes, time_limit, on_progress
        self._cost = schedule_cost(timeline, homes)
        prices = timeline.prices
        self._prices = prices if potentials else replace(prices, handover=0.0, spool=0.0)
        largest = max(self._prices.handover, self._prices.spool)
        exponent = max(math.frexp(largest)[1], LEAST_EXPONENT) if largest else 0
        self._bits = PARAMS.potential_bits - exponent
        self._begin = time.perf_counter()
        self._end = self._begin + PARAMS.share * time_limit
        self._interrupted = False
        self._bound = 0.0
        self._window_end = self._end

    def _has_time(self) -> bool:
        return not self._interrupted and time.perf_counter() < self._window_end

    def certified(self) -> CertifiedTimeline:
        proofs: list[EpochProof] = []
        for epochs in _windows(self._timeline):
            left = self._timeline.n_epochs - len(proofs)
            now = time.perf_counter()
            self._window_end = now + max(0.0, self._end - now) * len(epochs) / left
            if self._interrupted:
                proofs += [_unproved() for _ in epochs]
                continue
            proofs += self._prove(epochs, self._homes[len(proofs) : len(proofs) + len(epochs)])
        certificate, verdict = self._verified(proofs)
        return CertifiedTimeline(self._homes, self._cost, certificate, verdict, self._interrupted)

    def _prove(self, epochs: Sequence[Epoch], homes: Sequence[IntArray]) -> list[EpochProof]:
        """Bound the epochs of a window, and return their proofs."""
        relaxation = None
        proved_before = self._bound
        recent: list[float] = []
        try:
            relaxation = TimelineRelaxation(epochs, homes, self._prices, self._has_time)
            self._report(proved_before + relaxation.best.value)
            while self._has_time() and self._prices.handover and len(epochs) > 1:
                relaxation.step()
                self._report(proved_before + relaxation.best.value)
                recent.append(relaxation.best.value)
                if len(recent) > PARAMS.patience:
                    risen = recent[-1] - recent[-1 - PARAMS.patience]
                    if risen < PARAMS.progress * abs(recent[-1]):
                        break
            while self._has_time() and (not self._prices.handover or len(epochs) == 1):
                if relaxation.step_separately() < PARAMS.progress / PARAMS.patience * abs(relaxation.best.value):
                    break
                self._report(proved_before + relaxation.best.value)
        except KeyboardInterrupt:
            self._interrupted = True
        if relaxation is None:
            return [_unproved() for _ in epochs]
        self._bound += relaxation.best.value
        return self._proofs(relaxation)

    def _proofs(self, relaxation: TimelineRelaxation) -> list[EpochProof]:
        """Round the potentials, and claim what the epochs prove with them."""
        best, price = relaxation.best, self._prices.handover
        integers = [self._integers(part, price) for part in best.potentials]
        shifted = [np.ldexp(part.astype(np.float64), -self._bits) for part in integers]
        evaluated = relaxation.evaluated(TimelineDual(best.value, best.duals, shifted))
        shares = self._spool_shares(relaxation, evaluated)
        moving = [bool(part.any()) for part in integers]
        sharing = [bool(part.any()) for part in shares]
        proofs = []
        for t, (state, dual, value) in enumerate(zip(relaxation.states, best.duals, evaluated.values(), strict=True)):
            exponents = state.scaling.delay_exponent, state.scaling.load_exponent
            # The terms of the bound may be much larger than their sum.
            size = abs(value) + float(np.abs(evaluated.costs[t]).max(axis=1).sum())
            claimed = (value - PARAMS.claim_margin * size) * state.factor
            if claimed <= 0 and not any(moving[max(0, t - 1) : t + 1] + sharing[max(0, t - 1) : t + 1]):
                proofs.append(_unproved())  # without potentials, no cost is below 0
                continue
            proofs.append(
                EpochProof(
                    claim=math.floor(claimed * 2.0**PARAMS.claim_bits),
                    bits=PARAMS.claim_bits - exponents[0],
                    proof=(dual_to_step(dual, *exponents),),
                    potentials=packed(integers[t]) if t < len(moving) and moving[t] else None,
                    spool_shares=packed(shares[t - 1]) if t and sharing[t - 1] else None,
                    delay_cap=state.scaling.delay_cap,
                    cloud_cap=state.scaling.cloud_cap,
                )
            )
        return proofs

    def _spool_shares(self, relaxation: TimelineRelaxation, evaluated: EvaluatedDual) -> list[Int64Array]:
        """Count the copying of spools where it raises the bound."""
        found = []
        for t, (one, other) in enumerate(itertools.pairwise(relaxation.states)):
            unit = math.ldexp(1.0, -self._bits)
            shares = evaluated.add_spool_shares(t, one.epoch, other.epoch, self._prices.spool, unit)
            found.append(np.ldexp(shares, self._bits).round().astype(np.int64))
        return found

    def _integers(self, potentials: FloatArray, price: float) -> Int64Array:
        """Round potentials to the unit of the certificate, so that they differ by at most the price."""
        most = math.floor(Fraction(price) * Fraction(2) ** self._bits)
        least = potentials.min(axis=1, initial=0.0 if not potentials.size else math.inf, keepdims=True)
        found: Int64Array = np.ldexp(potentials - least, self._bits).round().astype(np.int64).clip(0, most)
        return found

    def _verified(self, proofs: list[EpochProof]) -> tuple[TimelineCertificate, TimelineVerdict]:
        """Return the best certificate that the verifier accepts."""
        attempts: tuple[Callable[[], list[EpochProof]], ...] = (
            lambda: proofs,
            lambda: self._exact(proofs),
            lambda: [_unproved() for _ in proofs],
        )
        reason = ""
        for claimed in attempts:
            try:
                certificate = self._certificate(claimed())
            except InputError as error:  # such as multipliers that do not fit their shares
                reason = str(error)
                continue
            verdict = verify_timeline(
                self._timeline, certificate, time_limit=math.inf, memory_limit=math.inf, max_steps=MOST_STEPS
            )
            if verdict.proved:
                return certificate, verdict
            reason = verdict.reason
        raise ArithmeticError(f"the verifier does not accept the claim that no cost is below 0: {reason}")

    def _exact(self, proofs: list[EpochProof]) -> list[EpochProof]:
        """Claim exactly what the verifier computes for each epoch."""
        found = []
        before: Int64Array | None = None
        pairs: Iterator[tuple[Epoch, EpochProof]] = zip(self._timeline.epochs(), proofs, strict=True)
        for (epoch, proof), following in with_next(pairs):
            to_epoch, to_later = None, None
            if following is not None:
                later, its_proof = following
                transition = Transition(epoch, proof, later, its_proof, self._bits, self._timeline.prices, Budget())
                to_epoch, to_later = transition.to_epoch, transition.to_later
            added = added_costs(before, to_epoch, self._bits, rounds(epoch, self._timeline.prices))
            before = to_later
            if not proof.proof:
                found.append(proof)
                continue
            problem = IntegerProblem(epoch.instance, proof.delay_cap, proof.cloud_cap, None, added)
            value = DualBound(problem, root_region(problem), proof.proof[0]).value  # type: ignore[arg-type]
            found.append(replace(proof, claim=math.floor(value * Fraction(2) ** proof.bits)))
        return found

    def _certificate(self, proofs: list[EpochProof]) -> TimelineCertificate:
        total = sum(
            (
                rounds(epoch, self._timeline.prices) * proof.bound
                for epoch, proof in zip(self._timeline.epochs(), proofs, strict=True)
            ),
            Fraction(0),
        )
        exponent = math.frexp(float(total))[1] if total > 0 else 0
        bits = 40 - exponent
        return TimelineCertificate(
            timeline=self._timeline.hash,
            homes=self._homes,
            claim=max(0, math.floor(total * Fraction(2) ** bits)),
            bits=bits,
            potential_bits=self._bits,
            epochs=tuple(proofs),
            made={"method": "timeline-relaxation", "seconds": round(time.perf_counter() - self._begin, 3)},
        )

    def _report(self, bound: float) -> None:
        if self._on_progress is not None:
            self._on_progress(time.perf_counter() - self._begin, self._cost.total, bound)


def _unproved() -> EpochProof:
    """Return the proof of an epoch that claims nothing but that no cost is below 0."""
    return EpochProof(claim=0, bits=0, proof=())


def _windows(timeline: Timeline) -> Iterator[list[Epoch]]:
    """Yield successive epochs in groups whose relaxations fit into the memory."""
    window: list[Epoch] = []
    used = 0
    for epoch in timeline.epochs():
        sizes = epoch.instance.members.sizes.astype(np.int64)
        needed = TimelineRelaxation.bytes_of(int((sizes * (sizes - 1) // 2).sum()), epoch.instance.n_servers)
        if window and used + needed > PARAMS.window_bytes:
            yield window
            window, used = [], 0
        window.append(epoch)
        used += needed
    if window:
        yield window
