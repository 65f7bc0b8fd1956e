import dataclasses
import itertools

import numpy as np
import pytest

from relocbench.heuristics import anneal, anneal_scarce
from relocbench.heuristics.anneal import ROUNDS, _near, _Search, anneal_among, scarce_unit, solve
from relocbench.heuristics.anneal_prices import Prices
from relocbench.heuristics.anneal_rounds import Round
from relocbench.heuristics.anneal_scarce import (
    PARAMS,
    REGION_PATIENCE,
    REGION_ROUNDS,
    WARM_PATIENCE,
    WARM_ROUNDS,
    PopulationParams,
    resample,
    scarce_rounds,
)
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.nearest_server import nearest_server
from tests.samples import random_instance


def spooler(spool):
    return FAMILIES["paper-spooler"].cells({"spool_per_member": spool})[0].build(0)


def make_brief(monkeypatch, effort):
    """Shorten all rounds to a share of their length."""
    monkeypatch.setattr(
        anneal_scarce, "PARAMS", PopulationParams(first_members=2, effort=effort * PARAMS.effort, steps=20)
    )
    for module, name in ((anneal, "ROUNDS"), (anneal_scarce, "WARM_ROUNDS"), (anneal_scarce, "REGION_ROUNDS")):
        brief = tuple(dataclasses.replace(mode, effort=effort * mode.effort) for mode in getattr(module, name))
        monkeypatch.setattr(module, name, brief)


@pytest.mark.parametrize("mode", [*WARM_ROUNDS, *REGION_ROUNDS])
def test_rounds_for_scarce_capacity_report_the_cost_of_their_homes(mode):
    instance = spooler(6)
    search = _Search(instance, nearest_server(instance), 1, _near(instance))
    done, length = 0, 200_000
    search.begin_round(length, mode)
    while done < length:
        done += search.run_batch(length - done, done / length)
    assert search.best == pytest.approx(evaluate(instance, search.best_home).objective)


def test_capacity_is_scarce_in_the_paper_only_where_spools_are_large():
    scarce = {}
    for spool in (2, 3, 6):
        instance = spooler(spool)
        home = solve(instance, seed=0, time_limit=600.0, moves=200_000).home
        scarce[spool] = [scarce_unit(instance, home, 0, least) is not None for least in (None, 2.0)]
    assert scarce == {2: [False, False], 3: [False, True], 6: [True, True]}
    few_clients = FAMILIES["small"].cells({"regime": "overloaded", "clients": 30})[0].build(0)
    assert scarce_unit(few_clients, nearest_server(few_clients), 0) is None


def test_rounds_for_scarce_capacity_follow_the_first_rounds_where_it_is_scarce_and_nowhere_else(monkeypatch):
    begun = []
    monkeypatch.setattr(_Search, "begin_round", lambda search, length, mode: begun.append(mode))
    monkeypatch.setattr(_Search, "run_batch", lambda search, most, progress: most)
    monkeypatch.setattr(_Search, "result", property(lambda search: search.best_home))
    for unit in (None, 1.0):
        monkeypatch.setattr(anneal, "scarce_unit", lambda *_, unit=unit: unit)
        begun.clear()
        solve(random_instance(0), seed=0, time_limit=600.0, moves=4_000_000)
        assert begun[:3] == list(ROUNDS)
        assert begun[3:7] == [*ROUNDS, ROUNDS[0]] if unit is None else begun[3].unit == 1.0


def is_part(task):
    """Return whether a task is a part of the cooling of a population."""
    return task.mode.end - task.mode.begin < 1


def cooling(instance, found, unit=1.0):
    """Return the tasks of the first cooling, where ``found`` gives the result of each task from its number."""
    tasks = scarce_rounds(instance, nearest_server(instance), unit, 0)
    task, made = next(tasks), []
    while is_part(task):
        made.append(task)
        task = tasks.send(found(len(made) - 1))
    return made, task


def homes_by_cost(instance, count):
    rng = np.random.default_rng(0)
    homes = rng.integers(instance.n_servers, size=(count, instance.n_clients)).astype(np.int32)
    return sorted(homes, key=lambda home: -evaluate(instance, home).objective)


