"""The time of a certification: how long its proof takes to verify, so that the search ends early enough.

Verification is part of the time limit of :func:`runs.certify.certify`. With 50,000 clients and 100 servers it takes
more than a minute. Its length is estimated from the size of the instance, and corrected by a rehearsal and by how much
of the processor this thread gets.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from relocbench.instances.instance import Instance
from relocbench.runs.environment import cores

Result = TypeVar("Result")


@dataclass(frozen=True)
class BudgetParams:
    """Estimated times on a quiet machine.

    Attributes
    ----------
    per_publication
        Seconds for the exact cost of the homes and for the instance in integers, for each pair of topic and publisher.
    per_home
        Seconds for the charges of a dual, for each pair of client and server.
    per_step
        Seconds to write and verify a step, without the pairs.
    per_pair
        Seconds to write and verify a pair of homes along an edge, for each step with messages.
    bound_share
        Computing a bound in floating point, and setting up a relaxation, takes about this share of its verification.
    noticeable
        A proof that takes longer than this, without messages, is rehearsed. For smaller instances nothing is ever left
        out, so that their results do not depend on the clock.
    latest
        A proof is begun if it is expected to end within this multiple of the time limit, and given up at twice the
        time limit.
    """

    per_publication: float = 3e-5
    per_home: float = 3e-7
    per_step: float = 0.001
    per_pair: float = 1.5e-8
    bound_share: float = 0.2
    noticeable: float = 0.5
    latest: float = 1.5


PARAMS = BudgetParams()


class TimeBudget:
    """The clock of a certification, and the time that its proof will need.

    Parameters
    ----------
    instance
        The problem.
    time_limit
        Seconds, from now on.
    params
        The parameters.

    Attributes
    ----------
    time_limit
        The time limit.
    """

    def __init__(self, instance: Instance, time_limit: float, params: BudgetParams = PARAMS) -> None:
        self._begin, self._begin_processor = time.perf_counter(), time.thread_time()
        self._begin_process = time.process_time()
        self.time_limit = time_limit
        self._params = params
        self._speed_factor = self._load = 1.0
        self._homes = instance.n_clients * instance.n_servers
        self._publications = len(instance.publishers.item)
        self._pairs = 0

    @property
    def seconds(self) -> float:
        """The seconds since the beginning."""
        return time.perf_counter() - self._begin

    @property
    def is_large(self) -> bool:
        """Whether the instance is so large that parts of the certification may have to be left out."""
        return self._without_messages > self._params.noticeable

    @property
    def without_messages(self) -> float:
        """The expected seconds to verify a dual without messages."""
        return self._slowness * self._without_messages

    @property
    def _without_messages(self) -> float:
        params = self._params
        return params.per_publication * self._publications + params.per_home * self._homes

    @property
    def _slowness(self) -> float:
        return self._speed_factor * self._load

    @property
    def until_twice(self) -> float:
        """The seconds until twice the time limit."""
        return max(0.0, 2 * self.time_limit - self.seconds)

    def count_pairs(self, edges: int, servers: int) -> None:
        """Take note of the size of the client graph.

        Parameters
        ----------
        edges, servers
            The number of edges and of servers.
        """
        self._pairs = edges * servers**2

    def proof(self, steps: float) -> float:
        """Estimate the seconds to write and verify a proof.

        Parameters
        ----------
        steps
            The number of steps with messages.

        Returns
        -------
        float
            The seconds.
        """
        params = self._params
        return self.without_messages + self._slowness * steps * (params.per_step + params.per_pair * self._pairs)

    def slowed(self, seconds: float) -> float:
        """Correct an estimate by the speed and the load of the machine.

        Parameters
        ----------
        seconds
            The seconds on a quiet machine.

        Returns
        -------
        float
            The seconds to expect here.
        """
        return self._slowness * seconds

    @property
    def bound(self) -> float:
        """The expected seconds to compute a bound in floating point."""
        return self._params.bound_share * self._slowness * self._params.per_pair * self._pairs

    def allows(self, seconds: float) -> bool:
        """Return whether the time limit allows some more seconds.

        Parameters
        ----------
        seconds
            The expected seconds.

        Returns
        -------
        bool
            Whether they end within the time limit.
        """
        return self.seconds + seconds < self.time_limit

    def allows_late(self, seconds: float) -> bool:
        """Return whether a proof may begin that possibly ends after the time limit, but within twice the limit.

        Parameters
        ----------
        seconds
            The expected seconds.

        Returns
        -------
        bool
            Whether it may begin. Always, if the instance is not large.
        """
        return not self.is_large or self.seconds + seconds < self._params.latest * self.time_limit

    def rehearse(self, verification: Callable[[], Result]) -> Result:
        """Run a verification of a dual without messages, and correct the estimates by the time that it takes.

        Parameters
        ----------
        verification
            The verification.

        Returns
        -------
        Result
            What it returns.
        """
        begin = time.thread_time()
        result = verification()
        self._speed_factor = max(1.0, (time.thread_time() - begin) / self._without_messages)
        self.measure_load()
        return result

    def measure_load(self, threads: int = 1) -> None:
        """Measure how much longer everything takes because others use the processor.

        Parameters
        ----------
        threads
            The number of threads of this process that have computed all the time. With 1, it is the calling thread
            whose time is measured. With more, the calling thread may have waited for the others, so the time of the
            process is measured.
        """
        if threads == 1:
            processor, most = time.thread_time() - self._begin_processor, 1
        else:
            processor, most = time.process_time() - self._begin_process, min(threads, cores())
        self._load = max(1.0, most * self.seconds / processor) if processor > 0 else 1.0
