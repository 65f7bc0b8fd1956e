from pathlib import Path

import pytest

from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.instance_source import read_instance
from relocbench.runs.cross_check import compare, cross_check, default_instances, exact_methods
from relocbench.runs.methods import METHODS
from relocbench.runs.outcome import Outcome
from relocbench.runs.run_store import Row, Run, row_of
from relocbench.runs.selectors import parse_selector
from relocbench.runs.sweep import Limits
from tests.runs.fake_methods import fake
from tests.samples import random_instance

LIMITS = Limits(time=20.0)
INSTANCES = [cell.build(0) for cell in FAMILIES["tiny"].cells({"regime": "scarce"})]


def row(selector, status="time_limit", objective=None, bound=None, **more):
    instance = INSTANCES[0]
    base = row_of(instance, Run(instance.hash, selector, 0, 1.0, 1), Outcome(status))
    return Row(**{**vars(base), "objective": objective, "bound": bound, **more})


def kinds(*rows):
    return [(found.kind, found.methods) for found in compare(rows)]


def test_consistent_claims_are_no_disagreement():
    agreed = [
        row("a", "optimal", 10.0, 10.0),
        row("b", "optimal", 10.0 + 5e-6, 10.0),  # within the tolerance of solvers
        row("c", "time_limit", 12.0, 9.0),
        row("d", "feasible", 11.0),
        row("e", "error", failure="refused", error="too large"),
        row("f", "memory_limit", error="used 5 GiB"),
    ]
    assert kinds(*agreed) == []


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([row("a", "optimal", 10.0, 10.0), row("b", "optimal", 9.0, 9.0)], ("optimum", ("a", "b"))),
        ([row("a", "optimal", 10.0, 10.0), row("b", "feasible", 9.0)], ("optimum", ("a", "b"))),
        ([row("a", "optimal", 10.0, 10.0), row("b", "feasible", 9.9999)], ("optimum", ("a", "b"))),
        ([row("a", "time_limit", 12.0, 10.0), row("b", "feasible", 9.0)], ("bound", ("a", "b"))),
        ([row("a", "time_limit", None, 10.0), row("b", "feasible", 9.0)], ("bound", ("a", "b"))),
        ([row("a", "error", 9.0, 10.0, failure="claim", error="claims"), row("b", "feasible", 9.0)], ("claim", ("a",))),
        ([row("a", "error", failure="died", error="SIGSEGV"), row("b", "optimal", 9.0, 9.0)], ("error", ("a",))),
    ],
)
def test_contradictory_claims_are_found(rows, expected):
    assert kinds(*rows) == [expected]
    assert kinds(*reversed(rows)) == [expected]


def test_correct_methods_agree():
    answer = cross_check(
        INSTANCES,
        [parse_selector("enumerate"), parse_selector("nearest"), parse_selector("anneal[moves=2000]")],
        LIMITS,
    )
    assert answer.disagreements == ()
    assert (answer.instances, answer.runs, answer.optima, answer.unfinished) == (5, 15, 5, 0)


@pytest.mark.parametrize(
    ("method", "kind", "methods"),
    [
        ("nearest_is_optimal", "optimum", ("nearest_is_optimal", "enumerate")),
        ("bound_too_high", "bound", ("bound_too_high", "enumerate")),
        ("bound_above_own_cost", "claim", ("bound_above_own_cost",)),
    ],
)
def test_a_false_claim_is_found_and_its_instance_is_shrunk(method, kind, methods, tmp_path):
    answer = cross_check(INSTANCES[:1], [parse_selector("enumerate"), fake(method)], LIMITS, out=tmp_path)
    [found] = answer.disagreements
    assert (found.kind, found.methods, found.instance) == (kind, methods, INSTANCES[0].name)
    small = read_instance(found.file)
    assert small.n_clients <= 2
    assert small.n_topics == 1
    assert small.n_servers <= 2


def test_the_instance_is_shrunk_to_the_kind_of_topic_that_shows_the_fault(tmp_path):
    candidates = map(random_instance, range(1000))
    instance = next(
        one for one in candidates if one.n_servers >= 3 and one.n_servers**one.n_clients < 5000 and _odd(one).any()
    )
    answer = cross_check(
        [instance], [parse_selector("enumerate"), fake("wrong_for_lone_publishers")], LIMITS, out=tmp_path
    )
    [found] = answer.disagreements
    small = read_instance(found.file)
    assert (small.n_topics, small.n_servers) == (1, 2)
    assert (small.publishers.sizes.tolist(), small.subscribers.sizes.tolist()) == ([1], [3])
    assert len(Path(found.file).read_text()) < 700


def _odd(instance):
    return (instance.publishers.sizes == 1) & (instance.subscribers.sizes >= 3)


def test_the_default_is_every_available_exact_method_on_every_shape():
    selectors, absent = exact_methods()
    exact = {name for name, method in METHODS.items() if method.proves == "optimality"}
    assert exact == {selector.method.name for selector in selectors if selector.method.name in exact} | absent.keys()
    assert {"nearest", "anneal"} <= {selector.method.name for selector in selectors}
    shapes = {(made.parameters["regime"], made.parameters["shape"]) for made in default_instances(1)}
    assert len(shapes) == 15
