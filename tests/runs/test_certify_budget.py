import dataclasses
from functools import partial

import pytest

from relocbench.formulations.bounding.root_relaxation import RootRelaxation
from relocbench.formulations.certificates.certificate import Dual
from relocbench.formulations.certificates.packed_arrays import unpacked
from relocbench.formulations.certificates.verification import verify
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.nearest_server import nearest_server
from relocbench.runs import certify as certify_module
from relocbench.runs.certify import certify
from relocbench.runs.certify_budget import BudgetParams, TimeBudget
from relocbench.runs.solve import warm_up


@pytest.fixture(autouse=True, scope="module")
def _compiled():
    """Compile first: with an empty cache this takes longer than some of the time limits."""
    warm_up("bound")


@pytest.fixture
def clock(monkeypatch):
    """A clock of the budget that only the test moves."""

    class Clock:
        now = 0.0
        share = 1.0  # of a processor, for this thread
        of_process = 1.0  # the same for all threads together

        def perf_counter(self):
            return self.now

        def thread_time(self):
            return self.share * self.now

        def process_time(self):
            return self.of_process * self.now

    clock = Clock()
    monkeypatch.setattr("relocbench.runs.certify_budget.time", clock)
    return clock


INSTANCE = FAMILIES["paper"].cells({"sigma": 10})[0].build(0)
SMALL = FAMILIES["small"].cells({"regime": "scarce", "clients": 20})[0].build(0)
# Every instance is large, and nothing takes any time.
QUICK = BudgetParams(per_publication=1e-12, per_home=0.0, per_step=0.0, per_pair=0.0, noticeable=0.0)


def test_the_time_of_the_proof_is_kept_in_reserve(clock):
    budget = TimeBudget(INSTANCE, 100.0, BudgetParams(per_publication=0.0, per_home=0.0, per_step=1.0, per_pair=0.1))
    budget.count_pairs(edges=10, servers=3)
    assert budget.proof(2) == 2 * (1 + 0.1 * 90)
    clock.now = 79.0
    assert budget.allows(budget.proof(2))
    clock.now = 81.0
    assert not budget.allows(budget.proof(2))
    assert budget.until_twice == 119.0


def test_a_rehearsal_corrects_the_estimates(clock):
    budget = TimeBudget(INSTANCE, 100.0, BudgetParams(per_publication=0.0, per_home=1e-3, per_step=1.0))
    expected, with_messages = budget.without_messages, budget.proof(1)

    def verification():
        clock.now += 3 * expected
        return "verdict"

    assert budget.rehearse(verification) == "verdict"
    assert budget.without_messages == pytest.approx(3 * expected)
    assert budget.proof(1) == pytest.approx(3 * with_messages)


def test_a_busy_machine_raises_the_estimates(clock):
    budget = TimeBudget(INSTANCE, 100.0)
    expected = budget.proof(1)
    clock.now, clock.share = 10.0, 0.25
    budget.measure_load()
    assert budget.proof(1) == pytest.approx(4 * expected)


def test_a_thread_that_waits_for_others_of_the_process_does_not_make_the_machine_busy(clock, monkeypatch):
    monkeypatch.setattr("relocbench.runs.certify_budget.cores", lambda: 2)
    budget = TimeBudget(INSTANCE, 100.0)
    expected = budget.proof(1)
    clock.now, clock.share, clock.of_process = 10.0, 0.1, 2.0
    budget.measure_load(threads=2)
    assert budget.proof(1) == pytest.approx(expected)
    clock.of_process = 0.5
    budget.measure_load(threads=2)
    assert budget.proof(1) == pytest.approx(4 * expected)
    monkeypatch.setattr("relocbench.runs.certify_budget.cores", lambda: 1)
    budget.measure_load(threads=2)
    assert budget.proof(1) == pytest.approx(2 * expected)


def test_nothing_is_left_out_for_a_small_instance(clock):
    budget = TimeBudget(INSTANCE, 1.0)
    clock.now = 1000.0
    assert not budget.is_large
    assert budget.allows_late(1000.0)


