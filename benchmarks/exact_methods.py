"""Run every formulation and solver on the small family: model size, root bound, time to the proof or gap after 60 s.

python benchmarks/exact_methods.py FOLDER [--jobs 2]       run what is missing in the folder, then print the tables
python benchmarks/exact_methods.py FOLDER --tables         print the tables of the finished runs
python benchmarks/exact_methods.py FOLDER --largest        branch and price on still larger instances, 600 s

Each run has its own process, one thread and 60 s. Finished runs are kept, so the program can be interrupted.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from relocbench.instances.generators.families import FAMILIES, SMALL_SIZES
from relocbench.instances.instance import Instance
from relocbench.runs.progress import progress
from relocbench.runs.run_store import Row, Store
from relocbench.runs.selectors import parse_selector
from relocbench.runs.sweep import Limits, Task, sweep

SIZES = (10, 15, 20, 30)
METHODS = (
    "milp-basic",
    "milp-basic[solver=scip]",
    "milp-basic[solver=cbc]",
    "milp-strong",
    "milp-strong[solver=scip]",
    "milp-strong[solver=cbc]",
    "pyomo-direct",
    "pyomo-gdp",
    "pyomo-gdp[transform=hull]",
    "cpsat",
    "cfn",
    "branch-price",
)
# The root bounds are compared on all five seeds of the sizes whose optimum is known.
ROOT_SIZES = (10, 15, 20)
ROOTS = ("milp-basic[relax=true]", "milp-strong[condition=together,relax=true]", "milp-strong[relax=true]")
# Only the strongest method solves these sizes.
LARGE_SIZES = (26, 30, 39)
# Clients and servers of the largest instances, which are not part of the family's grid.
LARGEST = ((50, 9), (60, 6))
LARGEST_SECONDS = 600.0


def name(regime: str, clients: int) -> str:
    """Return the name of the instances of a cell, without the seed."""
    return f"small-{regime}-m{clients}-l{dict((*SMALL_SIZES, *LARGEST))[clients]}"


def built(regimes: Iterable[str], sizes: Iterable[int], seeds: Iterable[int]) -> list[Instance]:
    return [
        FAMILIES["small"].cells({"regime": regime, "clients": size})[0].build(seed)
        for size in sizes
        for regime in regimes
        for seed in seeds
    ]


def tasks() -> list[Task]:
    bound = ("scarce", "overloaded")
    every: list[tuple[list[Instance], tuple[str, ...]]] = [(built(("loose", *bound), SIZES, [0]), METHODS)]
    every.append((built(bound, ROOT_SIZES, range(5)), (*ROOTS, "branch-price")))
    every.append((built(bound, LARGE_SIZES, range(5)), ("branch-price",)))
    found = [Task(instance, parse_selector(text)) for some, methods in every for instance in some for text in methods]
    return list({(task.instance.hash, str(task.selector)): task for task in found}.values())


def largest_tasks() -> list[Task]:
    cells = [
        {"regime": regime, "clients": clients, "servers": servers}
        for clients, servers in LARGEST
        for regime in ("scarce", "overloaded")
    ]
    built = [FAMILIES["small"].cells(cell)[0].build(seed) for cell in cells for seed in range(2)]
    return [Task(instance, parse_selector("branch-price")) for instance in built]


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print("| " + " | ".join(head) + " |")
    print("|---" + "|---:" * (len(head) - 1) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def proofs(rows: list[Row]) -> None:
    """Print one table per regime: seconds to the proof, or the gap after the time limit."""
    for regime in ("loose", "scarce", "overloaded"):
        print(f"### {regime}\n")
        cells = [name(regime, clients) for clients in SIZES]
        lines = []
        for method in METHODS:
            found = {row.instance: row for row in rows if row.selector == method}
            lines.append([f"`{method}`", *(_cell(found.get(f"{cell}-0")) for cell in cells)])
        markdown(["method", *(cell.removeprefix(f"small-{regime}-") for cell in cells)], lines)


def _cell(row: Row | None) -> str:
    if row is None:
        return "not run"
    size = f"{row.facts['variables']:,.0f} × {row.facts['constraints']:,.0f}" if "variables" in row.facts else "-"
    if row.status == "optimal":
        return f"**{row.seconds:.3g} s** ({size})"
    gap = "no bound" if row.gap is None or row.gap > 1 else f"{100 * row.gap:.3g} %"  # a bound below 0 says nothing
    return f"{gap if row.status == 'time_limit' else row.status} ({size})"


def roots(rows: list[Row]) -> None:
    """Print which share of the basic model's root gap the other models close, where the optimum is proved."""
    optimum = {row.instance: row.objective for row in rows if row.status == "optimal"}
    bound: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.selector in ROOTS and row.bound is not None:
            bound.setdefault(row.selector, {})[row.instance] = row.bound
        if row.selector == "branch-price" and "root_bound" in row.facts:
            bound.setdefault(row.selector, {})[row.instance] = row.facts["root_bound"]
    basic = bound.get(ROOTS[0], {})
    lines = []
    for regime in ("scarce", "overloaded"):
        for clients in ROOT_SIZES:
            cell = name(regime, clients)
            shared = [each for each in basic if each.startswith(f"{cell}-") and optimum.get(each) is not None]
            lines.append([cell.removeprefix("small-"), *_closed(shared, basic, bound, optimum)])
        every = [each for each in basic if regime in each and optimum.get(each) is not None]
        lines.append([f"**{regime}, all {len(every)}**", *_closed(every, basic, bound, optimum)])
    markdown(["set", "basic: gap at the root", "strong, together", "strong (default)", "branch-price"], lines)


