"""Scaling of the coefficients before a model is built, so that the tolerances of a solver mean the same everywhere.

The tolerances of a solver are absolute, about 10⁻⁹. An instance may mix bytes and megabytes, or hold a delay of 10¹²
beside ordinary ones. :func:`scale` returns coefficients near 1. In the symbols of docs/formulations.md, with ``Z`` the
cost of known homes:

- Delays are divided by a power of two, which is exact.
- ``w_m·dH[m,l]`` above ``4·Z`` becomes ``4·Z``. A home that costs more than ``Z`` is in no better assignment, before
  and after this. The same holds for ``dS[l,k]`` where every message costs more than ``4·Z`` (for the least ``θ`` if
  the cloud is near).
- ``2·dC·Σ f`` above ``64·Z`` becomes ``64·Z``, and so does ``dS[l,k]·Σ f``. This can make an assignment cheaper that
  overloads a server by a small amount. The model is then a relaxation: its bound is valid. If it does not prove the
  optimum, the model is solved again with a larger limit (:meth:`ScaledModel.refined`).
- A share ``θ`` that is too small to matter, or too small for the tolerances of a solver, counts as 0 in models with
  variables for ``θ``. What this may cost is subtracted from every bound.
- Capacities are cut at twice the total loads, where they have no effect.

Delays never increase, and ``ΣD`` does not decrease if a delay increases. So a bound of the scaled model is a bound of
the instance.
"""

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from relocbench.formulations.linearisation import Linearisation
from relocbench.instances.kernels.ragged import FloatArray, frozen

# The largest delay is between this power of two and the next one. The delays of the paper (2·dC = 10 ms) stay as they
# are.
DELAY_EXPONENT = 3
# The cost of a home and the cost of a message are cut at this multiple of Z.
MOST_COST = 4.0
# The delays of all publications through the cloud, or between two servers, are cut at this multiple of Z.
MOST_DELAY = 64.0
# Total loads between these limits stay as they are; otherwise they are scaled to about 1000.
LEAST_LOAD, MOST_LOAD = 2.0**-20, 2.0**40


@dataclass(frozen=True)
class Negligible:
    """Which shares ``θ`` count as 0 in a model.

    Attributes
    ----------
    cost
        A share that costs at most this, relative to ``Z``.
    share
        A share below this value: the tolerances of a solver cannot tell it from 0.
    """

    cost: float
    share: float


# For methods without variables for ``θ``, which need no such limit.
NOTHING = Negligible(0.0, 0.0)


@dataclass(frozen=True, eq=False)
class ScaledModel:
    """Coefficients of an instance that are ready for a solver.

    Attributes
    ----------
    linear
        The scaled coefficients.
    unit
        The cost of 1 in the scaled model, in the unit of the instance: a power of two.
    cost
        ``Z``, the cost of the known homes in the unit of the instance.
    most_delay
        The limit on ``2·dC·Σ f`` and ``dS·Σ f``, as a multiple of ``Z``.
    negligible
        Which shares count as 0.
    complete
        Whether this limit excludes no good homes, so that the model is exact for all of them.
    original
        The coefficients before the scaling.
    """

    linear: Linearisation
    unit: float
    cost: float
    most_delay: float
    negligible: Negligible
    complete: bool
    original: Linearisation

    @cached_property
    def loss(self) -> float:
        """What the shares that count as 0 may cost, in units of the model: 0 if there are none."""
        largest = self.linear.largest_share
        lost = largest[(largest > 0) & (self.linear.client_share == 0)]
        return float(lost.max(initial=0.0)) * _steepest(self.linear)

    @property
    def magnitude(self) -> float:
        """The cost of the known homes and of all messages at their largest delay, in units of the model.

        A tolerance of a solver on a variable or on a row changes the objective by about this multiple of it.
        """
        return self.cost / self.unit + _steepest(self.linear)

    def to_model(self, cost: float) -> float:
        """Convert a cost to units of the model.

        Parameters
        ----------
        cost
            The cost in the unit of the instance.

        Returns
        -------
        float
            The cost in units of the model.
        """
        return cost / self.unit

    def to_cost(self, value: float) -> float:
        """Convert a value of the objective to the unit of the instance.

        Parameters
        ----------
        value
            The value in units of the model.

        Returns
        -------
        float
            The cost.
        """
        return value * self.unit

    def refined(self, cost: float) -> "ScaledModel | None":
        """Return the model to solve next, if this one was solved and did not prove the best homes optimal.

        Parameters
        ----------
        cost
            The cost of the best homes now.

        Returns
        -------
        ScaledModel or None
            The same instance scaled to a better cost, or with a larger limit on the delay to the cloud; None if neither
            changes anything.
        """
        if cost <= self.cost / 2:
            return scale(self.original, cost, self.most_delay, self.negligible)
        if not self.complete:
            return scale(self.original, cost, self.most_delay * MOST_DELAY, self.negligible)
        return None


