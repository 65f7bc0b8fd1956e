"""The relaxation over time: the relaxation of every epoch, tied together by potentials of the clients.

A handover costs ``price·[l≠k]`` if a client is at ``l`` in one epoch and at ``k`` in the next. The linear relaxation of
this is ``price/2·Σ_l |x(l) - x'(l)|``, which is the largest value of ``Σ_l φ(l)·(x(l) - x'(l))`` over all *potentials*
``φ`` that differ by at most the price between any two servers. Potentials are dual variables like the messages: they
are added to the costs of homes in the one epoch and subtracted in the other, and any potentials give a bound
(docs/certificates.md). They are improved in two ways:

- PDHG: the potentials take part in the iterations of the epochs, as the dual variables of one more row.
- A sweep along the time: costs of homes are passed from epoch to epoch as far as the price allows, and then shared out
  evenly (block coordinate ascent on the chain of each client). It never lowers the bound.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from relocbench.formulations.bounding.client_graph import Mask, client_graph
from relocbench.formulations.bounding.dual_bound import Dual, bound_of
from relocbench.formulations.bounding.epoch_state import EpochState
from relocbench.formulations.bounding.region import Region
from relocbench.formulations.bounding.relaxation import PRIMAL_WEIGHT, Labels, Relaxation
from relocbench.formulations.bounding.root_relaxation import first_labels
from relocbench.formulations.bounding.scaling import scaling_of
from relocbench.formulations.certificates.packed_arrays import Int64Array
from relocbench.formulations.certificates.potentials import present_in_both
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray
from relocbench.instances.timeline.epoch import Epoch
from relocbench.instances.timeline.prices import Prices

# Halvings of the range in which the level of the projection of potentials is searched.
BISECTIONS = 40


@dataclass(frozen=True)
class TimelineParams:
    """The parameters of the relaxation over time.

    Attributes
    ----------
    first_iterations, next_iterations
        PDHG iterations of an epoch by itself: if it starts from nothing, and if it starts from the epoch before.
    most_servers, nearest
        With more servers than the first, a client starts with its nearest servers only, the second number of them.
    least_labels, most_labels
        The range of the number of labels of a client that are kept for the iterations over time.
    label_range
        A label is kept if its reduced cost is below this multiple of the handover price, or of the typical cost of an
        edge if that is more.
    new_labels
        The largest number of labels that a client receives after an evaluation.
    iterations
        PDHG iterations over time between two evaluations of the bound.
    potential_step
        The step size of the potentials, relative to that of a row of two entries.
    """

    first_iterations: int = 400
    next_iterations: int = 30
    most_servers: int = 24
    nearest: int = 8
    least_labels: int = 3
    most_labels: int = 8
    label_range: float = 2.0
    new_labels: int = 2
    iterations: int = 60
    potential_step: float = 1.0


PARAMS = TimelineParams()


@dataclass(eq=False)
class TimelineDual:
    """Duals of all epochs, with the potentials between them.

    Attributes
    ----------
    value
        The bound that they prove, in ms.
    duals
        The dual of each epoch.
    potentials
        For each epoch but the last, one number for each client that is also in the next one, and each server, in ms.
    """

    value: float
    duals: list[Dual]
    potentials: list[FloatArray]


@dataclass(eq=False)
class EvaluatedDual:
    """What duals and potentials prove, in ms.

    Attributes
    ----------
    costs
        For each epoch the cost of each home with messages and potentials (``M×L``).
    constants
        For each epoch the bound minus the sum of its clients' least costs.
    """

    costs: list[FloatArray]
    constants: list[float]

    def values(self) -> list[float]:
        """Return the bound of each epoch.

        Returns
        -------
        list of float
            The bounds in ms.
        """
        return [
            float(cost.min(axis=1).sum()) + constant for cost, constant in zip(self.costs, self.constants, strict=True)
        ]


class TimelineRelaxation:
    """The relaxation of successive epochs.

    Parameters
    ----------
    epochs, homes
        The epochs, and good homes for each; their cost decides the scale of the numbers.
    prices
        The prices of the timeline.
    has_time
        Asked again and again whether there is time for more iterations.
    params
        The parameters.

    Attributes
    ----------
    best
        The best dual found so far.
    separate
        The bound without potentials, in ms: the sum of the epochs' own bounds.
    """

    def __init__(
        self,
        epochs: Sequence[Epoch],
        homes: Sequence[IntArray],
        prices: Prices,
        has_time: Callable[[], bool] = lambda: True,
        params: TimelineParams = PARAMS,
    ) -> None:
        self._price, self._params, self._has_time = prices.handover, params, has_time
        self.states: list[EpochState] = []
        for epoch, home in zip(epochs, homes, strict=True):
            rounds = epoch.length / prices.publication_period
            self.states.append(self._started(epoch, home, rounds, self.states[-1] if self.states else None))
        self._common = [
            present_in_both(one.epoch, other.epoch) for one, other in zip(self.states, self.states[1:], strict=False)
        ]
        self.potentials: list[FloatArray] = [
            np.zeros((len(here), state.graph.n_servers))
            for (here, _), state in zip(self._common, self.states, strict=False)
        ]
        self.separate = self._total(least=0.0)
        self.best = TimelineDual(self.separate, [state.dual for state in self.states], self._copied(self.potentials))
        self._offer(self.swept())

    def _started(self, epoch: Epoch, home: IntArray, rounds: float, before: EpochState | None) -> EpochState:
        """Solve the relaxation of an epoch by itself, and keep the labels that may matter over time."""
        params = self._params
        scaling = scaling_of(epoch.instance, home)
        graph = client_graph(scaling.capped)
        base = graph.distance_cost.copy()
        region = Region.root(graph)
        labels = first_labels(graph, home, params.most_servers, params.nearest)
        same = (
            before is not None
            and before.scaling.delay_exponent == scaling.delay_exponent
            and before.scaling.load_exponent == scaling.load_exponent
            and before.graph.same_structure(graph)
        )
        if same and before is not None:
            labels |= before.relaxation.labels.servers
        relaxation = Relaxation(region, Labels.of(labels))
        if same and before is not None:
            relaxation.warm_start(before.relaxation)
        for done in range(0, params.next_iterations if same else params.first_iterations, 10):
            if done and not self._has_time():
                break
            relaxation.iterate(10)
        state = EpochState(epoch, scaling, rounds, graph, base, relaxation)
        state.evaluate()
        silent = Dual.silent(region)
        if bound_of(silent, region).value > state.value:
            state.dual = silent
            state.evaluate_dual()
        state.relabel(self._kept_labels(state, home))
        return state

    def _kept_labels(self, state: EpochState, home: IntArray) -> Mask:
        params = self._params
        reduced = state.cost - state.cost.min(axis=1, keepdims=True)
        rank = reduced.argsort(axis=1).argsort(axis=1)
        limit = params.label_range * max(self._price * state.factor, state.graph.typical_cost)
        kept: Mask = ((reduced <= limit) & (rank < params.most_labels)) | (rank < params.least_labels)
        kept[np.arange(len(home)), home] = True
        return kept

    def step(self) -> float:
        """Run some iterations over time, evaluate the bound, and improve it by a sweep.

        Returns
        -------
        float
            The increase of the best bound.
        """
        before = self.best.value
        for done in range(self._params.iterations):
            if done and not self._has_time():
                break
            for state in self.states:
                state.relaxation.iterate(1)
            self._step_potentials()
        for state in self.states:
            state.evaluate()
        self._offer(TimelineDual(self._total(), [state.dual for state in self.states], self._copied(self.potentials)))
        self._offer(self.swept())
        if self._has_time():
            for state in self.states:
                state.add_labels(self._params.new_labels)
        return self.best.value - before

    def step_separately(self) -> float:
        """Run some iterations of each epoch by itself, without potentials.

        Returns
        -------
        float
            The increase of the best bound.
        """
        duals, before = list(self.best.duals), self.best.value
        for t, state in enumerate(self.states):
            best = state.value
            for done in range(0, self._params.iterations, 10):
                if done and not self._has_time():
                    break
                state.relaxation.iterate(10)
            state.evaluate()
            if state.value > best:
                duals[t] = state.dual
            else:
                state.dual, state.value = duals[t], best
            if self._has_time():
                state.add_labels(self._params.new_labels)
        self.separate = max(self.separate, self._total(least=0.0))
        self._offer(TimelineDual(self.separate, duals, self._copied(self.potentials)))
        return self.best.value - before

    @staticmethod
    def bytes_of(edges: int, servers: int, params: TimelineParams = PARAMS) -> int:
        """Estimate the memory of an epoch's relaxation.

        Parameters
        ----------
        edges, servers
            The size of the epoch.
        params
            The parameters.

        Returns
        -------
        int
            The number of bytes.
        """
        labels = min(servers, params.most_labels)
        return edges * (8 * labels**2 + 80 * labels)

    def _offer(self, dual: TimelineDual) -> None:
        if dual.value > self.best.value:
            self.best = dual

    def _total(self, least: float = -np.inf) -> float:
        """Return the bound of the last duals. Without potentials, no epoch costs less than 0."""
        return float(sum(max(state.value, least) / state.factor for state in self.states))

    @staticmethod
    def _copied(potentials: list[FloatArray]) -> list[FloatArray]:
        return [part.copy() for part in potentials]

    def _step_potentials(self) -> None:
        """Dual step of the potentials, by how much the shares of two epochs differ."""
        for t, (here, there) in enumerate(self._common):
            if not len(here) or not self._price:
                continue
            one, other = self.states[t], self.states[t + 1]
            typical = one.graph.typical_cost / one.factor + other.graph.typical_cost / other.factor
            step = self._params.potential_step * PRIMAL_WEIGHT * typical / 4
            _step_potentials(self.potentials[t], here, there, _Shares.of(one), _Shares.of(other), step, self._price)
        for t, state in enumerate(self.states):
            state.add(self._added(self.potentials, t))

    def _added(self, potentials: list[FloatArray], t: int) -> FloatArray:
        """Return what potentials add to the homes of an epoch, in ms."""
        added = np.zeros_like(self.states[t].distance_cost)
        if t < len(potentials):
            added[self._common[t][0]] += potentials[t]
        if t > 0:
            added[self._common[t - 1][1]] -= potentials[t - 1]
        return added

    def swept(self) -> TimelineDual:
        """Improve the potentials by a sweep along the time, with the last duals.

        Returns
        -------
        TimelineDual
            The duals with the new potentials. Their bound is at least the last one.
        """
        costs = [state.cost / state.factor for state in self.states]
        length = [np.ones(len(cost)) for cost in costs]  # epochs since the client arrived
        potentials = self._copied(self.potentials)
        for t, (here, there) in enumerate(self._common):
            self._pass(costs[t], costs[t + 1], here, there, 1.0, potentials[t], 1.0)
            length[t + 1][there] = length[t][here] + 1
        for t in reversed(range(len(self._common))):
            here, there = self._common[t]
            # The part that stays is the share of one epoch among all those up to it.
            part = (1 - 1 / length[t + 1][there])[:, None]
            self._pass(costs[t + 1], costs[t], there, here, part, potentials[t], -1.0)
        value = sum(
            float(cost.min(axis=1).sum()) + state.constant / state.factor
            for cost, state in zip(costs, self.states, strict=True)
        )
        return TimelineDual(float(value), [state.dual for state in self.states], potentials)

    def _pass(
        self,
        source: FloatArray,
        target: FloatArray,
        at_source: Int64Array,
        at_target: Int64Array,
        part: FloatArray | float,
        potentials: FloatArray,
        sign: float,
    ) -> None:
        """Pass a part of the costs of homes to the next epoch (or to the one before), as far as the price allows.

        ``potentials`` are those that are in force between the two epochs already.
        """
        # What is passed on together with what is in force must not differ by more than the price.
        raw = np.asarray(part * source[at_source])
        in_force = -sign * potentials
        wanted = in_force + raw
        most = wanted.min(axis=1, keepdims=True) + self._price
        passed = np.minimum(wanted, most) - in_force
        source[at_source] -= passed
        target[at_target] += passed
        potentials -= sign * passed

    def evaluated(self, dual: TimelineDual) -> "EvaluatedDual":
        """Compute what given duals and potentials prove.

        Parameters
        ----------
        dual
            The duals and potentials.

        Returns
        -------
        EvaluatedDual
            The costs of all homes and the constants of the bounds, in ms.
        """
        costs, constants = [], []
        for t, (state, its_dual) in enumerate(zip(self.states, dual.duals, strict=True)):
            with_potentials = state.distance_cost + self._added(dual.potentials, t) * state.factor
            region = replace(state.relaxation.region, graph=replace(state.graph, distance_cost=with_potentials))
            bound = bound_of(its_dual, region)
            costs.append(bound.cost / state.factor)
            constants.append((bound.value - float(bound.cost.min(axis=1).sum())) / state.factor)
        return EvaluatedDual(costs, constants)


class _Shares(NamedTuple):
    """The extrapolated shares of the labels of an epoch."""

    start: OffsetArray
    server: IntArray
    x: FloatArray

    @classmethod
    def of(cls, state: EpochState) -> "_Shares":
        labels = state.relaxation.labels
        return cls(labels.start, labels.server, state.relaxation.variables.x_extrapolated)


@compiled
def _step_potentials(
    potentials: FloatArray, here: Int64Array, there: Int64Array, one: _Shares, other: _Shares, step: float, price: float
) -> None:
    """Move potentials by the difference of the shares, and project them: they differ by at most the price."""
    for row in range(len(here)):
        phi = potentials[row]
        m, r = here[row], there[row]
        for a in range(one.start[m], one.start[m + 1]):
            phi[one.server[a]] += step * one.x[a]
        for b in range(other.start[r], other.start[r + 1]):
            phi[other.server[b]] -= step * other.x[b]
        low, high = phi.min(), phi.max()
        if high - low <= price:
            continue
        # The nearest point: the lowest numbers are raised to a level, the highest are cut at the level plus the price,
        # by the same total amount.
        high -= price
        for _ in range(BISECTIONS):
            level = 0.5 * (low + high)
            balance = 0.0
            for value in phi:
                balance += max(0.0, level - value) - max(0.0, value - level - price)
            if balance > 0:
                high = level
            else:
                low = level
        for l in range(len(phi)):
            phi[l] = min(max(phi[l], low), low + price)
