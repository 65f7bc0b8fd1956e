"""The notebook docs/tour.ipynb runs, and its stored outputs are those of the present code."""

import json
import re

import pytest

from tests.tour import FIGURE, TOUR, executed_tour, read_tour

pytest.importorskip("nbclient")

# The largest size of the notebook in bytes.
LARGEST = 300_000
# A cell with this tag shows numbers that depend on the speed of the machine, such as a bound.
VARIES = "numbers-vary"


def views(cell):
    """Return the outputs of a cell without what may differ from run to run."""
    return [view for output in cell.outputs for view in _views(output, VARIES in cell.metadata.get("tags", ()))]


def _views(output, varies):
    if output.output_type == "stream":
        return [_masked(output.text, varies)]
    data = output.data
    if FIGURE in data:
        names = [trace.get("name") for trace in data[FIGURE]["data"]]
        if varies:
            return [names]
        # Another machine may round sums differently.
        figure = json.loads(json.dumps(data[FIGURE]), parse_float=lambda digits: f"{float(digits):.6g}")
        return [names, _masked(json.dumps(figure, ensure_ascii=False, sort_keys=True), varies)]
    return [_masked(data[kind], varies) for kind in ("text/plain", "text/html") if kind in data]


def _masked(text, varies):
    text = re.sub(r"(?<=, )[\d.e-]+(?= s\b)|(?<=>)\d+\.\d{3}(?=</td></tr>)", "…", text)  # times of runs
    text = re.sub(r"(>seconds</th><td[^>]*>)[\d.e-]+", r"\1…", text)
    return re.sub(r"\d+(\.\d+)?", "…", text) if varies else text


def test_the_tour_is_small_and_shows_figures_without_loading_anything():
    assert TOUR.stat().st_size < LARGEST
    outputs = [output for cell in read_tour().cells for output in cell.get("outputs", ())]
    figures = [output.data for output in outputs if FIGURE in output.get("data", {})]
    assert len(figures) >= 2
    assert all("image/png" in data for data in figures)
    assert not [output for output in outputs if output.get("name") == "stderr" or output.output_type == "error"]
    assert not any("<script" in str(output) for output in outputs)


def test_every_link_of_the_tour_leads_to_a_page():
    texts = [cell.source for cell in read_tour().cells if cell.cell_type == "markdown"]
    targets = re.findall(r"\]\(([^)#]+)", "\n".join(texts))
    assert len(targets) >= 5
    assert [target for target in targets if not (TOUR.parent / target).is_file()] == []


@pytest.mark.slow
def test_the_tour_runs_and_gives_the_outputs_that_it_shows(tmp_path):
    stored, now = read_tour().cells, executed_tour(tmp_path).cells
    assert sum(cell.cell_type == "code" for cell in now) >= 10
    for before, after in zip(stored, now, strict=True):
        if after.cell_type == "code":
            # `python -m tests.tour` writes the notebook with the present outputs.
            assert views(before) == views(after), after.source
