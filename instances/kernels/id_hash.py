"""A hash of ids: random draws that depend on the id and a seed, not on the order or the partition of the data."""

import numpy as np
import numpy.typing as npt

IdArray = npt.NDArray[np.int64]


def hash_ids(ids: IdArray, salt: int = 0) -> npt.NDArray[np.uint64]:
    """Hash ids to 64 bits each (splitmix64).

    Parameters
    ----------
    ids
        The ids to hash.
    salt
        Selects the hash function: another salt gives other bits.

    Returns
    -------
    numpy.ndarray
        One hash for each id. Different ids have different hashes.
    """
    with np.errstate(over="ignore"):
        z = ids.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64((2 * salt + 1) % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)), np.uint64)
