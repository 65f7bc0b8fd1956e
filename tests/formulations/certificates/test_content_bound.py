"""Contents steps: their bound is true, they prove what branch and price finds, and no change proves a false claim."""

import dataclasses
import functools
import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from relocbench.formulations.branch_price.solve import grow_tree
from relocbench.formulations.certificates import budget
from relocbench.formulations.certificates.certificate import (
    Certificate,
    Contents,
    SplitClient,
    SplitShare,
    read_certificate,
    write_certificate,
)
from relocbench.formulations.certificates.content_bound import ContentBound
from relocbench.formulations.certificates.integer_problem import IntegerProblem
from relocbench.formulations.certificates.packed_arrays import unpacked
from relocbench.formulations.certificates.region import restricted, root_region
from relocbench.formulations.certificates.verification import verify
from relocbench.formulations.incumbent import Incumbent
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation_exact import evaluate_exact
from relocbench.instances.files.instance_json import to_json
from relocbench.instances.generators.families import FAMILIES
from tests.formulations.certificates import second_verifier as second
from tests.formulations.certificates.duals import Costs, instances_of_every_kind, refused_by_the_second
from tests.samples import KINDS, enumerable_instance, scaled_delays, worked_example

pytest.importorskip("highspy")
NAMES = ("client_prices", "pair_prices", "least")


def arrays_of(problem, step):
    """The numbers of a step."""
    shapes = (problem.n_clients,), (len(problem.sender), problem.n_servers), (problem.n_servers,)
    return {name: unpacked(getattr(step, name), shape, name) for name, shape in zip(NAMES, shapes, strict=True)}


def random_step(problem, rng, bits):
    """A step with random prices of useful sizes."""
    size = 2.0**bits * max(float(problem.detour), 0.1)
    clients, pairs, servers = problem.n_clients, len(problem.sender), problem.n_servers
    pi = rng.normal(1, 1, clients) * size * rng.choice([0.1, 1, 3])
    h = np.maximum(rng.normal(0, 0.3, (pairs, servers)), 0) * size * rng.choice([0, 0.3, 1])
    return Contents(
        bits=bits,
        client_prices=pi.astype(np.int64),
        pair_prices=h.astype(np.int64),
        least=np.zeros(servers, np.int64),
    )


def random_allowed(problem, rng):
    allowed = rng.random((problem.n_clients, problem.n_servers)) < rng.choice([0.4, 0.8, 1.0])
    allowed[np.arange(problem.n_clients), rng.integers(problem.n_servers, size=problem.n_clients)] = True
    return allowed


def exact_least(p, region, contents, l):
    """The least value of a server's contents, from its definition in docs/certificates.md, by enumeration."""
    possible = [m for m in range(p.M) if l in region.allowed[m]]
    best = math.inf
    for flags in itertools.product((False, True), repeat=len(possible)):
        content = {m for m, flag in zip(possible, flags, strict=True) if flag}
        if any(region.allowed[m] == {l} and m not in content for m in possible):
            continue
        theta = p.theta(l, content)
        value = sum(p.w[m] * p.dH[m][l] - contents.pi[m] + (1 - theta) * 2 * p.dC * p.f[m] for m in content)
        for m in range(p.M):
            for r, weight in p.W[m].items():
                if m in content and r not in content:
                    others = [weight * p.dS[l][k] + contents.h[m, r, k] for k in region.allowed[r] if k != l]
                    value += theta * min(others)
                if r in content and m not in content:
                    value -= contents.h[m, r, l]
        best = min(best, value)
    return best


@pytest.mark.slow
@pytest.mark.parametrize("near", [False, True])
def test_prices_of_any_size_bound_every_assignment_of_a_region(near):
    for number, instance in instances_of_every_kind(2, int(near), 2):
        rng = np.random.default_rng([number, near])
        if near:  # the cloud is nearer than the other servers
            instance = dataclasses.replace(instance, cloud_delay=instance.cloud_delay / 40)
        problem, costs = IntegerProblem(instance), Costs(instance)
        region = restricted(problem, root_region(problem), random_allowed(problem, rng))
        bits = int(rng.choice([12, 20, 30]))
        step = random_step(problem, rng, bits)
        p = second.Problem(json.loads(to_json(instance)))
        same = second.Region([np.flatnonzero(row).tolist() for row in region.allowed], (), [0] * p.L, [1] * p.L)
        packed_step = json.loads(json.dumps(as_json(step)))
        exact = second.Contents(p, packed_step)
        least = [exact_least(p, same, exact, l) for l in range(p.L)]
        optimum, _ = costs.least(costs.inside(region))
        assert sum(exact.pi.values()) + sum(least) <= optimum
        # The verifier accepts the least values up to its rounding, and nothing above them.
        unit = Fraction(2) ** -bits
        size = (
            sum(abs(x) for x in exact.pi.values())
            + sum(exact.h.values())
            + 2 * p.dC * sum(p.f.values())
            + sum(p.w[m] * max(p.dH[m]) for m in range(p.M))
        )
        slack = (5 * p.M + 3 * len(exact.h)) + size / unit / 10**8
        lowered = np.array([math.floor(value / unit - slack) for value in least])
        ContentBound(problem, region, dataclasses.replace(step, least=lowered)).check()
        second_step = second.Contents(p, json.loads(json.dumps(as_json(dataclasses.replace(step, least=lowered)))))
        second_step.check(p, same)
        for l in range(p.L):
            raised = lowered.copy()
            raised[l] = math.floor(least[l] / unit) + 1
            with pytest.raises(InputError, match=rf"least\[{l}\]: expected at most the value of every content, but"):
                ContentBound(problem, region, dataclasses.replace(step, least=raised)).check()


