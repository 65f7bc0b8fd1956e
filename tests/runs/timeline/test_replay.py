"""Replays: what they count, how they continue after an interruption, and staleness."""

import weakref

import numpy as np
import pyarrow.parquet as pq
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.timeline.moving_generator import generate_timeline
from relocbench.instances.timeline.schedule_cost import CostMeter, carried_homes, schedule_cost
from relocbench.instances.timeline.timeline import Timeline
from relocbench.runs.run_error import RunError
from relocbench.runs.solve import solve
from relocbench.runs.timeline import replay_store
from relocbench.runs.timeline.method_runner import MethodRunner
from relocbench.runs.timeline.replay import replay
from relocbench.runs.timeline.replay_rows import read_rows
from tests.samples import random_instance
from tests.timelines import literal_schedule_cost, random_timeline

MOVING = generate_timeline(1, speed=80.0, n_epochs=8, topics=12, servers=9, topic_churn=4.0)


@pytest.mark.parametrize("seed", range(0, 32, 3))
def test_the_cost_is_the_literal_one_of_the_homes_in_the_rows(seed):
    timeline = random_timeline(seed)
    done = replay(timeline, "every[k=2]", "random", seed=seed)
    homes = [row.home for row in done.rows]
    for name, value in literal_schedule_cost(timeline, homes).items():
        assert getattr(done.cost, name) == pytest.approx(value, rel=1e-12, abs=1e-12), name
    assert sum(row.total for row in done.rows) == pytest.approx(done.cost.total)
    assert done.cost == schedule_cost(timeline, homes)


@pytest.mark.parametrize("seed", range(0, 32, 6))
@pytest.mark.parametrize("method", ["nearest", "reloc", "adaptive"])
def test_on_a_static_timeline_a_method_gives_exactly_the_numbers_of_a_single_run(method, seed):
    instance = random_instance(seed)
    alone = solve(instance, method)
    rows = replay(Timeline.static(instance, n_epochs=3, length=1), "never", method).rows
    for row in rows:
        assert row.home == alone.home.tolist()
        assert row.delay_cost == row.total == alone.objective
        assert (row.handovers, row.spool_moved) == (0, 0.0)
    assert rows[0].solved_y == alone.y


def stale_cost(timeline, homes_of, wait):
    """Return the cost of an `always` policy whose homes come into force late, from the definition."""
    meter = CostMeter(timeline.prices)
    before, pending = None, None
    for epoch in timeline.epochs():
        delays = epoch.instance.client_delay(
            np.arange(epoch.instance.n_clients)[:, None], np.arange(timeline.n_servers)
        )
        home = delays.argmin(axis=1)
        if before is not None:
            carried = carried_homes(*before, epoch)
            home = np.where(carried >= 0, carried, home)
        if pending is None:
            pending = (epoch.start + wait, epoch, homes_of(epoch))
        now = epoch.start
        if pending[0] < epoch.end:
            due = max(pending[0], now)
            if due > now:
                meter.add(epoch, home, due - now)
            new = carried_homes(pending[1], pending[2], epoch)
            home, now, pending = np.where(new >= 0, new, home), due, None
        meter.add(epoch, home, epoch.end - now)
        before = epoch, home.astype(np.int32)
    return meter.total


@pytest.mark.parametrize("wait", [0.0, 20.0, 60.0, 95.0, 1e9])
def test_stale_homes_come_into_force_after_the_time_that_solving_took(wait):
    done = replay(MOVING, "always", "reloc", stale=wait)
    expected = stale_cost(MOVING, lambda epoch: solve(epoch.instance, "reloc").home, wait)
    assert done.cost.total == pytest.approx(expected.total, rel=1e-12)
    assert done.cost.seconds == pytest.approx(480.0)
    assert done.solves == {0.0: 8, 20.0: 8, 60.0: 4, 95.0: 4, 1e9: 1}[wait]
    assert done.rows[0].delayed == {0.0: 0.0, 20.0: 20.0}.get(wait)


def test_measured_staleness_costs_something_between_no_delay_and_a_long_one():
    measured = replay(MOVING, "always", "reloc", stale=True)
    assert all(row.delayed == pytest.approx(row.solve_seconds, abs=1e-9) for row in measured.rows)
    assert measured.rows[0].solve_seconds > 0


class StopError(Exception):
    pass


def stop_after(count):
    def on_epoch(row):
        if row.epoch == count:
            raise StopError

    return on_epoch


def without_times(table):
    return table.drop_columns(["solve_seconds"])


