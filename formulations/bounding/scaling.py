"""Scaling of an instance to ordinary magnitudes, for bounds in floating point.

Delays are divided by a power of two so that a publication costs about 1, and loads so that a topic has a spool of about
1. Delays far above the cost of known homes are capped. None of this loses an optimal assignment, and the verifier of a
certificate does not rely on it: it computes with the delays and loads that are given, and applies only the caps. An
instance of ordinary magnitudes stays as it is.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from relocbench.instances.checks import LARGEST_CAPACITY, LARGEST_DELAY
from relocbench.instances.evaluation import evaluate
from relocbench.instances.evaluation_exact import evaluate_exact
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray


@dataclass(frozen=True)
class ScalingParams:
    """The magnitudes that count as ordinary, as exponents of 2.

    Attributes
    ----------
    least_delay, largest_delay
        The cost of a publication.
    least_spool, largest_spool
        The largest spool.
    publications
        A delay counts as far above the cost if this many publications together cost less, or all of them if they are
        fewer.
    margin
        Delays are capped only if one of them is above the cap by more than this exponent.
    cloud
        The exponent by which the cap of the cloud delay is above that of the others. A small overload delegates a small
        part only, so a large cloud delay may still matter.
    """

    least_delay: int = -4
    largest_delay: int = 12
    least_spool: int = -6
    largest_spool: int = 20
    publications: int = 1024
    margin: int = 6
    cloud: int = 20


PARAMS = ScalingParams()


@dataclass(frozen=True, eq=False)
class Scaling:
    """A scaled instance and how it was made.

    Attributes
    ----------
    instance
        The instance with scaled delays and loads.
    capped
        The same with caps; the bound is computed for it.
    delay_exponent
        One unit of the scaled delays is ``2^delay_exponent`` of the given ones.
    load_exponent
        The same for spools and capacities.
    delay_cap, cloud_cap
        The caps of a certificate; None if there are none.
    """

    instance: Instance
    capped: Instance
    delay_exponent: int = 0
    load_exponent: int = 0
    delay_cap: int | None = None
    cloud_cap: int | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the instance was left as it is."""
        return not self.delay_exponent and not self.load_exponent and self.delay_cap is None and self.cloud_cap is None


def scaling_of(instance: Instance, home: IntArray, params: ScalingParams = PARAMS) -> Scaling:
    """Scale an instance.

    Parameters
    ----------
    instance
        The instance.
    home
        Good homes, whose cost decides the scale.
    params
        The parameters.

    Returns
    -------
    Scaling
        The scaled instance.
    """
    total = _exponent_of_cost(instance, home)
    if total is None:  # a cost of 0 is optimal
        return Scaling(instance, instance)
    publications = max(1, instance.n_publications)
    each = total - round(math.log2(publications))
    delay_exponent = 0 if params.least_delay <= each <= params.largest_delay else each
    spool = _exponent(float(instance.spool.max()))
    load_exponent = 0 if spool is None or params.least_spool <= spool <= params.largest_spool else spool

    receivers = int(instance.subscribers.sizes.max(initial=1))
    cap = total + math.ceil(math.log2(max(1, receivers) * min(1.0, params.publications / publications)))
    far = _exponent(_largest_delay(instance))
    delay_cap = cap if far is not None and far > cap + params.margin else None
    cloud = _exponent(instance.cloud_delay)
    cloud_cap = cap + params.cloud if cloud is not None and cloud > cap + params.cloud + params.margin else None
    if not delay_exponent and not load_exponent and delay_cap is None and cloud_cap is None:
        return Scaling(instance, instance)

    scaled = _scaled_loads(_scaled_delays(instance, delay_exponent), load_exponent)
    capped = scaled if delay_cap is None else _explicit(scaled, math.ldexp(1.0, delay_cap - delay_exponent))
    if cloud_cap is not None:
        capped = replace(capped, cloud_delay=min(scaled.cloud_delay, math.ldexp(1.0, cloud_cap - delay_exponent)))
    return Scaling(scaled, capped, delay_exponent, load_exponent, delay_cap, cloud_cap)


def _exponent(value: float) -> int | None:
    """Return the least ``k`` with ``value ≤ 2^k``, or one more; None for 0."""
    return math.frexp(value)[1] if value > 0 else None


def _exponent_of_cost(instance: Instance, home: IntArray) -> int | None:
    cost = evaluate(instance, home).objective
    if cost > np.finfo(np.float64).tiny:
        return _exponent(cost)
    exact = evaluate_exact(instance, home).objective
    return exact.numerator.bit_length() - exact.denominator.bit_length() + 1 if exact else None


def _largest_delay(instance: Instance) -> float:
    """Return the largest ``dH`` or ``dS``."""
    return float(max(delays.max() for delays in _delays(instance)))


def _delays(instance: Instance) -> tuple[FloatArray, FloatArray]:
    """Return ``dH`` and ``dS``."""
    clients, servers = np.arange(instance.n_clients), np.arange(instance.n_servers)
    return instance.client_delay(clients[:, None], servers[None, :]), instance.server_delay


def _explicit(instance: Instance, cap: float, by: int = 0) -> Instance:
    """Give the delays as matrices, multiplied by a power of two and capped."""
    client, server = (np.minimum(_ldexp(delays, by), cap) for delays in _delays(instance))
    return replace(instance, client_server_delay=client, server_server_delay=server)


def _ldexp(values: npt.ArrayLike, by: int) -> FloatArray:
    """Multiply by a power of two; large results are cut off where an instance cannot have them."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.minimum(np.ldexp(values, by), LARGEST_DELAY), np.float64)


def _scaled_delays(instance: Instance, exponent: int) -> Instance:
    if not exponent:
        return instance
    cloud_delay = float(_ldexp(instance.cloud_delay, -exponent))
    return replace(_explicit(instance, LARGEST_DELAY, -exponent), cloud_delay=cloud_delay)


def _scaled_loads(instance: Instance, exponent: int) -> Instance:
    """Divide spools and capacities by a power of two. A capacity above all loads together is as good as that."""
    if not exponent:
        return instance
    with np.errstate(over="ignore", under="ignore"):
        # A topic that loads a server must do so in the scaled instance too, because a certificate lists these topics.
        least = np.where(instance.spool > 0, np.finfo(np.float64).smallest_subnormal, 0.0)
        spool = np.maximum(np.ldexp(instance.spool, -exponent), least)
        capacities = [
            np.minimum(np.ldexp(capacity, -exponent), LARGEST_CAPACITY)
            for capacity in (instance.storage_capacity, instance.compute_capacity)
        ]
    return replace(instance, spool=spool, storage_capacity=capacities[0], compute_capacity=capacities[1])
