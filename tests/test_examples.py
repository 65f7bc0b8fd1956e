"""Every public name has an example in its documentation, and the examples give what they show."""

import doctest
import inspect
import pydoc
import re

import pytest

import relocbench

# Methods of a library that only the commands call, because they change it.
INTERNAL = {"Library.change", "Library.check_writable", "Library.put", "Library.reread"}


def documented():
    """Return every public function, class and method by name; a value such as a property needs no example."""
    found = {}
    for name in relocbench._LAZY:
        found[name] = value = getattr(relocbench, name)
        if inspect.isclass(value):
            found |= {
                f"{name}.{part}": inspect.unwrap(getattr(value, part))
                for part, content in vars(value).items()
                if not part.startswith("_") and isinstance(content, classmethod | staticmethod | type(documented))
            }
    return {name: value for name, value in found.items() if name not in INTERNAL}


DOCUMENTED = documented()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder that all examples share, so that the runs of a study are made once."""
    return tmp_path_factory.mktemp("examples")


@pytest.mark.slow
@pytest.mark.parametrize("name", DOCUMENTED)
def test_an_example_gives_what_it_shows(name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    text = inspect.getdoc(DOCUMENTED[name])
    assert re.search(r"^Examples\n--------$", text, re.M), f"the documentation of {name} has no section Examples"
    example = doctest.DocTestParser().get_doctest(text.partition("\nExamples\n")[2], {}, name, None, None)
    assert len(example.examples) >= 2
    report = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=report.append)
    assert not report, "".join(report)


def test_help_shows_every_public_name_with_its_documentation():
    text = pydoc.render_doc(relocbench, renderer=pydoc.plaintext)
    for name in relocbench._LAZY:
        value = getattr(relocbench, name)
        heading = rf"(?:class {name}\(|{name} = class )" if inspect.isclass(value) else rf"{name}\("
        assert re.search(f"^    {heading}", text, re.M), name
        assert inspect.getdoc(value).splitlines()[0] in text, name
    assert f"VERSION\n    {relocbench.__version__}" in text


def test_tab_completion_offers_the_public_names_and_nothing_else():
    assert sorted(dir(relocbench)) == sorted(relocbench.__all__)
