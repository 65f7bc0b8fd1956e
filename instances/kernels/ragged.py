"""Ragged arrays: lists of integers of different lengths in compressed (CSR) form."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.instances.errors import InputError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
OffsetArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ragged:
    """Lists of integers, stored one after the other. The arrays are read-only.

    Attributes
    ----------
    start
        List ``g`` is ``item[start[g]:start[g + 1]]``. The array has one entry more than there are lists.
    item
        The entries of all lists.
    """

    start: OffsetArray
    item: IntArray

    def __post_init__(self) -> None:
        item = np.asarray(self.item)
        if item.size and (item.dtype.kind not in "iu" or item.min() < -(2**31) or item.max() >= 2**31):
            raise InputError("", "expected indices that fit 32 bits")
        start = np.asarray(self.start)
        proper = start.ndim == 1 and start.dtype.kind in "iu" and len(start) > 0 and item.ndim == 1
        if not proper or start[0] != 0 or start[-1] != item.size or (np.diff(start) < 0).any():
            raise InputError("", "expected starts that rise from 0 to the number of entries")
        object.__setattr__(self, "start", frozen(self.start, np.int64))
        object.__setattr__(self, "item", frozen(item, np.int32))

    @classmethod
    def of(cls, lists: Iterable[Sequence[int]]) -> "Ragged":
        """Build from Python lists.

        Parameters
        ----------
        lists
            The lists.

        Returns
        -------
        Ragged
            The same lists in compressed form.
        """
        kept = list(lists)
        start = offsets([len(entries) for entries in kept])
        return cls(start, np.array([entry for entries in kept for entry in entries] or np.empty(0, np.int32)))

    def __reduce__(self) -> tuple[type["Ragged"], tuple[OffsetArray, IntArray]]:
        # Unpickled arrays would be writable; the constructor makes them read-only again.
        return Ragged, (self.start, self.item)

    def __len__(self) -> int:
        return len(self.start) - 1

    def __getitem__(self, group: int) -> IntArray:
        return self.item[self.start[group] : self.start[group + 1]]

    def __iter__(self) -> Iterator[IntArray]:
        return (self[group] for group in range(len(self)))

    @property
    def sizes(self) -> OffsetArray:
        """Length of each list."""
        return np.diff(self.start)

    def owner(self) -> IntArray:
        """Return for each entry of ``item`` the index of its list.

        Returns
        -------
        array
            One list index per entry.
        """
        return np.repeat(np.arange(len(self), dtype=np.int32), self.sizes)


def offsets(sizes: npt.ArrayLike) -> OffsetArray:
    """Return the start of each list when lists of the given sizes are stored one after the other.

    Parameters
    ----------
    sizes
        Length of each list.

    Returns
    -------
    array
        The starts, followed by the end of the last list.
    """
    counts = np.asarray(sizes)
    start = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=start[1:])
    return start


def frozen(values: npt.ArrayLike, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a read-only, contiguous copy, so that no caller can change it through another reference.

    Parameters
    ----------
    values
        The values.
    dtype
        Type of the copy.

    Returns
    -------
    array
        The copy.
    """
    array = np.array(values, dtype=dtype, order="C", copy=True)
    array.flags.writeable = False
    return array
