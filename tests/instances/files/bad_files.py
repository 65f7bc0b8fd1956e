"""Valid files and ways to spoil them."""

import contextlib
import copy
import io
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import strategies as st

from relocbench.cli import main

Way = tuple[str | int, ...]

# Every field of the format; capacities are scarce, so that what is made of it goes through all the code.
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
# The same with delays by distance, which is another path through the code.
EUCLIDEAN = {name: value for name, value in INSTANCE.items() if not name.endswith("_delay") or name == "cloud_delay"}


class Token(str):
    """JSON as it stands in the file, for what Python does not write: NaN, 1e999, a name given twice."""


def spelt(value: Any) -> str:
    """Return a tree as JSON, tokens as they are."""
    if isinstance(value, Token):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {spelt(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(spelt, value)) + "]"
    return json.dumps(value)


def changed(content: dict[str, Any], field: str, token: str | None) -> str:
    """Return the JSON of ``content`` with one field, named as in ``topics[0].spool``, set to a token or left out."""
    tree = copy.deepcopy(content)
    *way, last = (int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", field))
    parent = _node(tree, way)
    if token is None:
        del parent[last]
    else:
        parent[last] = Token(token)
    return spelt(tree)


def run_command(*arguments: str | Path) -> tuple[int, str, str]:
    """Run ``relocbench`` in this process; return its exit code, standard output and standard error."""
    # Streams of bytes, unlike StringIO, refuse text that cannot be encoded, as a terminal or a pipe would.
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


# Numbers at and beyond every limit, and those that make legal instances odd.
WHOLE = [0, 1, 2, 3, 4, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**53, 2**63 - 1, 2**63, -(2**63) - 1, 10**18, 10**400]
BROKEN = [0.0, -0.0, 0.5, 1e-9, 1e-300, 5e-324, 1e9, -1e9, 1e9 + 1, 1e12, 1e12 + 1, 1e15, 1e16, 1e308, -1e308]
ODD = [0.0, -0.0, 5e-324, 1e-300, 1e-9, 0.1, 1.0, 7.0, 1e6, 1e9]  # within the limits of every field
TEXTS = ["", "5", "1e9", "nan", "\ud800", "a\nb", "\u2028", "relocbench-instance/2"]
TOKENS = [Token(text) for text in ("NaN", "-Infinity", "1e999", "-1e999", "9" * 10_000, '{"x": 1, "x": 2}')]
NESTED = [Token("[" * 600 + "]" * 600), Token("[" * 3_000), Token('{"":' * 3_000)]
NOT_JSON = [Token(text) for text in ("01", "+1", ".5", "1.", "0x10", "1e", "tru", "'x'", "\x00", "/**/ 1", "1,")]

NUMBERS = st.sampled_from(WHOLE) | st.sampled_from(BROKEN) | st.integers(-10, 50)
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


def _ways(tree: Any, way: Way = ()) -> Iterator[Way]:
    yield way
    parts = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, part in parts:
        yield from _ways(part, (*way, key))


def _node(tree: Any, way: Sequence[str | int]) -> Any:
    for key in way:
        tree = tree[key]
    return tree


@st.composite
def mutated_json(draw: st.DrawFn, content: dict[str, Any]) -> bytes:
    """Replace, delete, insert or repeat up to three nodes of a tree."""
    tree: Any = copy.deepcopy(content)
    names = sorted({key for way in _ways(content) for key in way if isinstance(key, str)})
    for _ in range(draw(st.integers(1, 3))):
        ways = list(_ways(tree))[1:]
        if not ways or draw(st.integers(0, 30)) == 30:
            tree = draw(VALUES)
            continue
        way = draw(st.sampled_from(ways))
        parent = _node(tree, way[:-1])
        last: Any = way[-1]
        what = draw(st.sampled_from(["number", "number", "replace", "replace", "delete", "insert", "repeat"]))
        if what == "number":
            # Only where a number was: most of these stay legal.
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
    return spelt(tree).encode("utf-8", "surrogatepass")


@st.composite
def odd_json(draw: st.DrawFn, content: dict[str, Any]) -> bytes:
    """Replace up to six numbers by such as may stand there, most of them unusual."""
    tree = copy.deepcopy(content)
    for _ in range(draw(st.integers(1, 6))):
        way = draw(st.sampled_from([way for way in _ways(tree) if isinstance(_node(tree, way), int | float)]))
        parent = _node(tree, way[:-1])
        parent[way[-1]] = draw(st.integers(0, 3) if isinstance(parent[way[-1]], int) else st.sampled_from(ODD))
    return spelt(tree).encode()


@st.composite
def mutated_bytes(draw: st.DrawFn, content: bytes) -> bytes:
    """Flip, overwrite, delete, insert or cut off bytes, up to four times."""
    spoilt = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, max(len(spoilt) - 1, 0)))
        # Cut rarely: what is left of the file afterwards, other changes will hardly reach.
        what = draw(st.sampled_from(["flip", "overwrite", "delete", "insert"] * 5 + ["cut"]))
        if what == "flip" and spoilt:
            spoilt[place] ^= 1 << draw(st.integers(0, 7))
        elif what == "overwrite":
            few = draw(st.binary(min_size=1, max_size=4))
            spoilt[place : place + len(few)] = few
        elif what == "delete":
            del spoilt[place : place + draw(st.integers(1, 8))]
        elif what == "insert":
            spoilt[place:place] = draw(st.binary(min_size=1, max_size=8) | st.sampled_from([b"-", b"9", b"e9", b","]))
        elif what == "cut":
            del spoilt[place:]
    return bytes(spoilt)
