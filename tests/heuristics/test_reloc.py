import dataclasses
from typing import get_args, get_type_hints

import numpy as np
import pytest

from relocbench.heuristics.clusters import Clusters, make_clusters
from relocbench.heuristics.readings import DEFAULT_READING, Reading
from relocbench.heuristics.readings import READINGS as NAMED_READINGS
from relocbench.heuristics.reloc import STEPS, Algorithm, Steps, loop_rules, relation_finder, run_clusters, solve
from relocbench.heuristics.reloc_tasks import cluster_tasks
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.nearest_server import nearest_server
from tests.heuristics.literal_reloc import reloc as literal_reloc
from tests.samples import KINDS, random_instance, relabelled

# Choices that differ from the reading ``pseudocode``, with which the literal implementation begins.
BASE = {"reading": "pseudocode"}
READINGS = [
    {},
    {"k": 1},
    {"k": 2, "relation": "exact"},
    {"cooperation": "topic"},
    {"revisit": True},
    {"k": 3, "cooperation": "topic", "revisit": True, "relation": "exact"},
    {"related": 2},
    {"related": 0},
    {"rank": 2, "related": 3},
    {"relation": "nmf"},
]
# One choice for each further point that the paper leaves open, and some of them together.
CHOICES = [
    {"relation": "exact", "ties": "nearest"},
    {"relation": "exact", "ties": "placed"},
    {"relation": "exact", "ties": "loaded"},
    {"relation": "exact", "ties": "random"},
    {"relation": "exact", "ties": "nearest", "related": 2},
    {"relation": "exact", "ties": "placed", "related": 2, "k": 1},
    {"relation": "exact", "ties": "loaded", "related": 2, "k": 1, "revisit": True},
    {"relation": "exact", "ties": "random", "related": 2},
    {"rank": "full", "ties": "nearest", "related": 3},
    {"rank": "full", "ties": "random"},
    {"rank": 2, "ties": "placed", "cooperation": "topic"},
    {"rank": 2, "ties": "loaded", "k": 2},
    {"initial": "least-used"},
    {"initial": "least-used", "related": 0, "k": 2},
    {"factorised": "incidence"},
    {"factorised": "incidence", "relation": "nmf", "rank": 3},
    {"diagonal": False},
    {"diagonal": False, "rank": 2, "ties": "random"},
    {"topic_order": "large"},
    {"topic_order": "small", "client_order": "large", "cooperation": "topic"},
    {"topic_order": "random", "revisit": True},
    {"client_order": "small", "relation": "exact"},
    {"client_order": "random", "topic_order": "random", "cooperation": "topic", "revisit": True, "k": 2},
    {"topic_order": "large", "ties": "placed", "initial": "least-used", "relation": "exact", "revisit": True},
]


@pytest.mark.parametrize("seed", range(240))
def test_cluster_by_cluster_gives_the_homes_of_the_whole_run(seed):
    instance = random_instance(seed)
    reading = READINGS[seed % len(READINGS)]
    expected = literal_reloc(instance, seed=seed, **reading)
    assert solve(instance, seed=seed, time_limit=1.0, **BASE, **reading).home.tolist() == expected


@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_every_choice_gives_the_homes_of_the_literal_algorithm(choice):
    # Tiny instances of all kinds, then the paper's with fewer topics: with enough capacity and with far too little.
    instances = [random_instance(seed) for seed in range(CHOICES.index(choice) % 3, len(KINDS), 3)]
    capacities = ({}, {"storage": 45, "compute": 200})
    instances += [FAMILIES["paper"].cells({"sigma": 10, "topics": 16, **given})[0].build(0) for given in capacities]
    overloaded = [evaluate(instance, nearest_server(instance)).theta.min() < 1 for instance in instances[-2:]]
    assert overloaded == [False, True]
    for seed, instance in enumerate(instances):
        expected = literal_reloc(instance, seed=seed, **choice)
        assert solve(instance, seed=seed, time_limit=1.0, **BASE, **choice).home.tolist() == expected


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Reading)])
def test_every_choice_matters(field):
    instance = FAMILIES["paper"].cells({"sigma": 10, "storage": 300})[0].build(1)
    base = {"relation": "exact"} if field == "ties" else {}
    values = ["full", 32] if field == "rank" else get_args(get_type_hints(Reading)[field]) or [True, False]
    values = dict.fromkeys([getattr(Reading(), field), *values])
    homes = [solve(instance, seed=0, time_limit=1.0, **BASE, **base | {field: value}).home.tolist() for value in values]
    assert len({tuple(home) for home in homes}) == len(values)


