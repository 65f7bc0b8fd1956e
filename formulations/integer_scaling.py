"""Whole numbers for solvers that know no others, rounded so that a minimum over them is a lower bound.

A scale is a power of two: then scaling a float is exact, and all that is lost is what the floor takes away, less than
one unit for each number. Costs and loads are rounded down, capacities up; so every assignment stays allowed and none
looks dearer than it is. How much cheaper it may look is bounded by how many numbers make up a cost.
"""

import math

import numpy as np
import numpy.typing as npt

WholeArray = npt.NDArray[np.int64]

# Coefficients are products and sums of a few floats: relative to a total, their own error is far below this.
FLOAT_ERROR = 1e-12


def scale_exponent(error: float, terms: int, largest: float, bits: int) -> int:
    """Return ``k`` such that numbers in units of ``2^-k``, rounded down, are together off by at most ``error``.

    Parameters
    ----------
    error
        By how much their sum may be too small.
    terms
        How many numbers are summed.
    largest
        No sum exceeds this.
    bits
        Sums stay below ``2^bits``, also where that makes the error larger than asked for.
    """
    fine = math.ceil(math.log2(max(terms, 1))) + bits_of(1 / error)
    return min(fine, bits - bits_of(largest) - 1) if largest > 0 else 0


def down(values: npt.ArrayLike, exponent: int) -> WholeArray:
    """Return the floats in units of ``2^-exponent``, rounded down."""
    scaled = np.floor(np.ldexp(np.asarray(values, np.float64), exponent))
    if (np.abs(scaled) >= 2.0**62).any():
        raise OverflowError(f"a number is too large for a scale of 2^{exponent}")
    return scaled.astype(np.int64)


def up(values: npt.ArrayLike, exponent: int) -> WholeArray:
    """Return the floats in units of ``2^-exponent``, rounded up."""
    return -down(-np.asarray(values, np.float64), exponent)


def lower_bound(total: float, exponent: int) -> float:
    """Return what a minimum in units of ``2^-exponent`` proves of the sum of floats."""
    bound = math.ldexp(total, -exponent)
    return bound - FLOAT_ERROR * abs(bound)


def upper_limit(cost: float, exponent: int) -> int:
    """Return a whole number that no assignment of at most this cost exceeds once its cost is rounded down."""
    return math.ceil(math.ldexp(cost + FLOAT_ERROR * abs(cost), exponent))


def whole_exponent(values: npt.ArrayLike, most: int) -> int:
    """Return the least ``k`` up to ``most`` from 0 on for which ``2^k`` makes all the floats whole; else ``most``."""
    array = np.asarray(values, np.float64)
    for exponent in range(most):
        scaled = np.ldexp(array, exponent)
        if np.array_equal(scaled, np.floor(scaled)):
            return exponent
    return most


def bits_of(value: float) -> int:
    """Return the least ``b`` with ``value ≤ 2^b``."""
    mantissa, exponent = math.frexp(value)
    return exponent - 1 if mantissa == 0.5 else exponent
