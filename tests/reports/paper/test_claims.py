import itertools

import pytest

from relocbench.heuristics.reloc import STEPS
from relocbench.reports.paper.claims import CLAIMS, FAILS, HOLDS, IN_PART, NOT_TESTED, UNKNOWN, judge
from relocbench.reports.paper.measures import BEST, Measured, Measures
from relocbench.reports.paper.readings import CLUSTERS, after, main_readings, otos, reloc

SIGMAS = (1.0, 5.0, 10.0, 20.0)
SPOOLS = (1.0, 2.0)
METHODS = ["random", "nearest", otos(), BEST]
METHODS += [after(step) for step in STEPS] + [reloc(k=k) for k in CLUSTERS if k != 4]


def made_up(study, x, seed, method, level, **other):
    """Return a row with the same value for all measures, plus a small part that depends on the seed."""
    names = ("y", "y1", "y2", "storage_use", "fullest_storage", "compute_use", "fullest_compute", "distance_km")
    numbers = dict.fromkeys(names, level + 0.001 * seed) | {"bound": None, "least_theta": 1.0, "storage_once": 0.5}
    name = f"{study}-{x:g}-{seed}"
    about = {"group": "paper", "study": study, "x": x, "instance": name, "hash": name, "seed": seed, "method": method}
    return Measured(**(about | numbers | other))


def judged(levels=None, seeds=5, **others):
    """Test the claims on data with one level per method; ``others`` maps a method to a function of (study, x)."""
    level = {"random": 0.9, "nearest": 0.6, "otos": 0.5, BEST: 0.3} | (levels or {})
    cells = [("sigma", x) for x in SIGMAS] + [("spool", x) for x in SPOOLS]
    rows = [
        made_up(study, x, seed, method, level.get(method, 0.4), **(others.get(method, lambda study, x: {})(study, x)))
        for (study, x), seed, method in itertools.product(cells, range(seeds), METHODS)
    ]
    return judge(Measures(rows), CLUSTERS, "")


def words(found):
    return [verdict.word for verdict in found.values()]


def test_few_seeds_give_no_verdict():
    assert set(words(judged(seeds=4))) == {UNKNOWN}


def test_verdicts_follow_the_numbers():
    found = words(judged())
    # RELOC is the fastest at every σ and p. OTOS does not use the least storage and has a larger Y1.
    assert (found[0], found[8]) == (HOLDS, HOLDS)
    assert (found[4], found[5]) == (FAILS, HOLDS)
    # Of the four methods, RELOC has the least distance.
    assert found[1] == FAILS
    assert found[6] == HOLDS
    # Nothing changes with σ, with a step, or with K, and no step overloads a server.
    assert (found[2], found[7], found[9]) == (FAILS, FAILS, NOT_TESTED)
    assert (found[10], found[11]) == (HOLDS, FAILS)


def test_a_claim_that_is_true_at_some_values_holds_in_part():
    late = {"nearest": lambda study, x: {"y": 0.2 if x == 5.0 else 0.6}}
    assert words(judged(**late))[0] == IN_PART


def test_only_the_values_of_a_claim_count():
    early = {"nearest": lambda study, x: {"y": 0.2 if x == 1.0 and study == "sigma" else 0.6}}
    assert words(judged(**early))[0] == HOLDS


def test_each_step_is_tested_by_its_purpose():
    steps = {
        after("relation"): lambda study, x: {"storage_use": 0.3, "fullest_storage": 1.4, "least_theta": 0.7},
        after("locality"): lambda study, x: {"storage_use": 0.5},
        after("cooperation"): lambda study, x: {"fullest_storage": 1.0, "y": 0.35 if x == 1.0 else 0.45},
    }
    found = words(judged(**steps))
    assert (found[7], found[9]) == (HOLDS, IN_PART)


def test_the_storage_claim_is_about_the_mean_over_servers_at_each_spread():
    assert words(judged(reloc=lambda study, x: {"fullest_storage": 1.2}))[6] == HOLDS
    assert (
        "No single server is above A on 0 of 20"
        in judged(reloc=lambda _, x: {"fullest_storage": 1.2})["RELOC storage"].numbers
    )
    full = judged(reloc=lambda study, x: {"storage_use": 1.1 if x > 5 else 0.9})["RELOC storage"]
    assert (full.word, full.share) == (IN_PART, 0.5)
    assert full.points == {"σ = 1": True, "σ = 5": True, "σ = 10": False, "σ = 20": False}


def test_clusters_are_compared_at_the_values_of_the_claims():
    more = {reloc(k=16): lambda study, x: {"y": 0.3 if x <= 5 else 0.42}}
    found = words(judged(**more))
    assert (found[10], found[11]) == (HOLDS, HOLDS)
    # The least and the largest K do not count as numbers of clusters, but the one in between does.
    assert words(judged(**{reloc(k=1): lambda study, x: {"y": 0.9}}))[10] == HOLDS
    assert words(judged(**{reloc(k=8): lambda study, x: {"y": 0.9}}))[10] == FAILS


def test_a_claim_is_judged_for_the_reading_that_is_asked_for():
    reading = "reading=pseudocode"
    rows = [
        made_up(study, x, seed, method, 0.2 if method.startswith(reloc(reading)) else 0.4)
        for study, x, seed in itertools.product(["sigma", "spool"], [1.0, 5.0], range(5))
        for method in (*METHODS, otos(reading), *(after(step, reading) for step in STEPS))
    ]
    measures = Measures(rows)
    assert judge(measures, [4], reading)["fastest"].word == HOLDS
    assert judge(measures, [4], "")["fastest"].word == FAILS


def test_runs_that_failed_are_left_out():
    rows = [
        made_up(study, x, seed, method, 0.4)
        for study, x, seed, method in itertools.product(["sigma", "spool"], [1.0, 5.0, 10.0], range(5), METHODS)
        if not (method == "otos" and seed == 2)
    ]
    assert judge(Measures(rows), CLUSTERS, "")["NS distance"].numbers == "on 12 of 12 instances"


def test_a_claim_about_missing_values_is_not_tested():
    rows = [
        made_up(study, 0.5, seed, method, 0.4)
        for study, seed, method in itertools.product(["sigma", "spool"], range(5), METHODS)
    ]
    found = words(judge(Measures(rows), CLUSTERS, ""))
    assert (found[0], found[2], found[10]) == (NOT_TESTED, NOT_TESTED, NOT_TESTED)
    assert found[11] == FAILS
    assert len(found) == len(CLAIMS) == 12


@pytest.mark.parametrize("k", CLUSTERS)
def test_selectors_have_the_form_of_the_store(k):
    from relocbench.runs.selectors import parse_selector

    for reading in ["", *main_readings()]:
        assert str(parse_selector(reloc(reading, k))) == reloc(reading, k)
