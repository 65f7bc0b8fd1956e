"""The verifier of certificates of timelines: checks in integers and rationals whether they are proofs.

Like :mod:`formulations.certificates.verification` it shares no code with the solvers or the evaluators.
docs/certificates.md shows why an accepted certificate is a proof.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TypeVar

from relocbench.formulations.certificates.budget import MAX_STEPS, MEMORY_LIMIT, TIME_LIMIT, Budget
from relocbench.formulations.certificates.certificate import check_bits, check_cap
from relocbench.formulations.certificates.integer_problem import IntegerProblem, check_size
from relocbench.formulations.certificates.packed_arrays import Int64Array
from relocbench.formulations.certificates.potentials import Transition, added_costs
from relocbench.formulations.certificates.timeline_certificate import TimelineCertificate, read_timeline_certificate
from relocbench.formulations.certificates.verification import Verdict, check_proof, cost
from relocbench.instances.errors import InputError, shown
from relocbench.instances.timeline.epoch import Epoch
from relocbench.instances.timeline.prices import Prices
from relocbench.instances.timeline.timeline import Timeline

Item = TypeVar("Item")
OnEpochStep = Callable[[int, int], None]


@dataclass(frozen=True)
class TimelineVerdict(Verdict):
    """The result of the verification of a timeline's certificate.

    Attributes
    ----------
    proved, reason, steps
        As in :class:`formulations.certificates.verification.Verdict`.
    objective
        The cost of the schedule; None if the certificate has none, or a wrong one.
    bound
        The claim if it is proved, or 0 if it is less: no schedule costs less.
    epoch_bounds
        For each epoch ``t`` its part ``s_t/T·bound_t`` of the bound. With potentials it is a lower bound on ``ΣD`` plus
        what they add, and may be below 0.

    Examples
    --------
    >>> import relocbench
    >>> timeline = relocbench.generate_timeline(seed=1, n_epochs=2, topics=4, speed=60)
    >>> certified = relocbench.certify_timeline(timeline, time_limit=2)
    >>> relocbench.verify_timeline(timeline, certified.certificate).proved
    True
    """

    epoch_bounds: tuple[Fraction, ...] = ()

    @property
    def status(self) -> str:
        """``optimal`` or ``feasible``; ``bound`` if there is no schedule, and ``error`` if nothing is proved."""
        return "bound" if self.proved and self.objective is None else super().status

    def __repr__(self) -> str:
        if self.proved and self.objective is None:
            return f"<TimelineVerdict proved: bound {float(self.bound or 0):.8g}>"
        return super().__repr__().replace("<Verdict", "<TimelineVerdict").replace("ΣD", "cost")


def verify_timeline(
    timeline: Timeline,
    certificate: TimelineCertificate | str | Path,
    on_step: OnEpochStep = lambda epoch, step: None,
    *,
    time_limit: float = TIME_LIMIT,
    memory_limit: float = MEMORY_LIMIT,
    max_steps: float = MAX_STEPS,
) -> TimelineVerdict:
    """Verify a certificate of a timeline within a budget.

    Parameters
    ----------
    timeline
        The timeline.
    certificate
        The certificate, or the path of its file. A file that cannot be read proves nothing.
    on_step
        Called with the number of the epoch and the index of each step that is checked.
    time_limit, memory_limit, max_steps
        As for :func:`formulations.certificates.verification.verify`, for all epochs together. The memory is that of
        one epoch, because epochs are checked one after the other.

    Returns
    -------
    TimelineVerdict
        The proved bound, or the reason why nothing is proved.

    Examples
    --------
    The second certificate belongs to the timeline with another price:

    >>> import relocbench
    >>> timeline = relocbench.generate_timeline(seed=1, n_epochs=2, topics=4, speed=60)
    >>> certificate = relocbench.certify_timeline(timeline, time_limit=2).certificate
    >>> relocbench.verify_timeline(timeline, certificate).proved
    True
    >>> relocbench.verify_timeline(timeline.with_prices(handover=49), certificate).proved
    False
    """
    steps = 0
    objective: Fraction | None = None
    try:
        if not isinstance(certificate, TimelineCertificate):
            certificate = read_timeline_certificate(certificate)
        budget = Budget(time_limit, memory_limit, max_steps)
        steps = certificate.n_steps
        budget.check_steps(steps)
        _check_header(timeline, certificate)
        if certificate.homes is not None:
            objective = exact_schedule_cost(timeline, [home.tolist() for home in certificate.homes], budget)
        parts: tuple[Fraction, ...] = ()
        _check_claim(certificate, objective, "what the schedule of the certificate costs")
        if certificate.bound > 0:  # no cost is below 0
            parts = _proved_parts(timeline, certificate, budget, on_step)
            _check_claim(certificate, sum(parts, Fraction(0)), "the sum of what is claimed for the epochs")
    except InputError as error:
        return TimelineVerdict(False, str(error), objective, None, steps)
    except MemoryError:
        return TimelineVerdict(False, "too large for the memory of this machine", objective, None, steps)
    return TimelineVerdict(True, "", objective, max(certificate.bound, Fraction(0)), steps, parts)


def exact_schedule_cost(timeline: Timeline, homes: list[list[int]], budget: Budget | None = None) -> Fraction:
    """Compute the cost of a schedule by the definition in docs/moving.md, without any rounding.

    Parameters
    ----------
    timeline
        The timeline.
    homes
        For each epoch the server of each client that is present.
    budget
        The limits of the verification; None for no limits.

    Returns
    -------
    Fraction
        The cost.

    Raises
    ------
    InputError
        If these are not homes of the timeline.
    """
    budget = Budget() if budget is None else budget
    if len(homes) != timeline.n_epochs:
        raise InputError("homes", f"expected homes for {timeline.n_epochs} epochs, got {len(homes)}")
    prices = timeline.prices
    total = Fraction(0)
    home_before: dict[int, int] = {}
    open_before: set[tuple[int, int]] = set()
    for epoch, home in zip(timeline.epochs(), homes, strict=True):
        budget.check_time()
        instance = epoch.instance
        check_size(instance)
        if len(home) != instance.n_clients:
            problem = f"expected one server for each of {instance.n_clients} clients, got {len(home)}"
            raise InputError(f"homes[{epoch.number}]", problem)
        for client, server in enumerate(home):
            if not 0 <= server < instance.n_servers:
                problem = f"expected a server from 0 to {instance.n_servers - 1}, got {server}"
                raise InputError(f"homes[{epoch.number}][{client}]", problem)
        total += rounds(epoch, prices) * cost(instance, home, budget)
        home_now = dict(zip(epoch.clients.tolist(), home, strict=True))
        handovers = sum(home_before.get(client, server) != server for client, server in home_now.items())
        total += Fraction(prices.handover) * handovers
        spool_of = dict(zip(epoch.topics.tolist(), map(Fraction, instance.spool.tolist()), strict=True))
        open_now = {
            (topic, home[publisher])
            for topic, publishers in zip(epoch.topics.tolist(), instance.publishers, strict=True)
            for publisher in publishers.tolist()
        }
        existed = {topic for topic, _ in open_before}
        copied = sum((spool_of[topic] for topic, _ in open_now - open_before if topic in existed), Fraction(0))
        total += Fraction(prices.spool) * copied
        home_before, open_before = home_now, open_now
    return total


def rounds(epoch: Epoch, prices: Prices) -> Fraction:
    """Return how often each publisher publishes in an epoch: ``s/T``.

    Parameters
    ----------
    epoch, prices
        The epoch, and the prices of the timeline.

    Returns
    -------
    Fraction
        The quotient of the two floats.
    """
    return Fraction(epoch.length) / Fraction(prices.publication_period)


def _check_header(timeline: Timeline, certificate: TimelineCertificate) -> None:
    for name in ("bits", "potential_bits"):
        check_bits(getattr(certificate, name), name)
    if certificate.timeline != timeline.hash:
        wanted = f"expected the hash {timeline.hash[:16]}… of the timeline given"
        raise InputError("timeline", f"{wanted}, got {shown(certificate.timeline, 18)}")
    if len(certificate.epochs) != timeline.n_epochs:
        raise InputError("epochs", f"expected {timeline.n_epochs} epochs, got {len(certificate.epochs)}")
    for number, epoch in enumerate(certificate.epochs):
        check_bits(epoch.bits, f"epochs[{number}].bits")
        for name in ("delay_cap", "cloud_cap"):
            if (cap := getattr(epoch, name)) is not None:
                check_cap(cap, f"epochs[{number}].{name}")


def _check_claim(certificate: TimelineCertificate, most: Fraction | None, what: str) -> None:
    if most is not None and certificate.bound > most:
        raise InputError("claim", f"is above {what}")


def _proved_parts(
    timeline: Timeline, certificate: TimelineCertificate, budget: Budget, on_step: OnEpochStep
) -> tuple[Fraction, ...]:
    """Check the proof of each epoch, and return its part of the bound."""
    parts = []
    bits, prices = certificate.potential_bits, timeline.prices
    from_before: Int64Array | None = None
    for (epoch, proof), following in with_next(zip(timeline.epochs(), certificate.epochs, strict=True)):
        try:
            if epoch.number == 0 and proof.spool_shares is not None:
                raise InputError("spool_shares", "expected none in the first epoch")
            if following is None:
                if proof.potentials is not None:
                    raise InputError("potentials", "expected none in the last epoch")
                to_epoch, to_later = None, None
            else:
                transition = Transition(epoch, proof, *following, bits, prices, budget)
                to_epoch, to_later = transition.to_epoch, transition.to_later
            added = added_costs(from_before, to_epoch, bits, rounds(epoch, prices))
            from_before = to_later
            if added is not None or proof.bound > 0:  # without potentials, no cost is below 0
                problem = IntegerProblem(epoch.instance, proof.delay_cap, proof.cloud_cap, budget, added)
                check_proof(problem, proof.proof, proof.bound, partial(on_step, epoch.number))
        except InputError as error:
            whole = error.field.startswith("epochs[")
            raise error if whole else error.inside(f"epochs[{epoch.number}]") from error
        parts.append(rounds(epoch, prices) * (proof.bound if added is not None else max(proof.bound, Fraction(0))))
    return tuple(parts)


def with_next(items: Iterable[Item]) -> Iterator[tuple[Item, Item | None]]:
    """Yield each item with the next one, and the last item with None.

    Parameters
    ----------
    items
        The items, for example epochs.

    Yields
    ------
    tuple
        An item and the next one.
    """
    before: Item | None = None
    for item in items:
        if before is not None:
            yield before, item
        before = item
    if before is not None:
        yield before, None
