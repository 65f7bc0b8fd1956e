"""Bounds on timelines: never above the optimum, with and without potentials, and their certificates are verified."""

import dataclasses
import functools

import numpy as np
import pytest

from relocbench.formulations.certificates import integer_problem
from relocbench.formulations.certificates.timeline_verification import verify_timeline
from relocbench.formulations.timeline import enumeration
from relocbench.instances.errors import InputError
from relocbench.instances.timeline.moving_generator import generate_timeline
from relocbench.runs.timeline import certificate_maker
from relocbench.runs.timeline import certify_timeline as module
from relocbench.runs.timeline.certify_timeline import certify_timeline
from relocbench.runs.timeline.replay import replay
from relocbench.runs.timeline.schedule_file import read_schedule, write_schedule
from tests.timelines import random_homes, tiny_timeline


@pytest.mark.parametrize("seed", range(32))
def test_both_bounds_are_at_most_the_optimum_and_potentials_only_help(seed):
    timeline = tiny_timeline(seed)
    least = enumeration.solve(timeline)
    both = certify_timeline(timeline, schedule=least.homes, time_limit=0.3)
    apart = certify_timeline(timeline, schedule=least.homes, time_limit=0.3, potentials=False)
    for found in (both, apart):
        assert found.verdict.proved
        assert found.bound <= least.cost.total * (1 + 1e-9)
        assert found.objective == pytest.approx(least.cost.total, rel=1e-9)
        if found.epoch_bounds:
            assert sum(found.epoch_bounds) == pytest.approx(found.bound, rel=1e-6)
    assert both.bound >= apart.bound * (1 - 2e-3)
    assert all(epoch.potentials is None for epoch in apart.certificate.epochs)


def moving(**parameters):
    return generate_timeline(3, **{"n_epochs": 6, "topics": 10, "servers": 6, "speed": 100.0} | parameters)


@functools.cache
def dear():
    """Return a timeline with dear handovers, a good schedule, and what is proved with and without potentials."""
    timeline = moving(handover_price=300.0)
    schedule = replay(timeline, "relocate[ahead=4]", "nearest")
    return (
        timeline,
        schedule,
        certify_timeline(timeline, schedule=schedule, time_limit=10),
        certify_timeline(timeline, schedule=schedule, time_limit=10, potentials=False),
    )


def test_where_handovers_are_dear_potentials_prove_much_more():
    timeline, schedule, both, apart = dear()
    assert both.objective == pytest.approx(schedule.cost.total)
    assert (both.verdict.status, apart.verdict.status) == ("optimal", "feasible")
    assert verify_timeline(timeline, dataclasses.replace(both.certificate, homes=None)).status == "bound"
    # The competitive ratio of any other schedule follows from the bound.
    assert both.ratio(2 * both.bound) == 2.0


def test_in_several_windows_the_bound_is_valid_and_counts_handovers_within_them(monkeypatch):
    timeline, schedule, whole, apart = dear()
    monkeypatch.setattr(module, "PARAMS", dataclasses.replace(module.PARAMS, window_bytes=1 << 21))
    assert 2 <= len(list(module._windows(timeline))) < timeline.n_epochs
    parts = certify_timeline(timeline, schedule=schedule, time_limit=2)
    assert apart.bound < parts.bound < whole.bound * (1 + 1e-9)


def test_topics_and_clients_that_change_keep_the_bound_valid():
    timeline = moving(topic_churn=60.0, handover_price=100.0, publication_period=2.0, n_epochs=3)
    found = certify_timeline(timeline, time_limit=1)
    assert 0.5 * found.objective < found.bound <= found.objective


def test_an_interrupt_certifies_the_current_bound():
    timeline = moving(handover_price=300.0)
    seen = []

    def stop(seconds, cost, bound):
        seen.append(bound)
        if len(seen) == 2:
            raise KeyboardInterrupt

    found = certify_timeline(timeline, schedule=[[0] * e.instance.n_clients for e in timeline.epochs()],
                             time_limit=60, on_progress=stop)  # fmt: skip
    assert len(seen) == 2
    assert found.bound == pytest.approx(max(seen), rel=1e-4)
    assert found.interrupted


def test_an_epoch_that_is_too_large_is_refused_before_anything_is_computed(monkeypatch):
    monkeypatch.setattr(integer_problem, "MOST_PAIRS", 1)
    with pytest.raises(InputError, match=r"^epochs\[0\]: topics: expected at most 1 pairs of publisher and subscriber"):
        certify_timeline(moving())


def test_a_claim_that_the_verifier_does_not_accept_is_lowered_to_what_it_computes(monkeypatch):
    timeline = moving(handover_price=300.0, n_epochs=3)
    homes = [[0] * e.instance.n_clients for e in timeline.epochs()]
    honest = certify_timeline(timeline, schedule=homes, time_limit=2)
    lifted = dataclasses.replace(certificate_maker.PARAMS, claim_margin=-0.01)
    monkeypatch.setattr(certificate_maker, "PARAMS", lifted)
    assert certify_timeline(timeline, schedule=homes, time_limit=2).bound == pytest.approx(honest.bound, rel=1e-2)


def test_a_dual_that_the_verifier_refuses_leaves_the_claim_that_no_cost_is_below_0(monkeypatch):
    to_step = certificate_maker.dual_to_step
    monkeypatch.setattr(
        certificate_maker, "dual_to_step", lambda *given: dataclasses.replace(to_step(*given), alpha=(-1,))
    )
    timeline = moving(n_epochs=2)
    found = certify_timeline(timeline, schedule=[[0] * e.instance.n_clients for e in timeline.epochs()], time_limit=2)
    assert (found.bound, found.verdict.proved) == (0.0, True)


def test_schedules_are_read_from_every_file_that_has_one(tmp_path):
    timeline = tiny_timeline(12)
    homes = random_homes(timeline, 1)
    write_schedule(timeline, homes, tmp_path / "schedule.json", {"method": "random"})
    assert all(map(np.array_equal, read_schedule(tmp_path / "schedule.json", timeline), homes))
    replayed = replay(timeline, "always", "nearest", out=tmp_path / "replays")
    assert len(read_schedule(replayed.path, timeline)) == 3
    with pytest.raises(InputError, match=r"schedule.json: timeline: expected the hash"):
        read_schedule(tmp_path / "schedule.json", timeline.with_prices(handover=7))
    with pytest.raises(InputError, match=r"^homes: expected homes for 3 epochs, got 2$"):
        certify_timeline(timeline, schedule=homes[:2])
    with pytest.raises(InputError, match=r"^x.txt: expected a name ending in .json for a schedule$"):
        write_schedule(timeline, homes, "x.txt")
    with pytest.raises(InputError, match=r"^timeline: expected a Timeline, got"):
        certify_timeline("moving.parquet")


@pytest.mark.parametrize(
    "prices",
    [
        {"handover": 5e-324, "spool": 5e-324},
        {"handover": 1e12, "spool": 1e12},
        {"handover": 0.0, "spool": 1e12, "publication_period": 1e12},
        {"handover": 1e-300, "publication_period": 1e-12},
    ],
)
def test_prices_of_any_size_have_a_proved_bound(prices):
    timeline = tiny_timeline(4).with_prices(**prices)
    least = enumeration.solve(timeline)
    certified = certify_timeline(timeline, schedule=least.homes, time_limit=0.3)
    assert certified.verdict.proved
    assert 0 < certified.bound <= certified.objective == pytest.approx(least.cost.total)