def test_a_population_cools_in_steps_and_shrinks_to_one_member():
    instance = random_instance(0)
    home = homes_by_cost(instance, 1)[0]
    tasks, after = cooling(instance, lambda _: home)
    steps = [list(group) for _, group in itertools.groupby(tasks, key=lambda task: task.mode.begin)]
    assert len(steps) == PARAMS.steps
    ends = [step[0].mode.end for step in steps]
    assert [step[0].mode.begin for step in steps] == [0.0, *ends[:-1]]
    assert ends[-1] == 1.0
    sizes = [len(step) for step in steps]
    assert sizes == sorted(sizes, reverse=True)
    assert (sizes[0], sizes[-1]) == (PARAMS.first_members, 1)
    # Nobody's prices are shared, or a member would change those of another one.
    assert all(len({id(task.mode.prices) for task in step}) == len(step) for step in steps)
    assert after.mode == WARM_ROUNDS[0]
    assert after.start.tolist() == home.tolist()


def test_members_with_a_low_cost_take_the_places_of_the_others():
    instance = random_instance(0)
    worst, best = homes_by_cost(instance, 50)[::49]
    # In every step before the selection the first member has the best homes, and the others the worst.
    first = round(PARAMS.select_from * PARAMS.steps) * PARAMS.first_members
    # At such low temperatures every difference between costs is decisive.
    tasks, _ = cooling(instance, lambda number: best if number % PARAMS.first_members == 0 else worst, unit=1e-6)
    assert [task.start.tolist() for task in tasks[first - PARAMS.first_members : first]] == [
        best.tolist(),
        *[worst.tolist()] * (PARAMS.first_members - 1),
    ]
    assert all(task.start.tolist() == best.tolist() for task in tasks[first : first + PARAMS.first_members])


def test_members_are_chosen_in_proportion_to_their_weights():
    costs = np.log([1.0, 2.0, 4.0, 8.0])
    chosen = np.concatenate([resample(costs, 1.0, offset) for offset in (np.arange(1500) + 0.5) / 1500])
    np.testing.assert_allclose(np.bincount(chosen, minlength=4) / 1500, np.array([8, 4, 2, 1]) / 15 * 4, atol=0.01)
    assert resample(costs, 0.0, 0.5).tolist() == [0, 1, 2, 3]
    assert resample(costs, 1e6, 0.5).tolist() == [0] * 4
    assert len(resample(costs, 1.0, 1 - 2**-53)) == 4


def after_the_cooling(instance, cooled, found):
    """Return the tasks after the first cooling, which ends at ``cooled``, if they find these homes."""
    tasks = scarce_rounds(instance, nearest_server(instance), 1.0, 0)
    task = next(tasks)
    while is_part(task):
        task = tasks.send(cooled)
    return [task, *(tasks.send(home) for home in found)]


def test_warm_rounds_and_regions_go_on_from_the_best_homes_and_end_when_nothing_better_is_found():
    instance = random_instance(0)
    worst, worse, better, best = homes_by_cost(instance, 4)
    warm = [worse, *[worse] * (WARM_PATIENCE - 1), better, *[worst] * WARM_PATIENCE]
    regions = [best, *[worst] * REGION_PATIENCE]
    tasks = after_the_cooling(instance, worst, warm + regions)
    starts = [task.start.tolist() for task in tasks]
    assert starts[:2] == [worst.tolist(), worse.tolist()]
    # The last of the rounds that are waited for found better homes, so they go on as long again.
    assert starts[1 + WARM_PATIENCE : len(warm) + 1] == [better.tolist()] * (WARM_PATIENCE + 1)
    assert starts[-1 - REGION_PATIENCE : -1] == [best.tolist()] * REGION_PATIENCE
    assert [task.mode.region > 0 for task in tasks] == [False] * len(warm) + [True] * len(regions) + [False]
    # Then the next population starts at the nearest servers.
    assert starts[-1] == nearest_server(instance).tolist()
    assert is_part(tasks[-1])


@pytest.mark.parametrize("sacrifices", [False, True])
def test_populations_double_and_have_prices_unless_a_server_is_sacrificed(sacrifices, monkeypatch):
    instance = random_instance(0)
    monkeypatch.setattr(anneal_scarce, "sacrificed_servers", lambda theta: np.full(len(theta), sacrifices))
    home = homes_by_cost(instance, 1)[0]
    tasks = scarce_rounds(instance, home, 1.0, 0)
    task, populations, size = next(tasks), [], 0
    while len(populations) < 4:
        if is_part(task):
            size += task.mode.begin == 0
            if task.mode.end == 1:
                populations.append((task.mode.priced, size))
                size = 0
        task = tasks.send(home)
    assert populations == [(not sacrifices, size) for size in (4, 8, 16, 16)]


