"""Valid files, ways to damage them, and checks that a damaged file ends in one line of error and not in a traceback."""

import contextlib
import copy
import io
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relocbench.cli import main
from relocbench.instances.errors import InputError

# The keys and indices that lead from the root of a JSON tree to a node.
Keys = tuple[str | int, ...]

# An instance with every field of the format. Its capacities are scarce, so that all parts of the evaluator are used.
INSTANCE: dict[str, Any] = {
    "format": "relocbench-instance/1",
    "name": "sample",
    "cloud_delay": 5.0,
    "delay_per_km": 0.1,
    "servers": {"x": [0.0, 10.0], "y": [0.0, 0.0], "storage": [10.0, 14.0], "compute": [20.0, 20.0]},
    "clients": {"x": [1.0, 2.0, 9.0, 11.0], "y": [0.0, 1.0, 0.0, 1.0]},
    "topics": [
        {"spool": 8.0, "publishers": [0, 1, 2], "subscribers": [3]},
        {"spool": 6.0, "publishers": [2], "subscribers": [3, 2]},
    ],
    "client_server_delay": [[1.0, 2.0], [3.0, 4.0], [6.0, 5.0], [8.0, 7.0]],
    "server_server_delay": [[0.0, 3.0], [4.0, 0.0]],
    "parameters": {"made": ["by", {"hand": None}]},
}
# The same with delays from distances, for which other code is used.
EUCLIDEAN = {name: value for name, value in INSTANCE.items() if not name.endswith("_delay") or name == "cloud_delay"}
# A whole number that is far above the largest double.
DIGITS = "9" * 10_000


class Token(str):
    """Text that goes into the file unchanged, for JSON that Python does not write: 1e999, or a repeated name."""


