"""A second verifier of certificates of timelines, written from docs/certificates.md alone: exact rationals.

A timeline is given as prices ``(handover, spool, publication period)`` and for each epoch one tuple ``(seconds, client
numbers, topic numbers, instance as parsed JSON)``.
"""

from collections import Counter
from fractions import Fraction

from tests.formulations.certificates import second_verifier as second
from tests.formulations.certificates.second_verifier import Problem, Rejected, demand, unpacked

__all__ = ["Rejected", "schedule_cost", "verify"]
LARGEST = 2**40


def schedule_cost(prices, epochs, homes):
    """Return the cost of a schedule as a rational, by the definition in docs/moving.md."""
    handover, spool, period = map(Fraction, prices)
    demand(len(homes) == len(epochs), "homes: wrong number of epochs")
    total, home_before, open_before = Fraction(0), {}, set()
    for (seconds, clients, topics, instance), home in zip(epochs, homes, strict=True):
        p = Problem(instance)
        demand(len(home) == p.M and all(0 <= server < p.L for server in home), "homes: wrong servers")
        total += Fraction(seconds) / period * p.cost(home)
        home_now = dict(zip(clients, home, strict=True))
        total += handover * sum(client in home_before and home_before[client] != home_now[client] for client in clients)
        open_now = {(topic, home[m]) for n, topic in enumerate(topics) for m in p.P[n]}
        for topic, _ in open_now - open_before:
            if any(other == topic for other, _ in open_before):
                total += spool * p.u[topics.index(topic)]
        home_before, open_before = home_now, open_now
    return total


def verify(timeline, prices, epochs, certificate):
    """Return (cost of the schedule or None, bound) as rationals, or raise Rejected."""
    demand(certificate["timeline"] == timeline, "timeline: the certificate was made for another one")
    demand(len(certificate["epochs"]) == len(epochs), "epochs: wrong number")
    homes = certificate.get("homes")
    cost = None if homes is None else schedule_cost(prices, epochs, homes)
    claim = certificate["claim"] * Fraction(2) ** -certificate["bits"]
    demand(cost is None or claim <= cost, "claim: above the cost of the schedule")
    if claim > 0:
        demand(sum(parts(prices, epochs, certificate)) >= claim, "claim: above the sum of the epochs")
    return cost, max(claim, Fraction(0))


def parts(prices, epochs, certificate):
    """Yield what each epoch adds to the bound, after proving its claim."""
    handover, spool, period = map(Fraction, prices)
    unit = Fraction(2) ** -certificate["potential_bits"]
    problems = [Problem(epoch[3], *(proof.get(name) for name in ("delay_cap", "cloud_cap")))
                for epoch, proof in zip(epochs, certificate["epochs"], strict=True)]  # fmt: skip
    added = [Counter() for _ in epochs]
    for t, proof in enumerate(certificate["epochs"]):
        _, clients, topics, _ = epochs[t]
        servers = range(problems[t].L)
        if proof.get("potentials") is not None:
            demand(t + 1 < len(epochs), "potentials: in the last epoch")
            later = epochs[t + 1][1]
            both = [client for client in clients if client in later]
            potential = unpacked(proof, "potentials", [(client, l) for client in both for l in servers], 1)
            for client in both:
                own = [potential[client, l] for l in servers]
                demand(
                    max(map(abs, own)) <= LARGEST and (max(own) - min(own)) * unit <= handover,
                    "potentials: too far apart",
                )
                for l in servers:
                    added[t][clients.index(client), l] += potential[client, l] * unit
                    added[t + 1][later.index(client), l] -= potential[client, l] * unit
        if proof.get("spool_shares") is not None:
            demand(t > 0, "spool_shares: in the first epoch")
            p, before, topics_before = problems[t], problems[t - 1], epochs[t - 1][2]
            copied = {
                n: before.P[topics_before.index(topic)] for n, topic in enumerate(topics) if topic in topics_before
            }
            places = [(m, n, l) for m in range(p.M) for n in p.topics[m] if copied.get(n) for l in servers]
            share = unpacked(proof, "spool_shares", places, 1)
            demand(all(0 <= x <= LARGEST for x in share.values()), "spool_shares: a number is out of range")
            for n, l in {(n, l) for _, n, l in places}:
                paid = unit * sum(share.get((m, n, l), 0) for m in p.P[n])
                demand(paid <= spool * p.u[n], "spool_shares: more than the price")
                for m in p.P[n]:
                    added[t][m, l] += unit * share[m, n, l]
                for m in copied[n]:
                    added[t - 1][m, l] -= paid
    for epoch, proof, problem, costs in zip(epochs, certificate["epochs"], problems, added, strict=True):
        rounds = Fraction(epoch[0]) / period
        claim = proof["claim"] * Fraction(2) ** -proof["bits"]
        problem.added = Counter({place: cost / rounds for place, cost in costs.items()})
        moves = any(costs.values())
        demand(
            not moves or all(s["step"] not in ("contents", "home-prices") for s in proof["proof"]), "step: not allowed"
        )
        if moves or claim > 0:
            second.prove(problem, proof["proof"], claim)
        yield rounds * (claim if moves else max(claim, 0))
