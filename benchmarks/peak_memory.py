"""The peak memory of a process with all that it starts, for benchmarks (Linux)."""

import os
import threading
import time
from pathlib import Path


class Watch:
    """The memory of this process and everything it started, looked at three times a second."""

    def __init__(self) -> None:
        self.peak = 0.0
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while True:
            self.peak = max(self.peak, resident(os.getpid()) / 2**30)
            time.sleep(0.3)

    def take(self) -> float:
        """Return the peak in GiB since the last time."""
        peak, self.peak = self.peak, 0.0
        return peak


def resident(root: int) -> int:
    """Return the bytes of memory that a process and its descendants have; what several share is counted once."""
    parent = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                parent[int(entry.name)] = int(Path(entry.path, "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it has ended
    waiting, total = [root], 0
    while waiting:
        process = waiting.pop()
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
        waiting += [child for child, above in parent.items() if above == process]
    return total