@pytest.mark.parametrize("stale", [False, 70.0])
@pytest.mark.parametrize("policy", ["every[k=3]", "threshold[worse=0.02]", "relocate[moves=2000,ahead=1]"])
def test_an_interrupted_replay_continues_where_it_was(policy, stale, tmp_path, monkeypatch):
    monkeypatch.setattr(replay_store, "SECONDS_PER_PART", 0.0)
    whole = replay(MOVING, policy, "reloc[k=auto]", stale=stale)
    for count in (2, 5):
        with pytest.raises(StopError):
            replay(MOVING, policy, "reloc[k=auto]", stale=stale, out=tmp_path, on_epoch=stop_after(count))
    seen = []
    done = replay(MOVING, policy, "reloc[k=auto]", stale=stale, out=tmp_path, on_epoch=seen.append)
    assert [row.epoch for row in seen] == list(range(8))
    assert without_times(done.table()).equals(without_times(whole.table()))
    assert done.cost.total == pytest.approx(whole.cost.total, rel=1e-12)
    assert done.solves == whole.solves
    assert [path.name for path in tmp_path.iterdir()] == [done.path.name]


def test_a_finished_replay_is_not_repeated_unless_its_code_has_changed(tmp_path, monkeypatch):
    calls = []
    run = MethodRunner.solve
    monkeypatch.setattr(MethodRunner, "solve", lambda *arguments: calls.append(1) or run(*arguments))

    def mine(history, epoch):
        return history.solve()

    first = replay(MOVING, mine, "nearest", out=tmp_path)
    again = replay(MOVING, mine, "nearest", out=tmp_path)
    assert len(calls) == 8
    assert (again.cost, again.solves) == (first.cost, first.solves)
    assert replay(MOVING, mine, "nearest", seed=1, out=tmp_path).path != first.path

    def mine(history, epoch):
        return history.solve() if epoch.number == 0 else None

    changed = replay(MOVING, mine, "nearest", out=tmp_path)
    assert (changed.path, changed.solves) == (first.path, 1)


def test_a_damaged_part_is_computed_again(tmp_path, monkeypatch):
    monkeypatch.setattr(replay_store, "SECONDS_PER_PART", 0.0)
    with pytest.raises(StopError):
        replay(MOVING, "always", "reloc", out=tmp_path, on_epoch=stop_after(6))
    [folder] = tmp_path.iterdir()
    parts = sorted(folder.iterdir())
    assert len(parts) == 7
    parts[3].write_bytes(b"broken")
    # Now all missing epochs come in one part, and the old parts after the damaged one must not count a second time.
    monkeypatch.setattr(replay_store, "SECONDS_PER_PART", 1e9)
    done = replay(MOVING, "always", "reloc", out=tmp_path)
    assert without_times(done.table()).equals(without_times(replay(MOVING, "always", "reloc").table()))


def test_the_file_says_what_was_replayed_and_has_one_row_per_epoch(tmp_path):
    done = replay(MOVING, "every[k=4]", "nearest", out=tmp_path)
    assert [row.epoch for row in read_rows(done.path)] == list(range(8))
    header = pq.read_schema(done.path).metadata[b"relocbench-replay"].decode()
    for text in ('"relocbench-replay/1"', '"every[k=4]"', '"nearest"', MOVING.hash, '"total"'):
        assert text in header
    assert done.values()["file"] == str(done.path)


@pytest.mark.slow
def test_a_method_of_other_people_runs_in_its_own_process_which_it_keeps():
    def mine(instance, *, seed, time_limit, start=None):
        import os

        assert start is None or len(start) == instance.n_clients
        return [os.getpid() % instance.n_servers] * instance.n_clients

    rows = replay(MOVING, "always", mine).rows
    assert len({home for row in rows for home in row.home}) == 1

    def broken(instance, *, seed, time_limit):
        raise ValueError("no")

    with pytest.raises(RunError, match="no"):
        replay(MOVING, "always", broken)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"stale": -1.0}, "stale: expected true, false or seconds from 0, got -1.0"),
        ({"stale": "yes"}, "stale: expected true, false or seconds from 0, got 'yes'"),
        ({"seed": -1}, "seed: expected a whole number from 0, got -1"),
        ({"method": "nope"}, "method: expected one of"),
        ({"timeline": "t.parquet"}, "timeline: expected a Timeline, got 't.parquet'; read_timeline reads one"),
    ],
)
def test_wrong_arguments_are_refused(arguments, problem):
    with pytest.raises(InputError) as error:
        replay(**{"timeline": MOVING, "policy": "never", "method": "nearest", **arguments})
    assert str(error.value).startswith(problem)


def test_memory_does_not_grow_with_epochs(tmp_path):
    """Only a few epochs are alive at any time."""
    alive = weakref.WeakSet()
    largest = 0

    def epochs():
        for epoch in MOVING.epochs():
            alive.add(epoch)
            yield epoch

    def count(row):
        nonlocal largest
        largest = max(largest, len(alive))

    watched = Timeline(MOVING.network, epochs, 8)
    replay(watched, "relocate[ahead=1,moves=10]", "nearest", out=tmp_path, on_epoch=count)
    assert 1 <= largest <= 4
