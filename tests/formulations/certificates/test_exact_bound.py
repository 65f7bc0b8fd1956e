import dataclasses
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest

from relocbench.formulations.certificates import exact_bound as bound_module
from relocbench.formulations.certificates.certificate import dual_step
from relocbench.formulations.certificates.exact_bound import DualBound
from relocbench.formulations.certificates.integer_problem import IntegerProblem, rounded_delays, rounded_weights
from relocbench.formulations.certificates.packed_arrays import unpacked
from relocbench.formulations.certificates.region import ONE, Region, restricted, root_region, theta_range
from relocbench.formulations.linearisation import linearise
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation_exact import evaluate_exact
from tests.formulations.certificates.best_duals import BestDual
from tests.formulations.certificates.duals import (
    Costs,
    good_dual,
    instances_of_every_kind,
    integer_dual,
    perturbed,
    random_dual,
    random_hard,
    random_region,
    scaled,
    share_places,
    zero_dual,
)
from tests.samples import KINDS, random_home, random_instance, scaled_delays, worked_example


def number(rounded):
    return np.ldexp(rounded.mantissa.astype(float), rounded.exponent)


def test_coefficients_are_rounded_in_the_right_direction_by_very_little():
    for seed in range(len(KINDS)):
        instance = random_instance(seed)
        problem, model = IntegerProblem(instance), linearise(instance)
        unit = 1 << problem.load_bits
        assert [Fraction(a, unit) for a in problem.storage_capacity] == [
            Fraction(a) for a in instance.storage_capacity.tolist()
        ]
        np.testing.assert_allclose(problem.demand.astype(float) / unit, model.demand)
        np.testing.assert_array_equal(problem.publications, model.publications)
        for found, true in (
            (number(problem.weight), model.weight),
            (number(problem.distance), model.client_delay),
            (number(problem.between), model.server_delay),
        ):
            assert (found <= true * (1 + 1e-15)).all()
            np.testing.assert_allclose(found, true, rtol=1e-8, atol=1e-9)

        true = np.zeros((instance.n_clients, instance.n_clients))
        true[model.sender, model.receiver] = model.pair_weight
        sent = np.zeros_like(true)
        sent[problem.sender, problem.receiver] = number(problem.sent)
        assert (sent >= true * (1 - 1e-15)).all()
        np.testing.assert_allclose(sent, true, rtol=1e-8)
        i, j = problem.first, problem.second
        pairs = [true[i, j], true[j, i]] if len(problem.edge_weights) == 2 else [true[i, j] + true[j, i]]
        for found, wanted in zip(map(number, problem.edge_weights), pairs, strict=True):
            assert (found <= wanted * (1 + 1e-15)).all()
            np.testing.assert_allclose(found, wanted, rtol=1e-8)
        edges = {(min(m, r), max(m, r)) for m, r in zip(model.sender.tolist(), model.receiver.tolist(), strict=True)}
        assert list(zip(i.tolist(), j.tolist(), strict=True)) == sorted(edges)


def test_numbers_of_any_size_keep_their_precision():
    slack = Fraction(1, 10**6)
    for delays in ([1.0, 3.5, 0.0], [1e12, 1e-3, 0.0], [5e-324, 1e12, 1.0], [0.0, 0.0, 0.0], [2.0**33 - 0.5, 1.0, 0.1]):
        for upwards in (False, True):
            rounded = rounded_delays(np.array([delays]), upwards)
            for delay, mantissa, exponent in np.nditer([np.array([delays]), rounded.mantissa, rounded.exponent]):
                true, found = Fraction(float(delay)), Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
                assert true * (1 - slack) <= found <= true * (1 + slack)
                assert found >= true if upwards else found <= true
    values = np.array([0, 1, 2**29 - 1, 2**29, 2**29 + 1, 2**50 - 1])
    for upwards in (False, True):
        rounded = rounded_weights(values, upwards)
        for value, mantissa, exponent in zip(values.tolist(), rounded.mantissa, rounded.exponent, strict=True):
            found = int(mantissa) << int(exponent) + 40
            assert abs(found - value) <= value >> 28
            assert found >= value if upwards else found <= value


