import pytest

from relocbench.heuristics import reloc as local_reloc
from relocbench.reports.paper.grid import groups, run_grid
from relocbench.reports.paper.planner import Planner, Setup
from relocbench.reports.paper.readings import after, otos, reloc
from relocbench.runs.solve import solve_here

READINGS = ["reading=prose", "reading=pseudocode,ties=placed"]
SMALL = {"sigma": 5, "spool_per_member": 2, "topics": 5, "servers": 9}


def setup(**more):
    return Setup(seeds=1, jobs=1, parameters=SMALL | more)


@pytest.fixture(scope="module")
def grid(tmp_path_factory):
    folder = tmp_path_factory.mktemp("grid")
    return folder, run_grid(setup(), READINGS, [1, 4], folder)


def test_every_assignment_is_that_of_the_method(grid):
    _, found = grid
    for group in ("paper", "8"):
        [case] = Planner(setup()).cases(group, "sigma", [0])
        for reading in READINGS:
            for method in (reloc(reading), reloc(reading, 1), otos(reading), "nearest"):
                [row] = found[group].of("sigma", 5.0, method)
                assert row.hash == case.instance.hash
                assert row.y == solve_here(case.instance, method).evaluation.y


def test_the_last_step_is_the_method_itself_and_earlier_steps_differ_from_it(grid):
    _, found = grid
    assert after("cooperation", READINGS[0]) == reloc(READINGS[0])
    rows = [found["12"].of("spool", 2.0, after(step))[0] for step in local_reloc.STEPS]
    assert len({row.y for row in rows}) > 1


def test_finished_units_are_not_repeated_and_a_missing_one_is(grid):
    folder, found = grid
    written = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert len(written) == len(groups(setup())) == 7
    lost = next(path for path in written if path.name.startswith("8-0"))
    lost.unlink()
    again = run_grid(setup(), READINGS, [1, 4], folder)
    assert {group: measures.rows for group, measures in again.items()} == {
        group: measures.rows for group, measures in found.items()
    }
    changed = {path for path in folder.iterdir() if written.get(path) != path.stat().st_mtime_ns}
    assert changed == {lost}


def test_other_readings_or_parameters_are_other_units(grid, tmp_path):
    folder, _ = grid
    names = {path.name for path in folder.iterdir()}
    run_grid(setup(max_topic_size=6), READINGS[:1], [4], tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    assert not names & {path.name for path in tmp_path.iterdir()}
