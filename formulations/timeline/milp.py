"""A mixed-integer linear model over time: the strong model of each epoch, tied together by the cost of relocation.

The variables and rows of each epoch are those of :class:`formulations.milp_strong.StrongModel`, with its objective
times ``s_t/T``. For two successive epochs with homes ``x`` and ``x'`` there are, all in ``[0, 1]``,

- ``h[m,l]`` for each client in both, at the handover price: (T1) ``h[m,l] ≥ x'[m,l] - x[m,l]``
- ``c[n,l]`` for each topic with publishers in both, at the spool price times ``u_n``:
  (T2) ``c[n,l] ≥ x'[m,l] - Σ_{r ∈ P_n before} x[r,l]`` for each ``m ∈ P_n``

With integral homes the least values of ``h`` and ``c`` are exactly the handovers and the topics that are copied.
"""

import threading
from typing import Any

import numpy as np

from relocbench.formulations.linearisation import linearise
from relocbench.formulations.milp_strong import StrongModel
from relocbench.formulations.solvers.availability import require
from relocbench.formulations.solvers.pulp_model import Arrays
from relocbench.formulations.solvers.pulp_solver import LARGEST_SEED, in_a_thread, loaded_highs
from relocbench.formulations.timeline.schedule import Schedule
from relocbench.instances.kernels.ragged import FloatArray, IntArray
from relocbench.instances.nearest_server import nearest_server
from relocbench.instances.timeline.epoch import Epoch
from relocbench.instances.timeline.prices import Prices
from relocbench.instances.timeline.timeline import Timeline

# The objective is divided by a power of two such that its largest coefficient is about this.
LARGEST_COEFFICIENT = 2.0**6


def solve(timeline: Timeline, *, seed: int = 0, time_limit: float = 60.0, log: bool = False) -> Schedule:
    """Solve the model over time with HiGHS.

    Parameters
    ----------
    timeline
        The timeline; a small one, with delays and loads of ordinary magnitudes.
    seed, time_limit
        Of the solver. The time limit does not include building the model.
    log
        Whether the solver prints its log.

    Returns
    -------
    Schedule
        The best schedule found and the lower bound; the nearest servers if none was found.

    Raises
    ------
    ArithmeticError
        If the bound of the solver is above the cost of a schedule.

    Examples
    --------
    >>> import relocbench
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> timeline = relocbench.Timeline.static(instance, n_epochs=2, length=1)
    >>> solve(timeline).status
    'optimal'
    """
    model = TimelineModel(timeline)
    shares, bound = _run_highs(model, seed, time_limit, log)
    homes = [nearest_server(epoch.instance) for epoch in timeline.epochs()] if shares is None else model.homes(shares)
    return Schedule.of(timeline, homes, bound)


