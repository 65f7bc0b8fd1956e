"""Tests of the gap and the excess."""

import math

import pytest

from relocbench.instances.gap import excess, gap


@pytest.mark.parametrize(
    ("objective", "bound", "expected"),
    [
        (10.0, 8.0, 0.2),
        (10.0, 10.0, 0.0),
        (10.0, 10.5, 0.0),
        (0.0, 0.0, 0.0),
        (0.0, -1.0, math.inf),
        (10.0, -math.inf, math.inf),
        (None, 8.0, None),
        (10.0, None, None),
    ],
)
def test_gap(objective: float | None, bound: float | None, expected: float | None) -> None:
    assert gap(objective, bound) == expected


@pytest.mark.parametrize(
    ("objective", "reference", "expected"),
    [
        (10.0, 8.0, 0.25),
        (8.0, 8.0, 0.0),
        (7.0, 8.0, 0.0),
        (0.0, 0.0, 0.0),
        (1.0, 0.0, None),
        (1.0, -1.0, None),
    ],
)
def test_excess(objective: float, reference: float, expected: float | None) -> None:
    assert excess(objective, reference) == expected
