import itertools
import math

import numpy as np
import pytest

from relocbench.heuristics import adaptive, nearest, otos, reloc
from relocbench.heuristics.adaptive_kernel import Surroundings, best_server, improve_topics, make_diary, make_workspace
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.incremental_state import State
from relocbench.instances.instance import Instance
from relocbench.instances.library.library import Library
from relocbench.instances.nearest_server import nearest_server
from relocbench.runs.selectors import parse_selector
from relocbench.runs.solve import solve_here
from tests.samples import random_instance


def cost(method, instance, **settings):
    return evaluate(instance, method.solve(instance, seed=0, time_limit=60.0, **settings).home).objective


def costs_of_the_paper(instance):
    """The costs of NS, OTOS and RELOC, in both named readings and in the reading that the method itself starts from."""
    readings = ({"reading": "pseudocode"}, {"reading": "prose"}, {"relation": "exact"})
    return [cost(nearest, instance), cost(otos, instance), *(cost(reloc, instance, **choice) for choice in readings)]


def on_grid(instance):
    """Surroundings in which every server is around every other one."""
    servers = range(instance.n_servers)
    around = np.array([[k for k in servers if k != l] for l in servers], np.int32).reshape(instance.n_servers, -1)
    return Surroundings(instance.members.start, instance.members.item, nearest_server(instance), around)


@pytest.mark.parametrize("seed", range(60))
def test_the_best_server_of_a_client_is_that_of_the_incremental_evaluator(seed):
    instance = random_instance(seed)
    rng = np.random.default_rng(seed)
    state = State(instance, rng.integers(instance.n_servers, size=instance.n_clients))
    if seed % 2:
        state.relax_capacities(0.0, rng.random(instance.n_servers), rng.random(instance.n_servers))
    tolerance = 1e-9 * max(1.0, abs(state.objective))
    area, work = on_grid(instance), make_workspace(instance.n_servers)
    for client in np.flatnonzero(instance.topics.sizes > 0):
        server, change = best_server(state.arrays, area, work, client)
        changes = [state.delta(client, l) for l in range(instance.n_servers)]
        assert change == pytest.approx(changes[server], abs=tolerance)
        assert change == pytest.approx(min(changes), abs=tolerance)
        state.move(int(client), int(rng.integers(instance.n_servers)))


@pytest.mark.parametrize("seed", range(96))
def test_no_method_of_the_paper_is_better_on_any_kind_of_instance(seed):
    instance = random_instance(seed)
    own = cost(adaptive, instance)
    starts = [cost(nearest, instance), cost(otos, instance), cost(reloc, instance, relation="exact")]
    assert own <= min(starts) * (1 + 1e-12) + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("family", ["tiny", "small", "paper", "paper-spooler", "paper-tightness", "preliminary"])
def test_no_method_of_the_paper_is_better_by_one_percent_on_the_families(family):
    for cell in FAMILIES[family].cells():
        instance = cell.build(11)
        assert cost(adaptive, instance) <= 1.01 * min(costs_of_the_paper(instance)), instance.name


@pytest.mark.parametrize("name", ["paper-s1-0", "paper-s10-0", "paper-s20-1", "large-s10-m1000-0"])
def test_homes_are_within_five_percent_of_the_certified_bound_where_the_paper_is_far_from_it(name):
    entry = Library().entries[name]
    instance = Library().read(name)
    assert cost(adaptive, instance) <= 1.05 * entry.bound
    assert min(costs_of_the_paper(instance)) > 1.1 * entry.bound


def test_the_price_of_storage_helps_where_storage_is_scarce(monkeypatch):
    cells = FAMILIES["paper-tightness"].cells({"min_topic_size": 6})
    with_prices = [cost(adaptive, cell.build(0)) for cell in cells]
    monkeypatch.setattr(adaptive, "PARAMS", adaptive.AdaptiveParams(prices=(0.0, 0.0, 0.0, 0.0)))
    without = [cost(adaptive, cell.build(0)) for cell in cells]
    assert sum(with_prices) < 0.99 * sum(without)


