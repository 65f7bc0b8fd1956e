"""Nothing outlives the process that started it, however that ends: a small process sees to it.

A thread could not: a solver may hold Python's lock for minutes. Nor could the system's signal at a parent's death,
which does not reach the children of solvers. Imports nothing large, as it runs first.
"""

import os
import select
import signal


def guard(lifeline: int, channel: int) -> None:
    """Leave a process behind that kills this group as soon as nobody holds the other end of the lifeline."""
    if os.fork():
        os.close(lifeline)
        return
    os.close(channel)  # or its end would not be noticed
    cut = select.poll()
    cut.register(lifeline, 0)  # a hang-up is always told
    cut.poll()
    os.killpg(0, signal.SIGKILL)
