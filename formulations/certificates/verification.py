"""The verifier: checks in integers and rationals whether a certificate is a proof.

It shares no code with the solvers. From this project it imports the data classes, the file readers and the modules of
this folder. docs/certificates.md shows why an accepted certificate is a proof.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from relocbench.formulations.certificates.budget import MAX_STEPS, MEMORY_LIMIT, TIME_LIMIT, Budget
from relocbench.formulations.certificates.certificate import (
    Certificate,
    Contents,
    Dual,
    HomePrices,
    Step,
    check_bits,
    check_cap,
    read_certificate,
)
from relocbench.formulations.certificates.content_bound import ContentBound
from relocbench.formulations.certificates.exact_bound import apply_dual
from relocbench.formulations.certificates.home_prices_bound import HomePricesBound
from relocbench.formulations.certificates.integer_problem import (
    IntegerProblem,
    check_size,
    client_delay,
    exact_integers,
    server_delay,
)
from relocbench.formulations.certificates.region import Region, root_region, split_region
from relocbench.instances.errors import InputError, plural, shown
from relocbench.instances.instance import Instance
from relocbench.instances.notebook_card import card, percent

# A bound proves optimality if the gap is at most this.
TOLERANCE = Fraction(1, 10**6)

OnStep = Callable[[int], None]


@dataclass(frozen=True)
class Verdict:
    """The result of a verification.

    Attributes
    ----------
    proved
        Whether the claim is proved.
    reason
        Why the claim is not proved, in one line; empty if it is.
    objective
        The cost of the homes; None if they are not homes of the instance.
    bound
        The claim if it is proved, or 0 if it is less: no assignment costs less.
    steps
        The number of steps of the proof.

    Examples
    --------
    >>> import relocbench
    >>> library = relocbench.Library()
    >>> name = "tiny-scarce-plain-0"
    >>> verdict = relocbench.verify(library.read(name), library.certificate_path(name))
    >>> verdict.proved, verdict.status, verdict.stated_gap
    (True, 'optimal', 0.0)
    >>> type(verdict.bound)
    <class 'fractions.Fraction'>
    """

    proved: bool
    reason: str = ""
    objective: Fraction | None = None
    bound: Fraction | None = None
    steps: int = 0

    def __repr__(self) -> str:
        if not self.proved:
            return f"<Verdict not proved: {self.reason}>"
        objective, bound = float(self.objective or 0), float(self.bound or 0)
        numbers = f"ΣD {objective:.8g}, bound {bound:.8g}, gap {percent(self.stated_gap)}"
        return f"<Verdict proved, {self.status}: {numbers}, {plural(self.steps, 'step')}>"

    def _repr_html_(self) -> str:
        values = {
            "proved": "yes" if self.proved else f"no: {self.reason}",
            "status": self.status,
            "ΣD": None if self.objective is None else f"{float(self.objective):.8g}",
            "bound": None if self.bound is None else f"{float(self.bound):.8g}",
            "gap": percent(self.stated_gap),
            "steps": self.steps,
        }
        return card("Verdict", values)

    @property
    def gap(self) -> Fraction | None:
        """``(objective - bound) / objective``, and 0 if both are 0; None if nothing is proved."""
        if self.objective is None or self.bound is None:
            return None
        return (self.objective - self.bound) / self.objective if self.objective else Fraction(0)

    @property
    def status(self) -> str:
        """``optimal``, ``feasible`` or, if nothing is proved, ``error``."""
        if self.objective is None or self.bound is None:
            return "error"
        closed = self.bound >= self.objective * (1 - TOLERANCE)
        return "optimal" if closed else "feasible"

    @property
    def stated_gap(self) -> float | None:
        """The gap as commands print it: 0 if the status is ``optimal``; None if there is no gap."""
        if self.status == "optimal":
            return 0.0
        return None if self.gap is None else float(self.gap)

    @property
    def gap_text(self) -> str:
        """The gap in per cent, with as many digits as distinguish it from 0 unless the status is ``optimal``."""
        gap = self.stated_gap
        return "no gap" if gap is None else f"{100 * gap:.4g} %" if gap else "0.000 %"


def verify(
    instance: Instance,
    certificate: Certificate | str | Path,
    on_step: OnStep = lambda step: None,
    *,
    time_limit: float = TIME_LIMIT,
    memory_limit: float = MEMORY_LIMIT,
    max_steps: float = MAX_STEPS,
) -> Verdict:
    """Verify a certificate within a budget.

    Parameters
    ----------
    instance
        The instance.
    certificate
        The certificate, or the path of its file. A file that cannot be read proves nothing.
    on_step
        Called with the index of each step that is checked.
    time_limit
        Seconds of processor time, from when the file has been read. A certificate that takes longer proves nothing.
    memory_limit
        Bytes. Upper bounds on what arrays need are computed before they are allocated. A certificate that may need more
        proves nothing.
    max_steps
        A certificate with more steps proves nothing.

    Returns
    -------
    Verdict
        The proved bound, or the reason why nothing is proved.

    Examples
    --------
    The second certificate belongs to another instance:

    >>> import relocbench
    >>> library = relocbench.Library()
    >>> instance = library.read("tiny-scarce-plain-0")
    >>> relocbench.verify(instance, library.certificate_path("tiny-scarce-plain-0"))
    <Verdict proved, optimal: ΣD 7.7531518, bound 7.7531472, gap 0%, 4 steps>
    >>> relocbench.verify(instance, library.certificate_path("tiny-scarce-roles-0")).proved
    False
    """
    steps = 0
    objective = None
    try:
        if not isinstance(certificate, Certificate):
            certificate = read_certificate(certificate)
        budget = Budget(time_limit, memory_limit, max_steps)
        steps = len(certificate.proof)
        budget.check_steps(steps)
        _check_header(instance, certificate)
        objective = cost(instance, certificate.home.tolist(), budget)
        _check_claim(certificate, objective)
        if certificate.bound > 0:  # no cost is below 0
            problem = IntegerProblem(instance, certificate.delay_cap, certificate.cloud_cap, budget)
            check_proof(problem, certificate.proof, certificate.bound, on_step)
    except InputError as error:
        return Verdict(False, str(error), objective, None, steps)
    except MemoryError:
        return Verdict(False, "too large for the memory of this machine", objective, None, steps)
    return Verdict(True, "", objective, max(certificate.bound, Fraction(0)), steps)


def cost(instance: Instance, home: Sequence[int], budget: Budget | None = None) -> Fraction:
    """Compute the cost ``ΣD`` of homes by the definition in docs/model.md, without any rounding.

    Parameters
    ----------
    instance
        The instance.
    home
        The server of each client.
    budget
        The limits of the verification; None for no limits.

    Returns
    -------
    Fraction
        The cost.
    """
    budget = Budget() if budget is None else budget
    clients, used = np.arange(instance.n_clients), sorted(set(home))
    (to_home,), client_bits = exact_integers(client_delay(instance, clients, np.asarray(home)))
    rows, server_bits = exact_integers(*server_delay(instance)[used])
    between = dict(zip(used, rows, strict=True))

    storage_load: dict[int, Fraction] = defaultdict(Fraction)
    compute_load: dict[int, Fraction] = defaultdict(Fraction)
    publications: Counter[int] = Counter()  # per server
    # Integers are summed for each number of receivers |R|, so that there is one division for each.
    client_sum: Counter[int] = Counter()  # by |R|: Σ dH of the publications, times |R|
    server_sum: Counter[tuple[int, int]] = Counter()  # by server and |R|: Σ dS of the publications, times |R|
    for u, publishers, subscribers in zip(instance.spool, instance.publishers, instance.subscribers, strict=True):
        budget.check_time()
        subscribing = set(subscribers.tolist())
        client_sum_all = sum(to_home[r] for r in subscribing)
        receiver_homes = Counter(home[r] for r in subscribing)
        server_sum_from = {
            server: sum(count * between[server][other] for other, count in receiver_homes.items())
            for server in {home[m] for m in publishers.tolist()}
        }
        for server in server_sum_from:
            storage_load[server] += Fraction(float(u))
        for m in publishers.tolist():
            server = home[m]
            compute_load[server] += Fraction(float(u))
            receivers = len(subscribing) - (m in subscribing)
            if receivers:
                publications[server] += 1
                others = client_sum_all - (to_home[m] if m in subscribing else 0)
                client_sum[receivers] += receivers * to_home[m] + others
                server_sum[server, receivers] += server_sum_from[server]  # dS from a server to itself is 0

    total = sum((Fraction(delay, count << client_bits) for count, delay in client_sum.items()), Fraction(0))
    spread: dict[int, Fraction] = defaultdict(Fraction)
    for (server, receivers), delay in server_sum.items():
        spread[server] += Fraction(delay, receivers << server_bits)
    for server, count in publications.items():
        theta = Fraction(1)
        if storage_load[server]:
            theta = min(theta, Fraction(float(instance.storage_capacity[server])) / storage_load[server])
        if compute_load[server]:
            theta = min(theta, Fraction(float(instance.compute_capacity[server])) / compute_load[server])
        total += 2 * Fraction(instance.cloud_delay) * count * (1 - theta) + theta * spread[server]
    return total


def rounded_down(number: Fraction) -> float:
    """Round a number down to a float.

    Parameters
    ----------
    number
        The number.

    Returns
    -------
    float
        The largest float that is not above the number.
    """
    nearest = float(number)
    return nearest if nearest <= number else math.nextafter(nearest, -math.inf)


def _check_header(instance: Instance, certificate: Certificate) -> None:
    """Check everything but the claim and the proof."""
    check_size(instance)
    check_bits(certificate.bits, "bits")
    for name, cap in (("delay_cap", certificate.delay_cap), ("cloud_cap", certificate.cloud_cap)):
        if cap is not None:
            check_cap(cap, name)
    if certificate.instance != instance.hash:
        wanted = f"expected the hash {instance.hash[:16]}… of the instance given"
        raise InputError("instance", f"{wanted}, got {shown(certificate.instance, 18)}")
    home = certificate.home.tolist()
    if len(home) != instance.n_clients:
        raise InputError("home", f"expected one server for each of {instance.n_clients} clients, got {len(home)}")
    for client, server in enumerate(home):
        if not 0 <= server < instance.n_servers:
            raise InputError(f"home[{client}]", f"expected a server from 0 to {instance.n_servers - 1}, got {server}")


def _check_claim(certificate: Certificate, objective: Fraction) -> None:
    if certificate.bound > objective:
        raise InputError("claim", "is above what the homes of the certificate cost")


def check_proof(problem: IntegerProblem, steps: Sequence[Step], claim: Fraction, on_step: OnStep) -> None:
    """Check the steps. Each region has a range of steps that must prove it.

    A dual step proves its region or forbids homes in it. A step with contents or prices of homes proves its region or
    changes nothing. A split step ends its region and divides the following steps between the two parts. Steps after the
    end of a region are ignored.

    Parameters
    ----------
    problem
        The instance, with added costs if there are any.
    steps
        The proof.
    claim
        The number that no assignment may cost less than.
    on_step
        Called with the index of each step that is checked.

    Raises
    ------
    InputError
        If the steps do not prove the claim.
    """
    waiting: list[tuple[Region, int, int]] = [(root_region(problem), 0, len(steps))]
    while waiting:
        # The region under way and its two parts exist beside those that wait.
        problem.region_memory = (len(waiting) + 3) * problem.size.region_bytes
        problem.budget.check_memory(problem.size.problem_bytes + problem.region_memory)
        region, begin, end = waiting.pop()
        rest: Region | None = region
        open_parts: list[tuple[Region, int, int]] = []
        for index in range(begin, end):
            if rest is None:
                break
            step = steps[index]
            on_step(index)
            try:
                problem.budget.check_time()
                if isinstance(step, Contents | HomePrices):
                    if problem.added is not None:
                        raise InputError("step", "expected dual or a split in an epoch with potentials")
                    bound = (
                        ContentBound(problem, rest, step)
                        if isinstance(step, Contents)
                        else HomePricesBound(problem, rest, step)
                    )
                    if bound.value >= claim:
                        bound.check()
                        rest = None
                elif not isinstance(step, Dual):
                    middle = index + 1 + step.first
                    if not index < middle <= end:
                        raise InputError("first", f"expected a number from 0 to {end - index - 1}, got {step.first}")
                    ranges = ((index + 1, middle), (middle, end))
                    parts = zip(split_region(problem, rest, step), ranges, strict=True)
                    open_parts = [(part, *its_range) for part, its_range in parts if part is not None]
                    waiting += open_parts
                    rest = None
                else:
                    _, rest = apply_dual(problem, rest, step, claim)
            except InputError as error:
                raise error.inside(f"proof[{index}]") from error
            if any(its_begin == its_end for _, its_begin, its_end in open_parts):
                raise InputError("claim", f"is not proved, no step is left for one of the parts of proof[{index}]")
        if rest is not None:
            where = f"the steps from {begin} to {end - 1} do not prove" if begin < end else "no step is left for"
            raise InputError("claim", f"is not proved, {where} one of its regions")
