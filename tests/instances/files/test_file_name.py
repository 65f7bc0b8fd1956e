"""Names of files that are made of any text."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relocbench.instances.files.file_name import LONGEST, safe_file_name

# Names that a file or an option may contain and that must not become a path, a device or a hidden file.
HOSTILE_NAMES = (
    "../../x",
    "/tmp/x",
    "a/b",
    "a\\b",
    "C:\\x",
    "..",
    ".",
    "",
    " ",
    ".hidden",
    "-rf",
    "x" * 5_000,
    "é" * 5_000,
    "a\nb",
    "a\x00b",
    "\x1b[31m",
    "\u202egpj.exe",
    "\ud800",
    "CON",
    "con.x",
    "Lpt1 .x",
    "x.",
    "x ",
    "~",
    "a*b?",
    "<script>",
    "$(x)",
    "e\u0301",
)


@pytest.mark.parametrize(
    "name",
    [
        "paper-s10-3",
        "small-scarce-m15-l4-0",
        "Tokyo 2024",
        "東京",
        "हिन्दी",
        "a.b_c",
        "s=1,k=2",
        "constant",
        "x" * LONGEST,
    ],
)
def test_an_ordinary_name_stays_as_it_is(name: str) -> None:
    assert safe_file_name(name, ".json") == f"{name}.json"


def _assert_harmless(name: str) -> None:
    assert Path(name).name == name
    assert not re.search(r'[\x00-\x1f\x7f/\\:*?"<>|$`\ud800-\udfff]', name)
    assert name[0] not in ".- ~"
    assert name[-1] not in ". "
    assert len(name.encode()) <= LONGEST
    assert not re.fullmatch(r"(?i)(con|prn|aux|nul|com.|lpt.) *(\..*)?", name)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_hostile_name_becomes_a_plain_file_name(name: str) -> None:
    _assert_harmless(safe_file_name(name))
    assert safe_file_name(name) != name


@given(st.text() | st.text("./\\_~- conCON1", max_size=8))
def test_every_text_becomes_a_plain_file_name_that_is_not_changed_again(text: str) -> None:
    name = safe_file_name(text)
    _assert_harmless(name)
    if name == text:
        assert safe_file_name(name) == name


def test_different_texts_have_different_names() -> None:
    texts = [*HOSTILE_NAMES, "a_b", "a__b", "a:b", "x" * 4_999, "unnamed", "_", "__", "x", "é"]
    texts += [safe_file_name(text) for text in texts if safe_file_name(text) != text]
    assert len({safe_file_name(text) for text in texts}) == len(set(texts))
