"""One epoch in the relaxation over time: its own relaxation, and what the potentials add to the costs of homes."""

from dataclasses import dataclass, field

import numpy as np

from relocbench.formulations.bounding.client_graph import ClientGraph, Mask
from relocbench.formulations.bounding.dual_bound import Dual, bound_of, dual_of
from relocbench.formulations.bounding.relaxation import Labels, Relaxation
from relocbench.formulations.bounding.root_relaxation import with_cheaper_labels
from relocbench.formulations.bounding.scaling import Scaling
from relocbench.instances.kernels.ragged import FloatArray
from relocbench.instances.timeline.epoch import Epoch


@dataclass(eq=False)
class EpochState:
    """The relaxation of one epoch, with the best dual so far.

    Attributes
    ----------
    epoch
        The epoch.
    scaling
        How its instance was scaled.
    rounds
        ``s/T``.
    graph
        The scaled instance; its ``distance_cost`` includes what the potentials add.
    distance_cost
        The same without potentials.
    relaxation
        The relaxation with its current variables.
    unary
        The unary costs of the relaxation's labels without potentials.
    dual, value, cost, constant
        The last dual, its bound, the costs of all homes with messages and potentials, and the bound minus the sum of
        their minima; in units of the scaled instance.
    added
        What the potentials add to the cost of each home, in the same units.
    """

    epoch: Epoch
    scaling: Scaling
    rounds: float
    graph: ClientGraph
    distance_cost: FloatArray
    relaxation: Relaxation
    unary: FloatArray = field(init=False)
    dual: Dual = field(init=False)
    value: float = field(init=False)
    cost: FloatArray = field(init=False)
    constant: float = field(init=False)
    added: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.added = np.zeros_like(self.distance_cost)
        self.use(self.relaxation)

    @property
    def factor(self) -> float:
        """What one ms of the schedule's cost is in units of the scaled instance."""
        return float(np.ldexp(1.0, -self.scaling.delay_exponent)) / self.rounds

    def use(self, relaxation: Relaxation) -> None:
        """Use another relaxation of the same region.

        Parameters
        ----------
        relaxation
            The relaxation, built without potentials.
        """
        self.relaxation = relaxation
        self._owner = np.repeat(np.arange(self.graph.n_clients), relaxation.labels.sizes)
        self.unary = relaxation.problem.unary - self._of_labels(self.added)
        # The potentials are two more rows with the entry 1 in the column of each label.
        step = relaxation.problem.step_x
        step[:] = 1 / (1 / step + 2)

    def _of_labels(self, costs: FloatArray) -> FloatArray:
        chosen: FloatArray = costs[self._owner, self.relaxation.labels.server]
        return chosen

    def add(self, potentials: FloatArray) -> None:
        """Set what the potentials add.

        Parameters
        ----------
        potentials
            The added cost of each home in ms (``M×L``).
        """
        self.added[:] = potentials * self.factor
        self.graph.distance_cost[:] = self.distance_cost + self.added
        self.relaxation.problem.unary[:] = self.unary + self._of_labels(self.added)

    def evaluate(self) -> None:
        """Compute the bound of the current dual variables."""
        self.dual = dual_of(self.relaxation)
        self.evaluate_dual()

    def evaluate_dual(self) -> None:
        """Compute the bound of the dual with the current potentials."""
        bound = bound_of(self.dual, self.relaxation.region)
        self.value, self.cost = bound.value, bound.cost
        self.constant = bound.value - float(bound.cost.min(axis=1).sum())

    def add_labels(self, count: int) -> None:
        """Activate labels that cost less than every active label of their client.

        Parameters
        ----------
        count
            The largest number of new labels of a client.
        """
        servers = with_cheaper_labels(self.relaxation.labels.servers, self.cost, count)
        if servers is not None:
            self.relabel(servers)

    def relabel(self, servers: Mask) -> None:
        """Use other labels, and start them from the variables of the present ones.

        Parameters
        ----------
        servers
            The labels (``M×L``).
        """
        before = self.relaxation
        relaxation = Relaxation(before.region, Labels.of(servers))
        relaxation.warm_start(before)
        self.use(relaxation)
