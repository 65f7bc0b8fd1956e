"""The messages between the supervisor and a worker process, and the supervisor's record of them.

The supervisor sends jobs: a pickled :class:`Job` or :class:`Question`, preceded by its length in bytes. The worker
process answers with JSON arrays ``[run, kind, content]``, one per line, where ``run`` is the id of the job. During a
run it sends ``compiling``, ``loaded``, ``ready``, ``point`` and ``home``; at the end of the run it sends ``result``,
``description`` or ``failure``. Code of other people runs in the worker process, so every message may be forged or
damaged: nothing in it is executed, every field is checked, and homes are evaluated by the supervisor.
"""

import json
import math
import secrets
import struct
import time
from dataclasses import dataclass, field
from typing import Any, Literal

from relocbench.instances.errors import shown
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.compile_notice import print_notice
from relocbench.instances.solution import Progress
from relocbench.runs.isolation.process_tree import Usage
from relocbench.runs.methods import Selector
from relocbench.runs.outcome import Point

# The length that precedes a pickled job.
JOB_LENGTH = struct.Struct("<Q")
# The record of a run keeps at most this many progress points.
MAX_POINTS = 10_000
# Kinds of failures that a worker process may report.
FAILURES: tuple[Literal["refused", "claim", "raised", "memory"], ...] = ("refused", "claim", "raised", "memory")


def new_id() -> str:
    """Return an id for a run that no earlier process can know.

    Returns
    -------
    str
        Random hexadecimal digits.
    """
    return secrets.token_hex(8)


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
    run
        The id of the run.
    """

    instance: Instance
    selector: Selector
    seed: int
    time_limit: float
    log: bool
    output: str
    run: str = field(default_factory=new_id)


@dataclass(frozen=True)
class Question:
    """The question what a function of other people is; the worker process imports it to answer.

    Attributes
    ----------
    where
        ``module:function`` or ``file.py:function``, as in :class:`runs.methods.Method`.
    output, run
        As in :class:`Job`.
    """

    where: str
    output: str
    run: str = field(default_factory=new_id)


@dataclass(frozen=True)
class Answer:
    """The final message of a successful run, with every field checked.

    Attributes
    ----------
    home, bound, status, trace, facts
        As in :class:`instances.solution.Solution`.
    seconds, cpu, peak
        Wall-clock seconds of the method, CPU seconds of the process so far, and its peak memory in bytes.
    threads
        How many Python threads the process has at the end.
    """

    home: list[int]
    bound: float
    status: str
    trace: list[Point]
    facts: dict[str, float]
    seconds: float
    cpu: float
    peak: int
    threads: int


@dataclass(frozen=True)
class ReportedFailure:
    """The final message of a run that failed.

    Attributes
    ----------
    kind
        One of :data:`FAILURES`.
    message
        One line.
    cpu, peak, threads
        As in :class:`Answer`.
    """

    kind: Literal["refused", "claim", "raised", "memory"]
    message: str
    cpu: float
    peak: int
    threads: int


@dataclass
class RunRecord:
    """What a worker process has reported about its current run, and what the supervisor has measured.

    Attributes
    ----------
    run
        The id of the run.
    on_progress
        Called with every progress point.
    begin
        When the job was created, by :func:`time.perf_counter`.
    loaded_at, ready_at, ended_at
        When the method was imported, when it was compiled and its time limit began, and when the final message arrived;
        None before that.
    cpu_when_ready
        CPU seconds that the process had used when the time limit began.
    points
        Progress as (seconds, incumbent, bound).
    home
        The latest homes that the method has reported.
    answer
        The content of the final message; None before it has arrived. For a :class:`Question` it is a dict.
    invalid
        A description of a message that does not follow the protocol; None if there was none.
    usage
        The largest memory and CPU time seen so far.
    """

    run: str
    on_progress: Progress | None = None
    begin: float = field(default_factory=time.perf_counter)
    loaded_at: float | None = None
    ready_at: float | None = None
    ended_at: float | None = None
    cpu_when_ready: float = 0.0
    points: list[Point] = field(default_factory=list)
    home: list[int] | None = None
    answer: Answer | ReportedFailure | dict[str, Any] | None = None
    invalid: str | None = None
    usage: Usage = field(default_factory=Usage)

    def add(self, line: bytes, earliest: float = 0.0) -> None:
        """Add one message to the record.

        A message that does not follow the protocol sets ``invalid``, which ends the run. A message after the final one
        is among them: it shows that two processes have answered.

        Parameters
        ----------
        line
            The message, without its line break.
        earliest
            A moment at which the message had not arrived yet, by :func:`time.perf_counter`.
        """
        try:
            run, kind, content = json.loads(line)
            if run != self.run:
                self.invalid = "sent a message of another run"
            elif self.answer is not None:
                self.invalid = "answered twice"
            else:
                self._add(kind, content, earliest)
        except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError, AttributeError):
            self.invalid = f"sent an invalid message: {shown(line)}"

    def _add(self, kind: str, content: Any, earliest: float) -> None:
        now = time.perf_counter()
        # A busy supervisor reads messages late, sometimes several at once. All processes of a machine have one clock,
        # so the process says when it sent a message. It is believed only as far as the supervisor did not look.
        sent = now
        if isinstance(content, dict) and "clock" in content:
            clock = _number(content["clock"])
            # A process whose clock stands still or runs backwards is not believed at all.
            if self.ready_at is None or clock > self.ready_at:
                sent = min(max(clock, earliest), now)
        if kind == "compiling":
            print_notice()
        elif kind == "loaded" and self.loaded_at is None:
            self.loaded_at = now
        elif kind == "ready" and self.ready_at is None:
            self.ready_at, self.cpu_when_ready = sent, _amount(content["cpu"])
        elif kind == "home":
            self.home = _integers(content)
        elif kind == "point":
            self.points.append(_point(content))
            if len(self.points) > MAX_POINTS:
                del self.points[1::2]  # halve the resolution instead of losing the end of the trace
            if self.on_progress is not None:
                self.on_progress(*self.points[-1])
        else:
            self.answer = _final(kind, content)
            self.ended_at = sent


def _final(kind: str, content: Any) -> Answer | ReportedFailure | dict[str, Any]:
    if kind == "description":
        return dict(content)
    if kind == "failure":
        return ReportedFailure(
            kind=FAILURES[FAILURES.index(content["kind"])],
            message=_text(content["message"]),
            cpu=_amount(content["cpu"]),
            peak=int(_amount(content["peak"])),
            threads=int(_amount(content["threads"])),
        )
    if kind != "result":
        raise ValueError(kind)
    return Answer(
        home=_integers(content["home"]),
        bound=_number(content["bound"]),
        status=_text(content["status"]),
        trace=[_point(point) for point in content["trace"]],
        facts={_text(name): _number(value) for name, value in content["facts"].items()},
        seconds=_amount(content["seconds"]),
        cpu=_amount(content["cpu"]),
        peak=int(_amount(content["peak"])),
        threads=int(_amount(content["threads"])),
    )


def _point(content: Any) -> Point:
    seconds, incumbent, bound = content
    return _number(seconds), _number(incumbent), _number(bound)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return float(value)


def _amount(value: Any) -> float:
    if not 0 <= (amount := _number(value)) < math.inf:
        raise ValueError
    return amount


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _integers(values: Any) -> list[int]:
    if not isinstance(values, list) or any(type(value) is not int or abs(value) >= 2**63 for value in values):
        raise TypeError
    return values
