import dataclasses
import itertools
from fractions import Fraction

import numpy as np
import pytest

from relocbench.formulations.bounding.certificate_steps import home_prices_to_step
from relocbench.formulations.bounding.client_graph import client_graph
from relocbench.formulations.bounding.contents_relaxation import ContentsRelaxation
from relocbench.formulations.certificates.budget import Budget
from relocbench.formulations.certificates.certificate import (
    Certificate,
    HomePrices,
    read_certificate,
    write_certificate,
)
from relocbench.formulations.certificates.home_prices_bound import HomePricesBound, apply_home_prices
from relocbench.formulations.certificates.integer_problem import IntegerProblem
from relocbench.formulations.certificates.packed_arrays import unpacked
from relocbench.formulations.certificates.region import root_region
from relocbench.formulations.certificates.topic_search import TopicSearch
from relocbench.formulations.certificates.verification import verify
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation_exact import evaluate_exact
from relocbench.instances.instance import Instance
from tests.formulations.certificates.duals import Costs, instances_of_every_kind, random_region

ARRAYS = ("messages", "prices", "least", "ends", "beta")


def found_step(instance: Instance, steps: int = 25) -> HomePrices:
    """The step that the solver finds for an instance."""
    home = np.zeros(instance.n_clients, np.int32)
    relaxation = ContentsRelaxation(client_graph(instance), home, float(evaluate_exact(instance, home).objective))
    for _ in range(steps):
        relaxation.step()
    relaxation.prove(100_000)
    return home_prices_to_step(relaxation.dual)


def random_step(problem: IntegerProblem, rng: np.random.Generator, fix: bool = False) -> HomePrices:
    """A step with random prices and ranges. No content is below its limits as far as limits go without a search."""
    clients, servers, ranges = problem.n_clients, problem.n_servers, int(rng.integers(0, 6))
    prices = rng.integers(-(1 << 20), 1 << 21, (clients, servers))
    return HomePrices(
        bits=18,
        multiplier_bits=30,
        fix=fix,
        ranges=ranges,
        active=np.ones((clients, servers), np.int64),
        messages=rng.integers(-(1 << 16), 1 << 16, len(problem.first) * servers),
        prices=prices,
        least=-(1 << 23) * np.ones(servers, np.int64),
        ends=-np.sort(-rng.integers(0, (1 << 20) + 1, (servers, ranges)), axis=1),
        beta=rng.integers(0, 1 << 29, (servers, ranges + 2)),
    )


def largest_profit(instance: Instance, problem: IntegerProblem, bound: HomePricesBound, l: int) -> int:
    """The largest profit of a content of a server, by enumeration in rationals, rounded up."""
    prices, best = bound._prices[:, l].tolist(), Fraction(0)
    remote = [Fraction(int(c), 1 << (bound.unit - 18)) for c in bound._delegation_cost(l)]
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
            best = max(best, sum((prices[m] - (1 - theta) * remote[m] for m in content), Fraction(0)))
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


def test_fixing_by_prices_removes_no_assignment_below_the_claim():
    fixed = 0
    for _, instance in instances_of_every_kind(1):
        problem, costs = IntegerProblem(instance), Costs(instance)
        least, _ = costs.least()
        step = dataclasses.replace(found_step(instance), fix=True)
        claim = least * Fraction(101, 100)
        _, rest = apply_home_prices(problem, root_region(problem), step, claim)
        below = [home for home, cost in zip(costs.homes, costs.costs, strict=True) if cost < float(claim) * (1 - 1e-9)]
        if rest is None:
            assert not below
            continue
        fixed += int((~rest.allowed).sum())
        for home in below:
            assert rest.allowed[np.arange(len(home)), home].all()
    assert fixed > 10


def changed(step: HomePrices, problem: IntegerProblem, rng: np.random.Generator) -> HomePrices:
    """A step with one changed number or field."""
    name = str(rng.choice([*ARRAYS, "bits", "multiplier_bits", "ranges", "active"]))
    if name in ("bits", "multiplier_bits", "ranges"):
        return dataclasses.replace(step, **{name: getattr(step, name) + int(rng.choice([-1, 1, 3]))})
    servers, edges = problem.n_servers, len(problem.first)
    shapes = {"messages": (edges * servers,), "prices": (problem.n_clients, servers), "least": (servers,)}
    shapes |= {"ends": (servers, step.ranges), "beta": (servers, step.ranges + 2), "active": shapes["prices"]}
    array = unpacked(getattr(step, name), shapes[name], name).copy()
    if array.size:
        place = int(rng.integers(array.size))
        if name == "active":
            array.flat[place] = 0
        else:
            array.flat[place] += int(rng.choice([-1, 1])) * (1 << int(rng.integers(0, 24)))
    return dataclasses.replace(step, **{name: array})


def test_a_changed_step_is_refused_or_proves_a_true_bound():
    refused = accepted = 0
    for number, instance in instances_of_every_kind(1):
        problem, rng = IntegerProblem(instance), np.random.default_rng(number)
        least, home = Costs(instance).least()
        step = found_step(instance)
        for _ in range(12):
            wrong = changed(step, problem, rng)
            try:
                value = HomePricesBound(problem, root_region(problem), wrong).value
            except InputError:
                refused += 1
                continue
            # The largest claim that the step can be meant to prove.
            claim = int(value * (1 << 30))
            certificate = Certificate(instance=instance.hash, home=home, claim=claim, bits=30, proof=(wrong,))
            verdict = verify(instance, certificate)
            assert not verdict.proved or verdict.bound <= least
            accepted += verdict.proved
            refused += not verdict.proved
    assert refused > 50
    assert accepted > 50


def test_the_file_keeps_a_step_with_prices(tmp_path):
    _, instance = next(instances_of_every_kind(1, 4))
    problem, home = IntegerProblem(instance), np.zeros(instance.n_clients, np.int32)
    step = found_step(instance)
    value = HomePricesBound(problem, root_region(problem), step).value
    proof = Certificate(instance=instance.hash, home=home, claim=int(value * (1 << 30)), bits=30, proof=(step,))
    write_certificate(proof, tmp_path / "proof.json")
    assert '"relocbench-certificate/2"' in (tmp_path / "proof.json").read_text()
    assert verify(instance, tmp_path / "proof.json") == verify(instance, proof)
    assert verify(instance, proof).proved
    read = read_certificate(tmp_path / "proof.json").proof[0]
    assert (read.bits, read.ranges, read.fix) == (step.bits, step.ranges, step.fix)
    # The first format does not have this step.
    old = (tmp_path / "proof.json").read_text().replace("certificate/2", "certificate/1")
    (tmp_path / "old.json").write_text(old)
    assert "proof[0].step: expected dual" in verify(instance, tmp_path / "old.json").reason


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ranges": 257}, "ranges: expected a number from 0 to 256"),
        ({"ends": np.array([[1, 2]]), "ranges": 2}, "ends: expected"),
        ({"prices": np.array([[1 << 50]])}, r"prices\[0\]: expected a number from"),
        ({"beta": -1}, "beta: expected numbers from 0"),
    ],
)
def test_a_step_out_of_range_is_refused_with_a_reason(change, reason):
    _, instance = next(instances_of_every_kind(1, 4))
    problem = IntegerProblem(instance)
    step = random_step(problem, np.random.default_rng(0))
    servers, ranges = problem.n_servers, change.get("ranges", step.ranges)
    shapes = {"ends": (servers, ranges), "prices": (problem.n_clients, servers), "beta": (servers, ranges + 2)}
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
