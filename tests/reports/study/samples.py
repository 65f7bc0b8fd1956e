"""Rows and measurements made up for tests."""

from relocbench.instances.instance import Instance
from relocbench.instances.library.library import Library
from relocbench.reports.study.excess import Measurement
from relocbench.runs.run_store import Row


def library_instance(name="tiny-loose-plain-0") -> Instance:
    return Library().read(name)


def row(instance, selector, objective, *, bound=None, status="feasible", seed=0, **more):
    return Row(
        instance=instance.name,
        hash=instance.hash,
        parameters="{}",
        clients=instance.n_clients,
        servers=instance.n_servers,
        topics=instance.n_topics,
        selector=selector,
        seed=seed,
        time_limit=60.0,
        memory_limit=1 << 30,
        status=status,
        objective=objective,
        y=objective,
        bound=bound,
        seconds=0.5,
        **more,
    )


def measurement(instance, selector, value, *, seed=0, regime="paper-s1", sigma=1.0, kind="proven optimum", **more):
    known = {
        "hash": instance,
        "block": instance,
        "group": "paper",
        "clients": 390,
        "servers": 16,
        "topics": 64,
        "time_limit": 60.0,
        "status": "feasible",
        "error": None,
        "objective": None if value is None else 100.0 * (1 + value),
        "y": 1.0,
        "reference": 100.0,
        "reference_by": "branch-price",
        "best_known": 100.0,
        "optimal": None if value is None or kind != "proven optimum" else value <= 1e-6,
        "seconds": 0.1,
        "command": f"relocbench solve {instance}.json --method {selector}",
    }
    return Measurement(
        instance=instance,
        selector=selector,
        seed=seed,
        excess=value,
        regime=regime,
        sigma=sigma,
        reference_kind=kind,
        **(known | more),
    )
