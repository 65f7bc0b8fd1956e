import pytest

from relocbench.reports.paper.measures import BEST, Measures
from relocbench.reports.paper.readings import otos, reloc
from relocbench.reports.paper.tightness import tightness_curves, tightness_studies, window
from tests.reports.paper.test_claims import made_up

# Y of NS, OTOS and RELOC for each least size; the bound is 1.
COSTS = {"2": (1.5, 2.0, 1.8), "4": (2.0, 1.9, 1.6), "6": (2.5, 2.2, 1.9), "8": (3.0, 2.4, 2.6), "10": (3.5, 3.0, 2.0)}


def group(costs, once=0.5):
    methods = dict(zip(("nearest", otos(), reloc()), costs, strict=True)) | {"random": 9.0, BEST: 1.1}
    bound = dict.fromkeys(methods) | {BEST: 1.0}
    return Measures(
        made_up("sigma", 5.0, seed, method, level, y=level, bound=bound[method], storage_use=0.7, storage_once=once)
        for seed in range(5)
        for method, level in methods.items()
    )


@pytest.fixture
def study():
    groups = {"paper": group(COSTS["2"]), **{size: group(costs, int(size) / 10) for size, costs in COSTS.items()}}
    return tightness_studies(groups, [1.0, 5.0])


def test_the_excess_is_that_over_the_certified_bound(study):
    assert list(study) == [5.0]
    points = {point.size: point for point in study[5.0]}
    assert list(points) == list(COSTS)
    assert points["4"].excess["nearest"].mean == pytest.approx(1.0)
    assert points["4"].excess[reloc()].mean == pytest.approx(0.6)
    assert points["4"].excess[BEST].mean == pytest.approx(0.1)
    assert (points["4"].once, points["4"].used) == pytest.approx((0.4, 0.7))


def test_the_window_is_the_longest_run_of_sizes_at_which_reloc_is_the_fastest(study):
    assert [point.size for point in study[5.0] if point.reloc_is_fastest] == ["4", "6", "10"]
    assert [point.size for point in window(study[5.0])] == ["4", "6"]
    assert window(study[5.0][:1]) == []


def test_the_window_is_shaded_up_to_half_way_to_the_points_beside_it(study):
    [(title, plot)] = tightness_curves(study, lambda *_: None, used=False)
    assert title == "σ = 5 km"
    [shape] = plot.layout.shapes
    assert (shape.x0, shape.x1) == pytest.approx((0.3, 0.7))
    # RA is far above; the axis ends a little above the others.
    assert plot.layout.yaxis.range[1] == pytest.approx(1.3 * 2.5)
