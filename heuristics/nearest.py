"""NS: the nearest server, the paper's baseline that is best on distance."""

from relocbench.instances.instance import Instance
from relocbench.instances.nearest_server import nearest_server
from relocbench.instances.solution import Solution


def solve(instance: Instance, *, seed: int, time_limit: float) -> Solution:
    """Give every client the server with the least delay to it; ties go to the lowest index."""
    return Solution(nearest_server(instance))
