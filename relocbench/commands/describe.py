"""``relocbench describe``: print the properties of an instance."""

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from relocbench.terminal import print_json


def run(
    instance: Annotated[Path, typer.Argument(help="Instance: a file, family.parquet#name or library:name.")],
    witness: Annotated[
        Path | None,
        typer.Option(help="Solution file to write, with an assignment that overloads no server, if one was found."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the sizes of an instance, its hash, and its load and regime: how its capacities compare with its demand.

    The storage load and the compute load are what homes at the nearest servers need, divided by the capacities of all
    servers together. The storage load "once" is for every topic on one server only; no assignment needs less. The
    features are the numbers by which a study explains where a method loses.

    Example: relocbench describe inst.json
    """
    from relocbench.instances.errors import InputError
    from relocbench.instances.evaluation import evaluate
    from relocbench.instances.features import features_of
    from relocbench.instances.files.solution_file import StoredSolution, write_solution
    from relocbench.instances.generators.regimes import classify
    from relocbench.instances.instance_source import read_instance
    from relocbench.instances.load import load_of

    read = read_instance(instance)
    load = load_of(read)
    loads = {"storage": load.storage, "storage_once": load.storage_once, "compute": load.compute}
    regime = classify(read)
    if witness is not None:
        if regime.witness is None:
            raise InputError("--witness", f"this instance is {regime.kind}: no assignment without overload is known")
        cost = evaluate(read, regime.witness).objective
        write_solution(StoredSolution(read.hash, "witness", 0, "feasible", regime.witness, cost, None), witness)
    found: dict[str, Any] = {
        "name": read.name,
        "hash": read.hash,
        "clients": read.n_clients,
        "servers": read.n_servers,
        "topics": read.n_topics,
        "memberships": len(read.members.item),
        "publications": read.n_publications,
        "topic_sizes": [int(read.members.sizes.min()), int(read.members.sizes.max())],
        "topics_per_client": [int(read.topics.sizes.min()), int(read.topics.sizes.max())],
        "total_storage": float(read.storage_capacity.sum()),
        "total_compute": float(read.compute_capacity.sum()),
        "spool_once": read.total_spool,
        "compute_demand": read.total_compute,
        # JSON has no infinity, which is the load of servers without capacity.
        **{f"{name}_load": round(share, 6) if math.isfinite(share) else None for name, share in loads.items()},
        "explicit_delays": [
            name for name in ("client_server_delay", "server_server_delay") if getattr(read, name) is not None
        ],
        "cloud_is_far": read.cloud_is_far,
        "regime": regime.kind,
        "regime_reason": regime.reason,
        "features": features_of(read),
    }
    if as_json:
        print_json(found)
        return
    features = found.pop("features")
    found |= {f"feature {name}": f"{value:.6g}" for name, value in features.items()}
    width = max(map(len, found))
    for name, value in found.items():
        if isinstance(value, list):
            value = " to ".join(map(str, value)) if name.startswith("topic") else ", ".join(value) or "none"
        print(f"{name:<{width}}  {'infinite' if value is None else value}")
