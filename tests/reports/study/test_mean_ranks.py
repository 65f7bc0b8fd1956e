from relocbench.reports.study.mean_ranks import critical_difference_diagram, rankings
from tests.reports.study.samples import measurement

EXCESS = {"nearest": 0.5, "otos": 0.4, "reloc": 0.4, "anneal": 0.0}


def runs(instances, **more):
    return [
        measurement(f"i{number}", name, value, **more) for number in range(instances) for name, value in EXCESS.items()
    ]


def test_methods_are_ranked_on_blocks():
    [found] = rankings(runs(6))
    assert dict(zip(found.selectors, found.ranks.mean, strict=True)) == {
        "nearest": 4.0,
        "otos": 2.5,
        "reloc": 2.5,
        "anneal": 1.0,
    }
    assert found.ranks.samples == 6
    assert rankings(runs(6, block="one seed")) == []


def test_too_few_methods_or_blocks_give_no_ranks():
    assert rankings(runs(4)) == []
    assert rankings([one for one in runs(6) if one.selector in ("nearest", "reloc")]) == []


def test_an_instance_without_a_result_of_every_method_does_not_count():
    [found] = rankings([*runs(6), measurement("i6", "nearest", 0.1), measurement("i6", "reloc", None)])
    assert found.ranks.samples == 6


def test_the_diagram_has_a_point_per_method_in_the_order_of_ranks_and_the_critical_difference():
    [found] = rankings(runs(6))
    plot = critical_difference_diagram(found)
    points = {trace.name: (trace.x[0], trace.y[0]) for trace in plot.data if trace.name}
    assert points["annealing"] == (1.0, 0)
    assert points["NS"] == (4.0, 3)
    assert plot.data[len(found.ranks.cliques())].x == (1, 1 + found.ranks.critical_difference)
