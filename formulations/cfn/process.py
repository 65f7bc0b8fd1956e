"""toulbar2 in a process of its own, and what it prints as events."""

import os
import pickle
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# toulbar2 announces each doubling of its trail. Now and then its propagation runs in circles (seen with knapsack rows)
# and the trail grows without end; honest searches of problems within reach stay far below this.
MOST_TRAIL_BYTES = 1 << 28


class StuckError(Exception):
    """toulbar2 has ended without an answer, or would never end."""


@dataclass(frozen=True)
class Event:
    """What is known now.

    Attributes
    ----------
    bound
        No assignment of the network is below this.
    values
        An assignment that was found, if that is what happened.
    finished
        Whether the search is over: then ``values`` is a minimum, or there is nothing below the limit.
    nodes
        Search nodes, when finished.
    """

    bound: int | None = None
    values: list[int] | None = None
    finished: bool = False
    nodes: int = 0


def search(task: dict[str, Any], deadline: float, log: bool) -> Iterator[Event]:
    """Minimise a network until it is done or the deadline has come.

    Parameters
    ----------
    task
        As :mod:`formulations.cfn.worker` reads it.
    deadline
        By ``time.perf_counter``.
    log
        Whether to print what toulbar2 prints.

    Raises
    ------
    StuckError
        If toulbar2 cannot cope.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "relocbench.formulations.cfn.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None if log else subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path or os.curdir for path in sys.path)},
    )
    lines: queue.Queue[str | None] = queue.Queue()
    threads = [
        threading.Thread(target=_feed, args=(process, task), daemon=True),
        threading.Thread(target=_read, args=(process, lines), daemon=True),
    ]
    try:
        for thread in threads:
            thread.start()
        yield from _events(lines, deadline, log)
    finally:
        process.kill()
        process.wait()
        for thread in threads:
            thread.join()


def _feed(process: "subprocess.Popen[bytes]", task: dict[str, Any]) -> None:
    assert process.stdin is not None
    try:
        with process.stdin:
            pickle.dump(task, process.stdin)
    except BrokenPipeError:
        pass  # it was stopped before it had read all


def _read(process: "subprocess.Popen[bytes]", lines: "queue.Queue[str | None]") -> None:
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            lines.put(line.decode(errors="replace").strip())
    lines.put(None)


def _events(lines: "queue.Queue[str | None]", deadline: float, log: bool) -> Iterator[Event]:
    values_next = False
    while True:
        try:
            line = lines.get(timeout=max(0.0, deadline - time.perf_counter()))
        except queue.Empty:
            return
        if line is None:
            raise StuckError("toulbar2 ended without an answer")
        if line.startswith("finished "):
            nodes, bound, *values = map(int, line.split()[1:])
            yield Event(bound if values else None, values or None, finished=True, nodes=nodes)
            return
        if log:
            print(line, flush=True)
        if values_next and line:
            values_next = False
            yield Event(values=list(map(int, line.split())))
        elif line.startswith("New solution:"):
            values_next = True
        elif match := re.match(r"Optimality gap: \[(\d+), \d+\]", line):
            yield Event(bound=int(match[1]))
        elif (match := re.match(r"c (\d+) Bytes allocated", line)) and int(match[1]) > MOST_TRAIL_BYTES:
            raise StuckError("toulbar2 runs in circles")
