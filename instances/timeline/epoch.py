"""An epoch: a part of a timeline in which nothing changes, and the checks of its place in the timeline."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from relocbench.instances.errors import InputError, plural, shown
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray, frozen

# The largest time in seconds. Above it, a second is less than what a float64 can resolve well.
LARGEST_TIME = 1e12


@dataclass(frozen=True, eq=False)
class Epoch:
    """A part of a timeline, in which nothing changes.

    Attributes
    ----------
    number
        Position in the timeline, from 0.
    start, length
        Seconds.
    clients
        For each client of the instance its number in the timeline.
    topics
        For each topic of the instance its number in the timeline.
    instance
        The problem of this epoch.
    """

    number: int
    start: float
    length: float
    clients: IntArray
    topics: IntArray
    instance: Instance

    def __post_init__(self) -> None:
        for name, least in (("start", -LARGEST_TIME), ("length", 0.0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float | np.number):
                raise InputError(name, f"expected seconds, a number, got {shown(value)}")
            if not least <= value <= LARGEST_TIME or (name == "length" and value == 0):
                wanted = "above 0" if name == "length" else f"from {-LARGEST_TIME:g}"
                raise InputError(name, f"expected seconds {wanted} to {LARGEST_TIME:g}, got {shown(float(value))}")
            object.__setattr__(self, name, float(value))
        object.__setattr__(self, "clients", _numbers("client", self.clients, self.instance.n_clients))
        object.__setattr__(self, "topics", _numbers("topic", self.topics, self.instance.n_topics))

    def __repr__(self) -> str:
        sizes = f"{plural(self.instance.n_clients, 'client')}, {plural(self.instance.n_topics, 'topic')}"
        return f"<Epoch {self.number} at {self.start:g} s for {self.length:g} s: {sizes}>"

    @property
    def end(self) -> float:
        """``start + length``."""
        return self.start + self.length

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the times, the numbers of clients and topics, and the content of the instance."""
        digest = hashlib.sha256(b"relocbench-epoch/1")
        digest.update(np.array([self.start, self.length], "<f8").tobytes())
        for numbers in (self.clients, self.topics):
            digest.update(f"|{len(numbers)}|".encode() + numbers.astype("<i8").tobytes())
        digest.update(self.instance.hash.encode())
        return digest.hexdigest()


def _numbers(name: str, values: npt.ArrayLike, count: int) -> IntArray:
    array = np.asarray(values)
    if array.ndim != 1 or len(array) != count or (array.dtype.kind not in "iu" and array.size):
        raise InputError(name, f"expected {count} whole numbers, one for each {name}, got {shown(values)}")
    outside = (array < 0) | (array >= 2**31)
    if outside.any():
        where = int(outside.argmax())
        raise InputError(f"{name}[{where}]", f"expected a number from 0 to {2**31 - 1}, got {array[where]}")
    order = np.argsort(array, kind="stable")
    repeated = np.flatnonzero(np.diff(array[order]) == 0)
    if len(repeated):
        where = int(order[repeated + 1].min())
        raise InputError(f"{name}[{where}]", f"{name} {array[where]} is listed twice; list each {name} once per epoch")
    return frozen(array, np.int32)


def check_order(start: float, before: tuple[float, float] | None) -> None:
    """Check that an epoch follows the one before.

    Parameters
    ----------
    start
        Start of the epoch.
    before
        Start and end of the epoch before; None for the first epoch.

    Raises
    ------
    InputError
        If the epoch is out of order, or the two overlap.
    """
    if before is None:
        return
    if start < before[0]:
        problem = (
            f"expected at least {before[0]:g}, the start of the epoch before, got {start:g}; sort the epochs by start"
        )
        raise InputError("start", problem)
    # The end is a rounded sum, so the next start may be below it by a rounding error.
    if start < before[1] - 1e-9 * max(1.0, abs(before[1])):
        problem = f"expected at least {before[1]:g}, the end of the epoch before, got {start:g}"
        raise InputError("start", f"{problem}; shorten the epoch before or begin later")


def check_known(what: str, numbers: IntArray, count: int | None) -> None:
    """Check that the timeline has the clients or topics of an epoch.

    Parameters
    ----------
    what
        ``client`` or ``topic``.
    numbers
        The numbers in the epoch.
    count
        How many the timeline has; None if any number is accepted.

    Raises
    ------
    InputError
        If a number is not known.
    """
    if count is None or not len(numbers) or int(numbers.max()) < count:
        return
    where = int((numbers >= count).argmax())
    problem = f"expected a {what} from 0 to {count - 1}, got {numbers[where]}; add it to {what}_ids of the timeline"
    raise InputError(f"{what}[{where}]", problem)