# No dual proves a bound above the optimum. Optima come from enumeration, for all kinds of instances and duals.


def duals_to_try(problem, region, rng):
    for _ in range(2):
        good = good_dual(problem, region, rng)
        yield from (random_dual(problem, region, rng), good, scaled(problem, region, good, rng))
        yield from (perturbed(good, rng), perturbed(good, rng))
        # In coarse units rounding errors are large.
        units = {"bits": int(rng.integers(0, 6)), "multiplier_bits": int(rng.integers(0, 8))}
        yield good_dual(problem, region, rng, **units)


def check_fixing(costs, inside, bound, claim):
    """Check that no home of an assignment below the claim is forbidden."""
    cheap = inside & (costs.costs < float(claim) * (1 + 1e-12))
    for client, server in np.argwhere(bound.forbidden(claim)):
        least, _ = costs.least(cheap & (costs.homes[:, client] == server))
        assert least is None or least >= claim


@pytest.mark.slow
@pytest.mark.parametrize("fine", [24, 0])
@pytest.mark.parametrize("part", range(2))
def test_no_dual_proves_a_bound_above_the_optimum(part, fine, monkeypatch):
    monkeypatch.setattr(bound_module, "FINER_BITS", fine)
    closeness, forbidden, kinds = [], 0, Counter()
    for seed, instance in instances_of_every_kind(10, part, 2):
        rng = np.random.default_rng([seed, fine])
        problem, costs = IntegerProblem(instance), Costs(instance)
        region = root_region(problem)
        if rng.random() < 0.75:
            region = random_region(problem, rng, costs)
            region = restricted(problem, region, region.allowed)
        inside = costs.inside(region)
        least, _ = costs.least(inside)
        best = Fraction(-1)
        for dual in duals_to_try(problem, region, rng):
            bound = DualBound(problem, region, dual)
            assert bound.value <= least
            best = max(best, bound.value)
            kinds.update(name for name in ("alpha", "beta", "hard") if any(getattr(dual, name)))
            for share in (0.3, 1.0, 1.5):
                claim = bound.value + max(least - bound.value, Fraction(1, 100)) * Fraction(share)
                check_fixing(costs, inside, bound, claim)
                forbidden += int(bound.forbidden(claim).sum())
        kinds.update({"open": region.open.any(), "low": region.low.any(), "high": (region.high < 1024).any()})
        if least > 0:
            closeness.append(float(best / least))
    # With bad duals the assertions above would hold trivially.
    assert np.percentile(closeness, 50) > 0.9
    assert np.mean(np.array(closeness) > 0.99999) > 0.3
    assert forbidden > 3000
    assert min(kinds[name] for name in ("alpha", "beta", "hard")) > 300
    assert min(kinds[name] for name in ("open", "low", "high")) > 15


