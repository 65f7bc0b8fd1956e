"""Duals for tests (random, good and changed ones), and the exact cost of the best assignment."""

import dataclasses
import itertools
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

from relocbench.formulations.certificates.certificate import (
    Certificate,
    Dual,
    Split,
    SplitClient,
    SplitShare,
    SplitTopic,
    Step,
)
from relocbench.formulations.certificates.exact_bound import apply_dual
from relocbench.formulations.certificates.integer_problem import IntegerProblem, integer_array
from relocbench.formulations.certificates.region import Region, root_region, split_region, theta_range
from relocbench.instances.evaluation import evaluate
from relocbench.instances.evaluation_exact import evaluate_exact
from relocbench.instances.files.instance_json import to_json
from relocbench.instances.instance import Instance
from tests.formulations.certificates import second_verifier
from tests.formulations.certificates.best_duals import BestDual
from tests.samples import KINDS, enumerable_instance


def refused_by_the_second(instance: Instance, path: Path) -> str:
    """Why the second verifier refuses a certificate; empty if it accepts it."""
    try:
        second_verifier.verify(json.loads(to_json(instance)), second_verifier.read(path))
    except second_verifier.Rejected as refused:
        return str(refused)
    return ""


def instances_of_every_kind(each: int, part: int = 0, parts: int = 1) -> Iterator[tuple[int, Instance]]:
    """Different instances, ``each`` of every kind, that can be enumerated and have at least two publications."""
    for number in range(part, each * len(KINDS), parts):
        seed = number % len(KINDS) + 1000 * len(KINDS) * (number // len(KINDS))
        while True:
            instance = enumerable_instance(seed, most=260, least_servers=2)
            if instance.n_publications > 1:
                yield number, instance
                break
            seed += 50 * len(KINDS)


class Costs:
    """The cost and the θ of every assignment of an instance."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.homes = np.array(list(itertools.product(range(instance.n_servers), repeat=instance.n_clients)))
        found = [evaluate(instance, home) for home in self.homes]
        self.costs = np.array([result.objective for result in found])
        self.thetas = np.array([result.theta for result in found])

    def inside(self, region: Region) -> np.ndarray:
        """Flags of the assignments that belong to a region."""
        inside = region.allowed[np.arange(self.instance.n_clients), self.homes].all(axis=1)
        for topic, server in np.argwhere(region.open):
            inside &= (self.homes[:, self.instance.publishers[int(topic)]] == server).any(axis=1)
        # Floats cannot decide for a θ that is close to an end of the range; those assignments are evaluated exactly.
        inside &= (self.thetas * 1024 > region.low - 1e-6).all(axis=1)
        inside &= (self.thetas * 1024 < region.high + 1e-6).all(axis=1)
        close = (abs(self.thetas * 1024 - region.low) < 1e-6) | (abs(self.thetas * 1024 - region.high) < 1e-6)
        close &= (region.low > 0) | (region.high < 1024)
        for index in np.flatnonzero(inside & close.any(axis=1)):
            theta = evaluate_exact(self.instance, self.homes[index]).theta
            inside[index] = all(
                low <= 1024 * t <= high
                for low, t, high in zip(region.low.tolist(), theta, region.high.tolist(), strict=True)
            )
        return inside

    def least(self, which: np.ndarray | None = None) -> tuple[Fraction | None, np.ndarray | None]:
        """The exact cost of the best of these assignments, and that assignment; None if there is none."""
        which = np.ones(len(self.costs), bool) if which is None else which
        if not which.any():
            return None, None
        close = which & (self.costs <= self.costs[which].min() * (1 + 1e-9) + 1e-12)
        exact = [(evaluate_exact(self.instance, home).objective, home.tolist()) for home in self.homes[close]]
        cost, home = min(exact)
        return cost, np.array(home)


def random_region(problem: IntegerProblem, rng: np.random.Generator, costs: Costs | None = None) -> Region:
    """A region with forbidden homes, open topics and ranges of θ; it is not empty if costs are given."""
    clients, servers, topics = problem.n_clients, problem.n_servers, problem.n_topics
    home = rng.integers(servers, size=clients) if costs is None else costs.homes[rng.integers(len(costs.homes))]
    allowed = rng.random((clients, servers)) < rng.choice([0.1, 0.4, 0.8])
    allowed[np.arange(clients), home] = True
    opened = np.zeros((topics, servers), bool)
    for _ in range(rng.integers(0, 4)):
        topic = int(rng.integers(topics))
        publishers = problem.instance.publishers[topic]
        if len(publishers):
            opened[topic, home[rng.choice(publishers)] if costs else rng.integers(servers)] = True
    low, high = np.zeros(servers, np.int64), np.full(servers, 1024)
    theta = evaluate(problem.instance, home).theta
    for l in range(servers):
        if theta[l] < 1 and rng.random() < 0.7:
            low[l] = math.floor(theta[l] * 1024 * rng.choice([0, 0.5, 0.9, 1]))
            high[l] = math.ceil(min(1, theta[l] * rng.choice([1, 1.1, 2, 9])) * 1024)
    return Region(allowed, opened, low, high)


def random_hard(problem: IntegerProblem, region: Region, rng: np.random.Generator) -> np.ndarray:
    """A random subset of the servers that may be hard."""
    least, _ = theta_range(problem, region)
    return (least > 0).astype(bool) & (rng.random(problem.n_servers) < rng.choice([0, 0.5, 1]))


def integer_dual(
    problem: IntegerProblem,
    active: np.ndarray,
    messages: np.ndarray,
    shares: np.ndarray,
    alpha: np.ndarray,
    beta: np.ndarray,
    hard: np.ndarray,
    *,
    bits: int = 30,
    multiplier_bits: int = 40,
    fix: bool = False,
) -> Dual:
    """A dual from floats: multipliers are rounded up, all else down, and shares are cut to the price of their topic."""
    prices, others = (
        [math.ceil(value) for value in np.ldexp(np.maximum(x, 0.0), multiplier_bits).tolist()] for x in (alpha, beta)
    )
    kept = np.floor(np.ldexp(np.maximum(shares, 0.0), bits)).astype(np.int64)
    _, topic, server = share_places(problem, active)
    limit = ((problem.spool[:, None] * integer_array(prices)[None, :]) << bits) >> (multiplier_bits + problem.load_bits)
    for entry in range(len(kept)):
        place = topic[entry], server[entry]
        kept[entry] = min(int(kept[entry]), limit[place])
        limit[place] -= int(kept[entry])
    return Dual(
        bits=bits,
        multiplier_bits=multiplier_bits,
        fix=fix,
        alpha=tuple(prices),
        beta=tuple(others),
        hard=tuple(int(value) for value in hard),
        active=active,
        messages=np.floor(np.ldexp(messages, bits)).astype(np.int64),
        shares=kept,
    )


def share_places(problem: IntegerProblem, active: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The client, topic and server of each share."""
    places = [
        (m, n, l)
        for m, n in zip(problem.publisher_client.tolist(), problem.publisher_topic.tolist(), strict=True)
        for l in np.flatnonzero(active[m])
    ]
    client, topic, server = np.array(places or np.empty((0, 3)), np.int64).T
    return client, topic, server


def zero_dual(problem: IntegerProblem, active: np.ndarray | None = None, **settings) -> Dual:
    """The dual that is 0 everywhere."""
    active = np.ones((problem.n_clients, problem.n_servers), bool) if active is None else active
    none = np.zeros(problem.n_servers)
    messages, shares = np.zeros(active[problem.first].sum()), np.zeros(active[problem.publisher_client].sum())
    return integer_dual(problem, active, messages, shares, none, none, none, **settings)


def random_dual(problem: IntegerProblem, region: Region, rng: np.random.Generator, **settings) -> Dual:
    """A dual of random numbers of useful sizes; most shares are as large as the prices allow."""
    servers = problem.n_servers
    active = rng.random(region.allowed.shape) < rng.choice([0.1, 0.4, 1.0])
    unit = float(1 << problem.load_bits)
    demand, spool = problem.demand.astype(float) / unit, problem.spool.astype(float) / unit
    worth = (float(problem.detour) + 1.0) * max(problem.publications.mean(), 0.1) / max(demand.mean(), 1e-3)

    def prices():
        return worth * np.exp(rng.uniform(-5, 0.7, servers)) * (rng.random(servers) < rng.choice([0, 0.5, 1]))

    alpha, beta = prices(), prices()
    _, topic, server = share_places(problem, active)
    raw = rng.exponential(size=len(topic))
    total = np.zeros((problem.n_topics, servers))
    np.add.at(total, (topic, server), raw)
    shares = (spool[:, None] * alpha)[topic, server] * raw / total[topic, server] * rng.choice([1.0, 1.0, 0.5])
    count = int(active[problem.first].sum())
    messages = rng.normal(scale=rng.choice([0.0, 0.1, 1.0]), size=count) * (rng.random(count) < 0.7)
    hard = random_hard(problem, region, rng)
    return integer_dual(problem, active, messages, shares, alpha, beta, hard, **settings)


def good_dual(problem: IntegerProblem, region: Region, rng: np.random.Generator, **settings) -> Dual:
    """The best dual for a random choice of hard servers; sometimes without the numbers of some homes."""
    hard = random_hard(problem, region, rng)
    best = BestDual(problem, region, hard)
    active = np.ones(region.allowed.shape, bool)
    if rng.random() < 0.2:
        active = rng.random(region.allowed.shape) < 0.8
    messages = best.messages[active[problem.first].ravel()]
    shares = best.shares[active[problem.publisher_client].ravel()]
    return integer_dual(problem, active, messages, shares, best.alpha, best.beta, hard, **settings)


def perturbed(dual: Dual, rng: np.random.Generator) -> Dual:
    """The same dual with some messages changed: by one unit, a little or much."""
    messages = np.array(dual.messages)
    if len(messages):
        size = int(rng.choice([1, 1 << 10, 1 << 22, 1 << 28]))
        which = rng.random(len(messages)) < rng.choice([0.1, 1.0])
        messages[which] += rng.integers(-size, size + 1, int(which.sum()))
    return dataclasses.replace(dual, messages=messages)


def scaled(problem: IntegerProblem, region: Region, dual: Dual, rng: np.random.Generator) -> Dual:
    """The same dual with multipliers and shares changed by random factors, and with other hard servers."""

    def factors():
        return rng.choice([0, 0.3, 0.7, 1, 1, 1, 1.3, 2, 50], problem.n_servers)

    by = factors()
    _, _, server = share_places(problem, dual.active)
    unit = 2.0**dual.multiplier_bits
    return integer_dual(
        problem,
        dual.active,
        np.ldexp(dual.messages.astype(float), -dual.bits),
        np.ldexp(dual.shares.astype(float), -dual.bits) * by[server],
        np.array(dual.alpha) / unit * by,
        np.array(dual.beta) / unit * factors(),
        random_hard(problem, region, rng),
        bits=dual.bits,
        multiplier_bits=dual.multiplier_bits,
        fix=dual.fix,
    )


def proof_of(problem: IntegerProblem, claim: Fraction, rng: np.random.Generator, most_steps: int) -> list[Step] | None:
    """Steps that prove a claim, found by a small branch and bound; None if there are too many."""
    steps = _steps_for(problem, root_region(problem), claim, rng, most_steps)
    return steps if len(steps) <= most_steps else None


def _steps_for(problem, region, claim, rng, most_steps):
    dual = good_dual(problem, region, rng, fix=bool(rng.random() < 0.8))
    _, rest = apply_dual(problem, region, dual, claim)
    if rest is None or most_steps <= 1:
        return [dual] if rest is None else [dual] * (most_steps + 1)
    split = random_split(problem, rest, rng)
    first, second = split_region(problem, rest, split)
    of_first = [] if first is None else _steps_for(problem, first, claim, rng, most_steps - 2)
    left = most_steps - 2 - len(of_first)
    of_second = [] if second is None else _steps_for(problem, second, claim, rng, max(left, 0))
    return [dual, dataclasses.replace(split, first=len(of_first)), *of_first, *of_second]


def random_split(problem: IntegerProblem, region: Region, rng: np.random.Generator) -> Split:
    """A split by a client, by a topic or by the θ of a server."""
    kind, server = rng.random(), int(rng.integers(problem.n_servers))
    if kind < 0.25:
        return SplitTopic(int(rng.integers(problem.n_topics)), server)
    if kind < 0.5:
        least, _ = theta_range(problem, region)
        low, high = 1024 * int(least[server]) >> 60, int(region.high[server])
        return SplitShare(server, int(rng.integers(min(low, 1022) + 1, max(high, low + 2))) if low < 1022 else 512)
    client = int(region.allowed.sum(axis=1).argmax())
    servers = np.flatnonzero(region.allowed[client])
    chosen = rng.permutation(servers)[: max(1, len(servers) // 2)]
    return SplitClient(client, tuple(chosen.tolist()))


def certificate_for(instance: Instance, rng: np.random.Generator, share: float, most_steps: int = 60) -> Certificate:
    """A certificate that proves about a share of the optimum.

    Its homes are the worst ones, so that a false claim is not refused because of its homes.
    """
    problem, costs = IntegerProblem(instance), Costs(instance)
    least, _ = costs.least()
    assert least is not None
    while True:
        claim = math.floor(least * Fraction(share) * (1 << 40))
        steps = proof_of(problem, Fraction(claim, 1 << 40), rng, most_steps)
        if steps is not None:
            worst = costs.homes[costs.costs.argmax()].astype(np.int32)
            return Certificate(
                instance=instance.hash, home=worst, claim=claim, bits=40, proof=tuple(steps), made={"by": "a test"}
            )
        share *= 0.9
