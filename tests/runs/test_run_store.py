import dataclasses
import math
import multiprocessing
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.generators.families import FAMILIES
from relocbench.runs.outcome import Outcome, verified
from relocbench.runs.run_store import POINT, SCHEMA, Row, Run, Store, read, row_of
from relocbench.runs.selectors import parse_selector
from relocbench.runs.sweep import Limits, Task, announce_out_of_date, group_of, summarise, sweep
from tests.runs.fake_methods import fake

INSTANCE = FAMILIES["tiny"].cells({"regime": "scarce", "shape": "roles"})[0].build(0)
LIMITS = Limits(time=20.0)


def make_row(seed=0, selector="nearest", **outcome):
    home = np.zeros(INSTANCE.n_clients, np.int64)
    reported = {"status": "time_limit", "home": home, "bound": 1.5, "trace": [(0.0, 99.0, -math.inf), (0.5, 99.0, 1.5)]}
    reported |= {"facts": {"variables": 12.0}, "seconds": 0.5} | outcome
    run = Run(INSTANCE.hash, selector, seed, 20.0, 1 << 30)
    return row_of(INSTANCE, run, verified(INSTANCE, **reported), "logs/x.log")


def test_a_row_has_the_values_of_the_evaluator():
    row = make_row()
    cost = verified(INSTANCE, status="feasible", home=row.home, bound=-math.inf, trace=()).evaluation
    assert row.y == cost.y
    assert row.gap == pytest.approx((row.objective - 1.5) / row.objective)
    assert row.least_theta == cost.theta.min() < 1
    assert row.most_storage_use == pytest.approx(cost.storage_load[0] / INSTANCE.storage_capacity[0])
    at = INSTANCE.server_x[0], INSTANCE.server_y[0]
    assert row.mean_distance == pytest.approx(np.hypot(INSTANCE.client_x - at[0], INSTANCE.client_y - at[1]).mean())
    assert {"relocbench", "python", "cores", "numpy"} <= row.versions.keys()


def test_the_schema_follows_the_fields_of_a_row_and_stays_that_of_the_format():
    assert SCHEMA.names == ["format", *(spec.name for spec in dataclasses.fields(Row))]
    optional = {"failure", "error", "objective", "y", "y1", "y2", "bound", "gap", "home", "log", "mean_distance"}
    optional |= {"least_theta", "most_storage_use", "most_compute_use"}
    assert {column.name for column in SCHEMA if column.nullable} == optional
    texts, numbers = pa.string(), pa.float64()
    assert [SCHEMA.field(name).type for name in ("instance", "seed", "gap")] == [texts, pa.int64(), numbers]
    assert SCHEMA.field("home").type == pa.list_(pa.int32())
    assert SCHEMA.field("trace").type == pa.list_(POINT)
    assert SCHEMA.field("facts").type == pa.map_(texts, numbers)
    assert SCHEMA.field("versions").type == pa.map_(texts, texts)


def test_rows_are_read_as_they_were_written(tmp_path):
    rows = [
        make_row(),
        make_row(seed=1, home=None, bound=-math.inf, trace=(), status="error", failure="died", error="SIGSEGV"),
    ]
    store = Store(tmp_path / "store")
    for row in rows:
        store.write(row)
    assert read(store.folder) == (rows, [])
    assert [store.find(row.run) for row in rows] == rows
    assert store.find(dataclasses.replace(rows[0].run, time_limit=21.0)) is None


def test_files_that_cannot_be_read_are_reported_and_skipped(tmp_path):
    store = Store(tmp_path)
    rows = [make_row(seed=seed) for seed in range(5)]
    for row in rows:
        store.write(row)
    paths = [tmp_path / f"{row.run.digest}.parquet" for row in rows]
    paths[0].write_bytes(paths[0].read_bytes()[:-100])  # incomplete
    paths[1].write_bytes(b"")
    pq.write_table(pa.table({"x": [1]}), paths[2])
    newer = pq.read_table(paths[3]).set_column(0, "format", pa.array(["relocbench-run/2"]))
    pq.write_table(newer, paths[3])
    (tmp_path / ".half.parquet.part").write_bytes(b"half")
    found, problems = read(tmp_path)
    assert found == rows[4:]
    assert sorted(problem.partition(":")[0] for problem in problems) == sorted(map(str, paths[:4]))
    assert [store.find(row.run) for row in rows] == [None] * 4 + rows[4:]
    with pytest.raises(InputError, match="expected a folder of runs"):
        read(tmp_path / "none")


def test_a_row_under_the_name_of_another_run_is_ignored(tmp_path):
    store, row, other = Store(tmp_path), make_row(), make_row(seed=1)
    store.write(row)
    shutil.copy(tmp_path / f"{row.run.digest}.parquet", tmp_path / f"{other.run.digest}.parquet")
    assert store.find(other.run) is None


def _write(folder):
    for seed in range(5):
        Store(folder).write(make_row(seed=seed))


def test_several_processes_may_write_to_one_store(tmp_path):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(tmp_path,)) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    rows, problems = read(tmp_path)
    assert ([row.seed for row in rows], problems) == ([0, 1, 2, 3, 4], [])
    assert len(list(tmp_path.iterdir())) == 5


