"""Runs toulbar2 in a separate process, and converts its output to events."""

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

# toulbar2 prints a message whenever it doubles its trail, the stack of changes to undo. Its propagation occasionally
# does not terminate (seen with knapsack constraints), and then the trail grows without limit. Normal searches stay far
# below this size.
MOST_TRAIL_BYTES = 1 << 28


class StuckError(Exception):
    """toulbar2 ended without a result, or its propagation does not terminate."""


@dataclass(frozen=True)
class Event:
    """A message from toulbar2.

    Attributes
    ----------
    bound
        A lower bound on the cost of the network, if the message contains one.
    values
        The values of the variables in a solution, if the message contains one.
    finished
        Whether the search is complete. Then ``values`` is a minimum, or None if no solution is below the limit.
    nodes
        The number of search nodes, if the search is complete.
    """

    bound: int | None = None
    values: list[int] | None = None
    finished: bool = False
    nodes: int = 0


def search(task: dict[str, Any], deadline: float, log: bool) -> Iterator[Event]:
    """Minimise a network until the search is complete or the deadline is reached.

    Parameters
    ----------
    task
        The network and the options, as :mod:`formulations.cfn.worker` reads them.
    deadline
        The time limit, as a value of ``time.perf_counter``.
    log
        Whether to print the output of toulbar2.

    Yields
    ------
    Event
        The solutions and lower bounds. The last event is ``finished``, unless the deadline was reached.

    Raises
    ------
    StuckError
        If toulbar2 ends without a result, or its propagation does not terminate.
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
        threading.Thread(target=_send_task, args=(process, task), daemon=True),
        threading.Thread(target=_read_lines, args=(process, lines), daemon=True),
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


def _send_task(process: "subprocess.Popen[bytes]", task: dict[str, Any]) -> None:
    assert process.stdin is not None
    try:
        with process.stdin:
            pickle.dump(task, process.stdin)
    except BrokenPipeError:
        pass  # the process was stopped before it had read the whole task


def _read_lines(process: "subprocess.Popen[bytes]", lines: "queue.Queue[str | None]") -> None:
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            lines.put(line.decode(errors="replace").strip())
    lines.put(None)


def _events(lines: "queue.Queue[str | None]", deadline: float, log: bool) -> Iterator[Event]:
    """Convert the output lines of the worker to events; None marks the end of the output."""
    values_next = False
    while True:
        try:
            line = lines.get(timeout=max(0.0, deadline - time.perf_counter()))
        except queue.Empty:
            return
        if line is None:
            raise StuckError("toulbar2 ended without a result")
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
            raise StuckError("the propagation of toulbar2 does not terminate")
