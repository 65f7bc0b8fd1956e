from relocbench.instances.library.library import Library
from relocbench.reports.study.references import (
    BOUND,
    OPTIMUM,
    Reference,
    contradictions,
    from_library,
    from_rows,
    merged,
    wanted,
)
from relocbench.reports.study.subjects import Subject, of_family
from tests.reports.study.samples import library_instance, row

INSTANCE = library_instance()


def test_the_library_provides_optima_and_certified_bounds():
    optimal, open_ = Subject(INSTANCE, ""), Subject(library_instance("paper-s10-0"), "")
    found = from_library([optimal, open_, *of_family("tiny", [7], {"regime": "loose", "shape": "plain"})])
    entry = Library().entry("paper-s10-0")
    assert len(found) == 2
    assert found[INSTANCE.hash].kind == OPTIMUM
    assert found[INSTANCE.hash].value == Library().entry("tiny-loose-plain-0").objective
    assert (found[entry.instance].kind, found[entry.instance].value) == (BOUND, entry.bound)


def test_an_unverified_bound_of_a_solver_is_not_a_reference():
    stated = row(INSTANCE, "milp-strong", 10.0, bound=9.0, status="time_limit")
    certified = row(INSTANCE, "bound", 10.0, bound=8.0, status="time_limit")
    proved = row(INSTANCE, "milp-strong", 9.5, bound=9.5, status="optimal")
    claimed = row(INSTANCE, "milp-strong", 9.5, bound=9.5, status="claimed")
    assert from_rows([stated, claimed]) == {}
    assert from_rows([stated, certified])[INSTANCE.hash].value == 8.0
    assert from_rows([certified, proved])[INSTANCE.hash] == Reference(OPTIMUM, 9.5, 9.5, "milp-strong")


def test_an_optimum_is_stronger_than_a_bound_and_a_higher_bound_than_a_lower_one():
    low, high, best = (Reference(kind, v, v, "") for kind, v in ((BOUND, 1.0), (BOUND, 2.0), (OPTIMUM, 3.0)))
    assert merged({"a": low}, {"a": high})["a"] is high
    assert merged({"a": high}, {"a": low})["a"] is high
    assert merged({"a": best}, {"a": high})["a"] is best
    assert merged({"a": low}, {"a": best})["a"] is best


def test_small_instances_are_solved_exactly_and_the_others_get_a_bound():
    small, large = Subject(INSTANCE, ""), Subject(library_instance("paper-s1-0"), "")
    first = wanted([small, large], {}, tried_exact=False)
    assert [(one.instance.hash, str(selector)) for one, selector in first] == [(INSTANCE.hash, "branch-price")]
    assert [str(selector) for _, selector in wanted([small, large], {}, tried_exact=True)] == ["bound", "bound"]
    for kind, exact in ((OPTIMUM, 0), (BOUND, 1)):
        known = {INSTANCE.hash: Reference(kind, 1.0, 1.0, "")}
        assert len(wanted([small], known, tried_exact=False)) == exact
        assert wanted([small], known, tried_exact=True) == []


def test_homes_that_cost_less_than_a_proved_bound_are_reported():
    references = {INSTANCE.hash: Reference(OPTIMUM, 10.0, 10.0, "branch-price")}
    rows = [row(INSTANCE, "reloc", 10.0 - 1e-7), row(INSTANCE, "otos", 9.9), row(INSTANCE, "nearest", None)]
    [line] = contradictions(rows, references)
    assert line.startswith("otos (seed 0) has homes of")
    assert "below the proven optimum 10.0 by branch-price" in line


def test_a_claimed_bound_above_the_cost_of_other_homes_is_reported():
    made = of_family("tiny", [7], {"regime": "loose", "shape": "plain"})[0].instance
    rows = [row(made, "mine.py:exact", 12.0, bound=12.0, status="claimed"), row(made, "reloc", 10.0)]
    [line] = contradictions(rows, {made.hash: Reference(BOUND, 9.0, 9.0, "bound")})
    assert line.startswith("mine.py:exact claims the bound 12.0, but reloc has homes that cost 10.0")
