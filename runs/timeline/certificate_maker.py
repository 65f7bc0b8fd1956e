"""Certificates of timelines: duals of relaxations in floating point, as numbers that the verifier accepts."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from relocbench.formulations.bounding.certificate_steps import dual_to_step
from relocbench.formulations.bounding.spool_shares import add_spool_shares
from relocbench.formulations.bounding.timeline_relaxation import EvaluatedDual, TimelineDual, TimelineRelaxation
from relocbench.formulations.certificates.budget import Budget
from relocbench.formulations.certificates.certificate import MOST_STEPS
from relocbench.formulations.certificates.exact_bound import DualBound
from relocbench.formulations.certificates.integer_problem import IntegerProblem
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
from relocbench.instances.errors import InputError
from relocbench.instances.kernels.ragged import FloatArray, IntArray
from relocbench.instances.timeline.epoch import Epoch
from relocbench.instances.timeline.prices import Prices
from relocbench.instances.timeline.timeline import Timeline

# Prices below 2 to this power get no potentials but 0.
LEAST_EXPONENT = -1000


@dataclass(frozen=True)
class RoundingParams:
    """How numbers are rounded for a certificate.

    Attributes
    ----------
    claim_bits
        Claims are in units of ``2^-claim_bits`` of the scaled cost.
    claim_margin
        The claim for an epoch is below the bound in floating point by this share of the costs that are added up.
    potential_bits
        Potentials are multiples of about ``2^-potential_bits`` of the larger price.
    """

    claim_bits: int = 30
    claim_margin: float = 1e-9
    potential_bits: int = 16


PARAMS = RoundingParams()


class CertificateMaker:
    """Makes the certificate of a timeline.

    Parameters
    ----------
    timeline
        The timeline.
    homes
        A schedule, which becomes a part of the certificate.
    prices
        Those of the timeline, or 0 for relocation that the bound shall not count.
    """

    def __init__(self, timeline: Timeline, homes: Sequence[IntArray], prices: Prices) -> None:
        self._timeline, self._homes, self._prices = timeline, tuple(homes), prices
        largest = max(self._prices.handover, self._prices.spool)
        exponent = max(math.frexp(largest)[1], LEAST_EXPONENT) if largest else 0
        self._bits = PARAMS.potential_bits - exponent

    def proofs(self, relaxation: TimelineRelaxation) -> list[EpochProof]:
        """Round the potentials, and claim what the epochs prove with them.

        Parameters
        ----------
        relaxation
            The relaxation of successive epochs, with its best dual.

        Returns
        -------
        list of EpochProof
            The proof of each of these epochs.
        """
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
                proofs.append(unproved())  # without potentials, no cost is below 0
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
            costs, later_costs = evaluated.costs[t : t + 2]
            shares = add_spool_shares(costs, later_costs, one.epoch, other.epoch, self._prices.spool, unit)
            found.append(np.ldexp(shares, self._bits).round().astype(np.int64))
        return found

    def _integers(self, potentials: FloatArray, price: float) -> Int64Array:
        """Round potentials to the unit of the certificate, so that they differ by at most the price."""
        most = math.floor(Fraction(price) * Fraction(2) ** self._bits)
        least = potentials.min(axis=1, initial=0.0 if not potentials.size else math.inf, keepdims=True)
        found: Int64Array = np.ldexp(potentials - least, self._bits).round().astype(np.int64).clip(0, most)
        return found

    def verified(
        self, proofs: list[EpochProof], seconds: Callable[[], float]
    ) -> tuple[TimelineCertificate, TimelineVerdict]:
        """Return the best certificate that the verifier accepts.

        Parameters
        ----------
        proofs
            The proofs of all epochs of the timeline.
        seconds
            Returns how long it took so far, which the certificate mentions.

        Returns
        -------
        tuple
            The certificate and its verdict.

        Raises
        ------
        ArithmeticError
            If the verifier accepts nothing, not even that no cost is below 0.
        """
        attempts: tuple[Callable[[], list[EpochProof]], ...] = (
            lambda: proofs,
            lambda: self._exact(proofs),
            lambda: [unproved() for _ in proofs],
        )
        reason = ""
        for claimed in attempts:
            try:
                certificate = self._certificate(claimed(), seconds())
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

    def _certificate(self, proofs: list[EpochProof], seconds: float) -> TimelineCertificate:
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
            made={"method": "timeline-relaxation", "seconds": round(seconds, 3)},
        )


def unproved() -> EpochProof:
    """Return the proof of an epoch that claims nothing but that no cost is below 0.

    Returns
    -------
    EpochProof
        The proof, without steps.
    """
    return EpochProof(claim=0, bits=0, proof=())