def json_text(value: Any) -> str:
    """Return a tree as JSON, with its tokens unchanged."""
    if isinstance(value, Token):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {json_text(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(json_text, value)) + "]"
    return json.dumps(value)


def with_field(content: dict[str, Any], field: str, token: str | None) -> str:
    """Return the JSON of ``content`` with one field, named as in ``topics[0].spool``, set to a token or removed."""
    tree = copy.deepcopy(content)
    *keys, last = (int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", field))
    parent = _node(tree, keys)
    if token is None:
        del parent[last]
    else:
        parent[last] = Token(token)
    return json_text(tree)


def run_command(*arguments: str | Path) -> tuple[int, str, str]:
    """Run ``relocbench`` in this process; return its exit code, standard output and standard error."""
    # Like a terminal or a pipe, and unlike StringIO, a stream of bytes refuses text that cannot be encoded.
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    argv = ["relocbench", *map(str, arguments)]
    with mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
    for stream in (out, err):
        stream.seek(0)
    return code, out.read(), err.read()


def run_installed_command(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Run the installed ``relocbench`` in a folder; return its exit code, standard output and standard error."""
    program = shutil.which("relocbench", path=str(Path(sys.executable).parent))
    assert program is not None
    done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def error_of(read: Callable[..., Any], *arguments: Any) -> str:
    """Return the message with which a reader refuses a file; it must be one line."""
    with pytest.raises(InputError) as caught:
        read(*arguments)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


# Numbers at and above every limit, and numbers that are valid but unusual.
INTEGERS = [0, 1, 2, 3, 4, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**53, 2**63 - 1, 2**63, -(2**63) - 1, 10**18, 10**400]
FLOATS = [0.0, -0.0, 0.5, 1e-9, 1e-300, 5e-324, 1e9, -1e9, 1e9 + 1, 1e12, 1e12 + 1, 1e15, 1e16, 1e308, -1e308]
UNUSUAL = [0.0, -0.0, 5e-324, 1e-300, 1e-9, 0.1, 1.0, 7.0, 1e6, 1e9]  # within the limits of every field
TEXTS = ["", "5", "1e9", "nan", "\ud800", "a\nb", "\u2028", "relocbench-instance/2"]
TOKENS = [Token(text) for text in ("NaN", "-Infinity", "1e999", "-1e999", "9" * 10_000, '{"x": 1, "x": 2}')]
NESTED = [Token("[" * 600 + "]" * 600), Token("[" * 3_000), Token('{"":' * 3_000)]
NOT_JSON = [Token(text) for text in ("01", "+1", ".5", "1.", "0x10", "1e", "tru", "'x'", "\x00", "/**/ 1", "1,")]

NUMBERS = st.sampled_from(INTEGERS) | st.sampled_from(FLOATS) | st.integers(-10, 50)
SCALARS = (
    NUMBERS
    | st.floats()
    | st.none()
    | st.booleans()
    | st.text(max_size=8)
    | st.sampled_from(TEXTS)
    | st.sampled_from(TOKENS + NESTED + NOT_JSON)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def _all_keys(tree: Any, keys: Keys = ()) -> Iterator[Keys]:
    yield keys
    parts = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, part in parts:
        yield from _all_keys(part, (*keys, key))


def _node(tree: Any, keys: Sequence[str | int]) -> Any:
    for key in keys:
        tree = tree[key]
    return tree


@st.composite
def mutated_json(draw: st.DrawFn, content: dict[str, Any]) -> bytes:
    """Replace, delete, insert or repeat up to three nodes of a tree."""
    tree: Any = copy.deepcopy(content)
    names = sorted({key for keys in _all_keys(content) for key in keys if isinstance(key, str)})
    for _ in range(draw(st.integers(1, 3))):
        nodes = list(_all_keys(tree))[1:]
        if not nodes or draw(st.integers(0, 30)) == 30:
            tree = draw(VALUES)
            continue
        keys = draw(st.sampled_from(nodes))
        parent = _node(tree, keys[:-1])
        last: Any = keys[-1]
        what = draw(st.sampled_from(["number", "number", "replace", "replace", "delete", "insert", "repeat"]))
        if what == "number":
            # A number replaces a number here, so that most of these files stay valid.
            parent[last] = draw(NUMBERS) if isinstance(parent[last], int | float) else draw(VALUES)
        elif what == "replace":
            parent[last] = draw(VALUES)
        elif what == "delete":
            del parent[last]
        elif isinstance(parent, list):
            parent.insert(last, draw(VALUES) if what == "insert" else copy.deepcopy(parent[last]))
        elif what == "insert":
            parent[draw(st.text(max_size=5) | st.sampled_from(names))] = draw(VALUES)
        else:
            parent[draw(st.sampled_from(names))] = copy.deepcopy(parent[last])
    return json_text(tree).encode("utf-8", "surrogatepass")


@st.composite
def unusual_json(draw: st.DrawFn, content: dict[str, Any]) -> bytes:
    """Replace up to six numbers by valid ones, most of which are unusual."""
    tree = copy.deepcopy(content)
    for _ in range(draw(st.integers(1, 6))):
        keys = draw(st.sampled_from([keys for keys in _all_keys(tree) if isinstance(_node(tree, keys), int | float)]))
        parent = _node(tree, keys[:-1])
        parent[keys[-1]] = draw(st.integers(0, 3) if isinstance(parent[keys[-1]], int) else st.sampled_from(UNUSUAL))
    return json_text(tree).encode()


@st.composite
def mutated_bytes(draw: st.DrawFn, content: bytes) -> bytes:
    """Flip, overwrite, delete, insert or cut off bytes, up to four times."""
    damaged = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(len(damaged) - 1, 0)))
        # Cut rarely, because other changes hardly reach the short file that remains.
        what = draw(st.sampled_from(["flip", "overwrite", "delete", "insert"] * 5 + ["cut"]))
        if what == "flip" and damaged:
            damaged[place] ^= 1 << draw(st.integers(0, 7))
        elif what == "overwrite":
            few = draw(st.binary(min_size=1, max_size=4))
            damaged[place : place + len(few)] = few
        elif what == "delete":
            del damaged[place : place + draw(st.integers(1, 8))]
        elif what == "insert":
            damaged[place:place] = draw(st.binary(min_size=1, max_size=8) | st.sampled_from([b"-", b"9", b"e9", b","]))
        elif what == "cut":
            del damaged[place:]
    return bytes(damaged)


def check_mutations(
    files: st.SearchStrategy[bytes],
    path: Path,
    different: int,
    commands: Sequence[tuple[str, ...]],
    failing: int = 0,
) -> Counter[int]:
    """Run a command on at least so many different files at ``path``; return how often each exit code occurred.

    In a command, ``FILE`` stands for the path and ``SAMPLE`` for ``sample.json`` beside it.
    """
    codes: dict[bytes, int] = {}

    # Twice the number, because Hypothesis repeats some examples.
    @settings(max_examples=2 * different)
    @given(files, st.sampled_from(commands))
    def check(content: bytes, command: tuple[str, ...]) -> None:
        if content not in codes:
            path.write_bytes(content)
            codes[content] = _check_command(command, path, failing)

    check()
    assert len(codes) >= different
    return Counter(codes.values())


def _check_command(command: tuple[str, ...], path: Path, failing: int) -> int:
    """Run a command; it must exit with 0 or ``failing``, or refuse the file in one line and exit with 2."""
    files = {"FILE": path, "SAMPLE": path.with_name("sample.json")}
    code, out, err = run_command(*(files.get(word, word) for word in command))
    if code == 2:
        assert err.startswith("relocbench: ")
        assert str(path) in err
        assert len(err.splitlines()) == 1
        assert out == ""
    else:
        assert code in (0, failing)
        assert (err == "") == (code == 0)
        if "--json" in command:
            json.loads(out, parse_constant=pytest.fail)
    return code


def check_reader(read: Callable[[Path], Any], content: bytes, path: Path) -> None:
    """Change the bytes of a valid file; the reader must accept each changed file or refuse it in one line."""

    @settings(max_examples=150)
    @given(mutated_bytes(content))
    def check(damaged: bytes) -> None:
        path.write_bytes(damaged)
        try:
            read(path)
        except InputError:
            assert error_of(read, path).startswith(f"{path}: ")

    check()
