"""Random streams identified by names, equal on every machine and independent of the order of use."""

import hashlib

import numpy as np


def stream(*axes: str | int) -> np.random.Generator:
    """Return the random stream with a given name, such as ``stream("paper", "field", '{"sigma":10}', 3)``.

    Each part of the name is a key of its own, so a new value of one part changes no other stream.

    Parameters
    ----------
    *axes
        The parts of the name.

    Returns
    -------
    numpy.random.Generator
        The stream, at its beginning.
    """
    sequence = np.random.SeedSequence(0, spawn_key=tuple(_word(axis) for axis in axes))
    return np.random.Generator(np.random.PCG64DXSM(sequence))


def _word(axis: str | int) -> int:
    # The type is part of the key, so that the text "3" and the number 3 give different streams.
    return int.from_bytes(hashlib.sha256(f"{type(axis).__name__}:{axis}".encode()).digest()[:8], "little")
