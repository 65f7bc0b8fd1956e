"""Rows of a benchmark, made up for tests."""

from relocbench.instances.gap import gap
from relocbench.instances.generators.families import FAMILIES
from relocbench.runs.outcome import Outcome
from relocbench.runs.run_store import Row, Run, row_of

INSTANCES = FAMILIES["tiny"].cells({"regime": "scarce", "shape": "plain"})[0]
# The first seed of instances that are not in the library.
FIRST = 100
LIMIT = 10.0


def row(selector, problem=0, status="optimal", objective=10.0, bound=None, seconds=1.0, seed=0, **more):
    instance = INSTANCES.build(FIRST + problem)
    base = row_of(instance, Run(instance.hash, selector, seed, LIMIT, 1 << 32), Outcome(status))
    if bound is None and status == "optimal":
        bound = objective
    values = {"objective": objective, "bound": bound, "gap": gap(objective, bound), "seconds": seconds}
    return Row(**{**vars(base), **values, **more})


def race():
    """Return rows of two exact methods and a heuristic on three problems.

    No method proves the last problem, and one method fails on it.
    """
    facts = {"variables": 100.0, "constraints": 50.0, "nodes": 3.0, "root_bound": 8.0}
    trace = [(0.1, 20.0, 5.0), (0.5, 10.0, 9.0)]
    return [
        row("milp-strong", 0, seconds=1.0, facts=facts, trace=trace),
        row("cfn", 0, seconds=2.0),
        row("nearest", 0, "feasible", 12.0, seconds=0.001),
        row("milp-strong", 1, seconds=8.0, facts=facts),
        row("cfn", 1, seconds=0.5),
        row("nearest", 1, "feasible", 10.0, seconds=0.001),
        row("milp-strong", 2, "time_limit", 11.0, 8.0, seconds=10.2, trace=[(2.0, 11.0, 8.0)]),
        row("cfn", 2, "error", None, seconds=3.0, failure="died", error="the process died of SIGSEGV"),
        row("nearest", 2, "feasible", 11.0, seconds=0.001),
    ]