def as_json(step):
    from relocbench.formulations.certificates.certificate import step_to_json

    return step_to_json(step)


def proof_of(instance, seed=0):
    """A certificate from the tree of branch and price; its homes are the worst ones, so that they refuse no claim."""
    incumbent = Incumbent(instance, None, None)
    finished, tree, _ = grow_tree(incumbent, seed, 60)
    assert finished
    costs = Costs(instance)
    claim = tree.bound * (1 - 2e-7)
    bits = 60 - math.frexp(claim)[1]
    return Certificate(
        instance=instance.hash,
        home=costs.homes[costs.costs.argmax()].astype(np.int32),
        claim=math.floor(Fraction(claim) * Fraction(2) ** bits),
        bits=bits,
        proof=tuple(tree.steps(claim)),
        made={"by": "a test"},
    )


@functools.cache
def samples():
    """Instances of every kind, each with a proof by contents and its optimal cost."""
    found = []
    for number, instance in instances_of_every_kind(1):
        least, _ = Costs(instance).least()
        if least > 0:
            found.append((instance, proof_of(instance, number), least))
    # Most of these trees are a single leaf, so one of them is split by hand.
    instance, certificate, least = found[0]
    leaf = certificate.proof[0]
    split = (SplitClient(0, (0,), 3), SplitClient(1, (1,), 1), *[leaf] * 3)
    return [*found, (instance, dataclasses.replace(certificate, proof=split), least)]


def test_branch_and_price_proves_the_optimum_of_every_kind_of_instance():
    for instance, certificate, least in samples():
        verdict = verify(instance, certificate)
        assert verdict.reason == ""
        assert least * (1 - Fraction(1, 10**6)) <= verdict.bound <= least


@pytest.mark.parametrize("factor", [2.0**-900, 1e-9, 1e9])
def test_the_unit_of_the_delays_does_not_matter(factor):
    for seed in range(0, len(KINDS), 3):
        instance = scaled_delays(enumerable_instance(seed, 100, 2), factor)
        least = evaluate_exact(instance, Costs(instance).least()[1]).objective
        if least:
            verdict = verify(instance, proof_of(instance))
            assert verdict.reason == ""
            assert least * (1 - Fraction(1, 10**6)) <= verdict.bound <= least


def test_single_delays_and_loads_of_other_magnitudes_never_give_a_false_bound():
    tried = accepted = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        instance = enumerable_instance(seed, 100, 2)
        every = np.arange(instance.n_clients)[:, None], np.arange(instance.n_servers)[None, :]
        client, server = np.array(instance.client_delay(*every)), np.array(instance.server_delay)
        client[rng.integers(len(client)), rng.integers(len(server))] *= float(rng.choice([1e-12, 1e11]))
        server[0, 1] *= float(rng.choice([1e-12, 1, 1e11]))
        spool, capacity = instance.spool.copy(), instance.storage_capacity.copy()
        spool[0] *= float(rng.choice([1e-12, 1, 1e11, 1 / 3]))
        capacity[0] *= float(rng.choice([0, 1, 1e-9, 1e11]))
        changed = dataclasses.replace(
            instance, client_server_delay=client, server_server_delay=server, spool=spool, storage_capacity=capacity
        )
        least, _ = Costs(changed).least()
        incumbent = Incumbent(changed, None, None)
        _, tree, _ = grow_tree(incumbent, 0, 60)
        if tree is None or tree.bound <= 0:
            continue
        claim = tree.bound * (1 - 2e-7)
        bits = 60 - math.frexp(claim)[1]
        homes = Costs(changed).homes[Costs(changed).costs.argmax()].astype(np.int32)
        claimed = math.floor(Fraction(claim) * Fraction(2) ** bits)
        proof = tuple(tree.steps(claim))
        verdict = verify(changed, Certificate(instance=changed.hash, home=homes, claim=claimed, bits=bits, proof=proof))
        tried, accepted = tried + 1, accepted + verdict.proved
        assert not verdict.proved or verdict.bound <= least
    assert accepted >= tried - 1 > 12


