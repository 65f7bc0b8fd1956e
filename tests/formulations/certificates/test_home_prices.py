import dataclasses
import functools
import itertools
import json
import math
import re
from fractions import Fraction

import numpy as np
import pytest

from relocbench.formulations.bounding.certificate_steps import home_prices_to_step
from relocbench.formulations.bounding.client_graph import client_graph
from relocbench.formulations.bounding.contents_relaxation import ContentsParams, ContentsRelaxation
from relocbench.formulations.certificates.budget import Budget
from relocbench.formulations.certificates.certificate import (
    Certificate,
    HomePrices,
    SplitShare,
    Step,
    read_certificate,
    write_certificate,
)
from relocbench.formulations.certificates.home_prices_bound import HomePricesBound
from relocbench.formulations.certificates.integer_problem import IntegerProblem
from relocbench.formulations.certificates.packed_arrays import unpacked
from relocbench.formulations.certificates.region import root_region
from relocbench.formulations.certificates.topic_search import TopicSearch
from relocbench.formulations.certificates.verification import verify
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation_exact import evaluate_exact
from relocbench.instances.files.homes_file import read_homes
from relocbench.instances.instance import Instance
from tests.formulations.certificates.duals import Costs, instances_of_every_kind, random_region, refused_by_the_second

ARRAYS = ("messages", "prices", "pair_prices", "least", "ends", "beta")
# Pairs get prices early, because the instances are small.
EARLY_PAIRS = ContentsParams(first_pairs=5, next_pairs=5, violated=0.001)
# Numbers that an attack may use: limits of 64 and 40 bits, and what is next to them.
EXTREMES = (0, 1, -1, 1 << 39, 1 << 40, (1 << 40) + 1, -(1 << 40), 1 << 62, (1 << 63) - 1, -(1 << 63))


def found_step(instance: Instance, steps: int = 25) -> HomePrices:
    """The step that the solver finds for an instance."""
    home = np.zeros(instance.n_clients, np.int32)
    cost = float(evaluate_exact(instance, home).objective)
    relaxation = ContentsRelaxation(client_graph(instance), home, cost, EARLY_PAIRS)
    for _ in range(steps):
        relaxation.step()
    relaxation.prove(100_000)
    return home_prices_to_step(relaxation.dual)


def random_step(problem: IntegerProblem, rng: np.random.Generator) -> HomePrices:
    """A step with random prices and ranges. No content is below its limits as far as limits go without a search."""
    clients, servers, ranges = problem.n_clients, problem.n_servers, int(rng.integers(0, 6))
    local = rng.integers(-(1 << 20), 1 << 21, (clients, servers))
    prices = np.hstack([local, local - rng.integers(-(1 << 18), 1 << 21, (clients, servers))])
    return HomePrices(
        bits=18,
        multiplier_bits=30,
        ranges=ranges,
        messages=rng.integers(-(1 << 16), 1 << 16, (len(problem.first), 2 * servers)),
        prices=prices,
        pair_prices=np.maximum(rng.integers(-(1 << 20), 1 << 20, (len(problem.first), 2 * servers)), 0),
        least=-(1 << 24) * np.ones(servers, np.int64),
        ends=-np.sort(-rng.integers(0, (1 << 20) + 1, (servers, ranges)), axis=1),
        beta=rng.integers(0, 1 << 29, (servers, ranges + 2)),
    )


