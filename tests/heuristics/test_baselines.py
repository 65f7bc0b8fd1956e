import numpy as np
import pytest

from relocbench.heuristics import nearest, otos, random_homes
from relocbench.heuristics.readings import DEFAULT_READING, READINGS
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import FAMILIES
from tests.heuristics.literal_reloc import Loads
from tests.samples import random_instance, relabelled


def literal_otos(instance):
    """OTOS in plain Python: topics in order, the best server of each topic for its members, then cooperation."""
    loads = Loads(instance)
    home = [None] * instance.n_clients
    publishers = [set(topic.tolist()) for topic in instance.publishers]
    for topic in range(instance.n_topics):
        members = instance.members[topic].tolist()
        totals = [sum(float(instance.client_delay(m, l)) for m in members) for l in range(instance.n_servers)]
        for client in members:
            if home[client] is None:
                home[client] = totals.index(min(totals))
            if client in publishers[topic]:
                loads.add(client, topic, home[client])
                if not loads.theta_is_1(home[client]):
                    new = min(range(instance.n_servers), key=lambda l: (loads.usage(l), l))
                    loads.move(client, home[client], new)
                    home[client] = new
    return [0 if server is None else server for server in home]


def literal_otos_by_topic(instance):
    """OTOS in plain Python: a topic that overloads its server goes as a whole to the least used server."""
    loads = Loads(instance)
    home = [None] * instance.n_clients
    publishers = [set(topic.tolist()) for topic in instance.publishers]
    for topic in range(instance.n_topics):
        members = instance.members[topic].tolist()
        totals = [sum(float(instance.client_delay(m, l)) for m in members) for l in range(instance.n_servers)]
        server = totals.index(min(totals))
        is_new = any(home[client] is None for client in members)
        for client in members:
            if home[client] is None:
                home[client] = server
            if client in publishers[topic]:
                loads.add(client, topic, home[client])
        if is_new and not loads.theta_is_1(server):
            other = min(range(instance.n_servers), key=lambda l: (loads.usage(l), l))
            for client in members:
                if home[client] == server:
                    loads.move(client, server, other)
                    home[client] = other
    return [0 if server is None else server for server in home]


@pytest.mark.parametrize("cooperation", ["client", "topic"])
@pytest.mark.parametrize("seed", range(96))
def test_otos_equals_its_literal_implementation(seed, cooperation):
    instance = random_instance(seed)
    literal = {"client": literal_otos, "topic": literal_otos_by_topic}[cooperation]
    found = otos.solve(instance, seed=0, time_limit=1.0, cooperation=cooperation).home
    assert found.tolist() == literal(instance)


def test_otos_cooperates_as_the_default_reading_of_reloc():
    instance = FAMILIES["paper"].cells({"sigma": 20})[0].build(0)
    homes = [
        otos.solve(instance, seed=0, time_limit=1.0, cooperation=which).home.tolist()
        for which in ("reading", READINGS[DEFAULT_READING].cooperation, "client", "topic")
    ]
    assert homes[0] == homes[1]
    assert homes[2] != homes[3]


def test_otos_keeps_topics_together_when_there_is_room():
    instance = (
        FAMILIES["paper"].cells({"sigma": 5, "max_topics_per_client": 1, "storage": 1e6, "compute": 1e6})[0].build(0)
    )
    home = otos.solve(instance, seed=0, time_limit=1.0).home
    assert all(len(set(home[members].tolist())) == 1 for members in instance.members)


@pytest.mark.parametrize("method", [nearest, otos], ids=["nearest", "otos"])
@pytest.mark.parametrize("seed", range(12))
def test_relabelling_clients_and_servers_relabels_the_homes(method, seed):
    # With distinct delays and ample capacities there are no ties, so that no result depends on an index.
    instance = random_instance(seed, ("loose", "euclid", "far", "mixed"))
    rng = np.random.default_rng(seed)
    client_to, server_to = rng.permutation(instance.n_clients), rng.permutation(instance.n_servers)
    home = method.solve(instance, seed=0, time_limit=1.0).home
    again = method.solve(relabelled(instance, client_to, server_to), seed=0, time_limit=1.0).home
    in_a_topic = np.flatnonzero(instance.topics.sizes > 0)
    assert again[client_to[in_a_topic]].tolist() == server_to[home[in_a_topic]].tolist()


def test_random_homes_are_spread_evenly_and_follow_the_seed():
    instance = FAMILIES["paper"].cells({"sigma": 5, "topics": 2000})[0].build(0)
    home = random_homes.solve(instance, seed=1, time_limit=1.0).home
    counts = np.bincount(home, minlength=16)
    assert counts.min() > 0.8 * counts.mean()
    assert home.tolist() == random_homes.solve(instance, seed=1, time_limit=1.0).home.tolist()
    assert home.tolist() != random_homes.solve(instance, seed=2, time_limit=1.0).home.tolist()


def test_nearest_has_the_least_distance_of_all():
    instance = FAMILIES["paper"].cells({"sigma": 10})[0].build(0)
    least = evaluate(instance, nearest.solve(instance, seed=0, time_limit=1.0).home).y1
    for seed in range(20):
        assert evaluate(instance, random_homes.solve(instance, seed=seed, time_limit=1.0).home).y1 > least
