"""Processes that are made to overlap: all of them reach a point before one of them goes on."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def meet(folder: Path, count: int) -> None:
    """Wait until ``count`` processes have called this function with the same folder."""
    folder.mkdir(exist_ok=True)
    (folder / str(os.getpid())).touch()
    deadline = time.monotonic() + 60
    while len(list(folder.iterdir())) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"expected {count} processes in {folder}")
        time.sleep(0.01)


def meeting_first_time(function: Callable[..., Any], folder: Path, count: int) -> Callable[..., Any]:
    """Return the function, which at the end of its first call waits for the other processes."""

    def call(*arguments: Any, **named: Any) -> Any:
        result = function(*arguments, **named)
        if not (folder / str(os.getpid())).exists():
            meet(folder, count)
        return result

    return call


def run_together(programs: Sequence[str], folder: Path) -> list[tuple[int, str, str]]:
    """Run Python programs at the same time in a folder; return exit codes, standard outputs and standard errors."""
    root = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for program in programs
    ]
    texts = [process.communicate() for process in processes]
    return [(process.returncode, *text) for process, text in zip(processes, texts, strict=True)]
