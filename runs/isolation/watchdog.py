"""A small process that kills a worker process and its children when the supervisor has ended.

A thread of the worker could not do this, because a solver may hold Python's global lock for minutes. The signal that
Linux can send at the death of a parent could not do it either, because it does not reach the children of a solver. This
module imports nothing large, because it is the first thing that the process runs.
"""

import os
import select
import signal


def start_watchdog(parent_pipe: int, channel: int) -> None:
    """Fork a process that kills this process group when the supervisor has ended.

    Parameters
    ----------
    parent_pipe
        File descriptor of the reading end of a pipe. Only the supervisor holds the writing end, so the pipe is closed
        as soon as the supervisor ends, for whatever reason.
    channel
        File descriptor of the worker's socket. The watchdog closes its copy, because otherwise the supervisor would not
        notice when the worker closes the socket.
    """
    if os.fork():
        os.close(parent_pipe)
        return
    os.close(channel)
    poll = select.poll()
    poll.register(parent_pipe, 0)  # without any flag, poll reports only the hang-up
    poll.poll()
    os.killpg(0, signal.SIGKILL)
