import json
import struct

import pytest

from relocbench.reports.pages import chromium as chromium_module
from tests.reports.browser import browser, chromium

NAME = "small-overloaded-m10-l3-0"


def test_the_page_has_one_map_per_assignment_and_draws_links_under_the_pointer(run, tmp_path):
    page = tmp_path / "map.html"
    code, text, _ = run("show", f"library:{NAME}", "--method", "nearest,reloc", "--out", page)
    assert code == 0
    assert "excess over the proven optimum (the library's certificate)" in text
    with browser(tmp_path) as opened:
        assert opened.open(page) == 3
        assert opened.errors == []
        lines = "document.getElementById('figure-1').data.find((one) => one.name === 'links').x.length"
        assert opened.evaluate(lines) == 0
        opened.evaluate("document.querySelector('#figure-1').scrollIntoView({behavior: 'instant'})")
        box = "document.querySelector('#figure-1 path.point').getBoundingClientRect()"
        x, y = opened.evaluate(f"[{box}.x + {box}.width / 2, {box}.y + {box}.height / 2]")
        opened.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        opened.wait(f"{lines} > 0")
        assert opened.texts("#figure-1 .hoverlayer .hovertext")[0].startswith("client ")
        opened.call("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
        opened.wait(f"{lines} === 0")
        assert opened.errors == []


def test_the_picture_has_the_size_of_its_maps(run, tmp_path):
    chromium()
    picture = tmp_path / "map.png"
    code, text, _ = run("show", f"library:{NAME}", "--method", "nearest", "--out", picture, "--json")
    answer = json.loads(text)
    assert (code, answer["files"]) == (0, [str(picture)])
    assert [one["homes"] for one in answer["shown"]] == ["optimal (library)", "NS"]
    best, nearest = answer["shown"]
    assert best["excess"] == pytest.approx(0.0, abs=1e-6)
    assert nearest["excess"] == pytest.approx(nearest["objective"] / answer["bound"] - 1)
    assert struct.unpack(">II", picture.read_bytes()[16:24]) == (2 * 2 * 640, 2 * 820)
    assert len(picture.read_bytes()) > 30_000


def test_wrong_use_gives_one_line(run, tmp_path, monkeypatch):
    code, _, err = run("show", f"library:{NAME}", "--out", tmp_path / "map.pdf")
    assert (code, err) == (2, f"relocbench: {tmp_path / 'map.pdf'}: expected a name ending in .html or .png\n")
    monkeypatch.setattr(chromium_module, "NAMES", ("no-such-browser",))
    code, _, err = run("show", f"library:{NAME}", "--out", tmp_path / "map.png")
    assert (code, err.count("\n")) == (2, 1)
    assert "none is installed; a page (.html) does not need it" in err
    assert not list(tmp_path.iterdir())
