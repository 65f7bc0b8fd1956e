"""The commands, programs, paths and links in README and docs/ work."""

import importlib
import itertools
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

import relocbench
from relocbench.cli import app
from relocbench.runs.selectors import parse_selectors

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", *sorted(DOCS.glob("*.md")))
EVERY_PAGE = (*PAGES, ROOT / "CHANGELOG.md", ROOT / "benchmarks" / "README.md")
# These pages are followed from top to bottom; the programs of the others run after the tour of the README.
FOLLOWED = (DOCS / "tutorial.md", DOCS / "python.md")
ROOMS = ("instances", "heuristics", "formulations", "runs", "spark", "reports", "relocbench", "tests", "benchmarks")
# Python files that a reader of the documentation writes.
OF_THE_READER = {"mine.py", "test_mine.py", "NAME.py", "NAME_generator.py"}
# The groups of entry points, which are no modules.
NOT_A_MODULE = {"relocbench.methods", "relocbench.exact_methods"}


def blocks(page):
    """Return the indented blocks of a page without their indent."""
    text = re.sub(r"^ {4}.*\n(?:\n* {4}.*\n)*", lambda found: f"\0{found[0]}\0", page.read_text() + "\n", flags=re.M)
    return [re.sub(r"^ {4}", "", block, flags=re.M).strip("\n") for block in text.split("\0")[1::2]]


def commands_of(block):
    """Return the command lines of a block with their explanations, which follow two spaces."""
    lines = [re.split(r"\s{2,}", line, maxsplit=1) for line in block.splitlines()]
    return [
        (shlex.split(command), "".join(rest))
        for command, *rest in lines
        if command.startswith(("relocbench ", "pytest "))
    ]


def commands(page):
    """Return the arguments of every relocbench command of a page."""
    found = [words for block in blocks(page) for words, _ in commands_of(block)]
    return [words[1:] for words in found if words[0] == "relocbench"]


def is_program(block):
    return block.startswith(("import ", "from "))


def execute(block, page, names):
    exec(compile(block, page.name, "exec"), names)


@pytest.mark.parametrize("arguments", [words for page in PAGES for words in commands(page)], ids=" ".join)
def test_the_program_accepts_every_command_in_the_docs(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "better.json").write_text("[]")  # a reader has it from the command before
    command, rest = typer.main.get_command(app), list(arguments)
    while hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    given = command.make_context("relocbench", rest).params
    for option in ("method", "methods"):
        for selectors in [given[option]] if isinstance(given.get(option), str) else given.get(option) or ():
            if "mine.py" not in selectors:
                assert parse_selectors([selectors])


def test_the_docs_contain_commands():
    assert sum(len(commands(page)) for page in PAGES) > 50


@pytest.mark.slow
def test_the_tour_of_the_readme_and_the_programs_of_the_docs_run(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tour = commands(ROOT / "README.md")
    assert len(tour) == 10
    for words in tour:
        code, out, err = run(*words)
        assert code == 0, (words, out, err)
    expected = {"bench", "cert.json", "inst.json", "map.html", "small.parquet", "sol.json", "study"}
    assert expected <= {path.name for path in tmp_path.iterdir()}
    # Some of the programs read files that the tour has written.
    programs = {page: list(filter(is_program, blocks(page))) for page in PAGES if page not in FOLLOWED}
    assert sum(map(len, programs.values())) >= 5
    for page, found in programs.items():
        names = {}
        for program in found:
            execute(program, page, names)


@pytest.mark.slow
@pytest.mark.parametrize("page", FOLLOWED, ids=lambda page: page.name)
def test_a_page_can_be_followed_from_top_to_bottom(page, run, tmp_path, monkeypatch):
    """Write the files that the page shows, and run its commands and programs in their order."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    names, steps = {}, 0
    for block in blocks(page):
        if (file := re.match(r"# (\w+\.py)\n", block)) is not None:
            Path(file[1]).write_text(block + "\n", encoding="utf-8")
        elif is_program(block):
            execute(block, page, names)
        for words, explanation in commands_of(block):
            if words[0] == "pytest":
                # Warnings of other packages are not errors for a reader, as they are in the tests of the project.
                done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)
                code, out, err = done.returncode, done.stdout, done.stderr
            else:
                code, out, err = run(*words[1:])
            assert code == (1 if "exit 1" in explanation else 0), (words, out, err)
        steps += 1
    assert steps >= 9


def test_the_python_reference_has_every_public_name():
    headings = re.findall(r"^## (`\w+`(?:, `\w+`)*)$", (DOCS / "python.md").read_text(), re.M)
    assert sorted(re.findall(r"\w+", " ".join(headings))) == sorted(relocbench.__all__)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_every_page_of_the_docs_links_to_the_glossary_at_its_top(page):
    assert page.name == "glossary.md" or "(glossary.md)" in page.read_text()[:1500]


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: page.name)
def test_every_python_file_named_in_the_docs_exists(page):
    files = [file.relative_to(ROOT) for room in ROOMS for file in (ROOT / room).rglob("*.py")]
    known = {"/".join(file.parts[-length:]) for file in files for length in range(1, len(file.parts) + 1)}
    known |= {"bootstrap.py"} | OF_THE_READER
    named = set(re.findall(r"(?<![\w./-])[\w./-]+\.py\b", page.read_text()))
    missing = {name for name in named if name not in known and Path(name).name not in OF_THE_READER}
    assert not missing


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: page.name)
def test_every_folder_of_a_room_named_in_the_docs_exists(page):
    # The output of sweeps also goes into folders called runs, so that these names cannot be checked.
    rooms = "|".join(room for room in ROOMS if room != "runs")
    named = re.findall(rf"`((?:{rooms})/[\w/]*)`", page.read_text())
    assert [name for name in named if not (ROOT / name).is_dir() and "NAME" not in name] == []


def exists(dotted):
    """Return whether a dotted name is a module, or an attribute of a module."""
    parts = dotted.removeprefix("relocbench.").split(".") if dotted.startswith("relocbench.") else dotted.split(".")
    if dotted.startswith("relocbench.") and parts[0] in relocbench.__all__:
        return True
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(["relocbench", *parts[:length]]))
        except ModuleNotFoundError:
            continue
        return length == len(parts) or hasattr(found, parts[length])
    return False


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: page.name)
def test_every_module_named_in_the_docs_exists(page):
    # A name that begins with "spark." is usually a setting of Spark, so modules of that room are checked by full name.
    rooms = "instances|heuristics|formulations|runs|reports|relocbench"
    named = set(re.findall(rf"(?<![\w./:-])(?:{rooms})(?:\.[a-z_]\w*)+(?![\w/*#-])", page.read_text()))
    named = {name for name in named - NOT_A_MODULE if not name.endswith((".py", ".md", ".parquet", ".json", ".html"))}
    assert {name for name in named if not exists(name)} == set()


def anchors(page):
    """Return the anchors that GitHub makes of the headings of a page; it numbers equal ones from the second on."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", page.read_text(), re.M):
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        numbered = (f"{anchor}-{number}" if number else anchor for number in itertools.count())
        found.add(next(name for name in numbered if name not in found))
    return found


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: page.name)
def test_every_link_in_the_docs_leads_somewhere(page):
    text = re.sub(r"^ {4}.*$|`[^`]*`", "", page.read_text(), flags=re.M)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("http"):
            continue
        place, _, anchor = target.partition("#")
        file = (page.parent / place).resolve() if place else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target
