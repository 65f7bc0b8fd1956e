import errno
import json
import os
from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from relocbench.cli import app
from relocbench.instances.errors import InputError
from relocbench.instances.files.follower_graph import FollowerGraph
from relocbench.spark import edge_list as spark_edges
from relocbench.spark import topics_from_graph
from relocbench.spark.blocks import BLOCK_SCHEMA, pack
from relocbench.spark.dropped import described
from relocbench.spark.topic_filters import Filters, filtered_topics
from relocbench.spark.topics_from_graph import arrange


def reference(edges, min_size=2, max_size=21, max_topics_per_client=4):
    rows = {}
    for follower, followee in edges:
        if follower != followee:
            rows.setdefault(follower, set()).add(followee)
    topics, entered = [], Counter()
    for follower in sorted(rows):
        members = [follower, *sorted(rows[follower])]
        if not min_size <= len(members) <= max_size:
            continue
        if max_topics_per_client:
            members = [member for member in members if entered[member] < max_topics_per_client]
            entered.update(members)
        if len(members) >= min_size:
            topics.append((follower, members))
    return topics


def rows(frame_or_folder):
    if hasattr(frame_or_folder, "collect"):
        return sorted((row["topic"], list(row["members"])) for row in frame_or_folder.collect())
    table = pq.read_table(frame_or_folder)
    return sorted(zip(table["topic"].to_pylist(), table["members"].to_pylist(), strict=True))


def power_law(seed, edges=3000, users=300):
    rng = np.random.default_rng(seed)
    ends = (users * rng.random((edges, 2)) ** [1.5, 3]).astype(int)
    return [(a, b) for a, b in ends.tolist()]


def in_blocks(spark, edges, blocks, parts):
    """Pack edges in several batches, as tasks that read pieces of a file do."""
    ends = np.array(edges, np.int64).reshape(-1, 2)
    batches = [pack(blocks, part[:, 0].copy(), part[:, 1].copy()) for part in np.array_split(ends, parts)]
    records = [tuple(record.values()) for batch in batches for record in batch.to_pylist()]
    return spark.createDataFrame(records, BLOCK_SCHEMA)


ID = st.one_of(st.integers(0, 12), st.integers(-3, 3), st.sampled_from([2**31, 2**62, -(2**63)]))


@pytest.mark.slow
@settings(max_examples=6)
@given(
    st.lists(st.tuples(ID, ID), min_size=1, max_size=60),
    st.integers(1, 3),
    st.integers(3, 9),
    st.integers(0, 3),
    st.integers(1, 5),
)
def test_topics_equal_those_of_a_plain_loop(spark, edges, min_size, max_size, cap, blocks):
    filters = Filters(min_size=min_size, max_size=max_size, max_topics_per_client=cap)
    found = rows(filtered_topics(in_blocks(spark, edges, blocks, 3), filters, blocks))
    assert found == reference(edges, min_size, max_size, cap)


@pytest.mark.parametrize(("blocks", "parts", "partitions"), [(1, 1, 1), (5, 4, 3), (40, 9, 7)])
def test_topics_do_not_depend_on_blocks_or_partitions(spark, blocks, parts, partitions):
    edges = power_law(1)
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    try:
        found = rows(filtered_topics(in_blocks(spark, edges, blocks, parts), Filters(), blocks))
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    assert found == reference(edges)
    assert max(Counter(member for _, members in found for member in members).values()) == 4


def test_without_filters_topics_equal_the_rows_of_the_local_graph(spark):
    edges = power_law(2)
    no_filters = Filters(min_size=1, max_size=10**6, max_topics_per_client=0)
    found = rows(filtered_topics(in_blocks(spark, edges, 4, 3), no_filters, 4))
    follower, start, member = FollowerGraph(*np.array(edges).T.copy()).rows
    assert found == [(f, member[a:b].tolist()) for f, a, b in zip(follower, start[:-1], start[1:], strict=True)]


