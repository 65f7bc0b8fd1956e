import json
import sys

import pytest

from relocbench.cli import main
from relocbench.instances.errors import InputError
from relocbench.reports.pages.index import is_index, reports_in, write_index
from relocbench.reports.pages.page import Page
from relocbench.reports.study.page import write_page
from tests.reports.browser import browser
from tests.reports.study.samples import measurement


def study(path):
    path.parent.mkdir(parents=True)
    measurements = [measurement(f"i{number}", name, 0.25) for number in range(3) for name in ("otos", "reloc[k=8]")]
    return write_page(measurements, path, command="relocbench study", facts={}, warnings=[])


@pytest.fixture
def folder(tmp_path):
    study(tmp_path / "a b" / "study" / "report.html")
    bare = Page('A "quoted" <title>', "**Main** result.\n\nMore.", kind="map")
    bare.write(tmp_path / "map.html")
    (tmp_path / "notes.html").write_text("<html>not a report</html>")
    (tmp_path / ".hidden").mkdir()
    bare.write(tmp_path / ".hidden" / "map.html")
    return tmp_path


def test_an_index_finds_the_reports_of_all_subfolders_with_their_main_result(folder):
    first, second = reports_in(folder)
    assert (str(first.path), first.kind, first.title) == ("a b/study/report.html", "study", "How far from optimal?")
    assert (first.instances, first.methods) == (3, ["otos", "reloc[k=8]"])
    assert first.result.startswith("paper, 3 instances of 390 clients")
    assert first.made.endswith("UTC")
    assert (second.kind, second.title, second.result) == ("map", 'A "quoted" <title>', "Main result.")
    assert (second.made, second.instances, list(second.methods)) == ("", None, [])


def test_a_report_of_an_earlier_version_is_listed_by_its_title(folder):
    text = (folder / "map.html").read_text(encoding="utf-8")
    (folder / "map.html").write_text(text.replace("relocbench-report", "other"), encoding="utf-8")
    assert [one.title for one in reports_in(folder)] == ["How far from optimal?", 'A "quoted" <title>']


@pytest.mark.slow
def test_the_links_of_an_index_lead_to_the_reports(folder):
    page, found = write_index(folder, "relocbench index")
    assert len(found) == 2
    assert is_index(page)
    with browser(folder) as chromium:
        chromium.open(page)
        assert chromium.errors == []
        assert chromium.texts("tbody td:first-child") == ["a b/study/report.html", "map.html"]
        links = chromium.evaluate("[...document.querySelectorAll('tbody a')].map(a => decodeURI(a.pathname))")
        assert links == [str(folder / one.path) for one in found]
    assert len(write_index(folder, "")[1]) == 2  # An index does not list itself, and may be written again.


def test_an_index_elsewhere_has_links_relative_to_its_own_folder(folder):
    out = folder / "pages" / "all.html"
    out.parent.mkdir()
    page, _ = write_index(folder, "", out)
    assert 'href="../a%20b/study/report.html"' in page.read_text(encoding="utf-8")


def test_another_file_is_not_replaced(folder):
    (folder / "index.html").write_text("my own page")
    with pytest.raises(InputError, match=r"index\.html: exists and is not an index"):
        write_index(folder, "")
    assert (folder / "index.html").read_text() == "my own page"


@pytest.mark.parametrize("name", ["absent", "empty"])
def test_a_folder_without_reports_is_refused(tmp_path, name):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="expected a"):
        write_index(tmp_path / name, "")


def test_the_command_lists_the_reports(folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["relocbench", "index", str(folder), "--json"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert not stopped.value.code
    answer = json.loads(capsys.readouterr().out)
    assert answer["page"] == str(folder / "index.html")
    assert [one["path"] for one in answer["reports"]] == ["a b/study/report.html", "map.html"]