@pytest.mark.parametrize(
    ("status", "home", "bound", "points", "problem"),
    [
        ("feasible", [0, 0, 0, 0], 1e6, (), "claims the bound 1000000.0, but its own homes cost"),
        ("feasible", [0, 0, 0, 0], math.nan, (), "claims the bound nan, but its own homes cost"),
        ("feasible", None, math.inf, (), "claims the bound inf"),
        ("feasible", [0, 0, 0, 0], 1.0, [(0.1, 30.0, 1e6)], "claims the bound 1000000.0"),
        ("optimal", [0, 0, 0, 0], 1.0, (), "claims to be optimal with the bound 1.0, but its homes cost"),
        ("time_limit", [0, 0, 0, 0], 0.0, [(0.1, 0.5, 0.0)], "reported the incumbent 0.5, but its homes cost"),
        ("time_limit", [0, 0, 0, 9], 0.0, (), "home[3]: expected a server from 0 to"),
        ("great", [0, 0, 0, 0], 0.0, (), "returned the status 'great', expected optimal, claimed, feasible"),
    ],
)
def test_false_claims_are_errors(status, home, bound, points, problem):
    outcome = verified(INSTANCE, status=status, home=home, bound=bound, trace=points)
    assert (outcome.status, outcome.failure) == ("error", "claim")
    assert problem in outcome.error


def test_the_bound_of_a_run_is_its_final_one_unless_the_run_was_killed():
    points = [(0.0, 50.0, 3.0)]
    home = [0, 0, 0, 0]
    assert verified(INSTANCE, status="feasible", home=home, bound=2.0, trace=points[:0]).bound == 2.0
    assert verified(INSTANCE, status="time_limit", home=home, bound=2.0, trace=points).bound == 2.0
    assert verified(INSTANCE, status="time_limit", home=home, bound=-math.inf, trace=points).bound == 3.0


@pytest.mark.parametrize("reuse", [False, True])
def test_an_interrupted_sweep_keeps_its_rows_and_continues(tmp_path, reuse):
    store = Store(tmp_path)
    tasks = [Task(INSTANCE, fake("quiet"), seed) for seed in range(3)]
    running = sweep(tasks, store, LIMITS, reuse=reuse)
    first = next(running)
    running.close()
    kept, _ = read(tmp_path)
    assert first in kept
    assert len(kept) < 3
    rows = list(sweep([*tasks, tasks[0]], store, LIMITS, jobs=2, reuse=reuse))
    assert sorted({row.seed for row in rows}) == [0, 1, 2]
    assert read(tmp_path)[0][0] == kept[0]
    assert all((tmp_path / row.log).exists() for row in rows)


def test_a_process_is_reused_for_runs_of_its_method_until_it_dies(tmp_path):
    methods = ("reports_process_number", "crashes", "reports_process_number")
    tasks = [Task(INSTANCE, fake(name), seed) for seed, name in enumerate(methods)]
    tasks += [Task(INSTANCE, fake("crashes"), 3)]
    rows = {row.seed: row for row in sweep(tasks, Store(tmp_path), LIMITS, reuse=True)}
    assert [rows[seed].status for seed in range(4)] == ["feasible", "error", "feasible", "error"]
    assert rows[0].facts["process"] == rows[2].facts["process"]
    fresh = [row.facts["process"] for row in sweep(tasks[::2], Store(tmp_path / "fresh"), LIMITS)]
    assert len(set(fresh)) == 2


def test_a_stored_run_is_made_again_when_the_code_of_its_method_has_changed(tmp_path, capsys):
    file, store = tmp_path / "mine.py", Store(tmp_path / "runs")
    rows = []
    for server in (0, 0, 1):
        file.write_text(f"def f(instance, *, seed, time_limit):\n    return [{server}] * instance.n_clients\n")
        tasks = [Task(INSTANCE, parse_selector(f"{file}:f"))]
        stale = announce_out_of_date(tasks, store, LIMITS)
        rows += sweep(tasks, store, LIMITS)
        assert stale == (server == 1)
    assert rows[0] == rows[1]  # it was not run again: even its time is the same
    assert rows[1].objective != rows[2].objective
    assert rows[1].code != rows[2].code
    assert read(store.folder) == ([rows[2]], [])  # versions are never mixed
    assert capsys.readouterr().err == (
        f"relocbench: stored runs of another version of the code are made again: 1 of {file}:f\n"
    )


def test_a_row_without_a_version_is_read_and_is_out_of_date(tmp_path):
    store, row = Store(tmp_path), make_row()
    store.write(row)
    path = tmp_path / f"{row.run.digest}.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["code"]), path)
    assert store.find(row.run) == row
    later = dataclasses.replace(row.run, code="relocbench 9")
    assert (store.find(later), store.is_out_of_date(later)) == (None, True)


def test_a_summary_counts_proofs_limits_and_errors():
    def row(seed, status, seconds, gap):
        return dataclasses.replace(make_row(seed), status=status, seconds=seconds, gap=gap, instance=f"tiny-x-{seed}")

    rows = [row(0, "optimal", 1.0, 0.0), row(1, "optimal", 3.0, 0.0), row(2, "time_limit", 20.0, 0.5)]
    rows += [row(3, "memory_limit", 5.0, None), row(4, "error", 0.1, 0.9)]
    [summary] = summarise(rows, group_of)
    assert (summary.group, summary.method) == ("tiny-x", "nearest")
    assert (summary.runs, summary.proved, summary.stopped, summary.errors) == (5, 2, 2, 1)
    assert (summary.seconds_to_proof, summary.gap) == (2.0, 0.5)


def test_the_digest_of_a_run_does_not_depend_on_spaces_in_the_selector():
    spaced, plain = (
        Task(INSTANCE, parse_selector(text)).run(LIMITS) for text in (" anneal [ moves = 5 ] ", "anneal[moves=5]")
    )
    assert spaced.digest == plain.digest != Task(INSTANCE, parse_selector("anneal")).run(LIMITS).digest


def test_an_outcome_without_homes_gives_a_row_without_costs():
    row = row_of(INSTANCE, Run(INSTANCE.hash, "x", 0, 1.0, 1), Outcome("memory_limit", error="used 5 GiB"))
    assert (row.objective, row.y, row.gap, row.home, row.bound) == (None,) * 5
