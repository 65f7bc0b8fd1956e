"""Peak memory of a process and all its descendants, for benchmarks on Linux."""

import os
import threading
import time
from pathlib import Path


class Watch:
    """Samples the memory of this process and its descendants every two seconds.

    Reading the memory of a Java process of some GiB takes a tenth of a second, and the process waits meanwhile.
    """

    def __init__(self) -> None:
        self.peak = 0.0
        threading.Thread(target=self._sample, daemon=True).start()

    def _sample(self) -> None:
        while True:
            self.peak = max(self.peak, resident(os.getpid()) / 2**30)
            time.sleep(2.0)

    def take(self) -> float:
        """Return the peak in GiB since the last call."""
        peak, self.peak = self.peak, 0.0
        return peak


def resident(root: int) -> int:
    """Return the resident bytes of a process and its descendants; shared memory is counted once."""
    parent = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                parent[int(entry.name)] = int(Path(entry.path, "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # the process has ended
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
