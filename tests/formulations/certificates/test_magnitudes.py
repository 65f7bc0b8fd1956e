"""Caps on delays and units of every size: they keep every claim true."""

import dataclasses
import functools
import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from relocbench.formulations.certificates.certificate import Dual
from relocbench.formulations.certificates.exact_bound import DualBound
from relocbench.formulations.certificates.integer_problem import IntegerProblem, client_delay, server_delay
from relocbench.formulations.certificates.region import root_region
from relocbench.formulations.certificates.verification import cost, verify
from tests.formulations.certificates.duals import certificate_for, instances_of_every_kind, random_dual, zero_dual
from tests.samples import scaled_delays, worked_example


def least_cost(instance):
    """The cost of the best assignment, by enumeration in rationals."""
    homes = itertools.product(range(instance.n_servers), repeat=instance.n_clients)
    return min(cost(instance, home) for home in homes)


def with_matrices(instance, client=1.0, server=1.0, cloud=1.0):
    """The instance with explicit delays, multiplied by factors (numbers or matrices)."""
    every = np.arange(instance.n_clients)[:, None], np.arange(instance.n_servers)[None, :]
    return dataclasses.replace(
        instance,
        client_server_delay=client_delay(instance, *every) * client,
        server_server_delay=server_delay(instance) * server,
        cloud_delay=instance.cloud_delay * cloud,
    )


def with_outliers(instance, rng):
    """Some delays multiplied by 10 to 10⁹."""
    shape = instance.n_clients, instance.n_servers
    far_clients = np.where(rng.random(shape) < 0.2, 10.0 ** rng.integers(1, 10, shape), 1.0)
    shape = instance.n_servers, instance.n_servers
    far_servers = np.where(rng.random(shape) < 0.3, 10.0 ** rng.integers(1, 10, shape), 1.0)
    return with_matrices(instance, far_clients, far_servers, float(rng.choice([1.0, 1e6])))


def small_instances(each):
    for seed, instance in instances_of_every_kind(each):
        if instance.n_servers**instance.n_clients <= 90:
            yield seed, instance


@functools.cache
def certified():
    """Small instances with certificates."""
    return [
        (seed, instance, certificate_for(instance, np.random.default_rng(seed), 0.99, most_steps=5))
        for seed, instance in small_instances(1)
    ]


def test_no_dual_proves_a_bound_above_the_optimum_under_any_caps():
    tight, near = 0, 0
    for seed, instance in small_instances(2):
        rng = np.random.default_rng(seed)
        instance = with_outliers(instance, rng)
        near += 2 * instance.cloud_delay < instance.server_server_delay.max()
        least = least_cost(instance)
        for _ in range(6):
            cap = math.frexp(float(least))[1] + int(rng.integers(-6, 8))
            problem = IntegerProblem(instance, cap, cap + int(rng.integers(-3, 20)))
            region = root_region(problem)
            for dual in (random_dual(problem, region, rng, bits=20), zero_dual(problem)):
                value = DualBound(problem, region, dual).value
                assert value <= least
                tight += value > least / 4
    assert tight > 30
    assert near > 10


def test_caps_change_only_larger_delays():
    instance = with_matrices(worked_example())
    largest = max(instance.client_server_delay.max(), instance.server_server_delay.max())
    cap = math.frexp(largest)[1]
    plain, capped, lower = (IntegerProblem(instance, *caps) for caps in ((), (cap, cap + 9), (cap - 3, 0)))
    region = root_region(plain)
    values = [DualBound(problem, region, zero_dual(problem)).value for problem in (plain, capped, lower)]
    assert values[0] == values[1] >= values[2]
    assert lower.detour == 2
    assert lower.server_delay.max() == 2.0 ** (cap - 3)


@pytest.mark.parametrize("exponent", [-1000, -31, 30])
def test_a_certificate_in_other_units_proves_the_same_for_the_scaled_instance(exponent):
    proved = 0
    for _, instance, certificate in certified():
        other = with_matrices(scaled_delays(instance, 2.0**exponent))
        steps = tuple(
            dataclasses.replace(step, bits=step.bits - exponent, multiplier_bits=step.multiplier_bits - exponent)
            if isinstance(step, Dual)
            else step
            for step in certificate.proof
        )
        scaled = dataclasses.replace(certificate, instance=other.hash, bits=certificate.bits - exponent, proof=steps)
        one, two = verify(instance, certificate), verify(other, scaled)
        if scaled.bound <= cost(other, scaled.home.tolist()):
            assert (one.proved, one.status) == (two.proved, two.status), two.reason
            assert one.bound * Fraction(2) ** exponent == two.bound
            assert one.gap == pytest.approx(two.gap, rel=1e-9)
            proved += 1
    assert proved > 10


def test_no_change_of_caps_and_units_proves_a_false_claim():
    answers = Counter()
    for seed, instance, certificate in certified():
        rng = np.random.default_rng(seed)
        least = least_cost(instance)
        for _ in range(16):
            changes = {}
            for name in ("delay_cap", "cloud_cap"):
                if rng.random() < 0.7:
                    changes[name] = int(rng.choice([-1074, -40, -4, -2, -1, 0, 1, 2, 4, 40, 1023]))
            if rng.random() < 0.7:
                changes["claim"] = int(certificate.claim * rng.choice([0.0, -1.0, 0.5, 0.9, 1.005, 1.02, 2.0]))
            if rng.random() < 0.3:
                changes["bits"] = certificate.bits + int(rng.integers(-2, 3))
            if rng.random() < 0.5:
                by = int(rng.choice([-2000, -20, -1, 1, 20, 2000]))
                changes["proof"] = tuple(
                    dataclasses.replace(step, bits=step.bits + by) if isinstance(step, Dual) else step
                    for step in certificate.proof
                )
            verdict = verify(instance, dataclasses.replace(certificate, **changes))
            answers[verdict.proved] += 1
            assert (verdict.reason == "") == verdict.proved
            assert len(verdict.reason.splitlines()) <= 1
            if verdict.proved:
                assert 0 <= verdict.bound <= least
                assert (verdict.status == "optimal") == (verdict.stated_gap == 0)
    assert sum(answers.values()) >= 200
    assert min(answers.values()) > 30


def test_a_claim_of_0_needs_no_proof_and_one_above_0_does():
    instance = worked_example()
    certificate = dataclasses.replace(
        certificate_for(instance, np.random.default_rng(0), 0.9), claim=0, proof=(), bits=2200
    )
    assert verify(instance, certificate).bound == 0
    below = verify(instance, dataclasses.replace(certificate, claim=-5, bits=-2200))
    assert (below.bound, below.gap, below.status) == (0, 1, "feasible")
    assert not verify(instance, dataclasses.replace(certificate, claim=1)).proved
    nothing = with_matrices(instance, 0.0, 0.0, 0.0)
    assert verify(nothing, dataclasses.replace(certificate, instance=nothing.hash)).status == "optimal"


@pytest.mark.parametrize("name", ["delay_cap", "cloud_cap"])
def test_caps_that_are_no_floats_are_refused(name):
    certificate = certificate_for(worked_example(), np.random.default_rng(0), 0.9)
    for cap in (-1075, 1024, 0.5):
        verdict = verify(worked_example(), dataclasses.replace(certificate, **{name: cap}))
        assert verdict.reason.startswith(f"{name}: expected a number from -1074 to 1023, got {cap}")