def exact_charges(instance, region, dual):
    """The charges of the allowed homes and the constant of docs/certificates.md, without any rounding."""
    clients, servers = range(instance.n_clients), range(instance.n_servers)
    u = [Fraction(float(spool)) for spool in instance.spool]
    topics = [{n for n, own in enumerate(instance.publishers) if m in own.tolist() and u[n] > 0} for m in clients]
    weight = {(m, r): Fraction(0) for m in clients for r in clients}
    publications = [0] * instance.n_clients
    for publishers, subscribers in zip(instance.publishers, instance.subscribers, strict=True):
        for m in publishers.tolist():
            receivers = set(subscribers.tolist()) - {m}
            publications[m] += bool(receivers)
            for r in receivers:
                weight[m, r] += Fraction(1, len(receivers))
    homes = [set(np.flatnonzero(row).tolist()) for row in region.allowed]
    opened = [{n for n in range(instance.n_topics) if region.open[n, l] and u[n] > 0} for l in servers]
    storage, compute = (
        [Fraction(float(x)) for x in column] for column in (instance.storage_capacity, instance.compute_capacity)
    )
    alpha, beta = ([Fraction(x, 1 << dual.multiplier_bits) for x in column] for column in (dual.alpha, dual.beta))
    share = defaultdict(Fraction)
    places = np.argwhere(dual.active).tolist()
    order = [(m, n, l) for m in clients for n in sorted(topics[m]) for k, l in places if k == m]
    share |= {place: Fraction(int(x), 1 << dual.bits) for place, x in zip(order, dual.shares, strict=True)}

    def theta(l, there, more=frozenset()):
        stored = sum(u[n] for n in set(more).union(*(topics[m] for m in there)))
        computed = sum(u[n] for m in there for n in topics[m])
        loads = (storage[l], stored), (compute[l], computed)
        return min([Fraction(1)] + [capacity / load for capacity, load in loads if load])

    charges, constant = {}, Fraction(0)
    for l in servers:
        least = max(theta(l, [m for m in clients if l in homes[m]]), Fraction(int(region.low[l]), 1024))
        constant += sum(alpha[l] * u[n] for n in opened[l])
        constant -= (alpha[l] * storage[l] + beta[l] * compute[l]) / (least if dual.hard[l] else 1)
        for m in clients:
            if l not in homes[m]:
                continue
            certain = {r for r in clients if homes[r] == {l}} | {m}
            most = min(theta(l, certain, opened[l]), Fraction(int(region.high[l]), 1024)) if least < 1 else least
            local = beta[l] * sum(u[n] for n in topics[m]) + sum(share[m, n, l] for n in topics[m] - opened[l])
            remote = 2 * Fraction(instance.cloud_delay) * publications[m]
            for r in set(clients) - {m}:
                remote -= weight[m, r] * max(Fraction(float(instance.server_delay[l, k])) for k in homes[r])
            if dual.hard[l]:
                charges[m, l] = local + min((1 - t) * remote for t in (least, most))
            else:
                remote -= sum(alpha[l] * u[n] for n in topics[m] & opened[l])
                charges[m, l] = min(t * local + (1 - t) * remote for t in (least, most))
    return charges, constant