def test_a_factorisation_of_full_rank_has_the_scores_of_shared_topics():
    instance = FAMILIES["paper"].cells({"sigma": 10})[0].build(0)
    for ties in ("index", "placed", "random"):
        full, exact = (
            solve(instance, seed=0, time_limit=1.0, ties=ties, **BASE, **choice).home.tolist()
            for choice in ({"rank": "full"}, {"relation": "exact"})
        )
        assert full == exact


def test_a_named_reading_stands_for_its_choices_and_gives_way_to_explicit_ones():
    instance = FAMILIES["paper"].cells({"sigma": 10})[0].build(0)

    def homes(**choices):
        return solve(instance, seed=0, time_limit=1.0, **choices).home.tolist()

    prose = {"relation": "exact", "cooperation": "topic", "revisit": True}
    assert NAMED_READINGS["prose"] == Reading(**prose)
    assert homes(reading="prose") == homes(reading="pseudocode", **prose) != homes(reading="pseudocode")
    assert homes(reading="prose", revisit=False) == homes(reading="pseudocode", **prose | {"revisit": False})
    assert homes() == homes(reading=DEFAULT_READING)


def test_random_choices_repeat_with_the_seed_and_change_with_it():
    instance = FAMILIES["paper"].cells({"sigma": 10})[0].build(0)
    for field in ("ties", "topic_order", "client_order"):
        # With one cluster, K-means has no part in the differences.
        first, again, other = (
            solve(instance, seed=seed, time_limit=1.0, k=1, relation="exact", **{field: "random"}).home.tolist()
            for seed in (1, 1, 2)
        )
        assert first == again != other


@pytest.mark.parametrize("sigma", [1, 20])
@pytest.mark.parametrize("reading", READINGS[:6])
def test_cluster_by_cluster_gives_the_homes_of_the_whole_run_at_the_papers_size(sigma, reading):
    instance = FAMILIES["paper"].cells({"sigma": sigma})[0].build(1)
    expected = literal_reloc(instance, seed=0, **reading)
    assert solve(instance, seed=0, time_limit=1.0, **BASE, **reading).home.tolist() == expected


def test_a_cluster_run_by_itself_gives_its_part_of_the_homes():
    instance = FAMILIES["paper"].cells({"sigma": 10})[0].build(0)
    whole = solve(instance, seed=0, time_limit=1.0, **BASE).home
    clusters = make_clusters(instance, 4, 0)
    steps = Steps(relation_finder(instance, Reading(), 100, 0), loop_rules(Reading()))
    for cluster in reversed(list(cluster_tasks(instance, clusters))):
        alone = run_clusters(instance, iter([cluster]), steps)
        assert alone[cluster.clients].tolist() == whole[cluster.clients].tolist()
        assert set(clusters.of_server[whole[cluster.clients]]) == {clusters.of_client[cluster.clients[0]]}


def test_homes_do_not_depend_on_threads_and_seeds_repeat():
    instance = FAMILIES["paper"].cells({"sigma": 5, "topics": 640, "servers": 64})[0].build(0)
    homes = [solve(instance, seed=7, time_limit=1.0, k=16, threads=threads).home.tolist() for threads in (1, 2, 4, 2)]
    assert homes[0] == homes[1] == homes[2] == homes[3]


def roomy(seed):
    """An instance without ties and without overload, where no result depends on an index."""
    settings = {"sigma": 10, "servers": 15, "storage": 1e6, "compute": 1e6}
    return FAMILIES["paper"].cells(settings)[0].build(seed)


@pytest.mark.parametrize("seed", range(6))
def test_relabelling_servers_relabels_the_homes(seed):
    instance = roomy(seed)
    server_to = np.random.default_rng(seed).permutation(instance.n_servers)
    renamed = relabelled(instance, np.arange(instance.n_clients), server_to)
    home, again = (solve(named, seed=0, time_limit=1.0).home for named in (instance, renamed))
    assert again.tolist() == server_to[home].tolist()


