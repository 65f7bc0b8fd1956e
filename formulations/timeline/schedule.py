"""A schedule that an exact method found, with its cost and lower bound."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.notebook_card import card
from relocbench.instances.timeline.schedule_cost import ScheduleCost, schedule_cost
from relocbench.instances.timeline.timeline import Timeline

# A lower bound within this distance below the cost, relative to the cost, proves optimality. One further above the cost
# than this is an error.
TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Schedule:
    """One assignment for each epoch of a timeline.

    Attributes
    ----------
    homes
        For each epoch one server for each client that is present.
    cost
        The cost of the schedule, computed by the evaluator.
    bound
        A lower bound on the cost of every schedule; minus infinity if none is known.

    Examples
    --------
    >>> import relocbench
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> timeline = relocbench.Timeline.static(instance, n_epochs=2, length=1)
    >>> schedule = relocbench.solve_timeline(timeline)
    >>> len(schedule.homes), schedule.cost.handovers
    (2, 0)
    """

    homes: tuple[IntArray, ...]
    cost: ScheduleCost
    bound: float = -math.inf

    @classmethod
    def of(cls, timeline: Timeline, homes: Sequence[IntArray], bound: float = -math.inf) -> "Schedule":
        """Evaluate homes, and check the bound against their cost.

        Parameters
        ----------
        timeline
            The timeline.
        homes
            For each epoch one server for each client that is present.
        bound
            The lower bound that a solver claims.

        Returns
        -------
        Schedule
            The schedule.

        Raises
        ------
        ArithmeticError
            If the bound is above the cost.

        Examples
        --------
        >>> import relocbench
        >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
        >>> timeline = relocbench.Timeline.static(instance, n_epochs=2, length=1)
        >>> relocbench.Schedule.of(timeline, [[0, 0, 1, 1], [0, 0, 1, 2]]).status
        'feasible'
        """
        kept = tuple(np.asarray(home, np.int32) for home in homes)
        cost = schedule_cost(timeline, kept)
        if bound > cost.total * (1 + TOLERANCE):
            raise ArithmeticError(f"the lower bound {bound!r} is above the cost {cost.total!r} of a schedule")
        return cls(kept, cost, min(bound, cost.total))

    @property
    def status(self) -> str:
        """``optimal`` if the bound proves it, otherwise ``feasible``."""
        return "optimal" if self.bound >= self.cost.total * (1 - TOLERANCE) else "feasible"

    def __repr__(self) -> str:
        return f"<Schedule {self.status}: cost {self.cost.total:.8g}, bound {self.bound:.8g}>"

    def _repr_html_(self) -> str:
        values = {
            "status": self.status,
            "cost": f"{self.cost.total:.8g}",
            "bound": f"{self.bound:.8g}",
            "handovers": self.cost.handovers,
            "epochs": len(self.homes),
        }
        return card("Schedule", values)