@pytest.mark.parametrize("fine", [24, 4])
def test_charges_are_those_of_the_definition_rounded_down(fine, monkeypatch):
    monkeypatch.setattr(bound_module, "FINER_BITS", fine)
    for seed, instance in instances_of_every_kind(4):
        rng = np.random.default_rng([seed, fine])
        problem = IntegerProblem(instance)
        region = random_region(problem, rng)
        dual = random_dual(problem, region, rng, bits=fine // 2, multiplier_bits=int(rng.integers(0, 20)))
        bound = DualBound(problem, region, dual)
        found, constant = bound._charges()
        charges, exact = exact_charges(instance, region, dual)
        unit = Fraction(1, 1 << bound.unit)
        assert exact - (problem.n_servers * 2) * unit < constant * unit <= exact
        for place, charge in charges.items():
            slack = (problem.degree + 5) * unit + (abs(charge) + 1) * Fraction(1, 10**6)
            assert charge - slack < int(found[place]) * unit <= charge


def test_open_topics_count_once():
    close = Counter()
    for seed, instance in instances_of_every_kind(6):
        rng = np.random.default_rng(seed)
        problem, costs = IntegerProblem(instance), Costs(instance)
        opened = np.zeros((problem.n_topics, problem.n_servers), bool)
        home = costs.homes[rng.integers(len(costs.homes))]
        for topic in rng.permutation(problem.n_topics)[: 1 + seed % 3]:
            opened[topic, home[instance.publishers[int(topic)]][:1]] = True
        everything = root_region(problem)
        region = restricted(problem, everything, everything.allowed, opened)
        least, _ = costs.least(costs.inside(region))
        hard = random_hard(problem, region, rng)
        best = BestDual(problem, region, hard)
        active = np.ones_like(region.allowed)
        _, topic, server = share_places(problem, active)
        publishers = np.array([len(own) for own in instance.publishers])[topic]
        spool = problem.spool.astype(float)[topic] / (1 << problem.load_bits)
        for factor in (0.5, 1.0, 1.001, 30.0, 1000.0):
            alpha = factor * (best.alpha + (factor != 1.0) * rng.random())
            shares = alpha[server] * spool / publishers
            dual = integer_dual(problem, active, best.messages, shares, alpha, np.zeros_like(alpha), hard)
            bound = DualBound(problem, region, dual).value
            assert bound <= least
            close[factor] += bound > best.value - 1
    assert close[1.0] > 30


def test_the_bound_is_that_of_the_linear_program():
    for seed, instance in instances_of_every_kind(4):
        rng = np.random.default_rng(seed)
        problem = IntegerProblem(instance)
        region = random_region(problem, rng) if seed % 3 else root_region(problem)
        hard = random_hard(problem, region, rng)
        best = BestDual(problem, region, hard)
        active = np.ones_like(region.allowed)
        dual = integer_dual(problem, active, best.messages, best.shares, best.alpha, best.beta, hard)
        assert float(DualBound(problem, region, dual).value) == pytest.approx(best.value, rel=1e-6, abs=1e-6)


def region_of(problem, home):
    """The region of one assignment."""
    everything = root_region(problem)
    allowed = np.arange(problem.n_servers)[None, :] == home[:, None]
    return Region(allowed, everything.open, everything.low, everything.high)


@pytest.mark.parametrize("factor", [1.0, 2.0**-30, 1e9])
def test_on_a_single_assignment_the_bound_is_the_cost(factor):
    for seed in range(4 * len(KINDS)):
        instance = scaled_delays(random_instance(seed), factor)
        home = random_home(instance, seed)
        problem, cost = IntegerProblem(instance), evaluate_exact(instance, home).objective
        for bits in (16, 20, 40, 50):
            value = DualBound(problem, region_of(problem, home), zero_dual(problem, bits=bits)).value
            assert value <= cost
            assert value == pytest.approx(float(cost), rel=2e-8, abs=1e-8)


def test_large_delays_do_not_reduce_the_precision_of_small_ones():
    between = np.array([[0, 1.0, 1e12], [1.0, 0, 1e12], [1e12, 1e12, 0]])
    instance = dataclasses.replace(
        worked_example(),
        server_x=np.zeros(3),
        server_y=np.zeros(3),
        storage_capacity=np.full(3, 10.0),
        compute_capacity=np.full(3, 20.0),
        server_server_delay=between,
    )
    problem, home = IntegerProblem(instance), np.array([0, 0, 1, 1])
    cost = evaluate_exact(instance, home).objective
    value = DualBound(problem, region_of(problem, home), zero_dual(problem)).value
    assert value <= cost
    assert float(value) == pytest.approx(float(cost), rel=1e-8)


def test_with_large_capacities_the_bound_of_the_zero_dual_is_the_least_distance_cost():
    fits = 0
    for seed in range(4 * len(KINDS)):
        instance = random_instance(seed)
        problem = IntegerProblem(instance)
        least, _ = theta_range(problem, root_region(problem))
        if (least == ONE).all():
            fits += 1
            value = DualBound(problem, root_region(problem), zero_dual(problem)).value
            assert float(value) == pytest.approx(linearise(instance).least_distance_cost, rel=1e-8)
    assert fits > 25


def test_short_and_long_integers_give_the_same_answer(monkeypatch):
    lengths = Counter()
    for seed, instance in instances_of_every_kind(2):
        rng = np.random.default_rng(seed)
        problem = IntegerProblem(instance)
        region = random_region(problem, rng) if seed % 2 else root_region(problem)
        dual = good_dual(problem, region, rng)
        short, long = DualBound(problem, region, dual), DualBound(problem, region, dual, long=True)
        assert long.long
        lengths[short.long] += 1
        assert (short.total, short.unit) == (long.total, long.unit)
        claim = short.value + 1
        np.testing.assert_array_equal(short.forbidden(claim), long.forbidden(claim))
        # The result does not depend on the size of the blocks of edges.
        monkeypatch.setattr(bound_module, "ENTRIES", 7)
        blocks = DualBound(problem, region, dual)
        assert blocks.total == short.total
        np.testing.assert_array_equal(blocks.forbidden(claim), short.forbidden(claim))
        monkeypatch.undo()
    assert lengths[False] > 50


def finer(dual, by):
    """The same dual in units that are smaller by a factor of ``2^by``."""
    return dataclasses.replace(
        dual,
        bits=dual.bits + by,
        multiplier_bits=dual.multiplier_bits + 2 * by,
        **{name: np.asarray(getattr(dual, name)) << by for name in ("messages", "shares")},
        **{name: tuple(value << 2 * by for value in getattr(dual, name)) for name in ("alpha", "beta")},
    )


def test_fine_units_need_long_integers_and_change_little():
    for seed, instance in instances_of_every_kind(1):
        rng = np.random.default_rng(seed)
        problem = IntegerProblem(instance)
        region = root_region(problem)
        dual = random_dual(problem, region, rng)
        coarse, fine = DualBound(problem, region, dual), DualBound(problem, region, finer(dual, 26))
        assert (coarse.long, fine.long) == (False, True)
        assert float(coarse.value) == pytest.approx(float(fine.value), rel=1e-8, abs=1e-7)


def test_active_homes_that_are_not_allowed_are_ignored():
    for seed, instance in instances_of_every_kind(2):
        rng = np.random.default_rng(seed)
        problem, everything = IntegerProblem(instance), root_region(IntegerProblem(instance))
        region = dataclasses.replace(random_region(problem, rng), open=everything.open)
        dual = random_dual(problem, region, rng)
        # A client without an allowed active home has all allowed homes active, with messages and shares of 0.
        lacking = ~(dual.active & region.allowed).any(axis=1)
        kept = (dual.active & region.allowed) | (lacking[:, None] & region.allowed)
        messages, shares = np.zeros((len(problem.first), problem.n_servers)), []
        messages[dual.active[problem.first]] = dual.messages
        client, topic, server = share_places(problem, dual.active)
        given = dict(zip(zip(client, topic, server, strict=True), dual.shares, strict=True))
        shares = np.array([given.get(place, 0) for place in zip(*share_places(problem, kept), strict=True)], np.int64)
        same = dataclasses.replace(
            dual, active=kept, messages=messages[kept[problem.first]].astype(np.int64), shares=shares
        )
        assert DualBound(problem, region, same).value == DualBound(problem, region, dual).value


def test_a_dual_step_can_be_made_from_floats_that_are_integers_in_their_units():
    for seed, instance in instances_of_every_kind(1):
        rng = np.random.default_rng(seed)
        problem, region = IntegerProblem(instance), root_region(IntegerProblem(instance))
        dual = random_dual(problem, region, rng, bits=18, multiplier_bits=25, fix=True)
        floats = [np.ldexp(np.asarray(getattr(dual, name), float), -18) for name in ("messages", "shares")]
        prices = [np.ldexp(np.asarray(getattr(dual, name), float), -25) for name in ("alpha", "beta")]
        step = dual_step(dual.active, *floats, *prices, np.array(dual.hard, bool), 18, 25, True)
        for name in ("bits", "multiplier_bits", "fix", "alpha", "beta", "hard"):
            assert getattr(step, name) == getattr(dual, name)
        for name in ("active", "messages", "shares"):
            array = getattr(dual, name)
            np.testing.assert_array_equal(unpacked(getattr(step, name), array.shape, name), array)
        assert DualBound(problem, region, step).total == DualBound(problem, region, dual).total


@pytest.mark.parametrize("value", [0.25, np.nan, np.inf, 2.0**63])
def test_floats_that_are_not_integers_in_their_units_are_refused(value):
    active, none = np.ones((1, 1), bool), np.zeros(1)
    for place, name in enumerate(("messages", "shares", "alpha", "beta")):
        columns = [np.array([value]) if position == place else none for position in range(4)]
        with pytest.raises(InputError, match=f"^{name}: expected multiples of 2"):
            dual_step(active, *columns, none, 1, 1, False)


def example():
    problem = IntegerProblem(worked_example())
    return problem, root_region(problem), zero_dual(problem, bits=20, multiplier_bits=20)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"alpha": (1,)}, "alpha: expected 2 numbers, got 1"),
        ({"alpha": (1, -1)}, "alpha[1]: expected a whole number from 0, got -1"),
        (
            {"beta": (1 << 200, 0)},
            "beta[0]: expected a whole number from 0, got 160693804425899027554196209234116260252…",
        ),
        ({"hard": (1, 0, 0)}, "hard: expected 2 numbers, got 3"),
        ({"hard": (1, 1 << 100)}, "hard: expected zeros and ones"),
        ({"bits": 2201}, "bits: expected a number from -2200 to 2200, got 2201"),
        ({"active": np.ones((4, 3), bool)}, "active: expected numbers of shape (4, 2), got (4, 3)"),
        ({"active": np.full((4, 2), 2)}, "active: expected zeros and ones"),
        ({"messages": np.zeros(3, np.int64)}, "messages: expected numbers of shape (6,), got (3,)"),
        ({"messages": np.zeros(6)}, "messages: expected whole numbers, got float64"),
        ({"shares": np.full(8, -1)}, "shares[0]: expected a number from 0, got -1"),
        ({"shares": np.full(8, 1)}, "shares: expected no more than the price of each topic, got more"),
    ],
)
def test_wrong_numbers_in_a_dual_are_refused_by_name(change, reason):
    problem, region, dual = example()
    assert DualBound(problem, region, dual).value > 0
    with pytest.raises(InputError) as caught:
        DualBound(problem, region, dataclasses.replace(dual, **change))
    assert str(caught.value) == reason