@pytest.mark.parametrize("seed", range(6))
def test_relabelling_clients_changes_nothing_where_no_relation_is_tied(seed):
    instance = roomy(seed)
    client_to = np.random.default_rng(seed).permutation(instance.n_clients)
    renamed = relabelled(instance, client_to, np.arange(instance.n_servers))
    home = solve(instance, seed=0, time_limit=1.0, related=0).home
    assert solve(renamed, seed=0, time_limit=1.0, related=0).home[client_to].tolist() == home.tolist()


def test_automatic_k_is_no_worse_than_any_power_of_two():
    instance = FAMILIES["paper"].cells({"sigma": 5})[0].build(2)
    costs = [evaluate(instance, solve(instance, seed=0, time_limit=1.0, k=k).home).y for k in (1, 2, 4, 8, 16)]
    assert evaluate(instance, solve(instance, seed=0, time_limit=60.0, k="auto").home).y == min(costs)


def test_with_a_cluster_for_every_server_reloc_is_nearest_server():
    instance = FAMILIES["paper"].cells({"sigma": 5})[0].build(2)
    assert solve(instance, seed=0, time_limit=1.0, k=16).home.tolist() == nearest_server(instance).tolist()


def test_automatic_k_stops_trying_when_time_is_up():
    instance = FAMILIES["paper"].cells({"sigma": 5})[0].build(2)
    assert solve(instance, seed=0, time_limit=0.0, k="auto").home.tolist() == nearest_server(instance).tolist()


def test_more_related_clients_than_there_are_means_all_of_them():
    instance = FAMILIES["paper"].cells({"sigma": 5})[0].build(2)
    for relation in ("svd", "exact"):
        few, many = (solve(instance, seed=0, time_limit=1.0, related=n, relation=relation).home for n in (400, 10**30))
        assert few.tolist() == many.tolist()


@pytest.mark.parametrize("reading", NAMED_READINGS)
def test_the_homes_after_each_step_show_what_the_step_does(reading):
    instance = FAMILIES["preliminary"].cells({"storage": 7})[0].build(0)
    algorithm = Algorithm(instance, NAMED_READINGS[reading])
    homes = [algorithm.home(make_clusters(instance, 4, 0), step) for step in STEPS]
    assert homes[2].tolist() == solve(instance, seed=0, time_limit=1.0, reading=reading).home.tolist()
    # The relation step puts related clients on one server and fills it; the cooperation step lowers its load again.
    costs = [evaluate(instance, home) for home in homes]
    opened = [int((cost.storage_load > 0).sum()) for cost in costs]
    assert opened[1] <= opened[0]
    assert costs[1].compute_load.max() >= costs[2].compute_load.max()


def test_clusters_have_servers_and_clients_the_nearest_centroid():
    instance = FAMILIES["paper"].cells({"sigma": 20, "servers": 30})[0].build(0)
    clusters = make_clusters(instance, 5, 3)
    assert set(clusters.of_server.tolist()) == set(range(5))
    centre = np.array(
        [
            (instance.server_x[clusters.of_server == k].mean(), instance.server_y[clusters.of_server == k].mean())
            for k in range(5)
        ]
    )
    distance = np.hypot(instance.client_x[:, None] - centre[:, 0], instance.client_y[:, None] - centre[:, 1])
    assert clusters.of_client.tolist() == distance.argmin(axis=1).tolist()


def test_servers_at_one_place_are_never_split_into_more_clusters_than_places():
    instance = random_instance(3)
    position = np.ones(instance.n_servers)
    instance = dataclasses.replace(instance, server_x=position, server_y=position)
    clusters = make_clusters(instance, 4, 0)
    assert isinstance(clusters, Clusters)
    assert clusters.count == 1


@pytest.mark.parametrize(
    "setting",
    [
        {"k": 0},
        {"related": -1},
        {"rank": 0},
        {"threads": 0},
        {"reading": "prose", "factorised": "incidence"},
        {"relation": "exact", "diagonal": False},
        {"factorised": "incidence", "diagonal": False},
        {"relation": "nmf", "diagonal": False},
    ],
)
def test_impossible_settings_are_refused(setting):
    with pytest.raises(InputError, match="method reloc"):
        solve(random_instance(0), seed=0, time_limit=1.0, **setting)