def test_a_contents_step_is_stored_in_the_second_format_and_read_back_unchanged(tmp_path):
    path = tmp_path / "cert.json"
    instance, certificate, _ = samples()[-1]
    write_certificate(certificate, path)
    content = json.loads(path.read_text())
    assert content["format"] == "relocbench-certificate/2"
    read = read_certificate(path)
    assert verify(instance, read) == verify(instance, certificate)
    again = tmp_path / "again.json"
    write_certificate(read, again)
    assert again.read_bytes() == path.read_bytes()
    # The first format has no such step.
    path.write_text(json.dumps(content | {"format": "relocbench-certificate/1"}))
    reason = "proof[2].step: expected dual, split-client, split-topic or split-share, got 'contents'"
    assert reason in verify(instance, path).reason


# Numbers that an attack may use: limits of 64 and 46 bits, and what is next to them.
EXTREMES = (0, 1, -1, 1 << 45, (1 << 46) - 1, 1 << 46, -(1 << 46), 1 << 62, (1 << 63) - 1, -(1 << 63), -(1 << 62))


def tampered(problem, certificate, least, rng):
    """The certificate with one to three changes, aimed at the contents steps."""
    proof, claim, bits = list(certificate.proof), certificate.claim, certificate.bits
    optimum = math.ceil(least * Fraction(2) ** bits)
    for _ in range(rng.integers(1, 4)):
        place = int(rng.choice([i for i, step in enumerate(proof) if isinstance(step, Contents)]))
        step = proof[place]
        numbers = {name: array.copy() for name, array in arrays_of(problem, step).items()}
        kind = rng.choice(["one", "one", "raise", "prices", "shift", "bits", "steps", "claim", "order", "scale"])
        name = rng.choice([name for name in NAMES if numbers[name].size])
        flat = numbers[name].reshape(-1)
        where = int(rng.integers(flat.size))
        if kind == "one":
            flat[where] = int(rng.choice(EXTREMES)) if rng.random() < 0.5 else flat[where] + int(rng.choice([-1, 1]))
        elif kind == "raise":  # claim more than the optimum, and raise the limits to match it
            more = int(rng.choice([1, 1 << 10, 1 << 20, 1 << 30]))
            numbers["least"] += more
            claim = max(claim, optimum + 1)
        elif kind == "prices":  # higher prices of clients, paid for by the limits or not
            more = int(rng.choice([1, 1 << 20, 1 << 40, 1 << 44]))
            numbers["client_prices"] += more
            if rng.random() < 0.5:
                numbers["least"] -= more * problem.n_clients // problem.n_servers
        elif kind == "shift":  # from one server to another
            more = int(rng.choice([1, 1 << 10, 1 << 30]))
            numbers["least"][where % problem.n_servers] += more
            numbers["least"][(where + 1) % problem.n_servers] -= more
        elif kind == "bits":
            step = dataclasses.replace(step, bits=int(rng.choice([0, step.bits - 1, step.bits + 1, 2200, -2200])))
        elif kind == "steps":
            proof.insert(int(rng.integers(len(proof) + 1)), proof[place])
            if rng.random() < 0.5:
                proof.pop(int(rng.integers(len(proof))))
            if rng.random() < 0.3:
                proof.insert(0, SplitShare(0, int(rng.integers(1, 1024)), int(rng.integers(0, 3))))
            if not any(isinstance(each, Contents) for each in proof):
                break
            continue
        elif kind == "claim":
            claim = int(rng.choice([0, 1, 2])) + optimum
        elif kind == "order":
            flat[:] = flat[::-1].copy()
        else:
            flat *= int(rng.choice([-1, 2, 1 << 12]))
        proof[place] = dataclasses.replace(step, **numbers)
    return dataclasses.replace(certificate, proof=tuple(proof), claim=claim)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_no_change_of_a_contents_step_proves_a_false_claim(part):
    proved = refused_by_search = 0
    known = samples()
    problems = [IntegerProblem(instance) for instance, _, _ in known]
    for number in range(part, 2400, 2):
        rng = np.random.default_rng(number)
        which = number // 2 % len(known)
        instance, certificate, least = known[which]
        verdict = verify(instance, tampered(problems[which], certificate, least, rng))
        assert (verdict.reason == "") == verdict.proved
        assert len(verdict.reason.splitlines()) <= 1
        if verdict.proved:
            proved += 1
            assert verdict.bound <= least
        refused_by_search += "expected at most the value of every content" in verdict.reason
    assert 100 < proved < 1100
    assert refused_by_search > 100


