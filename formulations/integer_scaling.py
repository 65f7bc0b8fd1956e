"""Scaling of floats to integers, rounded such that a minimum over the integers is a lower bound.

Some solvers accept only integers. Scales are powers of two, so that the scaling itself is exact; only the rounding
loses less than one unit for each number. Costs and loads are rounded down and capacities up. Every assignment then
stays feasible, and no assignment costs more than before. The error of a sum is bounded by the number of its terms.
"""

import math

import numpy as np
import numpy.typing as npt

WholeArray = npt.NDArray[np.int64]

# Coefficients are products and sums of a few floats. Their relative rounding error is far below this value.
FLOAT_ERROR = 1e-12


def scale_exponent(error: float, terms: int, largest: float, bits: int) -> int:
    """Return ``k`` such that a sum of numbers in units of ``2^-k``, rounded down, is too small by at most ``error``.

    Parameters
    ----------
    error
        The allowed error of the sum.
    terms
        The number of terms.
    largest
        An upper bound on the sum.
    bits
        Sums stay below ``2^bits``. If both conditions conflict, this one takes precedence over the error.

    Returns
    -------
    int
        The exponent ``k``.
    """
    fine = math.ceil(math.log2(max(terms, 1))) + bits_of(1 / error)
    return min(fine, bits - bits_of(largest) - 1) if largest > 0 else 0


def down(values: npt.ArrayLike, exponent: int) -> WholeArray:
    """Return floats in units of ``2^-exponent``, rounded down.

    Parameters
    ----------
    values
        The floats.
    exponent
        The exponent of the scale.

    Returns
    -------
    array
        The integers.

    Raises
    ------
    OverflowError
        If an integer does not fit into 62 bits.
    """
    scaled = np.floor(np.ldexp(np.asarray(values, np.float64), exponent))
    if (np.abs(scaled) >= 2.0**62).any():
        raise OverflowError(f"a number is too large for a scale of 2^{exponent}")
    return scaled.astype(np.int64)


def up(values: npt.ArrayLike, exponent: int) -> WholeArray:
    """Return floats in units of ``2^-exponent``, rounded up.

    Parameters
    ----------
    values, exponent
        As for :func:`down`.

    Returns
    -------
    array
        The integers.
    """
    return -down(-np.asarray(values, np.float64), exponent)


def lower_bound(total: float, exponent: int) -> float:
    """Return the lower bound in floats that a minimum in units of ``2^-exponent`` proves.

    Parameters
    ----------
    total
        The minimum over the integers.
    exponent
        The exponent of the scale.

    Returns
    -------
    float
        The lower bound, reduced by the rounding error of the coefficients.
    """
    bound = math.ldexp(total, -exponent)
    return bound - FLOAT_ERROR * abs(bound)


def upper_limit(cost: float, exponent: int) -> int:
    """Return an upper limit, in units of ``2^-exponent``, for all assignments of at most a given cost.

    Parameters
    ----------
    cost
        The cost.
    exponent
        The exponent of the scale.

    Returns
    -------
    int
        The limit.
    """
    return math.ceil(math.ldexp(cost + FLOAT_ERROR * abs(cost), exponent))


def whole_exponent(values: npt.ArrayLike, most: int) -> int:
    """Return the least ``k ≥ 0`` for which all floats are integers in units of ``2^-k``.

    Parameters
    ----------
    values
        The floats.
    most
        The largest ``k``; it is returned if no smaller one is sufficient.

    Returns
    -------
    int
        The exponent ``k``.
    """
    array = np.asarray(values, np.float64)
    for exponent in range(most):
        scaled = np.ldexp(array, exponent)
        if np.array_equal(scaled, np.floor(scaled)):
            return exponent
    return most


def bits_of(value: float) -> int:
    """Return the least ``b`` with ``value ≤ 2^b``.

    Parameters
    ----------
    value
        A positive number.

    Returns
    -------
    int
        The exponent ``b``, which may be negative.
    """
    mantissa, exponent = math.frexp(value)
    return exponent - 1 if mantissa == 0.5 else exponent
