"""RA: a home uniformly at random, the paper's weakest baseline."""

import numpy as np

from relocbench.instances.instance import Instance
from relocbench.instances.solution import Solution


def solve(instance: Instance, *, seed: int, time_limit: float) -> Solution:
    """Give every client a server drawn uniformly."""
    rng = np.random.default_rng(seed)
    return Solution(rng.integers(instance.n_servers, size=instance.n_clients, dtype=np.int32))