class TimelineModel:
    """The model of a timeline as arrays.

    Parameters
    ----------
    timeline
        The timeline.

    Attributes
    ----------
    arrays
        The model, with its objective divided by ``scale``.
    scale
        A power of two.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._cost: list[float] = []
        self._integral: list[bool] = []
        self._rows: list[tuple[list[int], list[float], float, float]] = []
        self._first: list[tuple[int, int]] = []  # per epoch its first column and its number of clients
        self._offset = 0.0
        self.n_servers = timeline.n_servers
        before: Epoch | None = None
        for epoch in timeline.epochs():
            self._add_epoch(epoch, epoch.length / timeline.prices.publication_period)
            if before is not None:
                self._add_handovers(before, epoch, timeline.prices)
                self._add_copies(before, epoch, timeline.prices)
            before = epoch
        largest = max((abs(value) for value in self._cost), default=0.0)
        self.scale = 2.0 ** np.ceil(np.log2(largest / LARGEST_COEFFICIENT)) if largest else 1.0
        low, high = (np.array([row[side] for row in self._rows], np.float64) for side in (2, 3))
        self.arrays = Arrays(
            cost=np.array(self._cost) / self.scale,
            offset=self._offset / self.scale,
            integral=np.array(self._integral, np.bool_),
            start=np.cumsum([0, *(len(index) for index, *_ in self._rows)], dtype=np.int32),
            index=np.array([j for index, *_ in self._rows for j in index], np.int32),
            value=np.array([a for _, values, *_ in self._rows for a in values], np.float64),
            low=low,
            high=high,
        )

    def _add_epoch(self, epoch: Epoch, rounds: float) -> None:
        """Add the strong model of an epoch. Its variables ``x[m,l]`` come first, client by client."""
        arrays = Arrays.of(StrongModel(linearise(epoch.instance)))
        at = len(self._cost)
        self._first.append((at, epoch.instance.n_clients))
        self._cost += (rounds * arrays.cost).tolist()
        self._offset += rounds * arrays.offset
        self._integral += arrays.integral.tolist()
        for row, (low, high) in enumerate(zip(arrays.low.tolist(), arrays.high.tolist(), strict=True)):
            part = slice(arrays.start[row], arrays.start[row + 1])
            self._rows.append(((arrays.index[part] + at).tolist(), arrays.value[part].tolist(), low, high))

    def _x(self, epoch: Epoch, m: int, l: int) -> int:
        """Return the column of ``x[m,l]`` of an epoch."""
        return self._first[epoch.number][0] + m * self.n_servers + l

    def _add_variable(self, cost: float) -> int:
        self._cost.append(cost)
        self._integral.append(False)
        return len(self._cost) - 1

    def _add_handovers(self, before: Epoch, epoch: Epoch, prices: Prices) -> None:
        """(T1) ``h[m,l] ≥ x'[m,l] - x[m,l]``: a client that was elsewhere pays the handover price."""
        earlier = {number: m for m, number in enumerate(before.clients.tolist())}
        for m, number in enumerate(epoch.clients.tolist()):
            for l in range(self.n_servers) if number in earlier and prices.handover else ():
                column = self._add_variable(prices.handover)
                index = [column, self._x(epoch, m, l), self._x(before, earlier[number], l)]
                self._rows.append((index, [1.0, -1.0, 1.0], 0.0, np.inf))

    def _add_copies(self, before: Epoch, epoch: Epoch, prices: Prices) -> None:
        """(T2) ``c[n,l] ≥ x'[m,l] - Σ_{r ∈ P_n before} x[r,l]``: a topic that was open elsewhere only is copied."""
        earlier = {number: before.instance.publishers[n].tolist() for n, number in enumerate(before.topics.tolist())}
        for n, number in enumerate(epoch.topics.tolist()):
            price = prices.spool * float(epoch.instance.spool[n])
            for l in range(self.n_servers) if earlier.get(number) and price else ():
                column = self._add_variable(price)
                were = [self._x(before, r, l) for r in earlier[number]]
                for m in epoch.instance.publishers[n].tolist():
                    index = [column, self._x(epoch, m, l), *were]
                    self._rows.append((index, [1.0, -1.0, *(1.0 for _ in were)], 0.0, np.inf))

    def homes(self, values: FloatArray) -> list[IntArray]:
        """Return the homes in the values of the variables.

        Parameters
        ----------
        values
            The values, in the order of the columns.

        Returns
        -------
        list of array
            The homes of each epoch.
        """
        servers = self.n_servers
        return [
            values[at : at + clients * servers].reshape(clients, servers).argmax(axis=1).astype(np.int32)
            for at, clients in self._first
        ]


def _run_highs(model: TimelineModel, seed: int, time_limit: float, log: bool) -> tuple[FloatArray | None, float]:
    """Return the values of the best solution, or None, and the lower bound."""
    require("method milp-strong", "highspy")
    import highspy

    highs = loaded_highs(model.arrays, log=log, seed=seed % LARGEST_SEED)
    highs.setOptionValue("time_limit", max(time_limit, 1e-3))
    stop = threading.Event()

    def on_check(event: Any) -> None:
        event.data_in.user_interrupt = stop.is_set()

    highs.cbMipInterrupt += on_check
    highs.cbSimplexInterrupt += on_check
    in_a_thread(highs.run, stop.set)
    status, info, found = highs.getModelStatus(), highs.getInfo(), highs.getSolution()
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        raise ArithmeticError("HiGHS reports that the model is infeasible, but every schedule is feasible")
    values = np.array(found.col_value) if found.value_valid else None
    bound = float(info.mip_dual_bound) * model.scale
    return values, bound if np.isfinite(bound) and abs(bound) < 1e15 * model.scale else -np.inf
