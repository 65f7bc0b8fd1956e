"""Random numbers for compiled code: a small generator whose state is an argument, never global."""

import numpy as np
import numpy.typing as npt

from relocbench.instances.kernels.compiled import compiled

Words = npt.NDArray[np.uint64]


def random_words(seed: int) -> Words:
    """Return the initial state of a generator. The functions of this module take this state and advance it.

    Parameters
    ----------
    seed
        Seed of the generator.

    Returns
    -------
    array
        The state, one word of 64 bits.
    """
    return np.array(np.random.SeedSequence(seed).generate_state(1, np.uint64), np.uint64)


@compiled
def next_bits(random: Words) -> np.uint64:
    """Return 64 random bits (splitmix64).

    Parameters
    ----------
    random
        State of the generator; it is advanced.

    Returns
    -------
    uint64
        The bits.
    """
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.uint64(z ^ (z >> np.uint64(31)))


@compiled
def below(random: Words, count: int) -> int:
    """Return a random whole number from 0 to ``count - 1``.

    Parameters
    ----------
    random
        State of the generator; it is advanced.
    count
        Number of possible values, below 2³².

    Returns
    -------
    int
        The number.
    """
    # The conversion to int64 is needed because numba turns an operation on signed and unsigned integers into a float.
    return int(np.int64(((next_bits(random) >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32)))


@compiled
def uniform(random: Words) -> float:
    """Return a random number in the half-open interval [0, 1).

    Parameters
    ----------
    random
        State of the generator; it is advanced.

    Returns
    -------
    float
        The number, a multiple of 2⁻⁵³.
    """
    return float(next_bits(random) >> np.uint64(11)) * (1.0 / 9007199254740992.0)
