"""A study of moving clients from end to end, on tiny timelines."""

import json
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

import relocbench
from relocbench.formulations.bounding.timeline_relaxation import TimelineRelaxation
from relocbench.formulations.certificates import integer_problem
from relocbench.instances.errors import InputError
from relocbench.reports.moving import epoch_map, units
from relocbench.reports.moving.page import write_page
from relocbench.reports.moving.plan import Pair, Plan, pairs, subjects
from relocbench.reports.moving.study import run_study
from relocbench.reports.moving.summary import Summary
from relocbench.runs.selectors import parse_selector
from relocbench.runs.timeline.replay_rows import read_rows
from tests.reports.browser import browser

TINY = {"n_epochs": 4, "topics": 5, "servers": 4}
PLAN = Plan(
    speeds=(20.0, 90.0),
    seeds=(0, 1),
    parameters=TINY,
    periods=(1, 2, 9),
    policies=("threshold[worse=0.05]", "relocate[moves=2000]"),
    methods=("reloc", "nearest"),
    clusters=("1", "auto"),
    sizes=(200,),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def found(folder):
    return run_study(PLAN, folder, jobs=1)


def test_every_timeline_is_replayed_under_every_policy(found):
    chosen = [(row.policy, row.method) for row in found.schedules if row.timeline == "moving-v90-x1-1"]
    assert chosen == [
        *((f"every[k={k}]", method) for k in (1, 2, 4) for method in ("reloc", "nearest")),
        ("threshold[worse=0.05]", "reloc"),
        ("threshold[worse=0.05]", "nearest"),
        ("relocate[moves=2000]", "reloc"),
        ("every[k=4]", "reloc[k=1]"),
        ("every[k=4]", "reloc[k=auto]"),
    ]
    assert len(found.schedules) == 4 * len(chosen)
    assert [row.period for row in found.schedules[:6:2]] == [60.0, 120.0, 240.0]


def test_the_rows_are_those_of_replays(found):
    row = next(row for row in found.schedules if (row.seed, row.speed, row.policy) == (1, 90.0, "every[k=2]"))
    timeline = relocbench.generate_timeline(1, speed=90.0, **TINY)
    expected = relocbench.replay(timeline, row.policy, row.method)
    assert (row.total, row.handovers, row.solves) == (expected.cost.total, expected.cost.handovers, expected.solves)
    assert row.hash == timeline.hash
    rows = list(read_rows(found.replays / row.replay))
    assert sum(one.total for one in rows) == pytest.approx(row.total)


def test_no_schedule_costs_less_than_the_bound(found):
    for row in found.schedules:
        assert 0 < row.bound <= row.total
        assert row.bound == pytest.approx(sum(one.bound for one in found.bounds if one.hash == row.hash))
    assert [one.epoch for one in found.bounds] == 4 * [0, 1, 2, 3]


def test_with_time_the_bound_counts_relocation(found, folder, tmp_path, monkeypatch):
    few = {"seeds": (0,), "periods": (2,), "methods": ("reloc",), "clusters": (), "sizes": ()}
    plan = replace(PLAN, prices=(4.0,), speeds=(90.0,), bound_time=1.0, **few)
    own = run_study(plan, folder, jobs=1)
    assert all(row.delay_bound <= row.bound <= row.total for row in own.schedules)
    assert any(row.delay_bound < row.bound for row in own.schedules)
    fast = run_study(replace(plan, bound_time=0.0), folder, jobs=1)
    assert [row.delay_bound for row in own.schedules] == [row.bound for row in fast.schedules]
    monkeypatch.setattr(units.CertifyUnit, "run", None)
    assert run_study(plan, folder, jobs=1) == own
    page = write_page(own, Summary(own), "relocbench moving study", tmp_path / "moving.html")
    assert "no bar can end to the left of it" in page.read_text()
    with browser(tmp_path) as tab:
        tab.assert_readable(page)


def test_a_bound_that_was_interrupted_is_not_kept(found, folder, monkeypatch):
    unit = units.CertifyUnit(found.subjects[0], found.schedules[0].replay, 60.0)
    monkeypatch.setattr(TimelineRelaxation, "step", interrupt)
    with pytest.raises(KeyboardInterrupt):
        unit.run(folder / "replays")


def interrupt(self):
    raise KeyboardInterrupt


def test_a_timeline_that_is_too_large_keeps_the_fast_bound(found, folder, monkeypatch):
    monkeypatch.setattr(integer_problem, "MOST_PAIRS", 1)
    unit = units.CertifyUnit(found.subjects[0], found.schedules[0].replay, 60.0)
    assert unit.run(folder / "replays") == {"bound": 0.0}


def test_a_lost_replay_is_an_error_and_not_a_bound(found, folder):
    unit = units.CertifyUnit(found.subjects[0], "lost.parquet", 60.0)
    with pytest.raises(InputError, match=r"lost\.parquet"):
        unit.run(folder / "replays")


def test_a_policy_that_is_edited_during_the_study_keeps_its_results(found, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def never(history, epoch):\n    return None\n")
    pair = Pair(f"{file}:never", parse_selector("nearest"))
    unit = units.ReplayUnit(found.subjects[0], pair, 60.0)
    before = unit.digest
    file.write_text("def never(history, epoch):\n    return None  # later\n")
    assert units.ReplayUnit(found.subjects[0], pair, 60.0).digest != before
    assert unit.digest == before


def test_finished_units_are_not_repeated(found, folder, monkeypatch):
    def refuse(self, replays):
        raise AssertionError("a unit is run again")

    for kind in (units.ReplayUnit, units.BoundUnit, units.SummaryUnit):
        monkeypatch.setattr(kind, "run", refuse)
    assert run_study(PLAN, folder, jobs=1) == found


def test_a_damaged_result_is_made_again(found, folder):
    [unit] = [units.SummaryUnit(one) for one in found.subjects[:1]]
    (folder / "units" / f"{unit.digest}.json").write_text("{")
    assert run_study(PLAN, folder, jobs=1) == found


def test_an_interrupted_study_continues(found, tmp_path, monkeypatch):
    plan = replace(PLAN, speeds=(20.0,), policies=(), clusters=(), sizes=())
    done = []
    usual = units.BoundUnit.run

    def interrupted(self, replays):
        if done:
            raise KeyboardInterrupt
        done.append(self)
        return usual(self, replays)

    with monkeypatch.context() as patched:
        patched.setattr(units.BoundUnit, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_study(plan, tmp_path, jobs=1)
    again = run_study(plan, tmp_path, jobs=1)
    assert again.bounds == found.bounds[:8]
    totals = {row.replay: row.total for row in found.schedules}
    assert [row.total for row in again.schedules] == [totals[row.replay] for row in again.schedules]


def test_the_files_have_all_rows(found, tmp_path):
    schedules, bounds, times = (pq.read_table(path) for path in found.write(tmp_path))
    assert schedules.num_rows == len(found.schedules)
    assert schedules["total"].to_pylist() == [row.total for row in found.schedules]
    assert bounds.num_rows == 16
    assert times["method"].to_pylist() == ["reloc", "nearest"]


def test_the_page_shows_and_says_everything(found, tmp_path):
    summary = Summary(found)
    page = write_page(found, summary, "relocbench moving study", tmp_path / "moving.html")
    text = page.read_text()
    for heading in ("Answers", "Cost against the period", "What moved when", "Run time", "Number of clusters"):
        assert f">{heading}</h2>" in text
    with browser(tmp_path) as tab:
        tab.assert_readable(page)
        tab.open(page, width=1300)
        tab.evaluate("document.querySelector('.epochs input').value = 0")
        tab.evaluate("document.querySelector('.epochs input').dispatchEvent(new Event('input'))")
        assert tab.texts(".epochs output")[0].startswith("Minute 0, epoch 0,")
        first = next(row for row in found.schedules if row.timeline == "moving-v90-x1-0")
        epoch = relocbench.read_timeline(found.subjects[2].file).epoch(0)
        assert first.timeline == found.subjects[2].name
        shown = tab.evaluate("plots.find((one) => one.source.layout.meta?.epochs === 'map').source.data[2].x")
        assert shown == pytest.approx(epoch.instance.client_x.tolist(), abs=1e-3)
        assert tab.errors == []


def test_epochs_that_are_not_shown_still_count(found, monkeypatch):
    monkeypatch.setattr(epoch_map, "MOST_FRAMES", 2)
    monkeypatch.setattr(epoch_map, "MOST_POINTS", 2)
    maps = epoch_map.EpochMaps(Summary(found))
    data = json.loads(maps.script().partition(";\n")[0].removeprefix("const EPOCHS = "))
    assert [frame["epoch"] for frame in data["frames"]] == [0, 3]
    assert "2 of 4 epochs are shown" in maps.shown
    for number, line in enumerate(maps.lines):
        [row] = [row for row in line.rows if row.hash == maps.subject.hash]
        homes = [one.home for one in read_rows(found.replays / row.replay)]
        moved = [client for client in range(len(homes[0])) if len({home[client] for home in homes}) > 1]
        assert [client for client, _ in data["frames"][1]["moved"][number]] == moved
        assert all(before == homes[0][client] for client, before in data["frames"][1]["moved"][number])
    titles = [title for title, _ in maps.series()]
    assert titles == ["Handovers per epoch, mean of 2", "Cost of an epoch, ms per publication, mean of 2"]


def test_files_of_one_generator_are_replicates(tmp_path):
    for seed in (0, 1):
        relocbench.write(relocbench.generate_timeline(seed, speed=7.0, **TINY), tmp_path / f"{seed}.parquet")
    files = (tmp_path / "0.parquet", tmp_path / "1.parquet")
    found = subjects(Plan(files=files), tmp_path)
    assert [(one.group, one.seed) for one in found] == [("7 km/h", 0), ("7 km/h", 1)]
    with pytest.raises(relocbench.InputError, match=r"expected different timelines, this one is also in .*0\.parquet"):
        subjects(Plan(files=(*files, files[0])), tmp_path)


def test_prices_make_groups(tmp_path):
    plan = Plan(speeds=(7.0,), prices=(0.0, 4.0), seeds=(3,), parameters=TINY)
    found = subjects(plan, tmp_path)
    assert [one.group for one in found] == ["7 km/h, prices ×0", "7 km/h, prices ×4"]
    assert [one.timeline().prices.handover for one in found] == [0.0, 200.0]
    assert subjects(plan, tmp_path) == found


def test_a_policy_in_a_file_is_found_from_everywhere(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("def keep(history, epoch):\n    return None\n")
    monkeypatch.chdir(tmp_path)
    plan = Plan(policies=("mine.py:keep",), periods=(), clusters=(), methods=("nearest",))
    assert [pair.policy for pair in pairs(plan, 4)] == [f"{tmp_path / 'mine.py'}:keep"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--speeds", "fast"), "--speeds: expected numbers from 0 between commas, got 'fast'"),
        (("--periods", "0"), "--periods: expected whole numbers from 1 between commas, got '0'"),
        (("--periods", "1.5"), "--periods: expected whole numbers from 1 between commas, got '1.5'"),
        (("any.parquet", "--prices", "0,1"), "--prices: has no effect on timeline files"),
        (("--methods", "nope"), "method: expected one of"),
        (("--policies", "sometimes"), "policy: expected one of never, always,"),
        (("--set", "speeed=3"), "speeed: "),
        (("none.parquet",), "none.parquet: "),
    ],
)
def test_wrong_use_is_refused_in_one_line(arguments, problem, run, tmp_path):
    code, _, err = run("moving", "study", *arguments, "--sizes", "", "--out", tmp_path)
    assert code == 2
    assert err.startswith(f"relocbench: {problem}"), err
    assert err.count("\n") == 1


def test_the_command_prints_answers_and_files(run, tmp_path):
    command = (
        *("moving", "study", "--speeds", "60", "--seeds", "0", "--epochs", "2", "--set", "topics=4", "--sizes", ""),
        *("--periods", "1,2", "--policies", "", "--methods", "nearest", "--jobs", "1", "--out", tmp_path / "out"),
    )
    code, out, err = run(*command, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert list(found["answers"]) == [
        "At what period is NS worth running again?",
        "How far are the policies from the best possible schedule?",
    ]
    assert [line["policy"] for line in found["policies"]] == ["every[k=1]", "every[k=2]"]
    assert (tmp_path / "out" / "moving.html").is_file()
    assert "page: " in run(*command)[1]
