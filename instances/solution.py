"""The result that every method returns."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from relocbench.instances.kernels.ragged import IntArray

# A function that a method calls with (seconds, incumbent, bound) to report its progress.
Progress = Callable[[float, float, float], None]


@dataclass(frozen=True, eq=False)
class Solution:
    """An assignment and the claims of its method. It has no cost, because only the evaluator computes costs.

    Attributes
    ----------
    home
        One server per client.
    bound
        A proven lower bound on ``ΣD``; ``-inf`` if the method proves none.
    status
        ``optimal``, ``claimed``, ``feasible`` or ``time_limit``.
    trace
        Progress as (seconds, incumbent, bound), in the order of time.
    facts
        Numbers about the run of the method, such as the size of its model: ``variables``, ``constraints``, ``nodes``.
    """

    home: IntArray
    bound: float = -math.inf
    status: str = "feasible"
    trace: tuple[tuple[float, float, float], ...] = ()
    facts: Mapping[str, float] = field(default_factory=dict)
