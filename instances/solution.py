"""The result that every method returns."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from relocbench.instances.errors import plural
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.notebook_card import card

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

    Examples
    --------
    A method of your own may return one, or plain homes:

    >>> import relocbench
    >>> def everything_on_the_first(instance, *, seed, time_limit):
    ...     return relocbench.Solution([0] * instance.n_clients)
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> everything_on_the_first(instance, seed=0, time_limit=1.0)
    <Solution 4 homes: feasible>
    """

    home: IntArray
    bound: float = -math.inf
    status: str = "feasible"
    trace: tuple[tuple[float, float, float], ...] = ()
    facts: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        bound = f", bound {self.bound:.8g}" if math.isfinite(self.bound) else ""
        return f"<Solution {plural(len(self.home), 'home')}: {self.status}{bound}>"

    def _repr_html_(self) -> str:
        facts = {name: f"{value:g}" for name, value in self.facts.items()}
        values = {
            "status": self.status,
            "homes": len(self.home),
            "servers in use": len(set(map(int, self.home))),
            "bound": f"{self.bound:.8g}" if math.isfinite(self.bound) else None,
        }
        return card("Solution", values | facts)


def report(on_progress: Progress | None, home: IntArray, point: tuple[float, float, float]) -> None:
    """Report progress to a callback.

    A callback with a method ``keep`` also receives the homes. A supervising process uses it to save the incumbent in
    case this process is killed before it returns.

    Parameters
    ----------
    on_progress
        The callback; None reports nothing.
    home
        The homes of the incumbent.
    point
        The seconds since the start, the cost of the incumbent and the lower bound.
    """
    if on_progress is None:
        return
    keep = getattr(on_progress, "keep", None)
    if keep is not None:
        keep(home)
    on_progress(*point)
