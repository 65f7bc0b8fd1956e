"""NS: every client has its home at the nearest server, the paper's baseline with the least distance delay."""

from relocbench.instances.instance import Instance
from relocbench.instances.nearest_server import nearest_server
from relocbench.instances.solution import Solution


def solve(instance: Instance, *, seed: int, time_limit: float) -> Solution:
    """Assign every client to the server with the least delay to it; ties go to the lowest index.

    Parameters
    ----------
    instance
        The problem.
    seed, time_limit
        Not used; every method has them.

    Returns
    -------
    Solution
        The homes.
    """
    return Solution(nearest_server(instance))