def test_shares_of_homes_that_are_not_allowed_count_as_well():
    problem, region, dual = example()
    price = {"alpha": (1 << 20, 1 << 20), "shares": np.full(8, (8 << 20) // 3)}
    dual = dataclasses.replace(dual, **price | {"shares": price["shares"] * (np.arange(8) < 6)})
    DualBound(problem, region, dual)
    allowed = np.array([[1, 0], [1, 0], [0, 1], [1, 1]], bool)
    more = dataclasses.replace(dual, shares=np.array([8, 0, 8, 0, 0, 0, 0, 0]) << 19)
    DualBound(problem, dataclasses.replace(region, allowed=allowed), more)
    more.shares[4] = 1
    with pytest.raises(InputError, match="expected no more than the price"):
        DualBound(problem, dataclasses.replace(region, allowed=allowed), more)


def test_a_server_whose_theta_may_be_0_cannot_be_hard():
    problem = IntegerProblem(dataclasses.replace(worked_example(), storage_capacity=np.array([10.0, 0.0])))
    dual = zero_dual(problem)
    DualBound(problem, root_region(problem), dataclasses.replace(dual, hard=(1, 0)))
    with pytest.raises(InputError, match="hard: expected 0 for server 1, whose θ may be 0"):
        DualBound(problem, root_region(problem), dataclasses.replace(dual, hard=(0, 1)))
    # It can be hard if θ is known to be above 0.
    region = dataclasses.replace(root_region(problem), low=np.array([0, 1]))
    DualBound(problem, region, dataclasses.replace(dual, hard=(0, 1)))


def test_prices_that_are_subtracted_are_rounded_up(monkeypatch):
    monkeypatch.setattr(bound_module, "FINER_BITS", 0)
    problem, region, dual = example()
    coarse = dataclasses.replace(dual, bits=0)
    total = DualBound(problem, region, coarse).total
    for prices in ({"alpha": (1, 0)}, {"beta": (0, 1)}, {"alpha": (1, 0), "hard": (1, 1)}):
        assert DualBound(problem, region, dataclasses.replace(coarse, **prices)).total == total - 1


def test_a_dual_without_active_homes_proves_what_zero_messages_prove():
    edges = 0
    for seed in range(len(KINDS)):
        problem = IntegerProblem(random_instance(seed))
        region = root_region(problem)
        edges += len(problem.first)
        # Where a client may not be at every server, the messages that follow from zeros are not 0.
        part = restricted(problem, region, np.random.default_rng(seed).random(region.allowed.shape) < 0.5)
        silent, zero = zero_dual(problem, np.zeros(region.allowed.shape, bool)), zero_dual(problem)
        for place in (region, part):
            if place is not None:
                assert DualBound(problem, place, silent).value == DualBound(problem, place, zero).value
    assert edges > 100
