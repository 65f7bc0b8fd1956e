"""The quick form of the campaign, one test for each part, and the command itself."""

import json

import pytest

from benchmarks import campaign
from benchmarks.trials import solves
from benchmarks.trials.results import Result


@pytest.mark.slow
@pytest.mark.parametrize("part", campaign.PARTS)
def test_the_quick_form_finds_nothing_wrong(part, tmp_path, capsys):
    code = campaign.main(["--quick", "--part", part, "--jobs", "2", "--out", str(tmp_path)])
    assert code == 0, capsys.readouterr().out
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["tried"] > 5
    assert summary["verdicts"]["right"] > 0


def results(verdicts, interrupt=False):
    """Return the ``run`` of a part that gives these verdicts."""

    def run(plan, finished):
        for number, verdict in enumerate(verdicts):
            if str(number) not in finished:
                files = {"instance.json": b"{}"}
                yield Result("solves", "a method", str(number), verdict, "a note", files, "relocbench solve")
        if interrupt:
            raise KeyboardInterrupt

    return run


def test_a_failure_gives_exit_code_1_and_a_reproducer(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(solves, "run", results(["right", "wrong", "refused", "hung"]))
    assert campaign.main(["--part", "solves", "--out", str(tmp_path)]) == 1
    counts = json.loads((tmp_path / "summary.json").read_text())["counts"]["solves"]["a method"]
    assert (counts["tried"], counts["right"], counts["wrong"], counts["refused"], counts["hung"]) == (4, 1, 1, 1, 1)
    assert "solves 1: wrong: a note" in capsys.readouterr().out
    folders = sorted(path.name for path in (tmp_path / "reproducers").iterdir())
    assert folders == ["solves-1", "solves-3"]
    text = (tmp_path / "reproducers" / "solves-1" / "README.txt").read_text()
    assert "--seed 0 --part solves --only 1" in text
    assert (tmp_path / "reproducers" / "solves-1" / "instance.json").read_bytes() == b"{}"


def test_a_claim_that_is_not_supported_is_no_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(solves, "run", results(["right", "claimed", "claimed wrong", "open", "refused"]))
    assert campaign.main(["--part", "solves", "--out", str(tmp_path)]) == 0


def test_finished_trials_are_not_repeated(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(solves, "run", results(["right", "right"], interrupt=True))
    assert campaign.main(["--part", "solves", "--out", str(tmp_path)]) == 130
    monkeypatch.setattr(solves, "run", results(["wrong", "right", "right"]))
    assert campaign.main(["--part", "solves", "--out", str(tmp_path)]) == 0
    assert "1 trials" in capsys.readouterr().out
    assert json.loads((tmp_path / "summary.json").read_text())["tried"] == 3


def test_a_line_that_was_cut_is_repeated(tmp_path, monkeypatch):
    monkeypatch.setattr(solves, "run", results(["right", "right"]))
    campaign.main(["--part", "solves", "--out", str(tmp_path)])
    file = tmp_path / "results-0.jsonl"
    file.write_text(file.read_text()[:-20])
    assert campaign.main(["--part", "solves", "--out", str(tmp_path)]) == 0
    assert json.loads((tmp_path / "summary.json").read_text())["tried"] == 2


def test_one_trial_can_be_repeated(tmp_path):
    out = str(tmp_path)
    assert campaign.main(["--part", "solves", "--only", "enumerate 7", "--seed", "3", "--out", out]) == 0
    assert json.loads((tmp_path / "summary.json").read_text())["verdicts"] == {"right": 1}
