"""What a stage of a pipeline uses: wall-clock time, processor time and memory."""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from relocbench.runs.isolation.process_tree import Usage, all_of, usage_of

Result = TypeVar("Result")
OnStage = Callable[[str, float], None]
# Key of a record under which the uses of its stages are stored.
STAGES_KEY = "stages"
# Seconds between two samples of the memory.
SAMPLING_INTERVAL = 0.5


@dataclass(frozen=True)
class StageUse:
    """What one stage used on the machine of the driver.

    Attributes
    ----------
    seconds
        Wall-clock time.
    cpu_seconds
        Processor time of this process, of Java and of the Python workers.
    memory_mib
        The largest sum of their resident memory, in MiB. Memory that processes share counts for each of them.
    """

    seconds: float
    cpu_seconds: float
    memory_mib: float


class Stages:
    """Runs stages and notes what each one used.

    Parameters
    ----------
    on_stage
        Called with the name and the seconds of each stage when it has ended.
    """

    def __init__(self, on_stage: OnStage | None = None) -> None:
        self._on_stage = on_stage

    def run(self, name: str, work: Callable[[], Result]) -> tuple[Result, dict[str, Any]]:
        """Run a stage.

        Parameters
        ----------
        name
            The name of the stage.
        work
            The stage.

        Returns
        -------
        result
            What the stage returned.
        noted
            The use, by the name of the stage, for a record.
        """
        begin, before, peak = time.perf_counter(), _present(), [0]
        ended = threading.Event()

        def sample() -> None:
            while True:
                peak[0] = max(peak[0], _present().memory)
                if ended.wait(SAMPLING_INTERVAL):
                    return

        sampler = threading.Thread(target=sample, daemon=True)
        sampler.start()
        try:
            result = work()
        finally:
            ended.set()
            sampler.join()
        seconds = time.perf_counter() - begin
        if self._on_stage is not None:
            self._on_stage(name, seconds)
        cpu = max(0.0, _present().cpu - before.cpu)
        use = StageUse(round(seconds, 3), round(cpu, 3), round(peak[0] / 2**20, 1))
        return result, {name: asdict(use)}


def _present() -> Usage:
    return usage_of(all_of(os.getpid()))
