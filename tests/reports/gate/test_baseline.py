import json

import pytest

from relocbench.instances.errors import InputError
from relocbench.reports.gate.baseline import SHIPPED, Baseline, Line, Record, Times, read_baseline, write_baseline

LINES = {"a-1": Line("12ab", (1.5, 0.1 + 0.2), (0, 2, 1)), "b-2": Line("34cd", (7.0, 8.0), (1,))}
RECORD = Record("mine.py:f[k=2]", (0, 4), 60.0, "*", 95, {"python": "3.11"}, LINES)


def test_a_baseline_reads_back(tmp_path):
    path = tmp_path / "new" / "baseline.json"
    baseline = Baseline({RECORD.method: RECORD})
    write_baseline(baseline, path)
    assert read_baseline(path) == baseline
    text = path.read_text(encoding="utf-8")
    assert json.loads(text)["format"] == "relocbench-baseline/2"
    assert sum('"costs"' in line for line in text.splitlines()) == 2  # One line per instance.


def test_a_file_of_the_first_format_is_read(tmp_path):
    path = tmp_path / "baseline.json"
    write_baseline(Baseline({RECORD.method: RECORD}), path)
    path.write_text(path.read_text(encoding="utf-8").replace("relocbench-baseline/2", "relocbench-baseline/1"))
    assert read_baseline(path).records == {RECORD.method: RECORD}


def test_times_and_own_instances_read_back(tmp_path):
    timed = {"a": Line("12ab", (1.5, 2.0), (0,), "a.json", 1.25, True, Times((0.1, 0.2), (0.05, 0.06), 0.4, 1.25))}
    timed |= {"b": Line("34cd", (7.0, 8.0), (1,), "b.json", times=Times((0.1, 0.2), (), 0.4, 7.0))}
    record = Record("f.py:f", (0, 4), 60.0, "*", 0, {}, timed, "../own", {"sorted-1": 0.002})
    path = tmp_path / "baseline.json"
    write_baseline(Baseline({record.method: record}), path)
    assert read_baseline(path).records == {record.method: record}


def test_the_shipped_baseline_has_the_current_form(tmp_path):
    write_baseline(read_baseline(SHIPPED), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text(encoding="utf-8") == SHIPPED.read_text(encoding="utf-8")


def test_the_error_for_an_unknown_method_lists_the_known_ones(tmp_path):
    with pytest.raises(InputError, match=r"has no costs of x; --update-baseline adds them.*mine.py:f\[k=2\]"):
        Baseline({RECORD.method: RECORD}).record("x", tmp_path / "baseline.json")


def changed(path, *keys, value):
    whole = json.loads(path.read_text(encoding="utf-8"))
    part = whole
    for key in keys[:-1]:
        part = part[key]
    part[keys[-1]] = value
    path.write_text(json.dumps(whole), encoding="utf-8")


@pytest.mark.parametrize(
    ("keys", "value", "complaint"),
    [
        (("format",), "x", 'format: expected "relocbench-baseline/1" or "relocbench-baseline/2"'),
        (("methods", 0, "seeds"), [], "methods[0].seeds: expected at least one seed"),
        (("methods", 0, "seeds"), [1, 1], "methods[0].seeds: expected at least one seed, each once"),
        (("methods", 0, "made"), 3, "methods[0].made: expected an object"),
        (("methods", 0, "instances"), [], "methods[0].instances: expected at least one"),
        (("methods", 0, "instances", 1, "costs"), [1.0], "methods[0].instances[1].costs: expected 2 costs"),
        (("methods", 0, "instances", 1, "costs"), [1.0, -1.0], "expected no cost below 0"),
        (("methods", 0, "instances", 1, "costs"), [1.0, "x"], "methods[0].instances[1].costs[1]: expected a number"),
        (("methods", 0, "instances", 1, "name"), "a-1", "methods[0].instances[1].name: a-1 is given twice"),
        (("methods", 0, "reference_seconds"), {"sorted-1": 0}, "methods[0].reference_seconds: expected times above 0"),
        (("methods", 0, "reference_seconds"), {"x": 1.0}, "methods[0].instances[0].seconds: is missing"),
        (("methods", 0, "instances", 0, "optimal"), 1, "methods[0].instances[0].optimal: expected true or false"),
        (("methods", 0, "more"), 1, "methods[0].more: unknown field"),
    ],
)
def test_a_bad_file_gives_one_line_with_the_field(tmp_path, keys, value, complaint):
    path = tmp_path / "baseline.json"
    write_baseline(Baseline({RECORD.method: RECORD}), path)
    changed(path, *keys, value=value)
    with pytest.raises(InputError) as caught:
        read_baseline(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert complaint in str(caught.value)