def _closed(
    names: list[str], basic: dict[str, float], bound: dict[str, dict[str, float]], optimum: dict[str, float | None]
) -> list[str]:
    """Return the basic gap in percent of the optimum, and for each other model the share it closes: mean and least."""
    best = {name: float(optimum[name] or 0.0) for name in names}
    gaps = [100 * (best[name] - basic[name]) / best[name] for name in names]
    cells = [f"{np.mean(gaps):.1f} %"]
    for method in (*ROOTS[1:], "branch-price"):
        there = bound.get(method, {})
        # Where the basic root bound equals the optimum, there is no gap to close.
        parts = [
            100 * (there[name] - basic[name]) / (best[name] - basic[name])
            for name in names
            if name in there and best[name] - basic[name] > 1e-6 * best[name]
        ]
        cells.append(f"{np.mean(parts):.1f} % (least {round(min(parts))})" if parts else "-")
    return cells


def strongest(rows: list[Row]) -> None:
    """Print the results of branch and price on the larger sizes, over all seeds."""
    lines = []
    for regime in ("scarce", "overloaded"):
        for clients in (*LARGE_SIZES, *dict(LARGEST)):
            cell = name(regime, clients)
            found = [row for row in rows if row.selector == "branch-price" and row.instance.startswith(f"{cell}-")]
            if not found:
                continue
            proved = [row.seconds for row in found if row.status == "optimal"]
            gaps = [100 * row.gap for row in found if row.status != "optimal" and row.gap is not None]
            root = [
                100 * (1 - row.facts["root_bound"] / row.objective)
                for row in found
                if "root_bound" in row.facts and row.objective
            ]
            lines.append(
                [
                    cell.removeprefix("small-"),
                    f"{len(proved)} of {len(found)}",
                    f"{min(proved):.3g} – {max(proved):.3g}" if proved else "-",
                    " ".join(f"{gap:.2g} %" for gap in gaps) or "-",
                    f"{np.mean(root):.2f} %" if root else "-",
                    f"{np.median([row.facts.get('nodes', 0) for row in found]):.0f}",
                ]
            )
    markdown(["set", "proved", "seconds", "gap of the others", "gap at the root", "nodes"], lines)


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("folder", type=Path)
    reader.add_argument("--jobs", type=int, default=2)
    reader.add_argument("--tables", action="store_true")
    reader.add_argument("--largest", action="store_true")
    chosen = reader.parse_args()
    store, limits, wanted = Store(chosen.folder), Limits(60.0), tasks()
    if chosen.largest:
        limits, wanted = Limits(LARGEST_SECONDS), largest_tasks()
    if chosen.tables:
        found = (store.find(task.run(limits)) for task in wanted)
        rows = [row for row in found if row is not None]
    else:
        rows = list(progress(sweep(wanted, store, limits, jobs=chosen.jobs), len(wanted), "running"))
    print(f"{len(rows)} of {len(wanted)} runs; {sum(row.status == 'error' for row in rows)} errors\n", file=sys.stderr)
    tables: tuple[Callable[[list[Row]], None], ...] = (strongest,) if chosen.largest else (proofs, roots, strongest)
    for table in tables:
        table(rows)


if __name__ == "__main__":
    main()
