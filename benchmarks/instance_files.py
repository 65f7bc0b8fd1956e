"""Measure the time to generate, validate, write and read instances, from the paper's size to 10⁶ memberships.

python benchmarks/instance_files.py
"""

import dataclasses
import resource
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.incremental_state import State
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import read_instance, write_instance
from relocbench.instances.nearest_server import nearest_server


def seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> None:
    columns = ("memberships", "servers", "generate", "validate", "nearest", "evaluate", "state", "json", "parquet")
    print(" ".join(f"{name:>11}" for name in columns), "  (seconds; json and parquet: write and read)")
    with tempfile.TemporaryDirectory() as folder:
        for topics, servers in ((64, 16), (64, 16), (1_050, 64), (10_500, 256), (105_000, 1024)):
            cell = FAMILIES["paper"].cells({"sigma": 10, "topics": topics, "servers": servers})[0]
            generating = seconds(partial(cell.build, 0))
            instance = cell.build(0)
            content = {spec.name: getattr(instance, spec.name) for spec in dataclasses.fields(instance)}

            def through(ending: str, written: Instance = instance) -> float:
                path = Path(folder) / f"instance.{ending}"
                return seconds(lambda: (write_instance(written, path), read_instance(path)))

            home = nearest_server(instance)
            times = (
                generating,
                seconds(partial(Instance, **content)),
                seconds(partial(nearest_server, instance)),
                seconds(partial(evaluate, instance, home)),
                seconds(partial(State, instance, home)),
                through("json"),
                through("parquet"),
            )
            shown = " ".join(f"{value:11.4f}" for value in times)
            print(f"{len(instance.members.item):11,} {servers:11,} {shown}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
