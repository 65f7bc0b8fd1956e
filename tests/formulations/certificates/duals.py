"""Duals for tests: random ones of every kind, ones made good, and what the best assignment really costs."""

import dataclasses
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

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
from relocbench.formulations.certificates.exact_bound import after_dual
from relocbench.formulations.certificates.integer_problem import WholeProblem, whole
from relocbench.formulations.certificates.region import State, cases, root, theta_range
from relocbench.instances.evaluation import evaluate
from relocbench.instances.evaluation_exact import evaluate_exact
from relocbench.instances.instance import Instance
from tests.formulations.certificates.best_duals import BestDual
from tests.samples import KINDS, enumerable_instance


def instances_of_every_kind(each: int, part: int = 0, parts: int = 1) -> Iterator[tuple[int, Instance]]:
    """Different instances, so many of each kind, that can be enumerated and in which somebody sends something."""
    for number in range(part, each * len(KINDS), parts):
        seed = number % len(KINDS) + 1000 * len(KINDS) * (number // len(KINDS))
        while True:
            instance = enumerable_instance(seed, most=260, least_servers=2)
            if instance.n_publications > 1:
                yield number, instance
                break
            seed += 50 * len(KINDS)


class Costs:
    """What every assignment costs, and each server's θ."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.homes = np.array(list(itertools.product(range(instance.n_servers), repeat=instance.n_clients)))
        found = [evaluate(instance, home) for home in self.homes]
        self.costs = np.array([result.objective for result in found])
        self.thetas = np.array([result.theta for result in found])

    def inside(self, state: State) -> np.ndarray:
        """Which assignments belong to a state."""
        inside = state.allowed[np.arange(self.instance.n_clients), self.homes].all(axis=1)
        for topic, server in np.argwhere(state.open):
            inside &= (self.homes[:, self.instance.publishers[int(topic)]] == server).any(axis=1)
        # Shares that are close to an end may be wrong as floats: those assignments are looked at exactly.
        inside &= (self.thetas * 1024 > state.low - 1e-6).all(axis=1)
        inside &= (self.thetas * 1024 < state.high + 1e-6).all(axis=1)
        close = (abs(self.thetas * 1024 - state.low) < 1e-6) | (abs(self.thetas * 1024 - state.high) < 1e-6)
        close &= (state.low > 0) | (state.high < 1024)
        for index in np.flatnonzero(inside & close.any(axis=1)):
            theta = evaluate_exact(self.instance, self.homes[index]).theta
            inside[index] = all(
                low <= 1024 * t <= high
                for low, t, high in zip(state.low.tolist(), theta, state.high.tolist(), strict=True)
            )
        return inside

    def least(self, which: np.ndarray | None = None) -> tuple[Fraction | None, np.ndarray | None]:
        """The exact cost of the best of these assignments, and that assignment; None without any."""
        which = np.ones(len(self.costs), bool) if which is None else which
        if not which.any():
            return None, None
        close = which & (self.costs <= self.costs[which].min() * (1 + 1e-9) + 1e-12)
        exact = [(evaluate_exact(self.instance, home).objective, home.tolist()) for home in self.homes[close]]
        cost, home = min(exact)
        return cost, np.array(home)


def random_state(problem: WholeProblem, rng: np.random.Generator, costs: Costs | None = None) -> State:
    """Some homes forbidden, some topics open, some shares limited: not so that all is, if costs are given."""
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
    return State(allowed, opened, low, high)


def random_hard(problem: WholeProblem, state: State, rng: np.random.Generator) -> np.ndarray:
    """Some of the servers that may be hard."""
    least, _ = theta_range(problem, state)
    return (least > 0).astype(bool) & (rng.random(problem.n_servers) < rng.choice([0, 0.5, 1]))


def whole_dual(
    problem: WholeProblem,
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
    """A dual of floats: multipliers rounded up, all else down, and shares cut that are then above their price."""
    prices, others = (
        [math.ceil(value) for value in np.ldexp(np.maximum(x, 0.0), multiplier_bits).tolist()] for x in (alpha, beta)
    )
    kept = np.floor(np.ldexp(np.maximum(shares, 0.0), bits)).astype(np.int64)
    _, topic, server = share_places(problem, active)
    limit = ((problem.spool[:, None] * whole(prices)[None, :]) << bits) >> (multiplier_bits + problem.load_bits)
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


def share_places(problem: WholeProblem, active: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Client, topic and server of each share."""
    places = [
        (m, n, l)
        for m, n in zip(problem.publisher_client.tolist(), problem.publisher_topic.tolist(), strict=True)
        for l in np.flatnonzero(active[m])
    ]
    client, topic, server = np.array(places or np.empty((0, 3)), np.int64).T
    return client, topic, server


def zero_dual(problem: WholeProblem, active: np.ndarray | None = None, **settings) -> Dual:
    active = np.ones((problem.n_clients, problem.n_servers), bool) if active is None else active
    none = np.zeros(problem.n_servers)
    messages, shares = np.zeros(active[problem.first].sum()), np.zeros(active[problem.publisher_client].sum())
    return whole_dual(problem, active, messages, shares, none, none, none, **settings)


def random_dual(problem: WholeProblem, state: State, rng: np.random.Generator, **settings) -> Dual:
    """Every number random, in the range where it matters, most of them as large as their constraint allows."""
    servers = problem.n_servers
    active = rng.random(state.allowed.shape) < rng.choice([0.1, 0.4, 1.0])
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
    hard = random_hard(problem, state, rng)
    return whole_dual(problem, active, messages, shares, alpha, beta, hard, **settings)


def good_dual(problem: WholeProblem, state: State, rng: np.random.Generator, **settings) -> Dual:
    """The best dual, for some choice of hard servers; now and then, without the numbers of some homes."""
    hard = random_hard(problem, state, rng)
    best = BestDual(problem, state, hard)
    active = np.ones(state.allowed.shape, bool)
    if rng.random() < 0.2:
        active = rng.random(state.allowed.shape) < 0.8
    messages = best.messages[active[problem.first].ravel()]
    shares = best.shares[active[problem.publisher_client].ravel()]
    return whole_dual(problem, active, messages, shares, best.alpha, best.beta, hard, **settings)


def perturbed(dual: Dual, rng: np.random.Generator) -> Dual:
    """A few messages moved a little, a lot or by one unit."""
    messages = np.array(dual.messages)
    if len(messages):
        size = int(rng.choice([1, 1 << 10, 1 << 22, 1 << 28]))
        which = rng.random(len(messages)) < rng.choice([0.1, 1.0])
        messages[which] += rng.integers(-size, size + 1, int(which.sum()))
    return dataclasses.replace(dual, messages=messages)


def scaled(problem: WholeProblem, state: State, dual: Dual, rng: np.random.Generator) -> Dual:
    """The same dual with prices changed by random factors, shares with them, and other servers hard."""

    def factors():
        return rng.choice([0, 0.3, 0.7, 1, 1, 1, 1.3, 2, 50], problem.n_servers)

    by = factors()
    _, _, server = share_places(problem, dual.active)
    unit = 2.0**dual.multiplier_bits
    return whole_dual(
        problem,
        dual.active,
        np.ldexp(dual.messages.astype(float), -dual.bits),
        np.ldexp(dual.shares.astype(float), -dual.bits) * by[server],
        np.array(dual.alpha) / unit * by,
        np.array(dual.beta) / unit * factors(),
        random_hard(problem, state, rng),
        bits=dual.bits,
        multiplier_bits=dual.multiplier_bits,
        fix=dual.fix,
    )


def proof_of(problem: WholeProblem, claim: Fraction, rng: np.random.Generator, most_steps: int) -> list[Step] | None:
    """Steps that prove a claim, found by a small branch and bound; None if it takes too many."""
    steps = _steps_for(problem, root(problem), claim, rng, most_steps)
    return steps if len(steps) <= most_steps else None


def _steps_for(problem, state, claim, rng, most_steps):
    dual = good_dual(problem, state, rng, fix=bool(rng.random() < 0.8))
    _, rest = after_dual(problem, state, dual, claim)
    if rest is None or most_steps <= 1:
        return [dual] if rest is None else [dual] * (most_steps + 1)
    split = random_split(problem, rest, rng)
    first, second = cases(problem, rest, split)
    of_first = [] if first is None else _steps_for(problem, first, claim, rng, most_steps - 2)
    left = most_steps - 2 - len(of_first)
    of_second = [] if second is None else _steps_for(problem, second, claim, rng, max(left, 0))
    return [dual, dataclasses.replace(split, first=len(of_first)), *of_first, *of_second]


def random_split(problem: WholeProblem, state: State, rng: np.random.Generator) -> Split:
    """Two cases of a client with a choice, of a topic, or of a server's share."""
    kind, server = rng.random(), int(rng.integers(problem.n_servers))
    if kind < 0.25:
        return SplitTopic(int(rng.integers(problem.n_topics)), server)
    if kind < 0.5:
        least, _ = theta_range(problem, state)
        low, high = 1024 * int(least[server]) >> 60, int(state.high[server])
        return SplitShare(server, int(rng.integers(min(low, 1022) + 1, max(high, low + 2))) if low < 1022 else 512)
    client = int(state.allowed.sum(axis=1).argmax())
    servers = np.flatnonzero(state.allowed[client])
    chosen = rng.permutation(servers)[: max(1, len(servers) // 2)]
    return SplitClient(client, tuple(chosen.tolist()))


def certificate_for(instance: Instance, rng: np.random.Generator, share: float, most_steps: int = 60) -> Certificate:
    """A certificate of about a share of the optimum; its homes are the worst, so that false claims have room."""
    problem, costs = WholeProblem(instance), Costs(instance)
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
