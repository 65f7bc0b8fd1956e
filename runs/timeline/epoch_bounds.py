"""A certified lower bound on the cost of every schedule of a timeline, in little time per epoch.

Relocation costs at least 0, so ``Σ_t s_t/T · (a lower bound on ΣD_t)`` is a lower bound on the cost of every schedule.
The bound of an epoch is that of its root relaxation. Two consecutive epochs mostly differ in positions only, so the
relaxation starts from the variables of the epoch before, and a few iterations are enough. The verifier then computes in
integers what the dual variables prove. So the bound does not depend on how well the relaxation was solved; only its
quality does.

:mod:`runs.timeline.certify_timeline` proves more in more time: it counts relocation, needs a schedule to begin with,
and writes a certificate. The bounds here need no clock and no schedule, take epochs of any size, and are the same each
time.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from relocbench.formulations.bounding.certificate_steps import dual_to_step
from relocbench.formulations.bounding.client_graph import client_graph
from relocbench.formulations.bounding.dual_bound import Dual
from relocbench.formulations.bounding.region import Region
from relocbench.formulations.bounding.root_relaxation import RootParams, RootRelaxation
from relocbench.formulations.certificates.exact_bound import DualBound
from relocbench.formulations.certificates.integer_problem import IntegerProblem, check_size
from relocbench.formulations.certificates.region import root_region
from relocbench.formulations.certificates.verification import rounded_down
from relocbench.instances.errors import InputError
from relocbench.instances.instance import Instance
from relocbench.instances.nearest_server import nearest_server
from relocbench.instances.timeline.epoch import Epoch
from relocbench.instances.timeline.prices import Prices

# Few labels and few iterations, because the relaxation starts from the epoch before.
ROOT = RootParams(most_servers=8, nearest=8, iterations=100)


@dataclass(frozen=True)
class EpochBoundParams:
    """How much work an epoch may cost.

    Attributes
    ----------
    root
        The parameters of the relaxation.
    cold_steps
        Steps of the relaxation in an epoch that cannot start from the one before, because clients or topics differ.
    warm_steps
        Steps of the relaxation in any other epoch.
    most_pairs
        With more pairs of homes over all pairs of clients that exchange messages, the relaxation takes too long. The
        bound is then that of the distances to the nearest servers.
    """

    root: RootParams = ROOT
    cold_steps: int = 3
    warm_steps: int = 1
    most_pairs: int = 200_000_000


PARAMS = EpochBoundParams()
# The margin of a bound that is computed in floating point, far above its rounding errors.
FLOAT_MARGIN = 1e-9


@dataclass(frozen=True)
class TimelineBound:
    """A lower bound on the cost of every schedule of a timeline.

    Attributes
    ----------
    epochs
        What each epoch contributes, in ms.
    """

    epochs: tuple[float, ...]

    @property
    def total(self) -> float:
        """The bound, in ms: the sum over the epochs, rounded down."""
        return rounded_down(sum(map(Fraction, self.epochs), Fraction(0)))


def timeline_bound(lengths: Sequence[float], bounds: Sequence[float], prices: Prices) -> TimelineBound:
    """Return the bound of a timeline from bounds on ``ΣD`` of its epochs.

    Parameters
    ----------
    lengths
        The length of each epoch in seconds.
    bounds
        The bound of each epoch, see :func:`epoch_bounds`.
    prices
        The prices of the timeline, of which only the publication period matters.

    Returns
    -------
    TimelineBound
        The bound.
    """
    rounds = [Fraction(length) / Fraction(prices.publication_period) for length in lengths]
    parts = (rounded_down(count * Fraction(bound)) for count, bound in zip(rounds, bounds, strict=True))
    return TimelineBound(tuple(parts))


def epoch_bounds(
    epochs: Iterable[Epoch],
    *,
    on_epoch: Callable[[], None] | None = None,
    params: EpochBoundParams = PARAMS,
) -> list[float]:
    """Compute a lower bound on ``ΣD`` of each epoch.

    Parameters
    ----------
    epochs
        The epochs, one after the other. Each bound is valid by itself; consecutive epochs make it cheap.
    on_epoch
        Called after each epoch.
    params
        The parameters.

    Returns
    -------
    list of float
        One certified bound per epoch, at least 0. The same epochs always give the same bounds.
    """
    found = []
    before: RootRelaxation | None = None
    for epoch in epochs:
        before = _solved(epoch.instance, before, params)
        found.append(_certified(epoch.instance, before))
        if on_epoch is not None:
            on_epoch()
    return found


def _solved(instance: Instance, before: RootRelaxation | None, params: EpochBoundParams) -> RootRelaxation | None:
    """Solve the relaxation of an epoch; return None if the epoch is too large."""
    graph = client_graph(instance)
    if graph.n_edges * graph.n_servers**2 > params.most_pairs:
        return None
    relaxation = RootRelaxation(graph, nearest_server(instance), False, params.root)
    warm = before is not None and graph.same_structure(before.region.graph)
    if before is not None and warm:
        relaxation.relaxation.warm_start(before.relaxation)
    for _ in range(params.warm_steps if warm else params.cold_steps):
        relaxation.step()
    return relaxation


def _certified(instance: Instance, root: RootRelaxation | None) -> float:
    """Return what the verifier computes for the best dual."""
    try:
        check_size(instance)
        problem = IntegerProblem(instance)
        region = root_region(problem)
    except InputError:  # too large for the verifier
        return _distances(instance)
    duals = [] if root is None else [root.dual]
    for dual in (*duals, Dual.silent(Region.root(client_graph(instance)) if root is None else root.region)):
        try:
            return max(0.0, rounded_down(DualBound(problem, region, dual_to_step(dual)).value))
        except InputError:  # such as multipliers that do not fit their shares
            continue
    return 0.0


def _distances(instance: Instance) -> float:
    """Return the bound that every client is at least as far from its home as from its nearest server."""
    clients = np.arange(instance.n_clients)
    nearest = instance.client_delay(clients, nearest_server(instance))
    return math.fsum(instance.client_weight * nearest) * (1 - FLOAT_MARGIN)
