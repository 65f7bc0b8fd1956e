"""The commands `relocbench moving certify`, `moving solve` and `verify` on timelines."""

import json

import pytest

SMALL = ("--epochs", "3", "--servers", "3", "--topics", "2", "--set", "min_topic_size=2", "--set", "max_topic_size=4")


@pytest.fixture
def timeline(run, tmp_path):
    path = tmp_path / "moving.parquet"
    assert run("moving", "generate", *SMALL, "--speed", "100", "--seed", "1", "--out", path)[0] == 0
    return path


def test_a_schedule_is_solved_certified_and_verified(run, timeline, tmp_path):
    schedule, certificate = tmp_path / "schedule.json", tmp_path / "cert.json.gz"
    code, out, err = run("moving", "solve", timeline, "--method", "milp-strong", "--out", schedule, "--json")
    assert code == 0, err
    solved = json.loads(out)
    assert solved["status"] == "optimal"
    assert f"optimal: cost {solved['total']:.10g}" in run("moving", "solve", timeline, "--out", schedule)[1]

    limit = ("--time-limit", "2")
    code, out, err = run(
        *("moving", "certify", timeline, "--schedule", schedule, *limit, "--out", certificate, "--json")
    )
    assert code == 0, err
    proved = json.loads(out)
    assert proved["objective"] == pytest.approx(solved["total"])
    assert proved["bound"] <= solved["total"]
    assert len(proved["epoch_bounds"]) == 3
    assert proved["bytes"] == certificate.stat().st_size

    code, out, err = run("verify", timeline, certificate, "--json")
    assert code == 0, err
    assert json.loads(out)["bound"] == proved["bound"]
    code, out, _ = run("verify", timeline, certificate)
    assert (code, out.splitlines()[0].split(":")[0]) == (0, f"proved ({proved['status']})")

    # The certificate holds a schedule, too. Without potentials the bound is at most the same.
    code, out, _ = run(
        *("moving", "certify", timeline, "--schedule", certificate, "--separate", *limit, "--out", tmp_path / "c.json")
    )
    assert code == 0
    assert f"to verify it: relocbench verify {timeline} {tmp_path / 'c.json'}" in out


def test_a_wrong_certificate_exits_with_1_and_a_missing_one_with_2(run, timeline, tmp_path):
    other = tmp_path / "other.parquet"
    assert run("moving", "generate", *SMALL, "--seed", "2", "--out", other)[0] == 0
    certificate = tmp_path / "cert.json"
    assert run("moving", "certify", other, "--time-limit", "1", "--out", certificate)[0] == 0
    code, _, err = run("verify", timeline, certificate)
    assert (code, err.count("\n")) == (1, 1)
    assert "timeline: expected the hash" in err
    content = json.loads(certificate.read_text())
    content.pop("homes")
    certificate.write_text(json.dumps(content))
    code, out, _ = run("verify", other, certificate)
    assert (code, out.startswith("proved (bound): lower bound = ")) == (0, True)
    content["claim"] *= 2
    certificate.write_text(json.dumps(content))
    code, _, err = run("verify", other, certificate)
    assert (code, "claim: is above the sum of what is claimed for the epochs" in err) == (1, True)
    assert run("verify", timeline, tmp_path / "none.json")[0] == 2
    code, _, err = run("moving", "solve", timeline, "--method", "guess", "--out", tmp_path / "s.json")
    assert (code, "method: expected enumerate or milp-strong, got 'guess'" in err) == (2, True)
    assert run("moving", "certify", timeline, "--out", tmp_path / "c.txt")[0] == 2
    assert run("moving", "certify", timeline, "--schedule", tmp_path / "none.json", "--out", certificate)[0] == 2
