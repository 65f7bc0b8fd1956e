import pytest

from reports.claims import claims
from reports.paper_rows import METHODS, REFERENCE, PaperRow, run_paper


@pytest.fixture(scope="module")
def rows():
    return run_paper(seeds=2)


def test_every_method_runs_on_every_instance(rows):
    for method in METHODS:
        assert len({row.instance for row in rows if row.method == method}) == 10
    for row in rows:
        assert row.y == pytest.approx(row.y1 + row.y2)


def test_nothing_beats_annealing(rows):
    best = {row.instance: row.y for row in rows if row.method == REFERENCE}
    assert all(row.y >= best[row.instance] for row in rows)


def made_up(method, sigma, seed, y, **other):
    numbers = {"y1": y, "y2": 0.0, "least_theta": 1.0, "storage_used": y, "fullest_storage": y, "distance_km": y}
    return PaperRow(f"i{sigma}-{seed}", "", sigma, seed, method, y, **(numbers | other), seconds=0.0)


def test_verdicts_follow_the_numbers():
    # Worse methods have larger numbers throughout: RELOC 1.0, NS 2.0, OTOS 0.5 and so on.
    level = {"reloc": 1.0, "nearest": 2.0, "otos": 0.5, "random": 9.0, "reloc[k=16]": 0.8, "reloc[k=1]": 1.2}
    rows = [
        made_up(method, sigma, seed, level.get(method, 1.0) + 0.001 * seed)
        for method in METHODS
        for sigma in (1.0, 5.0)
        for seed in range(5)
    ]
    few = [row for row in rows if row.seed < 4]
    assert {claim.verdict for claim in claims(few)} == {"too few seeds to tell"}
    verdicts = [claim.verdict for claim in claims(rows)]
    assert verdicts[0] == "holds: better at σ = 1, 5, worse at σ = none"
    assert verdicts[1] == "does not hold: better at σ = none, worse at σ = 1, 5"
    assert verdicts[2] == "does not hold: on 0 of 10 instances"
    assert verdicts[3] == "holds at every σ"
    assert verdicts[4] == "does not hold: at σ = none"
    assert verdicts[5] == "does not; no server at all exceeds it on 2 of 10 instances"
    assert verdicts[6].startswith("holds: K = 16 is better than K = 4 at σ = 1, 5, worse at σ = none")


def test_nearest_is_never_beaten_on_distance(rows):
    least = {row.instance: row.y1 for row in rows if row.method == "nearest"}
    assert all(row.y1 >= least[row.instance] - 1e-12 for row in rows)
