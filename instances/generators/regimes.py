"""The regime of an instance: how its capacities relate to the demand, with a reason that can be verified."""

from dataclasses import dataclass

import numpy as np

from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.feasible_assignment import find_feasible_assignment
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.nearest_server import nearest_server


@dataclass(frozen=True, eq=False)
class Regime:
    """The regime of an instance and the reason for it.

    Attributes
    ----------
    kind
        ``loose``: no assignment overloads any server. ``ample``: the nearest-server assignment overloads no server,
        other assignments may. ``scarce``: the nearest-server assignment overloads a server, some other assignment
        overloads none. ``overloaded``: every assignment overloads some server. ``undecided``: the nearest-server
        assignment overloads a server, and the search found neither an assignment without overload nor a proof that none
        exists.
    reason
        The inequality or the assignment that proves the regime, in one sentence.
    witness
        For ``ample`` and ``scarce`` an assignment with ``θ = 1`` at every server, otherwise None.
    """

    kind: str
    reason: str
    witness: IntArray | None = None


def classify(instance: Instance, seed: int = 0) -> Regime:
    """Determine the regime of an instance.

    Parameters
    ----------
    instance
        The problem.
    seed
        Seed of the search for an assignment without overload.

    Returns
    -------
    Regime
        The regime with its reason.
    """
    storage, compute = instance.total_spool, instance.total_compute
    if instance.storage_capacity.min() >= storage and instance.compute_capacity.min() >= compute:
        return Regime("loose", f"each server could hold everything: storage {storage:g}, compute {compute:g}")
    if reason := _overload_proof(instance, storage, compute):
        return Regime("overloaded", reason)
    nearest = nearest_server(instance)
    at_nearest = evaluate(instance, nearest)
    if at_nearest.theta.min() >= 1:
        return Regime("ample", "with the nearest server as home no server is overloaded", nearest)
    overloaded = (
        f"the nearest server as home overloads {int((at_nearest.theta < 1).sum())} of {instance.n_servers} servers"
    )
    witness = find_feasible_assignment(instance, seed)
    # The search works with running sums, which carry rounding errors, so the evaluator confirms its result.
    if witness is None or evaluate(instance, witness).theta.min() < 1:
        return Regime(
            "undecided", f"{overloaded}; found neither an assignment without overload nor a proof that none exists"
        )
    cost = evaluate(instance, witness)
    return Regime(
        "scarce", f"{overloaded} (Y = {at_nearest.y:.4g}); an assignment without overload has Y = {cost.y:.4g}", witness
    )


def _overload_proof(instance: Instance, storage: float, compute: float) -> str | None:
    """Return why every assignment overloads a server, if one of three simple inequalities proves it."""
    tolerance = 1 + 1e-9  # covers the rounding of the sums
    if compute > instance.compute_capacity.sum() * tolerance:
        return f"total compute {compute:g} exceeds the servers' {instance.compute_capacity.sum():g}"
    if storage > instance.storage_capacity.sum() * tolerance:
        return f"the topics' spools, {storage:g}, exceed the servers' storage {instance.storage_capacity.sum():g}"
    largest = float(np.minimum(instance.storage_capacity, instance.compute_capacity).max())
    client = int(instance.client_demand.argmax())
    if instance.client_demand[client] > largest * tolerance:
        return (
            f"client {client} needs {instance.client_demand[client]:g} by itself, no server has more than {largest:g}"
        )
    return None
