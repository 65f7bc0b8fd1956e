"""Mutations of files: of their bytes, and of the values of their JSON."""

import json
import random
from typing import Any

# Values that a reader must refuse, or accept as what they are.
ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**53 + 1,
    2**63,
    2**64,
    -(2**63) - 1,
    10**400,
    0.5,
    -0.0,
    1e-320,
    1e308,
    1e15,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    "x",
    "0",
    "../../somewhere",
    "/somewhere/else",
    "line\nbreak",
    "\x00",
    "\ud800",
    "θ" * 1000,
    [],
    [[]],
    [0],
    [None],
    {},
    {"x": []},
    [1] * 1000,
)
ODD_BYTES = (b"", b"\x00", b"\xff\xfe", b"\n", b"\r", b'"', b"{", b"}", b"[", b"]", b",", b"-", b"e999", b"NaN", b"\\u")


def mutated_bytes(content: bytes, rng: random.Random) -> bytes:
    """Change the bytes of a file at one to three places.

    Parameters
    ----------
    content
        The bytes.
    rng
        Random numbers.

    Returns
    -------
    bytes
        The changed bytes.
    """
    for _ in range(rng.choice([1, 1, 2, 3])):
        kind, at = rng.randrange(7), rng.randrange(len(content) + 1)
        length = rng.choice([1, 1, 4, 16, max(1, len(content) // 4)])
        if kind == 0 and content:
            at = min(at, len(content) - 1)
            content = content[:at] + bytes([content[at] ^ (1 << rng.randrange(8))]) + content[at + 1 :]
        elif kind == 1:
            content = content[:at]
        elif kind == 2:
            content = content[:at] + content[at + length :]
        elif kind == 3:
            content = content[:at] + content[at : at + length] * rng.choice([2, 2, 50]) + content[at + length :]
        elif kind == 4:
            content = content[:at] + rng.choice(ODD_BYTES) + content[at:]
        elif kind == 5:
            content = content[:at] + rng.randbytes(length) + content[at + length :]
        else:
            other = rng.randrange(len(content) + 1)
            content = content[:at] + content[other : other + length] + content[at + length :]
    return content


def mutated_json(text: bytes, rng: random.Random) -> bytes:
    """Change one to three values of a JSON text.

    Parameters
    ----------
    text
        The JSON.
    rng
        Random numbers.

    Returns
    -------
    bytes
        The changed JSON.
    """
    value = json.loads(text)
    for _ in range(rng.choice([1, 1, 2, 3])):
        value = _changed(value, rng)
    return json.dumps(value).encode("utf-8", errors="surrogatepass")


def _changed(value: Any, rng: random.Random) -> Any:
    """Return a value with one place in it changed; each level of nesting is left with equal probability."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        name = rng.choice(list(value))
        kind = rng.random()
        if kind < 0.08:
            return {other: content for other, content in value.items() if other != name}
        if kind < 0.12:
            return value | {rng.choice(["surprise", name.upper(), name + " ", ""]): value[name]}
        return value | {name: _changed(value[name], rng)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        at = rng.randrange(len(value))
        kind = rng.random()
        if kind < 0.08:
            return value[:at] + value[at + 1 :]
        if kind < 0.16:
            return [*value[:at], value[at], *value[at:]]
        if kind < 0.2:
            return rng.sample(value, len(value))
        return [*value[:at], _changed(value[at], rng), *value[at + 1 :]]
    if type(value) in (int, float) and rng.random() < 0.5:
        # An integer of a certificate may be too large for a float.
        rough = float(value) if abs(value) < 1e300 else 0.0
        return rng.choice([value + 1, value - 1, -value, value * 2, rough * 1e6, rough * 1e-6, value * 10**13, rough])
    return rng.choice(ODD_VALUES)
