"""Random numbers inside compiled code: a small generator whose state is passed in, never global."""

import numpy as np
import numpy.typing as npt

from relocbench.instances.kernels.compiled import compiled

Words = npt.NDArray[np.uint64]


def random_words(seed: int) -> Words:
    """Return the state of a generator, to be passed to the functions below, which advance it."""
    return np.array(np.random.SeedSequence(seed).generate_state(1, np.uint64), np.uint64)


@compiled
def next_bits(random: Words) -> np.uint64:
    """Return 64 random bits (splitmix64)."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.uint64(z ^ (z >> np.uint64(31)))


@compiled
def below(random: Words, count: int) -> int:
    """Return a whole number from 0 to ``count - 1``, for counts below 2³²."""
    # Through int64: the compiler would make a float of signed and unsigned together.
    return int(np.int64(((next_bits(random) >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32)))


@compiled
def uniform(random: Words) -> float:
    """Return a number from 0 up to but not including 1."""
    return float(next_bits(random) >> np.uint64(11)) * (1.0 / 9007199254740992.0)
