"""The messages between the supervisor and a worker process, and the supervisor's record of them.

The supervisor sends jobs. A job is a pickled :class:`Job`, preceded by its length in bytes. The worker process answers
with JSON arrays ``[kind, content]``, one per line. During a run it sends ``ready``, ``point`` and ``home``; at the end
of the run it sends either ``result`` or ``failure``.
"""

import json
import struct
import time
from dataclasses import dataclass, field
from typing import Any

from relocbench.instances.errors import shown
from relocbench.instances.instance import Instance
from relocbench.instances.solution import Progress
from relocbench.runs.isolation.usage import Usage
from relocbench.runs.outcome import Point
from relocbench.runs.selectors import Selector

# The length that precedes a pickled job.
JOB_LENGTH = struct.Struct("<Q")
# The record of a run keeps at most this many progress points.
MAX_POINTS = 10_000
# What the two final messages must contain.
REQUIRED_FIELDS = {
    "failure": ("kind", "message"),
    "result": ("home", "bound", "status", "trace", "facts", "seconds"),
}


@dataclass(frozen=True, eq=False)
class Job:
    """One run, as it is sent to the worker process.

    Attributes
    ----------
    instance, selector, seed, time_limit
        What to run.
    log
        Whether the solver may print its log.
    output
        The file to which everything that the process prints is appended.
    """

    instance: Instance
    selector: Selector
    seed: int
    time_limit: float
    log: bool
    output: str


@dataclass
class RunRecord:
    """What a worker process has reported about its current run, and what the supervisor has measured.

    Attributes
    ----------
    on_progress
        Called with every progress point.
    begin
        When the job was created, by :func:`time.perf_counter`.
    ready_at
        When the method was loaded and compiled and its time limit began; None before that.
    cpu_when_ready
        CPU seconds that the process had used at that moment.
    points
        Progress as (seconds, incumbent, bound).
    home
        The latest homes that the method has reported.
    answer
        The content of the final message; None before it has arrived.
    failed
        Whether the final message is a failure.
    invalid
        A description of a message that does not follow the protocol; None if there was none.
    usage
        The largest memory and CPU time seen so far.
    """

    on_progress: Progress | None
    begin: float = field(default_factory=time.perf_counter)
    ready_at: float | None = None
    cpu_when_ready: float = 0.0
    points: list[Point] = field(default_factory=list)
    home: list[int] | None = None
    answer: dict[str, Any] | None = None
    failed: bool = False
    invalid: str | None = None
    usage: Usage = field(default_factory=Usage)

    def add(self, line: bytes) -> None:
        """Add one message to the record.

        A method can find the socket and write to it. A message that does not follow the protocol is therefore possible;
        it sets ``invalid``, which ends the run.

        Parameters
        ----------
        line
            The message, without its line break.
        """
        try:
            self._add(*json.loads(line))
        except (ValueError, TypeError, KeyError, IndexError):
            self.invalid = f"sent an invalid message: {shown(line)}"

    def _add(self, kind: str, content: Any) -> None:
        if kind == "ready":
            self.ready_at, self.cpu_when_ready = time.perf_counter(), float(content)
        elif kind == "home":
            self.home = content
        elif kind == "point":
            self.points.append((float(content[0]), float(content[1]), float(content[2])))
            if len(self.points) > MAX_POINTS:
                del self.points[1::2]  # halve the resolution instead of losing the end of the trace
            if self.on_progress is not None:
                self.on_progress(*self.points[-1])
        else:
            self.answer = dict(content) | {name: content[name] for name in REQUIRED_FIELDS[kind]}
            self.failed = kind == "failure"