@pytest.mark.slow
def test_both_verifiers_agree_on_changed_contents_steps(tmp_path):
    path, agreed = tmp_path / "cert.json", [0, 0]
    known = [sample for sample in samples() if sample[0].n_clients <= 4]
    for number in range(200):
        rng = np.random.default_rng([1, number])
        instance, certificate, least = known[number % len(known)]
        changed = tampered(IntegerProblem(instance), certificate, least, rng)
        write_certificate(changed, path)
        first = verify(instance, path)
        reason = refused_by_the_second(instance, path)
        # The first verifier has limits on magnitudes of its own, and rounds.
        assert not first.proved or reason == ""
        if not first.proved and reason == "":
            assert "2^46" in first.reason or "is less" in first.reason, first.reason
        agreed[first.proved] += first.proved == (reason == "")
    assert min(agreed) > 10


def example():
    """The paper's example with a proof of all prices 0."""
    problem = IntegerProblem(worked_example())
    zero = {name: np.zeros_like(array) for name, array in arrays_of(problem, samples_step(problem)).items()}
    return problem, root_region(problem), Contents(bits=20, **zero)


def samples_step(problem):
    return random_step(problem, np.random.default_rng(0), 20)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("pair_prices", -1, "pair_prices[0]: expected a number from 0 to 2^46, got -1"),
        ("pair_prices", 1 << 46, "pair_prices[0]: expected a number from 0 to 2^46, got 70368744177664"),
        ("client_prices", 1 << 46, "client_prices[0]: expected a number from -2^46 to 2^46, got 70368744177664"),
        (
            "client_prices",
            -(1 << 63),
            "client_prices[0]: expected a number from -2^46 to 2^46, got -9223372036854775808",
        ),
    ],
)
def test_prices_out_of_range_are_refused_by_name(name, value, reason):
    problem, region, step = example()
    ContentBound(problem, region, step).check()
    array = getattr(step, name).copy()
    array.reshape(-1)[0] = value
    with pytest.raises(InputError) as caught:
        ContentBound(problem, region, dataclasses.replace(step, **{name: array}))
    assert str(caught.value) == reason


def test_prices_that_sum_to_too_much_are_refused():
    problem, region, step = example()
    large = dataclasses.replace(step, client_prices=np.full(problem.n_clients, 1 << 45))
    with pytest.raises(InputError, match=r"server 0: expected values that sum to less than 2\^46 units"):
        ContentBound(problem, region, large).check()
    limits = dataclasses.replace(step, least=np.array([1 << 62, 0]))
    with pytest.raises(InputError, match=r"server 0: expected values that sum to less than 2\^46 units"):
        ContentBound(problem, region, limits).check()


def test_on_a_single_assignment_prices_of_0_give_its_cost():
    for seed in range(len(KINDS)):
        instance = enumerable_instance(seed, 200, 2)
        problem, costs = IntegerProblem(instance), Costs(instance)
        home = costs.homes[seed % len(costs.homes)]
        allowed = np.arange(problem.n_servers)[None, :] == home[:, None]
        region = restricted(problem, root_region(problem), allowed)
        cost = evaluate_exact(instance, home).objective
        claim = math.floor(cost * (1 << 30) * (1 - Fraction(1, 10**7))) - 100
        p = second.Problem(json.loads(to_json(instance)))
        zero = {
            name: np.zeros_like(array)
            for name, array in arrays_of(problem, random_step(problem, np.random.default_rng(0), 30)).items()
        }
        step = Contents(bits=30, **zero)
        same = second.Region([{int(l)} for l in home], (), [0] * p.L, [1] * p.L)
        exact = [exact_least(p, same, second.Contents(p, as_json(step)), l) for l in range(p.L)]
        assert sum(exact) == cost
        least = np.array([math.floor(value * (1 << 30) * (1 - Fraction(1, 10**7))) - 20 for value in exact])
        bound = ContentBound(problem, region, dataclasses.replace(step, least=least))
        bound.check()
        assert claim - 100 <= bound.value * (1 << 30) <= cost * (1 << 30)


def test_a_verification_beyond_the_time_limit_is_refused_with_the_reason(monkeypatch):
    instance = FAMILIES["small"].cells({"regime": "overloaded", "clients": 20})[0].build(0)
    step = random_step(IntegerProblem(instance), np.random.default_rng(0), 20)
    certificate = Certificate(
        instance=instance.hash,
        home=np.zeros(20, np.int32),
        claim=1,
        bits=20,
        proof=(dataclasses.replace(step, client_prices=np.full(20, 1 << 30), least=np.full(4, -(1 << 32))),),
    )
    # Each look at the clock takes a second. So the limit is reached in the search, on every machine.
    seconds = itertools.count()
    monkeypatch.setattr(budget.time, "thread_time", lambda: float(next(seconds)))
    verdict = verify(instance, certificate, time_limit=20.0)
    assert "proof[0]: server 0: not proved within the time limit of 20 s; raise it with --time-limit" in verdict.reason
