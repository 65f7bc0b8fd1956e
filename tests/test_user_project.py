"""A user's project goes through study, bench, show and check, from an installed wheel.

The project has a package of its own with a heuristic and an exact method, data of its own in CSV files, and a test file
with the gate. The user then makes the mistakes that users make.
"""

import json

import pytest

from tests.reports.browser import browser
from tests.wheel import run_in

GREEDY = """
import numpy as np
from .parts import needed

def greedy(instance, *, seed, time_limit, room=1.0, on_progress=None):
    servers = np.arange(instance.n_servers)
    free, stored, homes = room * instance.storage_capacity, [set() for _ in servers], []
    for client in range(instance.n_clients):
        delay = instance.client_delay(client, servers)
        cost = [needed(instance, client, stored[l]) for l in servers]
        home = min(servers, key=lambda l: (cost[l] > free[l], delay[l]))
        free[home] -= cost[home]
        stored[home] |= set(instance.topics[client].tolist())
        homes.append(int(home))
    print("greedy was here")
    return homes
"""
PARTS = """
def needed(instance, client, stored):
    return sum(instance.spool[n] for n in set(instance.topics[client].tolist()) - stored)
"""
EXACT = """
import relocbench

def hasty(instance, *, seed, time_limit):
    homes = [0] * instance.n_clients
    return relocbench.Solution(homes, bound=relocbench.evaluate(instance, homes).objective, status="optimal")

hasty.proves = "optimality"
"""
GATE = """
import relocbench

def test_greedy_is_no_worse_than_it_was():
    relocbench.check("allocation.greedy:greedy", baseline="baseline.json").assert_passed()
"""
METHOD = "allocation.greedy:greedy"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of the user's project."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "allocation").mkdir()
    files = {"__init__": "", "greedy": GREEDY, "parts": PARTS, "exact": EXACT}
    for name, content in files.items():
        (folder / "allocation" / f"{name}.py").write_text(content)
    (folder / "test_gate.py").write_text(GATE)
    (folder / "sites.csv").write_text("name,x,y\n" + "".join(f"site {n},{5 * n},{n % 2}\n" for n in range(3)))
    people = [f"person {n},{n},{(7 * n) % 5}\n" for n in range(12)]
    (folder / "people.csv").write_text("name,x,y\n" + "".join(people))
    members = [f"topic {n % 4},person {n}\ntopic {(n + 1) % 4},person {n}\n" for n in range(12)]
    (folder / "members.csv").write_text("topic,client\n" + "".join(members))
    return folder


@pytest.fixture(scope="module")
def command(folder, python):
    """Return a function that runs the command in the user's project and returns (exit code, stdout, stderr)."""

    def run(*arguments):
        done = run_in(folder, python, "-m", "relocbench", *arguments)
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture(scope="module")
def instance(command):
    """Return the file of the instance that is made of the user's tables."""
    tables = ("--servers", "sites.csv", "--clients", "people.csv", "--members", "members.csv")
    code, _, err = command("convert", *tables, "--load", "1.2", "--name", "town-0", "--out", "town.json")
    assert code == 0, err
    return "town.json"


@pytest.mark.slow
def test_own_homes_are_evaluated_from_a_table_with_names(folder, command, instance):
    code, out, err = command("solve", instance, "--method", METHOD, "--json")
    assert code == 0, err
    assert "greedy was here" not in out + err
    objective = json.loads(out)["objective"]
    assert command("solve", instance, "--method", METHOD, "--out", "mine.json")[0] == 0
    homes = json.loads((folder / "mine.json").read_text())["home"]
    rows = [f"person {m},site {home}\n" for m, home in enumerate(homes)]
    (folder / "homes.csv").write_text("client,home\n" + "".join(reversed(rows)))
    code, out, err = command("evaluate", instance, "homes.csv", "--json")
    assert (code, json.loads(out)["objective"]) == (0, objective), err


@pytest.mark.slow
def test_a_study_of_the_heuristic_repeats_only_what_was_edited(folder, command, instance, tmp_path):
    methods = ("--method", f"nearest,{METHOD},{METHOD}[room=0.5]", "--seed", "0", "--reference-time", "5")
    study = ("study", instance, "library:tiny-loose-plain-0", *methods, "--out", "results/study", "--json")
    code, out, err = command(*study)
    assert (code, json.loads(out)["warnings"]) == (0, []), err
    excess = {one["selector"]: one["mean"] for one in json.loads(out)["summary"] if one["regime"].startswith("town")}
    assert set(excess) == {"nearest", METHOD, f"{METHOD}[room=0.5]"}
    assert all(value >= -1e-6 for value in excess.values())
    again = command(*study)
    assert json.loads(again[1])["summary"] == json.loads(out)["summary"]  # with the same times: nothing was repeated
    assert "are made again" not in again[2]
    parts = folder / "allocation" / "parts.py"
    parts.write_text(f"# A comment is a change.\n{PARTS}")
    edited = command(*study)
    assert f"are made again: 2 of {METHOD}, 2 of {METHOD}[room=0.5]\n" in edited[2]
    parts.write_text(PARTS)
    with browser(tmp_path) as tab:
        tab.assert_readable(folder / "results" / "study" / "report.html")


@pytest.mark.slow
def test_a_false_proof_of_the_user_is_found_by_bench(folder, command, instance, tmp_path):
    methods = ("--method", "allocation.exact:hasty,enumerate", "--time-limit", "20")
    code, out, err = command("bench", instance, *methods, "--out", "results/bench", "--json")
    assert code == 1, err
    assert "allocation.exact:hasty claims" in out
    with browser(tmp_path) as tab:
        tab.assert_readable(folder / "results" / "bench" / "report" / "report.html")


@pytest.mark.slow
def test_a_map_shows_the_heuristic_beside_homes_of_a_file(folder, command, instance, tmp_path):
    (folder / "list.json").write_text(json.dumps([0] * 12))
    code, out, err = command("show", instance, "list.json", "--method", METHOD, "--out", "results/map.html", "--json")
    assert code == 0, err
    assert len(json.loads(out)["shown"]) == 2
    with browser(tmp_path) as tab:
        tab.assert_readable(folder / "results" / "map.html")


@pytest.mark.slow
def test_the_gate_passes_then_finds_a_regression_and_a_crash(folder, command, python):
    greedy = folder / "allocation" / "greedy.py"
    gate = ("check", "--method", METHOD, "--baseline", "baseline.json")
    made = command(*gate, "--instances", "tiny-*-plain-0", "--seed", "0-4", "--update-baseline")
    assert made[0] == 0, made
    pytest_run = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_gate.py")
    assert run_in(folder, python, *pytest_run).returncode == 0
    greedy.write_text(GREEDY.replace("delay[l]))", "-delay[l]))"))
    failed = run_in(folder, python, *pytest_run)
    assert failed.returncode == 1
    assert "WORSE" in failed.stdout
    greedy.write_text(GREEDY.replace("free[home] -= cost[home]", "free[home] -= cost[home] / 0 * len(nothing)"))
    code, out, err = command(*gate, "--shrink-seconds", "2")
    assert code == 1, err
    line = 1 + greedy.read_text().splitlines().index("        free[home] -= cost[home] / 0 * len(nothing)")
    assert f"(greedy.py, line {line})" in out
    assert "stopped after 3 of 15 runs" in out
    assert "Traceback" not in out + err
    greedy.write_text(GREEDY)
