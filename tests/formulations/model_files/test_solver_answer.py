import pytest

from relocbench.formulations.model_files.export import choose_format, export_model
from relocbench.formulations.model_files.solver_answer import read_answer
from relocbench.instances.errors import InputError
from relocbench.instances.generators.families import family

INSTANCE = family("tiny").cells({"regime": "scarce", "shape": "plain"})[0].build(0)  # 4 clients, 4 servers
PLAIN = "x_0_1 1\nx_1_3 1\nx_2_3 0.9999999\nx_3_1 1\n"


def read(tmp_path, text, method="milp-strong"):
    path = tmp_path / "answer.sol"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_answer(path, INSTANCE, method, {})


@pytest.mark.parametrize(
    ("text", "objective"),
    [
        (PLAIN, None),
        ("# Solution for model relocbench\n# Objective value = 7.75\n" + PLAIN, 7.75),
        ("solution status: optimal\nobjective value:    7.75\n" + PLAIN.replace(" 1\n", " 1 \t(obj:2)\n"), 7.75),
        ("Optimal - objective value 7.75000000\n" + "".join(f"** 7 {line} 2.5\n" for line in PLAIN.splitlines()), 7.75),
        (
            "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 7.75\n# Columns 4\n" + PLAIN
            + "# Rows 1\nr1 1\n\n# Dual solution values\nFeasible\n# Columns 1\nx_0_0 0.3\n",
            7.75,
        ),
        (
            '<?xml version = "1.0"?>\n<CPLEXSolution>\n<header objectiveValue="7.75"/>\n'
            + "".join('<variable name="{}" value="{}"/>\n'.format(*line.split()) for line in PLAIN.splitlines()),
            7.75,
        ),
    ],
)  # fmt: skip
def test_the_format_of_every_solver_is_recognised(tmp_path, text, objective):
    answer = read(tmp_path, text)
    assert answer.home.tolist() == [1, 3, 3, 1]
    assert answer.objective == objective


def test_responses_of_cpsat_and_solutions_of_toulbar2_are_read(tmp_path):
    values = [0] * 16
    for m, l in enumerate([1, 3, 3, 1]):
        values[4 * m + l] = 1
    text = "status: OPTIMAL\n" + "".join(f"solution: {one}\n" for one in [*values, 7]) + "objective_value: 12\n"
    for answer in (read(tmp_path, text, "cpsat"), read(tmp_path, text.replace("solution: ", "solution:"), "cpsat")):
        assert (answer.home.tolist(), answer.objective) == ([1, 3, 3, 1], 12.0)
    assert read(tmp_path, "s1_level0 s3_level0 s3_level2 s1_level0 v0\n", "cfn").home.tolist() == [1, 3, 3, 1]
    named = "v4=v0 home_3=s1_level0 home_2=s3_level0 home_1=s3_level0 home_0=s1_level0\n"
    assert read(tmp_path, named, "cfn").home.tolist() == [1, 3, 3, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PLAIN + "x_4_0 1\n", "'x_4_0': is not a variable of this instance"),
        (PLAIN + "speed_4 1\n", "'speed_4': is not a variable of milp-strong"),
        (PLAIN + "x_0 1\n", "'x_0': is not a variable of milp-strong"),
        (PLAIN.replace("x_2_3 0.9999999\n", ""), "there is no home for client 2"),
        (PLAIN + "x_2_0 1\n", "there are two homes for client 2: x_2_0 and x_2_3"),
        (PLAIN.replace("x_1_3 1", "x_1_3 0.5"), "x_1_3: expected 0 or 1, got 0.5; a linear relaxation"),
        (PLAIN.replace("x_1_3 1", "x_1_3 nan"), "x_1_3: expected 0 or 1, got nan"),
        (PLAIN.replace("x_1_3 1", "x_1_3 2"), "x_1_3: expected 0 or 1, got 2"),
        (PLAIN.replace("x_1_3 1", "x_1_3 one"), "'x_1_3': expected a number, got 'one'"),
        ("solution status: infeasible\nno solution available\n", "contains no values .* 'solution status: infeasible'"),
        ("", "contains no values"),
    ],
)
def test_a_wrong_answer_file_is_refused_in_one_line(tmp_path, text, message):
    with pytest.raises(InputError, match=rf"answer\.sol: {message}") as caught:
        read(tmp_path, text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("method", "text", "message"),
    [
        ("cpsat", "status: INFEASIBLE\n", "its status is INFEASIBLE"),
        ("cpsat", "status: OPTIMAL\nsolution: 1\n", "at least 16 values"),
        ("cpsat", b"\xff\xff\xff", "expected a CpSolverResponse"),
        ("cfn", "1 1 1\n", "no home for client 3"),
        ("cfn", "1 1 1 99\n", "home_3: expected a value such as s0_level0"),
        ("cfn", "home_0=s0_level0 v4=v0\n", "no home for client 1"),
        ("cfn", "\n", "contains no solution"),
    ],
)
def test_a_wrong_answer_of_cpsat_or_toulbar2_is_refused(tmp_path, method, text, message):
    pytest.importorskip("ortools")
    with pytest.raises(InputError, match=message):
        read(tmp_path, text, method)


def test_only_formats_that_a_model_has_are_written(tmp_path):
    for call, message in (
        (lambda: choose_format("cpsat", tmp_path / "m.mps", None), "expected a name ending in .pb or .pbtxt"),
        (lambda: choose_format("cpsat", tmp_path / "m.mps", "mps"), "expected one of cpsat-proto, got 'mps'"),
        (lambda: choose_format("milp-basic", tmp_path / "m.lp", "mps"), "expected a name ending in .mps"),
        (lambda: export_model(INSTANCE, "anneal", {}, tmp_path / "m.mps"), "no model in one file"),
    ):
        with pytest.raises(InputError, match=message):
            call()
