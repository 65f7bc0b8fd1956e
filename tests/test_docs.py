"""What README and docs/ tell people to type works."""

import re
import shlex
from pathlib import Path

import pytest
import typer.main

from relocbench.cli import app
from relocbench.runs.selectors import parse_selectors

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))


def blocks(page):
    """Indented blocks, without their indent."""
    for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", page.read_text() + "\n", re.MULTILINE):
        yield re.sub(r"^    ", "", block, flags=re.MULTILINE).strip("\n")


def commands(page):
    """Arguments of every command of a page; what follows two spaces explains it."""
    for block in blocks(page):
        for line in block.splitlines():
            if line.startswith("relocbench "):
                yield shlex.split(re.split(r"\s{2,}", line)[0])[1:]


@pytest.mark.parametrize("arguments", [words for page in PAGES for words in commands(page)], ids=" ".join)
def test_every_command_in_the_docs_is_one_that_the_program_understands(arguments):
    word, rest = typer.main.get_command(app), list(arguments)
    while hasattr(word, "commands"):
        word = word.commands[rest.pop(0)]
    given = word.make_context("relocbench", rest).params
    for option in ("method", "methods"):
        for selectors in [given[option]] if isinstance(given.get(option), str) else given.get(option) or ():
            if "mine.py" not in selectors:
                assert parse_selectors([selectors])


def test_there_are_commands_to_find_in_the_docs():
    assert sum(1 for page in PAGES for _ in commands(page)) > 50


@pytest.mark.slow
def test_the_tour_of_the_readme_runs_and_so_does_all_python_of_the_docs(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tour = list(commands(ROOT / "README.md"))
    assert len(tour) == 10
    for words in tour:
        code, out, err = run(*words)
        assert code == 0, (words, out, err)
    wanted = {"bench", "cert.json", "gaps", "inst.json", "map.html", "small.parquet", "sol.json"}
    assert wanted <= {path.name for path in tmp_path.iterdir()}
    # Some of the programs read what the tour has left.
    found = [(page, block) for page in PAGES for block in blocks(page) if block.startswith(("import ", "from "))]
    assert len(found) >= 5
    for page, program in found:
        exec(compile(program, page.name, "exec"), {})
