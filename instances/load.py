"""The load of an instance: how its demand compares with its capacities, and how to set it.

With the nearest server as home of every client, server ``l`` has the storage load ``a_l`` and the compute load ``v_l``.
The storage load of the instance is ``Σ a_l / Σ A_l`` and its compute load ``Σ v_l / Σ B_l``; the compute load is the
same for every assignment. Above 1, nearest homes need more than all servers together have.
"""

import dataclasses
import re
from dataclasses import dataclass

import numpy as np

from relocbench.instances.errors import InputError, shown
from relocbench.instances.evaluation import evaluate
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray
from relocbench.instances.nearest_server import nearest_server


@dataclass(frozen=True)
class Load:
    """The load of an instance with the nearest server as home of every client.

    Attributes
    ----------
    storage, compute
        The loads of all servers divided by their capacities; infinite for capacities of 0.
    storage_once
        The storage that is needed if every topic is open on one server only, divided by the capacities. No assignment
        needs less.
    """

    storage: float
    compute: float
    storage_once: float

    @property
    def largest(self) -> float:
        """The larger of the storage load and the compute load, which ``--load`` sets."""
        return max(self.storage, self.compute)


def load_of(instance: Instance) -> Load:
    """Return the load of an instance.

    Parameters
    ----------
    instance
        The problem.

    Returns
    -------
    Load
        Its load.
    """
    cost = evaluate(instance, nearest_server(instance))
    storage, compute = float(instance.storage_capacity.sum()), float(instance.compute_capacity.sum())
    return Load(
        storage=share_of(float(cost.storage_load.sum()), storage),
        compute=share_of(float(cost.compute_load.sum()), compute),
        storage_once=storage_once(instance),
    )


def storage_once(instance: Instance) -> float:
    """Return the storage that is needed if every topic is open on one server only, as a share of the capacities.

    Parameters
    ----------
    instance
        The problem.

    Returns
    -------
    float
        The share; infinite for capacities of 0.
    """
    return share_of(instance.total_spool, float(instance.storage_capacity.sum()))


def with_load(instance: Instance, load: float) -> Instance:
    """Scale the capacities of all servers by one factor, so that the instance gets a wanted load.

    The load is the larger of ``Σ a_l / Σ A_l`` and ``Σ v_l / Σ B_l`` with the nearest server as home of every client.
    The proportions between the servers, and between storage and compute, stay what they are. At a load above 1,
    nearest homes overload servers; homes that share topics may still fit.

    Parameters
    ----------
    instance
        The problem.
    load
        The wanted load, above 0.

    Returns
    -------
    Instance
        The same problem with other capacities. Its parameters hold ``load``, and so does its name, if it has one.

    Raises
    ------
    InputError
        If the load is not a number above 0, or the instance has no demand or no capacity to scale.

    Examples
    --------
    >>> import relocbench
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> relocbench.with_load(instance, 1.1).parameters["load"]
    1.1
    """
    if isinstance(load, bool) or not isinstance(load, int | float | np.number) or not 0 < load < np.inf:
        raise InputError("load", f"expected a number above 0, got {shown(load)}")
    present = load_of(instance).largest
    if not 0 < present < np.inf:
        problem = "no capacity: give the servers storage and compute" if present else "no publisher with a spool"
        raise InputError("load", f"cannot be set, because the instance has {problem}")
    factor = present / float(load)
    return dataclasses.replace(
        scaled_capacities(instance, factor),
        name=_name_with_load(instance.name, float(load)),
        parameters={**instance.parameters, "load": float(load)},
    )


def scaled_capacities(instance: Instance, factor: float) -> Instance:
    """Return an instance with all capacities multiplied by a factor.

    Parameters
    ----------
    instance
        The instance.
    factor
        The factor.

    Returns
    -------
    Instance
        The instance; its capacities are rounded to nine digits.
    """
    return dataclasses.replace(
        instance,
        storage_capacity=rounded_capacities(instance.storage_capacity * factor),
        compute_capacity=rounded_capacities(instance.compute_capacity * factor),
    )


def _name_with_load(name: str, load: float) -> str:
    """Return a name with the load before its seed, as the families write it: ``paper-s10-load-1.1-3``."""
    part = f"load-{load:g}"
    if not name or f"-{part}" in name:
        return name
    cell, dash, seed = re.sub(r"-load-[^-]+", "", name).rpartition("-")
    return f"{cell}-{part}-{seed}" if dash and seed.isdecimal() else f"{name}-{part}"


def share_of(part: float, whole: float) -> float:
    """Return the quotient of two numbers, such as a load and a capacity.

    Parameters
    ----------
    part, whole
        The numbers, from 0.

    Returns
    -------
    float
        The quotient; infinite if only the second one is 0, and 0 if both are.
    """
    return part / whole if whole else np.inf if part else 0.0


def rounded_capacities(capacity: FloatArray) -> FloatArray:
    """Round capacities that were computed from sums.

    Parameters
    ----------
    capacity
        The capacities.

    Returns
    -------
    array
        The capacities with nine digits.
    """
    # Nine digits, because the last bits of the sums may differ between machines.
    return np.array([float(f"{value:.9g}") for value in capacity])
