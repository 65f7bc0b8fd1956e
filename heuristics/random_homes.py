"""RA: every client has a home drawn uniformly at random, the paper's weakest baseline."""

import numpy as np

from relocbench.instances.instance import Instance
from relocbench.instances.solution import Solution


def solve(instance: Instance, *, seed: int, time_limit: float) -> Solution:
    """Assign every client to a server drawn uniformly.

    Parameters
    ----------
    instance
        The problem.
    seed
        The seed of the random number generator.
    time_limit
        Not used; every method has it.

    Returns
    -------
    Solution
        The homes.
    """
    rng = np.random.default_rng(seed)
    return Solution(rng.integers(instance.n_servers, size=instance.n_clients, dtype=np.int32))
