import gzip

import numpy as np
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.files.follower_graph import read_follower_graph, synthetic_follower_graph
from relocbench.instances.kernels.random_streams import stream

EDGES = [(10, 20), (10, 30), (20, 30), (7, 7), (10, 20)]


def edges_of(graph):
    return list(zip(graph.follower.tolist(), graph.followee.tolist(), strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "10\t20\n10\t30\n20\t30\n7\t7\n10\t20\n",
        "10 20\n10 30\n20 30\n7 7\n10 20",
        "10,20\n10,30\n20,30\n7,7\n10,20\n",
        "10\t20\r\n10\t30\r\n20\t30\r\n7\t7\r\n10\t20\r\n",
        "# Directed graph: a, b\n# FromNodeId\tToNodeId\n10\t20\n10\t30\n20\t30\n7\t7\n10\t20\n",
        "% konect\n\n10 20\n10  30\n 20 30 \n7 7\n# in the middle\n10 20\n",
        "id_1,id_2\n10,20\n10,30\n20,30\n7,7\n10,20\n",
        "follower\tfollowee\n10\t20\n10\t30\n20\t30\n7\t7\n10\t20\n",
    ],
    ids=["tabs", "spaces", "commas", "crlf", "snap comments", "irregular", "csv header", "tsv header"],
)
@pytest.mark.parametrize("ending", ["txt", "txt.gz"])
def test_all_styles_of_edge_lists_give_the_same_edges(tmp_path, text, ending):
    path = tmp_path / f"edges.{ending}"
    path.write_bytes(gzip.compress(text.encode()) if ending.endswith("gz") else text.encode())
    assert edges_of(read_follower_graph(path)) == EDGES


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("10\t20\n10\t\n", "line 2: expected two ids, got '10'"),
        ("10\t20\n10\tx\n", "line 2: expected two ids, got '10\\tx'"),
        ("10\t20\n10\t20\t30\n", "line 2: expected two ids, got '10\\t20\\t30'"),
        ("10\t20\n10\tx\t20\n", "line 2: expected two ids, got '10\\tx\\t20'"),
        ("10\t20\na\tb\n", "line 2: expected two ids, got 'a\\tb'"),
        ("a\tb\nc\td\n10\t20\n", "line 2: expected two ids, got 'c\\td'"),
        ("10\t99999999999999999999\n", "line 1: expected two ids, got '10\\t99999999999999999999'"),
        ("1.5\t2\n", "line 1: expected two ids, got '1.5\\t2'"),
        ("", "expected lines `follower<TAB>followee`, found no edge"),
        ("# nothing\n", "expected lines `follower<TAB>followee`, found no edge"),
    ],
)
def test_the_error_for_an_invalid_line_has_its_number(tmp_path, text, problem):
    path = tmp_path / "edges.txt"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_follower_graph(path)
    assert str(caught.value) == f"{path}: {problem}"


def test_the_synthetic_graph_has_the_papers_sizes():
    for seed in range(20):
        graph = synthetic_follower_graph(
            stream("test", seed), topics=64, min_size=2, max_size=21, max_topics_per_client=4
        )
        assert len(set(graph.follower.tolist())) == 64
        size = np.unique(graph.follower, return_counts=True)[1] + 1
        assert (size.min(), size.max()) == (2, 21)
        assert len(set(edges_of(graph))) == len(graph.follower)
        assert (graph.follower != graph.followee).all()
        in_topics = np.unique(np.concatenate([np.unique(graph.follower), graph.followee]), return_counts=True)[1]
        assert (in_topics.min(), in_topics.max()) == (1, 4)
        assert 360 <= len(in_topics) <= 430


@pytest.mark.parametrize(("topics", "cap"), [(1, 1), (1, 4), (50, 1), (3000, 4)])
def test_synthetic_graph_respects_its_limits_at_any_size(topics, cap):
    limits = {"min_size": 2, "max_size": 30, "max_topics_per_client": cap}
    graph = synthetic_follower_graph(stream(topics, cap), topics=topics, **limits)
    followers = np.unique(graph.follower)
    assert len(followers) == topics
    assert np.unique(np.concatenate([followers, graph.followee]), return_counts=True)[1].max() <= cap
