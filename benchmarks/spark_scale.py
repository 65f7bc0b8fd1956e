"""Compare RELOC on Spark with the local method, for 10⁴ to 10⁷ clients: seconds, processor seconds and peak memory.

python benchmarks/spark_scale.py [--folder FOLDER] [--largest USERS] [--smallest USERS] [--local-limit GIB] [--place 2]

Every run is a process of its own: Spark on two cores, Spark on one, and the local method, or those that --place names.
Seconds mean something on an idle machine only; processor seconds are less sensitive. With --local-limit the local
method gets no more address space than that, to show the size from which on it fails.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from peak_memory import Watch

from relocbench.heuristics import reloc
from relocbench.heuristics.readings import READINGS
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.paper_generator import PaperParameters
from relocbench.instances.kernels.random_streams import stream
from relocbench.spark.assign import RelocOptions
from relocbench.spark.compare_local import read_local
from relocbench.spark.pipeline import solve_field
from relocbench.spark.placement import read_field
from relocbench.spark.session import session
from relocbench.spark.topic_filters import Filters
from relocbench.spark.topics_from_graph import arrange

# Users, servers, K. Servers and clusters grow with the users, so a cluster has about 20,000 clients. At the size before
# the last a million topics remain after the filters.
SIZES = ((14_000, 16, 1), (140_000, 100, 6), (1_400_000, 1_024, 64), (10_000_000, 7_225, 450))
# Mean number of followees of a client. With this value the arranged graph has about as many topics as clients.
FOLLOWEES = 5
# Spark on two cores and on one, and the local method, which reads the instance that Spark on two cores has made.
PLACES = ("2", "1", "local")
READING_OF = {"exact": READINGS["prose"], "svd": READINGS["pseudocode"]}
GIB = 1 << 30


def write_edges(path: Path, users: int) -> None:
    """Write a follower graph with a power law; every user follows somebody, popular users have more followers."""
    rng = stream("spark_scale", users)
    follows = 1 + rng.geometric(1.0 / FOLLOWEES, users).clip(max=20)
    follower = np.repeat(np.arange(users), follows)
    followee = (users * rng.random(len(follower)) ** 1.3).astype(np.int64)
    table = pa.table({"follower": follower, "followee": followee})
    options = pa_csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    pa_csv.write_csv(table, path, options)


def run_on_spark(folder: Path, relation: str, cores: int, servers: int, k: int) -> dict[str, Any]:
    """Arrange topics and run RELOC on Spark. Return the cost and the seconds of each stage."""
    out = folder / f"{relation}-{cores}"
    stages: dict[str, float] = {}
    with session(f"local[{cores}]", memory=2) as spark:
        begin = time.perf_counter()
        arrange(spark, str(folder / "edges.txt"), folder / f"topics-{cores}", Filters())
        stages["arrange"] = time.perf_counter() - begin
        cost, _ = solve_field(
            spark,
            folder / f"topics-{cores}",
            out,
            "reloc",
            PaperParameters(servers=servers, sigma=10.0),
            RelocOptions(k=k, **vars(READING_OF[relation])),
            on_stage=stages.__setitem__,
        )
    return {"clients": read_field(out / "field").clients, "Y": cost["Y"], "stages": stages}


def run_locally(folder: Path, relation: str, k: int, limit: float | None) -> dict[str, Any]:
    """Run the local method on the instance that Spark made."""
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_AS, (int(limit * GIB), int(limit * GIB)))
    begin = time.perf_counter()
    instance, _ = read_local(folder / f"{relation}-2")
    read = time.perf_counter() - begin
    found = reloc.solve(instance, seed=0, time_limit=0.0, k=k, **vars(READING_OF[relation]))
    cost = evaluate(instance, found.home)
    stages = {"read": read, "solve": time.perf_counter() - begin - read}
    return {"clients": instance.n_clients, "Y": cost.values()["Y"], "stages": stages}


def measure(*arguments: str) -> dict[str, Any]:
    """Run this file in another process, and add its seconds, processor seconds and peak memory to its result."""
    watch, begin = Watch(), time.perf_counter()
    process = subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    text = process.stdout.read()
    # The usage includes the processes that this one has waited for: Java and its Python workers.
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    result = json.loads(text.strip().splitlines()[-1]) if process.returncode == 0 else {"failed": process.returncode}
    measured = {"seconds": time.perf_counter() - begin, "processor": usage.ru_utime + usage.ru_stime}
    return result | measured | {"GiB": watch.take(), "GiB of the largest process": usage.ru_maxrss * 1024 / GIB}


def main() -> None:
    """Measure every size, relation and number of cores, or run one of them in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--smallest", type=float, default=0)
    parser.add_argument("--largest", type=float, default=1_400_000)
    parser.add_argument("--relation", choices=READING_OF, action="append")
    parser.add_argument("--place", choices=PLACES, action="append", help="only these; the local method needs 2")
    parser.add_argument("--local-limit", type=float, help="GiB of address space of the local method")
    parser.add_argument("--run", nargs=2, metavar=("PLACE", "USERS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        place, users = given.run[0], int(given.run[1])
        servers, k = next((servers, k) for size, servers, k in SIZES if size == users)
        if place == "local":
            result = run_locally(given.folder, given.relation[0], k, given.local_limit)
        else:
            result = run_on_spark(given.folder, given.relation[0], int(place), servers, k)
        print(json.dumps(result))
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        for users, _, _ in SIZES:
            if not given.smallest <= users <= given.largest:
                continue
            here = Path(name) / str(users)
            here.mkdir()
            write_edges(here / "edges.txt", users)
            for relation in given.relation or READING_OF:
                found = {}
                for place in given.place or PLACES:
                    arguments = ["--folder", str(here), "--relation", relation, "--run", place, str(users)]
                    if place == "local" and given.local_limit:
                        arguments += ["--local-limit", str(given.local_limit)]
                    found[place] = measure(*arguments)
                    print(
                        users, relation, place, json.dumps(found[place]), f"load {os.getloadavg()[0]:.1f}", flush=True
                    )
                report(found)


def report(found: dict[str, dict[str, Any]]) -> None:
    """Print the ratios of Spark on two cores to the local method, and the efficiency of the second core."""
    if any("failed" in result for result in found.values()) or len(found) < len(PLACES):
        return
    two, one, local = found["2"], found["1"], found["local"]
    ratios = {name: two[name] / local[name] for name in ("seconds", "processor", "GiB")}
    print("  Spark on two cores / local:", ", ".join(f"{name} {ratio:.1f}" for name, ratio in ratios.items()))
    # Both read an instance that exists, find homes and evaluate them.
    homes = two["stages"]["homes"] + two["stages"]["evaluation"]
    print(f"  homes and evaluation / local: {homes / sum(local['stages'].values()):.1f}")
    efficiency = {stage: one["stages"][stage] / (2 * seconds) for stage, seconds in two["stages"].items()}
    print("  efficiency of two cores:", ", ".join(f"{stage} {share:.2f}" for stage, share in efficiency.items()))


if __name__ == "__main__":
    main()