def certified(monkeypatch, params, instance=SMALL, time_limit=5.0, budget=TimeBudget):
    monkeypatch.setattr(certify_module, "TimeBudget", partial(budget, params=params))
    return certify(instance, time_limit=time_limit)


def has_messages(certificate):
    homes = SMALL.n_clients, SMALL.n_servers
    duals = [step for step in certificate.proof if isinstance(step, Dual)]
    return any(unpacked(dual.active, homes, "active").any() for dual in duals)


def assert_only_distances(found):
    """The proof is one dual without messages, whose bound is the sum of the distances to the nearest servers."""
    assert verify(SMALL, found.certificate).proved
    assert (len(found.certificate.proof), has_messages(found.certificate)) == (1, False)
    delay = SMALL.client_delay(range(SMALL.n_clients), nearest_server(SMALL))
    assert found.bound == pytest.approx((SMALL.client_weight * delay).sum(), rel=1e-6)
    assert found.bound > 0


def test_without_time_for_a_relaxation_the_nearest_servers_give_the_bound(monkeypatch):
    monkeypatch.setattr(certify_module, "RootRelaxation", None)
    assert_only_distances(certified(monkeypatch, dataclasses.replace(QUICK, per_pair=1e6), time_limit=0.5))


def test_without_time_for_any_proof_the_claim_is_0(monkeypatch):
    monkeypatch.setattr(certify_module, "RootRelaxation", None)
    found = certified(monkeypatch, dataclasses.replace(QUICK, per_publication=1e6), time_limit=0.5)
    assert verify(SMALL, found.certificate).proved
    assert (found.bound, found.certificate.proof) == (0.0, ())


def test_a_verification_that_does_not_end_in_time_is_replaced_by_a_shorter_one(monkeypatch):
    class Late(TimeBudget):
        until_twice = 0.0

    assert_only_distances(certified(monkeypatch, QUICK, time_limit=1.0, budget=Late))
    assert has_messages(certified(monkeypatch, QUICK, time_limit=1.0).certificate)


def test_an_interrupted_run_of_a_large_instance_certifies_its_current_bound(monkeypatch):
    monkeypatch.setattr(certify_module, "TimeBudget", partial(TimeBudget, params=QUICK))
    calls = []

    def interrupt(seconds, incumbent, bound):
        calls.append(bound)
        if len(calls) == 2:
            raise KeyboardInterrupt

    found = certify(SMALL, time_limit=600, on_progress=interrupt)
    assert has_messages(found.certificate)
    assert found.bound >= 0.99 * calls[0]


def test_iterations_end_within_a_step_when_the_time_is_over(monkeypatch):
    root = RootRelaxation(certify_module.client_graph(INSTANCE), nearest_server(INSTANCE), False)
    done = []
    monkeypatch.setattr(type(root.relaxation), "iterate", lambda relaxation, times: done.append(times))
    root.step()
    complete = sum(done)
    done.clear()
    root.step(lambda: len(done) < 3)
    assert 0 < sum(done) < complete / 5


def test_long_rounds_start_with_the_multipliers_of_the_capacities_as_prices(monkeypatch):
    params = certify_module.PARAMS
    long = dataclasses.replace(params.search, long_round=0.0, long_first_effort=0.01)
    monkeypatch.setattr(certify_module, "PARAMS", dataclasses.replace(params, search=long))
    anneal, prices, stopped = certify_module.anneal_among, [], []

    def anneal_among(instance, likely, start, **settings):
        if settings["mode"].first_prices is not None:
            assert likely is None
            prices.append(settings["mode"].first_prices)
        return anneal(instance, likely, start, **settings)

    def stop(seconds, incumbent, bound):
        if prices and not stopped:
            stopped.append(seconds)
            raise KeyboardInterrupt

    monkeypatch.setattr(certify_module, "anneal_among", anneal_among)
    instance = FAMILIES["paper"].cells({"sigma": 10, "topics": 24, "servers": 6, "storage": 300.0})[0].build(0)
    found = certify(instance, time_limit=600, on_progress=stop)
    assert found.verdict.proved
    storage, _ = prices[0]
    assert storage.max() > 0
