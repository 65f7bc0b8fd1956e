import math

import pytest

import relocbench
from relocbench.reports.study.anytime import Course, courses, curves, times_to_targets
from relocbench.reports.study.excess import measure
from relocbench.reports.study.references import OPTIMUM, Reference
from relocbench.reports.study.subjects import Subject
from tests.reports.study.samples import library_instance, row

INSTANCE = library_instance()


def course_of(trace, objective=11.0, **more):
    rows = [row(INSTANCE, "mine.py:f", objective, trace=trace, **more)]
    references = {INSTANCE.hash: Reference(OPTIMUM, 10.0, 10.0, "a proof")}
    return courses(measure([Subject(INSTANCE, "")], rows, references, {}), rows)


def course(selector, steps, hash_="a", seed=0, reported=True):
    seconds, excess = zip(*steps, strict=True)
    return Course("g", selector, seed, hash_, seconds, excess, reported)


def test_a_course_begins_with_the_first_homes_and_ends_with_the_verified_objective():
    [found] = course_of([(0.1, math.inf, 2.0), (0.2, 20.0, 3.0), (0.3, 20.0, 5.0), (0.4, 12.0, 5.0)])
    assert found.seconds == (0.2, 0.4, 0.5)
    assert found.excess == pytest.approx((1.0, 0.2, 0.1))
    assert found.reported


def test_a_method_gets_no_credit_for_a_claim_that_its_homes_do_not_keep():
    [found] = course_of([(0.1, 10.5, -math.inf), (7.0, 10.0, -math.inf)])
    assert found.excess == pytest.approx((0.1, 0.1))
    assert found.seconds == (0.1, 0.5)
    [backwards] = course_of([(0.4, 20.0, -math.inf), (-3.0, 15.0, -math.inf)])
    assert backwards.seconds == (0.4, 0.4, 0.5)


def test_a_run_without_progress_is_one_point_and_a_run_without_homes_reaches_no_target():
    [silent] = course_of([])
    assert (silent.seconds, silent.reported) == ((0.5,), False)
    [failed] = course_of([], objective=None)
    assert curves([failed]) == []
    assert {(one.runs, one.reached) for one in times_to_targets([silent, failed], [0.5])} == {(2, 1)}
    assert curves([silent, failed])[0].runs == 1


def test_a_curve_is_the_mean_over_instances_from_the_time_when_all_runs_have_homes():
    found = [
        course("anneal", [(0.1, 1.0), (0.3, 0.2), (0.9, 0.2)]),
        course("anneal", [(0.1, 1.0), (0.5, 0.4), (0.8, 0.4)], seed=1),
        course("anneal", [(0.2, 0.8), (0.4, 0.0), (0.4, 0.0)], "b"),
        course("nearest", [(0.01, 0.5)], reported=False),
        course("nearest", [(0.03, 0.7)], "b", reported=False),
    ]
    anneal, nearest = curves(found)
    assert (anneal.seconds[0], anneal.seconds[-1], anneal.runs) == (0.2, 0.9, 3)
    at = dict(zip(anneal.seconds, anneal.excess, strict=True))
    assert at[0.2] == pytest.approx((1.0 + 0.8) / 2)
    assert at[0.3] == pytest.approx((0.6 + 0.8) / 2)
    assert at[0.4] == pytest.approx((0.6 + 0.0) / 2)
    assert at[0.9] == pytest.approx((0.3 + 0.0) / 2)
    assert (nearest.seconds, nearest.excess, nearest.reported) == ([0.02], [pytest.approx(0.6)], False)


def test_a_long_curve_has_few_steps_and_keeps_its_ends():
    steps = [(0.001 * (1 + number), 1 / (1 + number)) for number in range(5000)]
    [found] = curves([course("anneal", steps)])
    assert len(found.seconds) <= 301
    assert (found.seconds[0], found.excess[0]) == steps[0]
    assert (found.seconds[-1], found.excess[-1]) == (pytest.approx(5.0), pytest.approx(1 / 5000))


def test_runs_that_miss_a_target_count_as_the_slowest():
    found = [
        course("anneal", [(0.1, 0.5), (1.0, 0.04), (9.0, 0.0005)]),
        course("anneal", [(0.1, 0.5), (3.0, 0.04)], "b"),
        course("anneal", [(0.1, 0.5)], "c"),
    ]
    five, one, tenth = times_to_targets(found)
    assert (five.target, five.runs, five.reached, five.seconds) == (0.05, 3, 2, 3.0)
    assert (one.reached, one.seconds) == (1, None)
    assert (tenth.target, tenth.reached) == (0.001, 1)


@pytest.mark.slow
def test_a_function_of_other_people_that_takes_on_progress_has_a_curve(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "import time\n"
        "from relocbench import evaluate\n\n"
        "def improving(instance, *, seed, time_limit, on_progress):\n"
        "    begin, best = time.perf_counter(), None\n"
        "    for server in range(instance.n_servers):\n"
        "        cost = evaluate(instance, [server] * instance.n_clients).objective\n"
        "        if best is None or cost < best[0]:\n"
        "            best = (cost, server)\n"
        "            on_progress(time.perf_counter() - begin, cost, float('-inf'))\n"
        "    return [best[1]] * instance.n_clients\n\n"
        "def silent(instance, *, seed, time_limit):\n"
        "    return [0] * instance.n_clients\n"
    )
    monkeypatch.chdir(tmp_path)
    done = relocbench.study("mine.py:improving,mine.py:silent", [INSTANCE], seeds=[0], out="study")
    by_name = {one.selector.rpartition(":")[2]: one for one in done.courses}
    assert by_name["improving"].reported
    assert len(by_name["improving"].seconds) > 1
    assert not by_name["silent"].reported
    text = done.page.read_text(encoding="utf-8")
    assert "Progress during a run" in text
    assert "Time to target" in text
