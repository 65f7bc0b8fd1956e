"""What every method returns."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from relocbench.instances.kernels.ragged import IntArray

# Called with (seconds, incumbent, bound).
Progress = Callable[[float, float, float], None]


@dataclass(frozen=True, eq=False)
class Solution:
    """An assignment and what its method says of it; never its cost, which only the evaluator states.

    Attributes
    ----------
    home
        One server per client.
    bound
        A proven lower bound on ``ΣD``; ``-inf`` where the method proves nothing.
    status
        ``optimal``, ``feasible`` or ``time_limit``.
    trace
        Progress as (seconds, incumbent, bound).
    facts
        What the method says of its own work, such as the size of its model: ``variables``, ``constraints``, ``nodes``.
    """

    home: IntArray
    bound: float = -math.inf
    status: str = "feasible"
    trace: tuple[tuple[float, float, float], ...] = ()
    facts: Mapping[str, float] = field(default_factory=dict)