@pytest.fixture
def edge_file(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("# comment\n" + "".join(f"{a}\t{b}\n" for a, b in power_law(3)))
    return path


@pytest.mark.slow
def test_the_seed_determines_which_topics_are_drawn(spark, edge_file, tmp_path, monkeypatch):
    candidates = reference(power_law(3))
    drawn = {}
    for seed, piece in ((0, 1 << 20), (0, 700), (1, 700)):
        monkeypatch.setattr(spark_edges, "PIECE_BYTES", piece)
        out = tmp_path / f"{seed}-{piece}"
        record, existed = arrange(spark, str(edge_file), out, Filters(topics=20, seed=seed))
        assert (record["topics"], record["lines"], existed) == (20, 3000, False)
        drawn[seed, piece] = rows(out / "topics")
        assert [path.name for path in sorted(out.iterdir())] == ["made.json", "topics"]
    assert drawn[0, 1 << 20] == drawn[0, 700] != drawn[1, 700]
    assert all(topic in candidates for topic in drawn[0, 700])
    with pytest.raises(InputError, match=f"--topics: expected at most {len(candidates)}, "):
        arrange(spark, str(edge_file), tmp_path / "more", Filters(topics=len(candidates) + 1))


def test_the_command_runs_once_and_refuses_a_folder_of_other_options(spark, edge_file, tmp_path):
    command = ["spark", "arrange", str(edge_file), "--out", str(tmp_path / "out")]
    first = CliRunner().invoke(app, [*command, "--json"], catch_exceptions=False)
    record = json.loads(first.output)
    assert rows(tmp_path / "out" / "topics") == reference(power_law(3))
    assert record["memberships"] == sum(len(members) for _, members in reference(power_law(3)))
    assert "(written earlier)" in CliRunner().invoke(app, command, catch_exceptions=False).output
    with pytest.raises(InputError, match="out: was written with max_size 21: choose another folder"):
        CliRunner().invoke(app, [*command, "--max-size", "9"], catch_exceptions=False)


def test_bad_lines_are_counted_and_too_many_are_refused(spark, edge_file, tmp_path):
    with edge_file.open("a") as file:
        file.write("7 seven\n" * 20)
    record, _ = arrange(spark, str(edge_file), tmp_path / "few", Filters())
    assert (record["lines"], record["bad_lines"], record["bad_example"]) == (3020, 20, "'7 seven'")
    assert rows(tmp_path / "few" / "topics") == reference(power_law(3))
    with pytest.raises(InputError, match="20 of 3,020 are not, such as '7 seven'"):
        arrange(spark, str(edge_file), tmp_path / "none", Filters(), max_bad=0.005)
    assert not (tmp_path / "none" / "topics").exists()


def test_a_third_column_is_refused_by_name(spark, tmp_path):
    (tmp_path / "roles.txt").write_text("follower\tfollowee\trole\n1\t2\tpublish\n1\t3\tboth\n")
    with pytest.raises(InputError, match=r"2 of 2 are not, such as '1.*; with --roles a third column is a role"):
        arrange(spark, str(tmp_path / "roles.txt"), tmp_path / "out", Filters())


def test_an_error_of_a_task_is_one_line(spark, tmp_path):
    (tmp_path / "edges.gz").write_bytes(b"no such format")
    command = ["spark", "arrange", str(tmp_path / "edges.gz"), "--out", str(tmp_path / "out")]
    with pytest.raises(InputError, match=r"edges.gz: cannot be read \(Not a gzipped file"):
        CliRunner().invoke(app, command, catch_exceptions=False)


def test_every_membership_that_a_filter_drops_is_counted(spark, tmp_path):
    # Follower 1 repeats an edge and follows itself; 2 has five members; 3 to 6 follow 9, which may be in two topics.
    edges = [(1, 2), (1, 2), (1, 1), *((2, n) for n in (11, 12, 13, 14)), *((n, 9) for n in (3, 4, 5, 6))]
    (tmp_path / "edges").write_text("".join(f"{a} {b}\n" for a, b in edges))
    filters = Filters(max_size=4, max_topics_per_client=2, topics=1)
    record, _ = arrange(spark, str(tmp_path / "edges"), tmp_path / "out", filters)
    assert (record["followers"], record["memberships"]) == (6, 2)
    assert record["dropped"] == {
        "repeated": {"memberships": 2},
        "too_small": {"topics": 0, "memberships": 0},
        "too_large": {"topics": 1, "memberships": 5},
        "over_limit": {"memberships": 2},
        "left_too_small": {"topics": 2, "memberships": 2},
        "not_drawn": {"topics": 2, "memberships": 4},
    }
    lines = described(record)
    assert lines[0].startswith("11 edges, 9 without repetitions and self-follows: 15 memberships, with 6 followers")
    assert [line.split()[1] for line in lines[1:]] == ["5", "2", "2", "4"]


def test_a_moved_edge_list_is_recognised_and_a_changed_one_is_not(spark, edge_file, tmp_path):
    arrange(spark, str(edge_file), tmp_path / "out", Filters())
    (tmp_path / "moved").mkdir()
    elsewhere = edge_file.rename(tmp_path / "moved" / "renamed.txt")
    out = (tmp_path / "out").rename(tmp_path / "moved" / "out")
    assert str(tmp_path) not in (out / "made.json").read_text()
    assert arrange(spark, str(elsewhere), out, Filters())[1]
    record = json.loads((out / "made.json").read_text())
    old = {name: value for name, value in record["asked"].items() if name != "modified"} | {"paths": [str(elsewhere)]}
    (out / "made.json").write_text(json.dumps(record | {"asked": old}))  # as earlier versions wrote it
    assert arrange(spark, str(elsewhere), out, Filters())[1]
    (out / "made.json").write_text(json.dumps(record))
    os.utime(elsewhere, (1, 1))
    with pytest.raises(InputError, match="out: was written with modified"):
        arrange(spark, str(elsewhere), out, Filters())


def test_what_cannot_be_arranged_is_refused_in_one_line(spark, edge_file, tmp_path):
    def refusal(source, out):
        with pytest.raises(InputError) as found:
            CliRunner().invoke(app, ["spark", "arrange", str(source), "--out", str(out)], catch_exceptions=False)
        return str(found.value)

    (tmp_path / "empty").touch()
    assert "empty: expected lines `follower<TAB>followee`, got an empty file" in refusal(
        tmp_path / "empty", tmp_path / "o"
    )
    assert "edges.txt: expected a folder to write to, got a file" in refusal(edge_file, edge_file)
    assert "below: " in refusal(edge_file, edge_file / "below")
    assert not (tmp_path / "o").exists()


def test_a_full_disk_is_one_line_and_leaves_nothing(spark, edge_file, tmp_path, monkeypatch):
    def full(texts, roles):
        raise OSError(errno.ENOSPC, "No space left on device")
        yield texts

    monkeypatch.setattr(topics_from_graph, "read_pieces", full)
    with pytest.raises(InputError, match=r"^a disk is full \(No space left on device\): free space"):
        CliRunner().invoke(
            app, ["spark", "arrange", str(edge_file), "--out", str(tmp_path / "out")], catch_exceptions=False
        )
    assert not (tmp_path / "out").exists()


def test_undirected_edges_make_topics_of_all_friends(spark, edge_file, tmp_path):
    both = [*power_law(3), *((b, a) for a, b in power_law(3))]
    arrange(spark, str(edge_file), tmp_path / "out", Filters(undirected=True))
    assert rows(tmp_path / "out" / "topics") == reference(both)
    with pytest.raises(InputError, match="out: was written with undirected True: choose another folder"):
        arrange(spark, str(edge_file), tmp_path / "out", Filters())
