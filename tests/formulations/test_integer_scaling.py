import math
from fractions import Fraction

import numpy as np
import pytest

from relocbench.formulations.integer_scaling import down, lower_bound, scale_exponent, up, upper_limit, whole_exponent

NUMBERS = np.random.default_rng(0).uniform(0, 1000, 200)


@pytest.mark.parametrize("exponent", [-3, 0, 7, 30])
def test_rounding_is_exact_floor_and_ceiling(exponent):
    for value, low, high in zip(NUMBERS, down(NUMBERS, exponent), up(NUMBERS, exponent), strict=True):
        exact = Fraction(float(value)) * Fraction(2) ** exponent
        assert low == math.floor(exact)
        assert high == math.ceil(exact)


@pytest.mark.parametrize("error", [1.0, 1e-3, 3e-7])
def test_sum_of_rounded_numbers_is_below_and_within_the_error(error):
    exponent = scale_exponent(error, len(NUMBERS), float(NUMBERS.sum()), bits=62)
    total = sum(map(Fraction, NUMBERS.tolist()))
    rounded = Fraction(int(down(NUMBERS, exponent).sum())) / Fraction(2) ** exponent
    assert total - Fraction(error) <= rounded <= total
    assert lower_bound(int(down(NUMBERS, exponent).sum()), exponent) <= total


def test_scaled_sums_stay_within_the_given_bits():
    for largest in (1e-9, 0.7, 1.0, 3e5, 1e12):
        exponent = scale_exponent(1e-300, 1000, largest, bits=40)
        assert 2**38 <= largest * 2.0**exponent <= 2**40


def test_the_exponent_of_an_empty_sum_is_0():
    assert scale_exponent(1e-6, 10, 0.0, bits=50) == 0


def test_the_upper_limit_admits_every_assignment_of_that_cost():
    for cost in NUMBERS.tolist():
        assert upper_limit(cost, 20) >= int(down(cost, 20))
        assert upper_limit(cost, 20) <= int(up(cost * (1 + 1e-11), 20))


def test_whole_exponent_is_the_least_that_gives_integers():
    assert whole_exponent([3.0, 8.0], 30) == 0
    assert whole_exponent([3.0, 0.25], 30) == 2
    assert whole_exponent([0.1], 30) == 30
    assert whole_exponent([], 30) == 0
