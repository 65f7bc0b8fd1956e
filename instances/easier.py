"""When one instance is easier than another one, so that its lower bounds hold for the other one too."""

from dataclasses import fields

import numpy as np

from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import Ragged

# What may differ. Everything else, and so every delay and every list of clients, must be equal.
_SMALLER = ("spool",)
_LARGER = ("storage_capacity", "compute_capacity")
_UNUSED = ("name", "parameters")


def is_easier(one: Instance, other: Instance) -> bool:
    """Return whether one instance is easier than another one, so that its lower bounds hold for the other one too.

    The two differ at most in spools, which are nowhere larger in the first one, and in capacities, which are nowhere
    smaller there. So no ``θ`` of any assignment is smaller in the first one. The cloud must be far. Then a larger ``θ``
    never raises the cost (docs/model.md, fact 1), and every assignment costs at most as much in the first instance. All
    comparisons are exact.

    Parameters
    ----------
    one
        The instance that may be easier.
    other
        The instance that may be harder.

    Returns
    -------
    bool
        Whether this is so. Also True if both have the same spools and capacities; never True if the cloud is near.
    """
    return (
        one.cloud_is_far
        and all(
            _equal(getattr(one, field.name), getattr(other, field.name))
            for field in fields(Instance)
            if field.name not in _SMALLER + _LARGER + _UNUSED
        )
        and all((getattr(one, name) <= getattr(other, name)).all() for name in _SMALLER)
        and all((getattr(one, name) >= getattr(other, name)).all() for name in _LARGER)
    )


def _equal(value: object, other: object) -> bool:
    if isinstance(value, Ragged) and isinstance(other, Ragged):
        return np.array_equal(value.start, other.start) and np.array_equal(value.item, other.item)
    if value is None or other is None:
        return value is other
    return np.array_equal(np.asarray(value), np.asarray(other))