def test_with_few_visits_every_client_is_visited_once(monkeypatch):
    instance = FAMILIES["paper"].cells({"sigma": 10})[0].build(0)
    monkeypatch.setattr(adaptive, "PARAMS", adaptive.AdaptiveParams(visits=0))
    assert instance.n_clients < len(instance.members.item)
    assert cost(adaptive, instance) < 0.8 * min(costs_of_the_paper(instance))


@pytest.mark.parametrize(("storage", "everywhere"), [(100.0, True), (3.0, False)])
def test_whole_topics_move_where_no_single_client_would(storage, everywhere):
    # Both clients are on the farther server, which is overloaded with a storage of 3. One of them alone would save less
    # than the delay between the servers costs.
    servers = [(0.0, 0.0, 100.0, 100.0), (3.0, 0.0, storage, 100.0)]
    clients = [(1.0, 0.0), (1.0, 0.0)]
    instance = Instance.of(servers=servers, clients=clients, topics=[[0, 1]], delay_per_km=1.0, cloud_delay=2.0)
    state, area = State(instance, [1, 1]), on_grid(instance)
    assert state.delta(0, 0) > 0
    assert best_server(state.arrays, area, make_workspace(2), 0) == (1, 0.0)
    assert improve_topics(state.arrays, area, make_diary(2, 1), 1e-9, everywhere, 100) == (2, 1)
    assert state.home.tolist() == [0, 0]
    assert state.objective == pytest.approx(evaluate(instance, [0, 0]).objective)
    # Without overload there is nothing to do, unless topics may leave every server.
    assert improve_topics(state.arrays, area, make_diary(2, 1), 1e-9, False, 100) == (0, 0)


def test_homes_depend_on_the_seed_and_not_on_threads():
    instance = FAMILIES["paper"].cells({"sigma": 5})[0].build(3)
    one, two = (adaptive.solve(instance, seed=5, time_limit=60.0, threads=threads).home for threads in (1, 2))
    assert one.tolist() == two.tolist()


def test_without_time_the_homes_are_those_of_the_nearest_servers():
    instance = FAMILIES["paper"].cells({"sigma": 5, "topics": 400})[0].build(0)
    assert instance.n_clients > adaptive.PARAMS.small
    solution = adaptive.solve(instance, seed=0, time_limit=0.0)
    assert solution.home.tolist() == nearest_server(instance).tolist()


def test_the_homes_of_a_small_instance_do_not_depend_on_the_clock():
    instance = FAMILIES["paper"].cells({"sigma": 5})[0].build(0)
    homes = [adaptive.solve(instance, seed=0, time_limit=seconds).home.tolist() for seconds in (0.0, 60.0)]
    assert homes[0] == homes[1]


def test_progress_is_reported_from_the_nearest_servers_to_the_result():
    instance = FAMILIES["paper"].cells({"sigma": 10})[0].build(0)
    points = []
    solution = adaptive.solve(instance, seed=0, time_limit=60.0, on_progress=lambda *point: points.append(point))
    assert points == list(solution.trace)
    assert points[0][1] == cost(nearest, instance)
    assert points[-1][1] == evaluate(instance, solution.home).objective
    assert all(after[1] < before[1] for before, after in itertools.pairwise(points))
    assert all(bound == -math.inf for _, _, bound in points)


def test_a_selector_sets_the_clusters_of_its_run_of_reloc():
    instance = FAMILIES["paper"].cells({"sigma": 10})[0].build(0)
    chosen = solve_here(instance, "adaptive[k=8]", seed=0).solution.home
    assert chosen.tolist() == adaptive.solve(instance, seed=0, time_limit=60.0, k=8).home.tolist()
    assert str(parse_selector("adaptive[k=8]")) == "adaptive[k=8]"


@pytest.mark.parametrize("wrong", [{"k": 0}, {"threads": 0}])
def test_parameters_out_of_range_are_refused(wrong):
    with pytest.raises(InputError, match="method adaptive"):
        adaptive.solve(random_instance(0), seed=0, time_limit=1.0, **wrong)
