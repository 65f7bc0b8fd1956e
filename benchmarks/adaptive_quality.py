"""Measure the excess of `adaptive` over certified bounds, beside that of other methods and without each of its parts.

python benchmarks/adaptive_quality.py
"""

from collections.abc import Callable, Mapping
from functools import partial
from unittest.mock import patch

import numpy as np

from relocbench.heuristics import adaptive
from relocbench.instances.evaluation import evaluate
from relocbench.instances.instance import Instance
from relocbench.instances.library.library import Library
from relocbench.runs.solve import solve_here

GROUPS = {
    "tiny": "tiny-*",
    "small loose": "small-loose-*",
    "small scarce": "small-scarce-*",
    "σ = 1": "paper-s1-*",
    "σ = 5": "paper-s5-*",
    "σ = 10": "paper-s10-*",
    "σ = 15": "paper-s15-*",
    "σ = 20": "paper-s20-*",
    "p = 3": "paper-spooler-p3-*",
    "p = 4": "paper-spooler-p4-*",
    "large": "large-*",
}
METHODS = (
    "nearest",
    "otos",
    "reloc[reading=pseudocode]",
    "reloc",
    "reloc[ties=placed]",
    "reloc[k=auto]",
    "anneal[moves=2e4]",
    "adaptive",
)
# What is replaced to leave out a part of `adaptive`: the object, its attribute and the new value.
WITHOUT: Mapping[str, tuple[object, str, object]] = {
    "only NS, OTOS and RELOC": (adaptive._Search, "_go_on", lambda _: False),
    "from NS only": (adaptive, "_otos_and_reloc", lambda *_: ()),
    "without prices": (adaptive, "PARAMS", adaptive.AdaptiveParams(prices=(0.0,) * len(adaptive.PARAMS.prices))),
    "without servers around": (adaptive, "PARAMS", adaptive.AdaptiveParams(around=0)),
    "without whole topics": (adaptive, "improve_topics", lambda *_: (0, 0)),
}


def cost_of(method: str, instance: Instance) -> float:
    return solve_here(instance, method, seed=0).evaluation.objective


def cost_without(part: str, instance: Instance) -> float:
    with patch.object(*WITHOUT[part]):
        return evaluate(instance, adaptive.solve(instance, seed=0, time_limit=1e9).home).objective


def main() -> None:
    library = Library()
    rows: dict[str, Callable[[Instance], float]] = {method: partial(cost_of, method) for method in METHODS}
    rows |= {f"adaptive, {part}": partial(cost_without, part) for part in WITHOUT}
    names = {group: library.names(pattern) for group, pattern in GROUPS.items()}
    instances = {name: library.read(name) for listed in names.values() for name in listed}
    print(f"{'mean excess over the certified bound':40}", *(f"{group:>12}" for group in GROUPS))
    for row, cost in rows.items():
        excess = {name: cost(instance) / library.entry(name).bound - 1 for name, instance in instances.items()}
        means = [np.mean([excess[name] for name in listed]) for listed in names.values()]
        print(f"{row:40}", *(f"{mean:12.1%}" for mean in means))


if __name__ == "__main__":
    main()
