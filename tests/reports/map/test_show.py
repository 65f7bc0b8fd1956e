from fractions import Fraction

import numpy as np
import pytest

import relocbench
from relocbench.formulations.certificates.certificate import Certificate
from relocbench.instances.files.solution_file import write_solution
from tests.samples import worked_example

INSTANCE = worked_example()
HOME = [0, 0, 1, 1]


def titles(figure):
    return [note.text for note in figure.layout.annotations]


def test_homes_in_every_form_are_drawn_side_by_side(tmp_path):
    result = relocbench.solve(INSTANCE, "nearest", seed=3)
    write_solution(result.stored(), tmp_path / "sol.json")
    figure = relocbench.show(INSTANCE, HOME, result, result.solution, tmp_path / "sol.json", "otos")
    y = f"Y = {result.y:.4f} ms"
    assert titles(figure) == [
        f"<b>homes 1</b>: {y}",
        f"<b>NS, seed 3</b>: {y}",
        f"<b>homes 3</b>: {y}",
        f"<b>NS, seed 3 (sol.json)</b>: {y}",
        f"<b>OTOS</b>: Y = {relocbench.solve(INSTANCE, 'otos').y:.4f} ms",
    ]
    drawn = [trace for trace in figure.data if trace.name.startswith("client")]
    assert [trace.xaxis for trace in drawn] == ["x", "x2", "x3", "x4", "x5"]
    assert all(list(trace.x) == INSTANCE.client_x.tolist() for trace in drawn)
    # Kilometres are equally long in both directions on every map, and each name is in the legend once.
    assert [figure.layout[f"yaxis{number or ''}"].scaleanchor for number in ("", 2, 3)] == ["x", "x2", "x3"]
    named = [trace.name for trace in figure.data if trace.showlegend is not False]
    assert len(named) == len(set(named)) >= 4


def test_certified_homes_are_drawn():
    home = np.array(HOME, np.int32)
    certificate = Certificate(instance=INSTANCE.hash, home=home, claim=0, bits=0, proof=())
    for bound, label in ((Fraction(1), "certified homes"), (Fraction(9), "certified optimum")):
        verdict = relocbench.Verdict(True, objective=Fraction(9), bound=bound)
        certified = relocbench.Certified(relocbench.Solution(home), certificate, verdict)
        assert titles(relocbench.show(INSTANCE, certified))[0].startswith(f"<b>{label}</b>")


def test_without_homes_the_library_or_the_nearest_servers_are_shown():
    assert titles(relocbench.show(INSTANCE))[0].startswith("<b>NS</b>")
    known = relocbench.Library().read("tiny-loose-plain-0")
    assert titles(relocbench.show(known))[0].startswith("<b>optimal (library)</b>")


def test_homes_of_another_instance_are_refused():
    other = relocbench.Library().read("tiny-loose-plain-0")
    with pytest.raises(relocbench.InputError, match="homes 1: expected homes of the instance given"):
        relocbench.show(INSTANCE, relocbench.solve(other, "nearest"))
    with pytest.raises(relocbench.InputError, match="home"):
        relocbench.show(INSTANCE, [0, 1])