def test_after_the_populations_the_best_homes_of_all_are_improved_by_longer_rounds(monkeypatch):
    instance = random_instance(0)
    monkeypatch.setattr(
        anneal_scarce, "PARAMS", PopulationParams(first_members=1, most_members=1, steps=2, populations=2)
    )
    worse, best = homes_by_cost(instance, 2)
    rounds = WARM_PATIENCE + REGION_PATIENCE
    # The first population is the better one.
    found = [best] * (2 + rounds) + [worse] * (2 + rounds)
    tasks = scarce_rounds(instance, nearest_server(instance), 1.0, 0)
    next(tasks)
    for home in found:
        task = tasks.send(home)
    known = min((nearest_server(instance), best), key=lambda home: evaluate(instance, home).objective)
    assert task.start.tolist() == known.tolist()
    assert task.mode == dataclasses.replace(WARM_ROUNDS[0], effort=2 * WARM_ROUNDS[0].effort)


def test_a_round_that_is_a_part_of_a_cooling_goes_on_with_its_prices_and_temperatures():
    """Ten parts of a cooling end near the cost of the whole cooling, and a hot part ends far above it."""
    instance = spooler(5)
    none = np.zeros(instance.n_servers, np.bool_)
    whole = Round(3.5, priced=True, scarce=True, effort=0.05, unit=1.7)
    cost = {}
    for parts in (1, 10):
        home, prices = nearest_server(instance), Prices(instance, 1.7, 0.2, none)
        for part in range(parts):
            mode = dataclasses.replace(
                whole, effort=whole.effort / parts, begin=part / parts, end=(part + 1) / parts, prices=prices
            )
            home = anneal_among(instance, None, home, seed=part, mode=mode, time_used=lambda: 0.0)
            cost[parts, part] = evaluate(instance, home).objective
    assert cost[10, 9] == pytest.approx(cost[1, 0], rel=0.1)
    assert cost[10, 3] > 1.1 * cost[10, 9]


def test_in_a_round_on_a_region_only_its_clients_move_and_they_stay_in_it():
    instance = spooler(6)
    start = nearest_server(instance)
    regions = set()
    for seed in range(10):
        search = _Search(instance, start, seed, _near(instance))
        search.begin_round(20_000, Round(3.5, priced=False, scarce=True, region=4))
        search.run_batch(20_000, 0.0)
        moved = np.flatnonzero(search._state.home != start)
        servers = np.union1d(start[moved], search._state.home[moved])
        assert len(moved) > 10
        assert len(servers) == 4
        assert search.best == pytest.approx(evaluate(instance, search.best_home).objective)
        regions.add(tuple(servers))
        # The next round is on all servers again.
        search.return_to_best()
        search.begin_round(20_000, Round(3.5, priced=False, scarce=True))
        search.run_batch(20_000, 0.0)
        assert len(np.unique(search._state.home[search._state.home != start])) > 4
    assert len(regions) > 5


def test_the_incumbent_survives_a_population(monkeypatch):
    instance = spooler(5)
    make_brief(monkeypatch, 0.01)
    good = solve(instance, seed=0, time_limit=600.0, moves=1_500_000).home
    begun = []
    begin_at = _Search.begin_at
    monkeypatch.setattr(_Search, "begin_at", lambda search, home: (begun.append(home), begin_at(search, home)))
    solution = solve(instance, seed=1, time_limit=600.0, moves=300_000, start=good)
    assert len(begun) > 10
    assert evaluate(instance, solution.home).objective <= evaluate(instance, good).objective + 1e-9
    assert solution.trace[-1][1] == pytest.approx(evaluate(instance, solution.home).objective)


def test_the_same_seed_and_moves_give_the_same_homes_where_capacity_is_scarce(monkeypatch):
    instance = spooler(6)
    make_brief(monkeypatch, 0.02)
    a, b, c = (solve(instance, seed=seed, time_limit=600.0, moves=1_000_000).home.tolist() for seed in (1, 1, 2))
    assert a == b != c
