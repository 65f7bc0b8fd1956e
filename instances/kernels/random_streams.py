"""Random streams named by what they are for, the same on every machine and in any order of use."""

import hashlib

import numpy as np


def stream(*axes: str | int) -> np.random.Generator:
    """Return the random stream of a place in a grid, such as ``stream("paper", "field", '{"sigma":10}', 3)``.

    Each axis is a key of its own below the root, so a new value on one axis changes no other stream.
    """
    sequence = np.random.SeedSequence(0, spawn_key=tuple(_word(axis) for axis in axes))
    return np.random.Generator(np.random.PCG64DXSM(sequence))


def _word(axis: str | int) -> int:
    # Typed, so that the text "3" and the number 3 are different keys.
    return int.from_bytes(hashlib.sha256(f"{type(axis).__name__}:{axis}".encode()).digest()[:8], "little")
