"""Run RELOC on Spark for 10⁴ to 10⁶ clients on 2 cores: seconds and peak memory of each stage, and exponents.

python benchmarks/spark_scale.py [FOLDER] [largest number of users]
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from peak_memory import Watch

from relocbench.instances.generators.paper_generator import PaperParameters
from relocbench.instances.kernels.random_streams import stream
from relocbench.spark.assign import RelocOptions
from relocbench.spark.pipeline import solve_field
from relocbench.spark.placement import read_field
from relocbench.spark.session import session
from relocbench.spark.topics_from_graph import Filters, arrange

# Users, servers, K. Servers and clusters grow with the users, so a cluster has about 20,000 clients. At the largest
# size a million topics remain after the filters.
SIZES = ((14_000, 16, 1), (140_000, 100, 6), (1_400_000, 1_024, 64))
# Mean number of followees of a client. With this value the arranged graph has about as many topics as clients.
FOLLOWEES = 5


def write_edges(path: Path, users: int) -> None:
    """Write a follower graph with a power law; every user follows somebody, popular users have more followers."""
    rng = stream("spark_scale", users)
    follows = 1 + rng.geometric(1.0 / FOLLOWEES, users).clip(max=20)
    follower = np.repeat(np.arange(users), follows)
    followee = (users * rng.random(len(follower)) ** 1.3).astype(np.int64)
    table = pa.table({"follower": follower, "followee": followee})
    options = pa_csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    pa_csv.write_csv(table, path, options)


def main() -> None:
    largest = int(float(sys.argv[2])) if len(sys.argv) > 2 else SIZES[-1][0]
    with (
        tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as name,
        session("local[2]", memory=3) as spark,
    ):
        folder, watch = Path(name), Watch()
        spark.range(100).mapInArrow(lambda batches: batches, "id bigint").count()  # starts the Python workers
        measured: dict[str, list[tuple[int, float]]] = {}
        for users, servers, k in SIZES:
            if users > largest:
                break
            here = folder / str(users)
            here.mkdir()
            write_edges(here / "edges.txt", users)
            watch.take()
            stages: dict[str, tuple[float, float]] = {}
            begin = time.perf_counter()
            found, _ = arrange(spark, str(here / "edges.txt"), here / "topics", Filters())
            stages["arrange"] = (time.perf_counter() - begin, watch.take())

            def note(stage: str, seconds: float, stages: dict[str, tuple[float, float]] = stages) -> None:
                stages[stage] = (seconds, watch.take())

            cost, _ = solve_field(
                spark,
                here / "topics",
                here / "out",
                "reloc",
                PaperParameters(servers=servers, sigma=10.0),
                RelocOptions(k=k),
                on_stage=note,
            )
            clients = read_field(here / "out" / "field").clients
            load = os.getloadavg()[0]
            sizes = f"{found['topics']:,} topics, {found['memberships']:,} memberships, {servers} servers, K = {k}"
            print(f"{clients:,} clients, {sizes}: Y = {cost['Y']:.4f} (load of the machine {load:.1f})")
            for stage, (seconds, peak) in stages.items():
                print(f"  {stage:12} {seconds:8.1f} s   {peak:6.2f} GiB", flush=True)
                measured.setdefault(stage, []).append((clients, seconds))
        for stage, points in measured.items():
            sizes, seconds = np.array(points).T
            print(f"{stage:12} exponents {np.round(np.diff(np.log(seconds)) / np.diff(np.log(sizes)), 2)}")
        print(json.dumps(measured))


if __name__ == "__main__":
    main()
