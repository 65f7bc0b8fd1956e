import numpy as np
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.files.follower_graph import FollowerGraph, synthetic_follower_graph
from relocbench.instances.generators.topics_from_graph import topics_from_graph
from relocbench.instances.kernels.random_streams import stream


def graph_of(*edges):
    pairs = np.array(edges, np.int64)
    return FollowerGraph(pairs[:, 0], pairs[:, 1])


def chosen_topics(graph, topics, seed=0, **limits):
    sizes = {"min_size": 2, "max_size": 21, "max_topics_per_client": 4} | limits
    return [topic.tolist() for topic in topics_from_graph(graph, stream("arrange", seed), topics=topics, **sizes)]


def test_a_topic_is_a_follower_and_its_distinct_followees():
    graph = graph_of((5, 9), (5, 7), (5, 9), (5, 5))
    assert chosen_topics(graph, 1) == [[0, 1, 2]]


def test_clients_are_numbered_by_first_appearance():
    graph = graph_of((5, 9), (5, 7), (6, 5), (6, 8))
    assert chosen_topics(graph, 2) in ([[0, 1, 2], [3, 0, 4]], [[0, 1, 2], [1, 3, 4]])


def test_rows_of_other_sizes_are_skipped():
    graph = graph_of((1, 2), (3, 4), (3, 5), (3, 6), (7, 8), (7, 9))
    assert chosen_topics(graph, 1, min_size=3, max_size=3) == [[0, 1, 2]]
    message = "expected at most 1, got 2: the follower graph has 3 followers, 1 of them with 3 to 3 members"
    with pytest.raises(InputError, match=message):
        chosen_topics(graph, 2, min_size=3, max_size=3)


def test_limits_on_topics_per_client_and_on_topic_size_hold_together():
    hub_and_two = [(follower, followee) for follower in range(10) for followee in (100, 200 + follower, 300 + follower)]
    topics = chosen_topics(graph_of(*hub_and_two), 10)
    hub = topics[0][1]
    assert sum(hub in topic for topic in topics) == 4
    assert sorted(map(len, topics)) == [3] * 6 + [4] * 4
    only_hub = [(follower, 100) for follower in range(10)]
    assert len(chosen_topics(graph_of(*only_hub), 4)) == 4
    with pytest.raises(InputError, match="expected at most 4, got 5"):
        chosen_topics(graph_of(*only_hub), 5)


def test_topics_depend_on_the_seed_but_not_on_the_order_of_edges():
    graph = synthetic_follower_graph(stream(1), topics=200, min_size=2, max_size=21, max_topics_per_client=4)
    order = np.random.default_rng(0).permutation(len(graph.follower))
    shuffled = FollowerGraph(graph.follower[order], graph.followee[order])
    assert chosen_topics(shuffled, 64) == chosen_topics(graph, 64)
    assert chosen_topics(graph, 64, seed=1) != chosen_topics(graph, 64, seed=0)
