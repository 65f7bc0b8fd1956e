"""Compare `spark arrange` with polars and duckdb on the same edge list: seconds, ratio, peak memory.

python benchmarks/spark_arrange.py [millions of edges] [FOLDER]

Each program reads the text, drops repeated edges and self-follows, groups by follower, keeps topics of 2 to 21 members
and writes Parquet. The results are compared. Spark also runs with a limit of four topics per client, which the others
do not have. The start of the session is not counted. polars and duckdb are not dependencies of the project; without
them only Spark runs.
"""

import importlib.util
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from peak_memory import Watch

from relocbench.instances.kernels.random_streams import stream
from relocbench.spark.session import session
from relocbench.spark.topic_filters import Filters
from relocbench.spark.topics_from_graph import arrange

CHUNK = 5_000_000
REPEATS = 2


def write_edges(path: Path, millions: int) -> None:
    """Write ten edges per user, with a power law for followers and followees."""
    users = millions * 100_000
    rng = stream("spark_arrange", millions)
    options = pa_csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    schema = pa.schema([("follower", pa.int64()), ("followee", pa.int64())])
    with pa_csv.CSVWriter(path, schema, write_options=options) as writer:
        for low in range(0, millions * 1_000_000, CHUNK):
            count = min(CHUNK, millions * 1_000_000 - low)
            ends = [(users * rng.random(count) ** power).astype(np.int64) for power in (2, 3)]
            writer.write_table(pa.table(ends, schema=schema))


def with_polars(edges: Path, out: Path) -> None:
    import polars as pl

    (
        pl.scan_csv(edges, separator="\t", has_header=False, new_columns=["follower", "followee"])
        .filter(pl.col("follower") != pl.col("followee"))
        .unique()
        .group_by("follower")
        .agg(pl.col("followee").sort())
        .filter(pl.col("followee").list.len().is_between(1, 20))
        .sink_parquet(out)
    )


def with_duckdb(edges: Path, out: Path) -> None:
    import duckdb

    duckdb.sql(f"""
        COPY (
            SELECT follower, list(followee ORDER BY followee) AS followee
            FROM (SELECT DISTINCT column0 AS follower, column1 AS followee
                  FROM read_csv('{edges}', delim = '\t', header = false) WHERE column0 <> column1)
            GROUP BY follower HAVING count(*) BETWEEN 1 AND 20
        ) TO '{out}' (FORMAT parquet)""")


def answer(path: Path, column: str) -> tuple[int, int, int]:
    """Return the number of topics, the number of followees, and the sum of their ids."""
    lists = pq.read_table(path, columns=[column])[column].combine_chunks()
    lists = lists if isinstance(lists, pa.Array) else pa.concat_arrays(lists.chunks)
    flat = lists.flatten().to_numpy(zero_copy_only=False)
    return len(lists), len(flat), int(flat.sum())


def measured(name: str, work: Callable[[Path], None], folder: Path, watch: Watch) -> tuple[float, float]:
    """Return the best time of several runs and their peak memory."""
    seconds, watch.peak = [], 0.0
    for number in range(REPEATS):
        begin = time.perf_counter()
        work(folder / f"{name}-{number}")
        seconds.append(time.perf_counter() - begin)
    return min(seconds), watch.take()


def main() -> None:
    millions = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    watch, rows = Watch(), {}
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as name:
        folder = Path(name)
        edges = folder / "edges.txt"
        write_edges(edges, millions)
        print(
            f"{millions} million edges, {edges.stat().st_size / 1e6:.0f} MB, load {os.getloadavg()[0]:.1f}", flush=True
        )
        with session("local[2]", memory=1.5) as spark:
            spark.range(100).mapInArrow(lambda batches: batches, "id bigint").count()  # starts the Python workers
            for label, cap in (("spark", 0), ("spark, 4 per client", 4)):
                filters = Filters(max_topics_per_client=cap)
                rows[label] = measured(
                    label, lambda out, filters=filters: arrange(spark, str(edges), out, filters), folder, watch
                )
        for other, work in (("polars", with_polars), ("duckdb", with_duckdb)):
            if importlib.util.find_spec(other) is None:
                print(f"{other} is not installed")
                continue
            rows[other] = measured(other, lambda out, work=work: work(edges, out), folder, watch)
        answers = {other: answer(folder / f"{other}-0", "followee") for other in rows if not other.startswith("spark")}
        topics, members, total = answer(folder / "spark-0" / "topics", "members")
        followers = int(pq.read_table(folder / "spark-0" / "topics", columns=["topic"])["topic"].to_numpy().sum())
        answers["spark"] = (topics, members - topics, total - followers)
        assert len(set(answers.values())) == 1, answers
    fastest = min((seconds for label, (seconds, _) in rows.items() if not label.startswith("spark")), default=None)
    for label, (seconds, peak) in rows.items():
        ratio = "" if fastest is None else f"{seconds / fastest:6.2f} ×"
        print(f"{label:20} {seconds:7.1f} s {ratio}   {peak:5.2f} GiB")
    print(f"the same {answers['spark'][0]:,} topics from all of {', '.join(answers)}; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
