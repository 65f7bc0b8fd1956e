"""Run commands of the project, and find every process that they leave behind."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

# The environment variable that marks a command and all processes that it starts.
MARK = "RELOCBENCH_CAMPAIGN_COMMAND"
# Seconds that the processes of a command may take to end after the command.
AFTERMATH_SECONDS = 3.0
# The longest output that is kept, in bytes.
MOST_OUTPUT = 1 << 20
# A shell that runs its arguments as a program, at most 3 GiB of memory each process, and exits as the program did.
SHIELD = ("sh", "-c", 'ulimit -d 3145728; "$@"; exit $?', "sh")
RELOCBENCH = (sys.executable, "-m", "relocbench")
# The marks of the commands that are running now.
_running: set[str] = set()


@dataclass(frozen=True)
class Finished:
    """A command that has ended.

    Attributes
    ----------
    code
        Its exit code, or the negative number of the signal that ended it.
    out, err
        What it printed; cut if long.
    printed
        How many bytes it printed.
    hung
        Whether it was killed at the limit.
    left
        A description of each process that was still running afterwards, and was then killed.
    seconds
        How long it took.
    """

    code: int
    out: str
    err: str
    printed: int
    hung: bool
    left: tuple[str, ...]
    seconds: float

    @property
    def last_line(self) -> str:
        """The last line that it printed as an error."""
        return (self.err.strip().splitlines() or [""])[-1][:300]


def run_command(
    arguments: Sequence[str],
    folder: Path,
    seconds: float,
    interfere: Callable[[int], None] | None = None,
    shielded: bool = False,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Finished:
    """Run a program in a session of its own, without input, and find what it leaves behind.

    Parameters
    ----------
    arguments
        The program and its arguments.
    folder
        The folder to run it in.
    seconds
        After this time it is killed.
    interfere
        Called with the number of the process when it has started.
    shielded
        Whether a shell stands between this process and the program, because the program may kill its parent or
        allocate without end.
    variables
        Further environment variables.

    Returns
    -------
    Finished
        What became of it.
    """
    mark = uuid.uuid4().hex
    _running.add(mark)
    begin = time.perf_counter()
    hung = False
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [*SHIELD, *arguments] if shielded else arguments,
            cwd=folder,
            stdin=subprocess.PIPE,  # never written to and never closed: whoever reads it waits for ever
            stdout=out,
            stderr=err,
            env=os.environ | dict(variables) | {MARK: mark},
            start_new_session=True,  # a method that kills the group of its parent must not reach the campaign
        )
        try:
            if interfere is not None:
                interfere(process.pid)
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            hung = True
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            elapsed = time.perf_counter() - begin
            left = _left_behind(mark)
            _running.discard(mark)
            if process.stdin is not None:
                process.stdin.close()
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read(MOST_OUTPUT).decode(errors="replace"))
        printed = os.fstat(out.fileno()).st_size + os.fstat(err.fileno()).st_size
    # A shell reports a program that was ended by signal n as the exit code 128 + n.
    code = 128 - process.returncode if shielded and process.returncode > 128 else process.returncode
    return Finished(code, texts[0], texts[1], printed, hung, () if hung else left, elapsed)


def kill_running() -> None:
    """Kill the processes of all commands that are running, because the campaign is interrupted."""
    for mark in list(_running):
        for pid in _marked(mark):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _left_behind(mark: str) -> tuple[str, ...]:
    """Wait until all marked processes have ended; kill those that have not, and describe them."""
    end = time.perf_counter() + AFTERMATH_SECONDS
    while (found := _marked(mark)) and time.perf_counter() < end:
        time.sleep(0.05)
    left = tuple(_description(pid) for pid in found)
    while found:
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
        found = _marked(mark)
    return left


def _marked(mark: str) -> list[int]:
    wanted, found = f"{MARK}={mark}".encode(), []
    for name in os.listdir("/proc"):
        # A process that has ended meanwhile, or one of another user.
        with contextlib.suppress(OSError):
            if name.isdecimal() and wanted in Path("/proc", name, "environ").read_bytes() and not _is_dead(name):
                found.append(int(name))
    return found


def _is_dead(process: str) -> bool:
    return Path("/proc", process, "stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] in "ZX"


def _description(pid: int) -> str:
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return b" ".join(words).decode(errors="replace").strip()[:80]
    return str(pid)
