"""Updates of a baseline by several processes at the same time."""

import pytest

from relocbench.instances.errors import InputError
from relocbench.reports.gate import baseline_update
from relocbench.reports.gate.baseline import Baseline, Line, Record, read_baseline, write_baseline
from tests.overlap import run_together

RECORD = Record("random", (0,), 60.0, "tiny-loose-plain-0", 1, {}, {"tiny-loose-plain-0": Line("12ab", (1.5,), (0,))})

# Runs the command in a process that has measured before any process writes.
PROGRAM = """
import sys
from pathlib import Path
from relocbench import cli
from relocbench.reports.gate import baseline_update
from tests.overlap import meeting_first_time
baseline_update.measure = meeting_first_time(baseline_update.measure, Path("met"), 2)
sys.argv = ["relocbench", "check", "--update-baseline", {methods}]
sys.argv += ["--seed", "{seed}", "--instances", "tiny-loose-plain-0"]
cli.main()
"""


def test_updates_at_the_same_time_are_all_kept_and_the_last_one_of_a_method_says_so(tmp_path):
    path = tmp_path / "relocbench-baseline.json"
    write_baseline(Baseline({RECORD.method: RECORD}), path)
    runs = (('"--method", "nearest", "--method", "otos"', 1), ('"--method", "nearest"', 2))
    results = run_together([PROGRAM.format(methods=methods, seed=seed) for methods, seed in runs], tmp_path)
    assert [(code, err) for code, _, err in results] == [(0, "")] * 2
    records = read_baseline(path).records
    assert set(records) == {"random", "nearest", "otos"}
    said = ["nearest: another update wrote costs meanwhile; they were replaced" in out for _, out, _ in results]
    assert said.count(True) == 1
    assert records["nearest"].seeds == (runs[said.index(True)][1],)
    assert {file.name for file in tmp_path.iterdir()} == {path.name, "met"}


def test_a_folder_that_cannot_be_written_is_noticed_before_the_runs(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("methods were run")

    monkeypatch.setattr(baseline_update, "measure", refuse)
    with pytest.raises(InputError, match=r"^/sys/baseline\.json: cannot be written"):
        baseline_update.update("nearest", baseline="/sys/baseline.json", instances="tiny-loose-plain-0")


def test_a_compressed_baseline_reads_back(tmp_path):
    path = tmp_path / "baseline.json.gz"
    write_baseline(Baseline({RECORD.method: RECORD}), path)
    assert read_baseline(path).records == {RECORD.method: RECORD}