def scale(
    linear: Linearisation, cost: float, most_delay: float = MOST_DELAY, negligible: Negligible = NOTHING
) -> ScaledModel:
    """Scale the coefficients of an instance.

    Parameters
    ----------
    linear
        The coefficients.
    cost
        The cost of known homes, above 0.
    most_delay
        The limit on ``2·dC·Σ f`` and ``dS·Σ f``, as a multiple of the cost.
    negligible
        Which shares count as 0.

    Returns
    -------
    ScaledModel
        The scaled coefficients.
    """
    publications = float(linear.publications.sum())
    limit = most_delay * cost / publications if publications > 0 else 0.0
    client_delay = _cut_client_delays(linear, MOST_COST * cost)
    server_delay = _cut_server_delays(linear, MOST_COST * cost)
    complete = linear.detour <= limit and bool((server_delay <= limit).all())
    server_delay = np.minimum(server_delay, limit)
    detour = min(linear.detour, limit)
    largest = max(detour, float(server_delay.max(initial=0.0)), float(client_delay.max(initial=0.0)))
    unit = math.ldexp(1.0, _exponent(largest) - DELAY_EXPONENT) if largest > 0 else 1.0
    load_unit = _load_unit(linear)
    most_stored, most_computed = 2 * float(linear.spool.sum()), 2 * float(linear.demand.sum())
    scaled = dataclasses.replace(
        linear,
        client_delay=frozen(client_delay / unit, np.float64),
        server_delay=frozen(server_delay / unit, np.float64),
        detour=detour / unit,
        spool=frozen(linear.spool / load_unit, np.float64),
        demand=frozen(linear.demand / load_unit, np.float64),
        storage_capacity=frozen(np.minimum(linear.storage_capacity, most_stored) / load_unit, np.float64),
        compute_capacity=frozen(np.minimum(linear.compute_capacity, most_computed) / load_unit, np.float64),
    )
    steepest = _steepest(scaled)
    share = max(negligible.share, negligible.cost * cost / unit / steepest) if steepest > 0 else 0.0
    scaled = dataclasses.replace(scaled, negligible_share=min(1.0, share))
    return ScaledModel(scaled, unit, cost, most_delay, negligible, complete or not publications, linear)


def _steepest(linear: Linearisation) -> float:
    """Return an upper limit on the change of the objective if every ``θ`` changes by 1."""
    return max(linear.detour, float(linear.server_delay.max(initial=0.0))) * float(linear.publications.sum())


def _cut_client_delays(linear: Linearisation, most: float) -> FloatArray:
    """Return ``dH`` such that no ``w_m·dH[m,l]`` exceeds a cost; 0 for clients without weight."""
    weight = linear.weight[:, None]
    limit = np.zeros_like(weight)
    np.divide(most, weight, out=limit, where=weight > 0)
    cut: FloatArray = np.minimum(linear.client_delay, limit)
    return cut


def _cut_server_delays(linear: Linearisation, most: float) -> FloatArray:
    """Return ``dS`` such that no message costs more than a given cost.

    A message from ``l`` to ``k`` costs at least ``W·dS[l,k]`` if the cloud is far, because the way through the cloud is
    not shorter. If the cloud is near, it costs at least ``θ_l·W·dS[l,k]``, and ``θ_l`` is 0 or at least the share of a
    server that has all loads.
    """
    if not len(linear.pair_weight):
        return np.zeros_like(linear.server_delay)
    limit = np.full(linear.n_servers, most / float(linear.pair_weight.min()))
    if not linear.cloud_is_far:
        limit /= np.where((least := linear.least_share) > 0, least, 1.0)
    cut: FloatArray = np.minimum(linear.server_delay, limit[:, None])
    return cut


def _load_unit(linear: Linearisation) -> float:
    """Return the power of two by which loads and capacities are divided."""
    total = max(float(linear.spool.sum()), float(linear.demand.sum()))
    if total == 0 or LEAST_LOAD <= total <= MOST_LOAD:
        return 1.0
    return math.ldexp(1.0, _exponent(total) - 10)


def _exponent(value: float) -> int:
    """Return the largest ``e`` with ``2^e ≤ value``."""
    return math.frexp(value)[1] - 1