def largest_profit(instance: Instance, problem: IntegerProblem, bound: HomePricesBound, l: int) -> int:
    """The largest profit of a content of a server, by enumeration in rationals, rounded up."""
    best = Fraction(0)
    local, delegated = (bound._prices[:, label].tolist() for label in (l, problem.n_servers + l))
    pairs = list(zip(problem.first.tolist(), problem.second.tolist(), bound._pair_prices.tolist(), strict=True))
    allowed = np.flatnonzero(bound._region.allowed[:, l]).tolist()
    for size in range(len(allowed) + 1):
        for content in itertools.combinations(allowed, size):
            inside = set(content)
            loads = [0, 0]
            for u, publishers in zip(problem.spool.tolist(), instance.publishers, strict=True):
                here = len(inside & set(publishers.tolist()))
                loads[0] += u if here else 0
                loads[1] += u * here
            capacities = problem.storage_capacity[l], problem.compute_capacity[l]
            thetas = [Fraction(c, load) for c, load in zip(capacities, loads, strict=True) if load > c]
            theta = min([Fraction(1), *thetas])
            profit = sum((theta * local[m] + (1 - theta) * delegated[m] for m in content), Fraction(0))
            for i, j, price in pairs:
                if i in inside and j in inside:
                    profit += theta * price[l] + (1 - theta) * price[problem.n_servers + l]
            best = max(best, profit)
    return -(-best.numerator // best.denominator)


@pytest.mark.parametrize("part", range(2))
def test_no_content_is_better_than_the_search_says(part):
    tight = 0
    for number, instance in instances_of_every_kind(1, part, 2):
        problem, rng = IntegerProblem(instance), np.random.default_rng(number)
        bound = HomePricesBound(problem, random_region(problem, rng), random_step(problem, rng))
        for l in range(problem.n_servers):
            best = largest_profit(instance, problem, bound, l)
            search = TopicSearch(bound._server(l), Budget())
            assert best <= 0 or search.profit_above(best - 2)
            # The search relaxes compute loads and ranges of θ, so what it proves is above the largest profit or equal.
            tight += not TopicSearch(bound._server(l), Budget()).profit_above(best + 2)
            assert not TopicSearch(bound._server(l), Budget()).profit_above(1 << 41)
    assert tight > 15


def test_the_bound_of_prices_holds_for_every_assignment():
    raised = 0
    for number, instance in instances_of_every_kind(1):
        problem, rng, costs = IntegerProblem(instance), np.random.default_rng(number), Costs(instance)
        region = root_region(problem) if number % 2 else random_region(problem, rng, costs)
        least, _ = costs.least(costs.inside(region))
        bound = HomePricesBound(problem, region, found_step(instance))
        bound.check()
        assert bound.value <= least
        raised += bound.value > 0.9 * least
    assert raised > 8


def arrays_of(problem: IntegerProblem, step: HomePrices) -> dict[str, np.ndarray]:
    """The arrays of a step."""
    servers, labels = problem.n_servers, 2 * problem.n_servers
    shapes = {"messages": (len(problem.first), labels), "prices": (problem.n_clients, labels), "least": (servers,)}
    shapes["pair_prices"] = shapes["messages"]
    shapes |= {"ends": (servers, step.ranges), "beta": (servers, step.ranges + 2)}
    return {name: unpacked(getattr(step, name), shape, name).copy() for name, shape in shapes.items()}


@functools.cache
def samples() -> list[tuple[Instance, IntegerProblem, Certificate, Fraction]]:
    """Instances of every kind, each with a proof by prices of homes and its optimal cost."""
    found = []
    for _, instance in instances_of_every_kind(1):
        problem = IntegerProblem(instance)
        least, home = Costs(instance).least()
        step = found_step(instance)
        value = HomePricesBound(problem, root_region(problem), step).value
        proof = Certificate(instance=instance.hash, home=home, claim=int(value * (1 << 30)), bits=30, proof=(step,))
        found.append((instance, problem, proof, least))
    return found


def tampered(problem: IntegerProblem, proof: Certificate, least: Fraction, rng: np.random.Generator) -> Certificate:
    """The certificate with one to three changes of its step, its claim, or both."""
    step, claim, optimum = proof.proof[0], proof.claim, math.ceil(least * (1 << proof.bits))
    before: tuple[Step, ...] = ()
    for _ in range(rng.integers(1, 4)):
        numbers = arrays_of(problem, step)
        kinds = [
            "one",
            "one",
            "one",
            "raise",
            "prices",
            "delegated",
            "pairs",
            "shift",
            "field",
            "claim",
            "order",
            "scale",
            "split",
        ]
        kind = rng.choice(kinds)
        name = rng.choice([name for name in ARRAYS if numbers[name].size])
        flat = numbers[name].reshape(-1)
        where = int(rng.integers(flat.size))
        more = int(rng.choice([1, 1 << 8, 1 << 16, 1 << 22, 1 << 39]))
        if kind == "one":
            by = int(rng.choice([-1, 1])) * (1 << int(rng.integers(0, 24)))
            near = min(max(int(flat[where]) + by, -(1 << 63)), (1 << 63) - 1)
            flat[where] = int(rng.choice(EXTREMES)) if rng.random() < 0.4 else near
        elif kind == "raise":  # claim more than the optimum, and raise the limits to match it
            numbers["least"] += more
            claim = max(claim, optimum + 1)
        elif kind == "prices":  # higher prices, paid for by the limits or not
            numbers["prices"] += more
            if rng.random() < 0.5:
                numbers["least"] -= more * problem.n_clients
        elif kind == "delegated":  # contents would earn more by delegation
            numbers["prices"][:, problem.n_servers :] += more
        elif kind == "pairs":  # pairs of clients pay for what they have together, or get something for it
            numbers["pair_prices"] += more if rng.random() < 0.7 else -more
        elif kind == "shift":  # from one server to another
            numbers["least"] += more * (np.arange(problem.n_servers) == where % problem.n_servers)
            numbers["least"] -= more * (np.arange(problem.n_servers) == (where + 1) % problem.n_servers)
        elif kind == "field":
            field = str(rng.choice(["bits", "multiplier_bits", "ranges"]))
            value = int(
                rng.choice([0, -1, 1, 256, 257, 2200, -2200, getattr(step, field) - 1, getattr(step, field) + 1])
            )
            step = dataclasses.replace(step, **{field: value})
            break
        elif kind == "claim":
            claim = optimum + int(rng.integers(3))
        elif kind == "order":
            flat[:] = flat[::-1].copy()
        elif kind == "split":
            before = (SplitShare(0, int(rng.integers(1, 1024)), int(rng.integers(0, 2))), step)
        else:
            flat *= int(rng.choice([-1, 0, 2, 1 << 12]))
        step = dataclasses.replace(step, **numbers)
    return dataclasses.replace(proof, proof=(*before, step), claim=claim)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_no_change_of_prices_proves_a_false_claim(part):
    proved = refused_by_search = 0
    known = samples()
    for number in range(part, 2400, 2):
        instance, problem, proof, least = known[number // 2 % len(known)]
        verdict = verify(instance, tampered(problem, proof, least, np.random.default_rng(number)))
        assert (verdict.reason == "") == verdict.proved
        assert len(verdict.reason.splitlines()) <= 1
        if verdict.proved:
            proved += 1
            assert verdict.bound <= least
        refused_by_search += "expected at most the value of every content" in verdict.reason
    assert 100 < proved < 1000
    assert sum(arrays_of(problem, proof.proof[0])["pair_prices"].any() for _, problem, proof, _ in known) > 5
    assert refused_by_search > 100


@pytest.mark.slow
def test_both_verifiers_agree_on_changed_prices(tmp_path):
    path, agreed = tmp_path / "cert.json", [0, 0]
    known = [sample for sample in samples() if sample[0].n_clients <= 5]
    for number in range(200):
        instance, problem, proof, least = known[number % len(known)]
        write_certificate(tampered(problem, proof, least, np.random.default_rng([1, number])), path)
        first = verify(instance, path)
        reason = refused_by_the_second(instance, path)
        # The first verifier rounds, and relaxes θ to ranges and compute loads to fractions of clients.
        assert not first.proved or reason == ""
        if not first.proved and reason == "":
            assert re.search("one may be less|2\\^40|is not proved", first.reason), first.reason
        agreed[first.proved] += first.proved == (reason == "")
    assert min(agreed) > 10


def test_the_file_keeps_a_step_with_prices(tmp_path):
    _, instance = next(instances_of_every_kind(1, 4))
    problem, home = IntegerProblem(instance), np.zeros(instance.n_clients, np.int32)
    step = found_step(instance)
    value = HomePricesBound(problem, root_region(problem), step).value
    proof = Certificate(instance=instance.hash, home=home, claim=int(value * (1 << 30)), bits=30, proof=(step,))
    write_certificate(proof, tmp_path / "proof.json")
    assert '"relocbench-certificate/3"' in (tmp_path / "proof.json").read_text()
    assert verify(instance, tmp_path / "proof.json") == verify(instance, proof)
    assert verify(instance, proof).proved
    assert read_homes(tmp_path / "proof.json", instance).tolist() == home.tolist()
    read = read_certificate(tmp_path / "proof.json").proof[0]
    assert (read.bits, read.ranges) == (step.bits, step.ranges)
    # The first format does not have this step, and the second has it without prices of pairs.
    for version, reason in (("1", "proof[0].step: expected dual"), ("2", "proof[0].pair_prices: unknown field")):
        old = (tmp_path / "proof.json").read_text().replace("certificate/3", f"certificate/{version}")
        (tmp_path / "old.json").write_text(old)
        assert reason in verify(instance, tmp_path / "old.json").reason


def test_a_step_of_the_format_before_has_no_prices_of_pairs(tmp_path):
    _, instance = next(instances_of_every_kind(1, 4))
    problem, path = IntegerProblem(instance), tmp_path / "proof.json"
    nothing = np.zeros((len(problem.first), 2 * problem.n_servers), np.int64)
    step = dataclasses.replace(found_step(instance), pair_prices=nothing)
    proof = Certificate(instance=instance.hash, home=Costs(instance).least()[1], claim=1, bits=30, proof=(step,))
    write_certificate(proof, path)
    content = json.loads(path.read_text())
    content["format"] = "relocbench-certificate/2"
    del content["proof"][0]["pair_prices"]
    path.write_text(json.dumps(content))
    assert verify(instance, path) == verify(instance, proof)
    assert verify(instance, path).proved
    assert refused_by_the_second(instance, path) == ""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ranges": 257}, "ranges: expected a number from 0 to 256"),
        ({"ends": np.array([[1, 2]]), "ranges": 2}, "ends: expected"),
        ({"prices": np.array([[1 << 50]])}, r"prices\[0\]: expected a number from"),
        ({"beta": -1}, "beta: expected numbers from 0"),
        ({"pair_prices": -1}, "pair_prices: expected numbers from 0"),
    ],
)
def test_a_step_out_of_range_is_refused_with_a_reason(change, reason):
    _, instance = next(instances_of_every_kind(1, 4))
    problem = IntegerProblem(instance)
    step = random_step(problem, np.random.default_rng(0))
    servers, ranges = problem.n_servers, change.get("ranges", step.ranges)
    shapes = {"ends": (servers, ranges), "prices": (problem.n_clients, 2 * servers), "beta": (servers, ranges + 2)}
    shapes["pair_prices"] = (len(problem.first), 2 * servers)
    arrays = {name: np.broadcast_to(value, shapes[name]).copy() for name, value in change.items() if name in shapes}
    if "ends" in change:
        arrays["beta"] = np.zeros((servers, ranges + 2), np.int64)
    wrong = dataclasses.replace(step, **(change | arrays))
    with pytest.raises(InputError, match=reason):
        HomePricesBound(problem, root_region(problem), wrong)


def test_a_search_that_takes_too_long_is_refused():
    _, instance = next(instances_of_every_kind(1, 4))
    problem = IntegerProblem(instance)
    bound = HomePricesBound(problem, root_region(problem), random_step(problem, np.random.default_rng(0)))
    with pytest.raises(InputError, match="time limit"):
        TopicSearch(bound._server(0), Budget(time_limit=0.0)).profit_above(0)
