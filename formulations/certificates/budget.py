"""The budget of a verification: limits on its steps, memory and time that no certificate can exceed.

A certificate comes from outside. Its author may have made it so that checking takes very long or needs much memory.
"""

import math
import time
from dataclasses import dataclass

from relocbench.instances.errors import InputError, plural

# The default limits.
TIME_LIMIT = 60.0
MEMORY_LIMIT = 4 << 30
MAX_STEPS = 100_000
# Bytes of one open region in addition to its arrays' entries.
REGION_OVERHEAD = 1_000


@dataclass(frozen=True)
class Size:
    """The size of an instance, as far as memory depends on it.

    Attributes
    ----------
    clients, servers, topics
        ``M, L, N``.
    publications
        Pairs of topic and publisher.
    pairs
        Pairs of publisher and subscriber of the same topic.
    """

    clients: int
    servers: int
    topics: int
    publications: int
    pairs: int

    @property
    def problem_bytes(self) -> int:
        """An upper bound on the memory of the instance in integers, while it is built."""
        homes, servers = self.clients * self.servers, self.servers**2
        return 80 * homes + 120 * servers + 160 * self.pairs + 400 * (self.clients + self.publications + self.topics)

    @property
    def region_bytes(self) -> int:
        """The memory of a region."""
        return REGION_OVERHEAD + (self.clients + self.topics + 16) * self.servers

    def dual_bytes(self, entries: int, number_bits: int = 0) -> int:
        """Return an upper bound on the memory that a dual step needs.

        Parameters
        ----------
        entries
            The number of messages and shares.
        number_bits
            The size of Python integers; 0 if 64 bits are enough.

        Returns
        -------
        int
            The number of bytes.
        """
        homes = (self.clients + self.topics) * self.servers
        number = 40 + number_bits // 7 if number_bits else 0
        # The largest block of edges, see exact_bound.ENTRIES.
        block = max(self.servers**2, 1 << 15) * (64 + 4 * number)
        return homes * (240 + 5 * number) + entries * (64 + 2 * number) + block

    @property
    def added_bytes(self) -> int:
        """An upper bound on the memory of costs that are added to those of homes."""
        return 300 * self.clients * self.servers

    def contents_bytes(self, pairs: int) -> int:
        """Return an upper bound on the memory that the prices of a contents step need.

        Parameters
        ----------
        pairs
            The number of pairs of clients of which the first sends to the second.

        Returns
        -------
        int
            The number of bytes.
        """
        return 80 * (pairs + self.clients) * self.servers

    def home_prices_bytes(self, edges: int, ranges: int) -> int:
        """Return an upper bound on the memory that a step with prices of homes needs, without its searches.

        Parameters
        ----------
        edges
            The number of pairs of clients that exchange messages.
        ranges
            The number of ends of ranges of ``θ`` for each server.

        Returns
        -------
        int
            The number of bytes.
        """
        # The largest block of edges, see home_prices_bound.ENTRIES.
        block = 64 * max(4 * self.servers**2, 1 << 16)
        return (
            80 * (2 * edges + self.clients) * self.servers
            + 40 * (ranges + 2) * (self.servers + 6 * (self.clients + edges))
            + block
        )


class Budget:
    """The limits of one verification, and what it has used so far.

    Parameters
    ----------
    time_limit
        Seconds of processor time of this thread, from now on; infinite for no limit. Unlike the time of the clock, it
        does not depend on what else the machine does.
    memory_limit
        Bytes, for everything that is allocated after the file was read.
    max_steps
        The largest number of steps of a proof.
    """

    def __init__(
        self, time_limit: float = math.inf, memory_limit: float = math.inf, max_steps: float = math.inf
    ) -> None:
        self._time_limit, self._memory_limit, self._max_steps = time_limit, memory_limit, max_steps
        self._end = time.thread_time() + time_limit

    def check_steps(self, steps: int) -> None:
        """Check the number of steps.

        Parameters
        ----------
        steps
            The number of steps of the proof.

        Raises
        ------
        InputError
            If there are too many.
        """
        if steps > self._max_steps:
            problem = f"has {plural(steps, 'step')}, more than the limit of {self._max_steps} (--max-steps)"
            raise InputError("proof", problem)

    def check_time(self) -> None:
        """Check the time.

        Raises
        ------
        InputError
            If the time limit has passed.
        """
        if time.thread_time() > self._end:
            problem = f"not proved within the time limit of {self._time_limit:g} s; raise it with --time-limit"
            raise InputError("", problem)

    def check_memory(self, wanted: int) -> None:
        """Check memory before it is allocated.

        Parameters
        ----------
        wanted
            An upper bound on the bytes in use after the allocation.

        Raises
        ------
        InputError
            If this is more than the limit.
        """
        if wanted > self._memory_limit:
            wanted_text, limit_text = (f"{number / (1 << 30):.3g} GiB" for number in (wanted, self._memory_limit))
            problem = f"needs up to {wanted_text}, more than the memory limit of {limit_text}"
            raise InputError("", f"{problem}; raise it with --memory-limit")
