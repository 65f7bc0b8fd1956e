"""How capacities relate to demand: told of an instance with a reason that can be checked."""

from dataclasses import dataclass

import numpy as np

from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.feasible_assignment import fitting_assignment
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.nearest_server import nearest_server


@dataclass(frozen=True, eq=False)
class Regime:
    """What kind of instance this is, and why.

    Attributes
    ----------
    kind
        ``loose``: no assignment overloads any server. ``ample``: the nearest servers do not overload, other assignments
        might. ``scarce``: the nearest servers overload, some assignment does not. ``overloaded``: every assignment
        overloads some server. ``undecided``: the nearest servers overload, and neither a fitting assignment nor a proof
        that there is none was found.
    reason
        The inequality or the assignment that shows it, in one sentence.
    witness
        For ``ample`` and ``scarce`` an assignment with ``θ = 1`` everywhere.
    """

    kind: str
    reason: str
    witness: IntArray | None = None


def classify(instance: Instance, seed: int = 0) -> Regime:
    """Find the regime of an instance; ``seed`` steers the search for a fitting assignment."""
    storage, compute = instance.total_spool, instance.total_compute
    if instance.storage_capacity.min() >= storage and instance.compute_capacity.min() >= compute:
        return Regime("loose", f"each server could take everything: storage {storage:g}, compute {compute:g}")
    if reason := _overload_proof(instance, storage, compute):
        return Regime("overloaded", reason)
    nearest = nearest_server(instance)
    at_nearest = evaluate(instance, nearest)
    if at_nearest.theta.min() >= 1:
        return Regime("ample", "with the nearest server as home no server is overloaded", nearest)
    overloaded = (
        f"the nearest server as home overloads {int((at_nearest.theta < 1).sum())} of {instance.n_servers} servers"
    )
    witness = fitting_assignment(instance, seed)
    # The search keeps running sums; what counts is what the evaluator says of its result.
    if witness is None or evaluate(instance, witness).theta.min() < 1:
        return Regime("undecided", f"{overloaded}; no fitting assignment found, and no proof that there is none")
    cost = evaluate(instance, witness)
    return Regime("scarce", f"{overloaded} (Y = {at_nearest.y:.4g}); one that fits has Y = {cost.y:.4g}", witness)


def _overload_proof(instance: Instance, storage: float, compute: float) -> str | None:
    """Return why no assignment can fit, if one of three simple arguments shows it."""
    safely = 1 + 1e-9  # the sums are rounded
    if compute > instance.compute_capacity.sum() * safely:
        return f"total compute {compute:g} exceeds the servers' {instance.compute_capacity.sum():g}"
    if storage > instance.storage_capacity.sum() * safely:
        return f"the topics' spools, {storage:g}, exceed the servers' storage {instance.storage_capacity.sum():g}"
    room = float(np.minimum(instance.storage_capacity, instance.compute_capacity).max())
    client = int(instance.client_demand.argmax())
    if instance.client_demand[client] > room * safely:
        return f"client {client} needs {instance.client_demand[client]:g} by itself, no server has more than {room:g}"
    return None
