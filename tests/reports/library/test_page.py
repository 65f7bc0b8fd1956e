"""The page of the library: every entry with its bound and files, and the text to cite."""

import dataclasses
import hashlib
import os
import re
import shutil

import pytest

from relocbench.instances.library.library import Claim, Library
from relocbench.reports.library.page import citation, write_page
from relocbench.reports.pages.page import kind_of
from tests.instances.files.bad_files import run_command
from tests.reports.browser import browser

LIBRARY = Library()


def test_the_page_has_every_entry_and_links_to_its_files(tmp_path):
    page = tmp_path / "deep" / "library.html"
    assert run_command("library", "page", "--out", page) == (0, f"page: {page}\n", "")
    text = page.read_text(encoding="utf-8")
    assert kind_of(page) == "library"
    for name, entry in LIBRARY.entries.items():
        assert f'data-value="{name}"' in text
        assert f'data-value="{entry.bound!r}"' in text
    links = re.findall(r'href="([^"#]*\.json\.gz)"', text)
    files = {os.path.realpath(page.parent / link) for link in links}
    assert files == {
        str(path(name).resolve())
        for name in LIBRARY.names()
        for path in (LIBRARY.instance_path, LIBRARY.certificate_path)
    }
    assert hashlib.sha256(LIBRARY.index_path.read_bytes()).hexdigest() in text
    assert f"version {LIBRARY.version} (66 instances" in citation(LIBRARY)


def test_another_library_with_a_claim_and_an_address_of_its_files(tmp_path):
    copy = Library(tmp_path / "own")
    copy.folder.mkdir()
    name = "paper-s10-3"
    shutil.copy(LIBRARY.instance_path(name), copy.folder)
    entry = LIBRARY.entry(name)
    copy.put(dataclasses.replace(entry, claimed=Claim(entry.objective, "<b>mine</b>"), homes_by="<i>x</i>"))
    page = write_page(copy, tmp_path / "library.html", "command", "https://example.org/own/")
    text = page.read_text(encoding="utf-8")
    assert f'href="https://example.org/own/{name}.json.gz"' in text
    assert "&lt;b&gt;mine&lt;/b&gt;" in text
    assert "<i>x</i>" not in text
    assert "claimed without a certificate" in text
    assert f"relocbench library improve {name} cert.json" in text
    assert "--directory FOLDER" in text


def test_an_empty_library_has_a_page_that_can_be_made(tmp_path):
    (tmp_path / "empty").mkdir()
    code, out, err = run_command("library", "page", "--directory", tmp_path / "empty", "--out", tmp_path / "l.html")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "has no entries" in err


@pytest.mark.slow
def test_the_page_is_readable_on_a_screen_and_a_phone_and_can_be_sorted(tmp_path):
    page = write_page(LIBRARY, tmp_path / "library.html", "command")
    with browser(tmp_path) as opened:
        opened.assert_readable(page)
        opened.open(page)
        first = "document.querySelector('tbody td').textContent"
        opened.evaluate("document.querySelectorAll('th button')[1].click()")
        assert opened.evaluate(first) == "paper-spooler-p6-0"  # the largest gap
        opened.evaluate("document.querySelectorAll('th button')[1].click()")
        assert opened.evaluate(first).startswith("tiny")
