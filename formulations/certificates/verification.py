"""Is a certificate a proof? Answered in whole numbers and rationals, without anything that solvers are made of.

Of this project only data classes and file readers are used, and what is in this folder. docs/certificates.md says why
an accepted certificate is a proof.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from relocbench.formulations.certificates.certificate import Certificate, Dual, Step, read_certificate
from relocbench.formulations.certificates.exact_bound import after_dual
from relocbench.formulations.certificates.integer_problem import (
    WholeProblem,
    client_delay,
    exact_integers,
    server_delay,
)
from relocbench.formulations.certificates.region import State, cases, root
from relocbench.instances.errors import InputError, shown
from relocbench.instances.instance import Instance

# Relative from a cost of 1 up, absolute below: as everywhere in this project.
TOLERANCE = Fraction(1, 10**6)
# Of all states that wait to be proved, in entries of their tables.
MOST_WAITING = 1 << 31


Watch = Callable[[int], None]


@dataclass(frozen=True)
class Verdict:
    """What a certificate proves.

    Attributes
    ----------
    proved
        Whether the claim is proved.
    reason
        Why not, in one line; empty if it is.
    objective
        What the homes cost; None if they are none of the instance's.
    bound
        The claim, if it is proved: no assignment costs less.
    steps
        How many steps the proof has.
    """

    proved: bool
    reason: str = ""
    objective: Fraction | None = None
    bound: Fraction | None = None
    steps: int = 0

    @property
    def gap(self) -> Fraction | None:
        """``(objective - bound) / objective``; None where nothing is proved or that is no number."""
        if self.objective is None or self.bound is None:
            return None
        missing = self.objective - self.bound
        return Fraction(0) if not missing else missing / self.objective if self.objective else None

    @property
    def status(self) -> str:
        """``optimal``, ``feasible`` or, where nothing is proved, ``error``."""
        if self.objective is None or self.bound is None:
            return "error"
        closed = self.bound >= self.objective - TOLERANCE * max(Fraction(1), self.objective)
        return "optimal" if closed else "feasible"


def verify(
    instance: Instance,
    certificate: Certificate | str | Path,
    watch: Watch = lambda step: None,
) -> Verdict:
    """Tell whether the proof of a certificate is one, and of what.

    Parameters
    ----------
    certificate
        Read already, or the path of its file; a file that cannot be read proves nothing.
    watch
        Called with the number of each step that is looked at.
    """
    steps = 0
    objective = None
    try:
        if not isinstance(certificate, Certificate):
            certificate = read_certificate(certificate)
        steps = len(certificate.proof)
        objective = _objective(instance, certificate)
        if certificate.bound > objective:
            raise InputError("claim", "is above what the homes of the certificate cost")
        _check_proof(WholeProblem(instance), certificate.proof, certificate.bound, watch)
    except InputError as error:
        return Verdict(False, str(error), objective, None, steps)
    except MemoryError:
        return Verdict(False, "too large for the memory of this machine", objective, None, steps)
    return Verdict(True, "", objective, certificate.bound, steps)


def cost(instance: Instance, home: Sequence[int]) -> Fraction:
    """Return what homes cost, ``ΣD``, by the definition of docs/model.md and without any rounding."""
    clients, used = np.arange(instance.n_clients), sorted(set(home))
    (near,), near_bits = exact_integers(client_delay(instance, clients, np.asarray(home)))
    rows, far_bits = exact_integers(*server_delay(instance)[used])
    far = dict(zip(used, rows, strict=True))

    stored: dict[int, Fraction] = defaultdict(Fraction)
    computed: dict[int, Fraction] = defaultdict(Fraction)
    sent: Counter[int] = Counter()
    walked: Counter[int] = Counter()  # Σ dH over publications with so many receivers, times that number
    crossed: Counter[tuple[int, int]] = Counter()  # Σ dS of those that are sent from a server
    for u, publishers, subscribers in zip(instance.spool, instance.publishers, instance.subscribers, strict=True):
        listeners = set(subscribers.tolist())
        walk_all = sum(near[r] for r in listeners)
        places = Counter(home[r] for r in listeners)
        cross = {
            server: sum(count * far[server][place] for place, count in places.items())
            for server in {home[m] for m in publishers.tolist()}
        }
        for server in cross:
            stored[server] += Fraction(float(u))
        for m in publishers.tolist():
            server = home[m]
            computed[server] += Fraction(float(u))
            receivers = len(listeners) - (m in listeners)
            if receivers:
                sent[server] += 1
                walked[receivers] += receivers * near[m] + walk_all - (near[m] if m in listeners else 0)
                crossed[server, receivers] += cross[server]  # from a server to itself is 0

    total = sum((Fraction(way, count << near_bits) for count, way in walked.items()), Fraction(0))
    spread: dict[int, Fraction] = defaultdict(Fraction)
    for (server, receivers), way in crossed.items():
        spread[server] += Fraction(way, receivers << far_bits)
    for server, count in sent.items():
        theta = Fraction(1)
        if stored[server]:
            theta = min(theta, Fraction(float(instance.storage_capacity[server])) / stored[server])
        if computed[server]:
            theta = min(theta, Fraction(float(instance.compute_capacity[server])) / computed[server])
        total += 2 * Fraction(instance.cloud_delay) * count * (1 - theta) + theta * spread[server]
    return total


def rounded_down(number: Fraction) -> float:
    """Return the largest float that is not above the number."""
    nearest = float(number)
    return nearest if nearest <= number else math.nextafter(nearest, -math.inf)


def _objective(instance: Instance, certificate: Certificate) -> Fraction:
    if certificate.instance != instance.hash:
        wanted = f"expected the hash {instance.hash[:16]}… of the instance given"
        raise InputError("instance", f"{wanted}, got {shown(certificate.instance, 18)}")
    home = certificate.home.tolist()
    if len(home) != instance.n_clients:
        raise InputError("home", f"expected one server for each of {instance.n_clients} clients, got {len(home)}")
    for client, server in enumerate(home):
        if not 0 <= server < instance.n_servers:
            raise InputError(f"home[{client}]", f"expected a server from 0 to {instance.n_servers - 1}, got {server}")
    return cost(instance, home)


def _check_proof(problem: WholeProblem, steps: Sequence[Step], claim: Fraction, watch: Watch) -> None:
    """Work through the steps: each state has a stretch of them to be proved with.

    A dual proves the state or, at the least, drops homes from it; a split ends it and gives both cases a part of what
    follows. What follows on a proof is passed over.
    """
    waiting: list[tuple[State, int, int]] = [(root(problem), 0, len(steps))]
    while waiting:
        state, begin, end = waiting.pop()
        rest: State | None = state
        for index in range(begin, end):
            if rest is None:
                break
            step = steps[index]
            watch(index)
            try:
                if not isinstance(step, Dual):
                    middle = index + 1 + step.first
                    if not index < middle <= end:
                        raise InputError("first", f"expected a number from 0 to {end - index - 1}, got {step.first}")
                    stretches = ((index + 1, middle), (middle, end))
                    found = zip(cases(problem, rest, step), stretches, strict=True)
                    waiting += [(case, *stretch) for case, stretch in found if case is not None]
                    rest = None
                else:
                    _, rest = after_dual(problem, rest, step, claim)
            except InputError as error:
                raise error.inside(f"proof[{index}]") from error
        if rest is not None:
            where = f"the steps from {begin} to {end - 1} do not do" if begin < end else "no step is left for"
            raise InputError("claim", f"is not proved, {where} one of its cases")
        if len(waiting) * state.allowed.size > MOST_WAITING:
            raise InputError("proof", "leaves more cases than memory should hold")
