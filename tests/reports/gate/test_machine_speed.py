import math

import pytest

from relocbench.instances.errors import InputError
from relocbench.reports.gate import machine_speed
from relocbench.reports.gate.machine_speed import COMPUTATIONS, SpeedMeter, speed_change


def test_the_meter_measures_every_computation():
    meter = SpeedMeter()
    meter.measure()
    assert set(meter.seconds) == set(COMPUTATIONS)
    assert min(meter.seconds.values()) > 0
    before = {name: len(found) for name, found in meter._seconds.items()}
    meter.measure_sometimes()  # the last measurement was a moment ago
    assert {name: len(found) for name, found in meter._seconds.items()} == before


def test_the_computations_have_the_same_results_as_ever():
    """A changed computation needs another name, because its time would be compared with that of the earlier one."""
    found = {name: compute() for name, compute in COMPUTATIONS.items()}
    assert found == pytest.approx(RESULTS)
    assert len(COMPUTATIONS) >= machine_speed.FEWEST


RESULTS = {
    "interpreted-1": 34.0,
    "streamed-1": 1649588.618505959,
    "gathered-1": 0.8941330253590916,
    "sorted-1": 1.0797929385852889e-05,
    "compiled-1": -26433.15567781968,
}


def test_the_change_is_the_mean_of_the_computations_and_their_spread_its_uncertainty():
    before = dict.fromkeys(COMPUTATIONS, 0.01)
    assert speed_change(before, dict.fromkeys(COMPUTATIONS, 0.02)).log == pytest.approx(math.log(2))
    assert speed_change(before, dict.fromkeys(COMPUTATIONS, 0.02)).variance == pytest.approx(0)
    mixed = speed_change(before, dict(zip(COMPUTATIONS, (0.01, 0.01, 0.02, 0.02, 0.02), strict=True)))
    assert mixed.spread == pytest.approx(math.log(2) * math.sqrt(0.3))
    assert mixed.variance > mixed.spread**2


def test_other_computations_cannot_be_compared():
    with pytest.raises(InputError, match="has times of other reference computations"):
        speed_change(dict.fromkeys(("old-1", "old-2", "sorted-1"), 0.01), dict.fromkeys(COMPUTATIONS, 0.01))
