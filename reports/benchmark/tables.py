"""The tables of a benchmark's page."""

from collections.abc import Callable, Sequence

from relocbench.reports.benchmark.assessment import Judged
from relocbench.reports.benchmark.measures import (
    SHIFT,
    mean,
    median,
    primal_dual_integral,
    primal_integral,
    shifted_geometric_mean,
)
from relocbench.reports.benchmark.plots import OUTCOME_NAMES
from relocbench.reports.benchmark.results import Results, several
from relocbench.reports.pages.tables import Cell, Column, Table, Value
from relocbench.runs.isolation.supervisor import GIB

# So many runs are listed; all are in the Parquet file.
MOST_LISTED = 1000
SIZES = ("variables", "constraints", "binaries", "nodes")
TONES = {"optimal": "good", "wrong": "bad", "error": "bad"}

TIME = Column("SGM time", ".3g", f"shifted geometric mean, shift {SHIFT:g} s; without a proof the limit counts")
EXCESS = Column("above best", ".2%", "its cost above the best cost known, mean over the problems it has homes for")
GAP = Column("gap left", ".2%", "its cost against its own bound, mean over what it has not proved")


def summary(results: Results) -> Table:
    """Return a line a method."""
    columns = [
        Column("method"),
        Column("proved", "d"),
        TIME,
        Column("SGM all", ".3g", "the same over the problems that every proving method has proved"),
        Column("PD int.", ".3g", "primal–dual integral over the time limit, mean, s"),
        Column("P int.", ".3g", "primal integral: of the cost alone, against the best cost known, mean, s"),
        EXCESS,
        GAP,
        Column("MiB", ".0f", "the most memory of a run"),
    ]
    rows: list[list[Value]] = []
    for method in results.methods:
        mine = results.of(method)
        proofs: list[Value] = [None] * 4
        if method in results.provers:
            proofs = [
                sum(run.proved for run in mine),
                _time(mine),
                _time(results.of(method, results.common)),
                mean(map(primal_dual_integral, mine)),
            ]
        costs = [mean(map(primal_integral, mine)), mean(run.excess for run in mine), _gap(mine)]
        rows.append([Cell.of_method(method), *proofs, *costs, max(run.row.peak_memory for run in mine) / 2**20])
    return Table(
        columns,
        rows,
        f"Of {several(len(results.problems), 'problem')}. `SGM time`: shifted geometric mean of the seconds to the "
        f"proof (shift {SHIFT:g} s), where a run without one counts as {results.time_limit:g} s; `SGM all`: the same "
        f"over the {several(len(results.common), 'problem')} that every method that can prove has proved. `PD int.` "
        "and `P int.`: primal–dual and primal integral in seconds, means; small is fast and good. `above best`: mean "
        "cost relative to the best known; `gap left`: to the method's own bound, where it proved nothing; `MiB`: the "
        "most memory a run took.",
    )


def groups(results: Results) -> Table:
    """Return a line for each method on each group of instances."""
    parts: dict[tuple[str, str], list[Judged]] = {}
    for run in results.runs:
        parts.setdefault((run.group, run.row.selector), []).append(run)
    rows: list[list[Value]] = []
    for (group, method), mine in parts.items():
        proves = method in results.provers
        proofs = [sum(run.proved for run in mine), _time(mine)] if proves else [None, None]
        excess = mean(run.excess for run in mine)
        rows.append([group, Cell.of_method(method), len(mine), *proofs, excess, _gap(mine)])
    columns = [Column("instances"), Column("method"), Column("problems", "d"), Column("proved", "d"), TIME, EXCESS, GAP]
    return Table(columns, rows, "The columns are those of the first table.")


def models(results: Results, methods: Sequence[str]) -> Table:
    """Return a line a method with what it says of its model and search."""
    columns = [
        Column("method"),
        *(Column(name, ",.0f", "median") for name in SIZES),
        Column("root gap", ".2%", "of the root bound to the best cost known, mean"),
        Column("final gap", ".2%", "of the last bound to the best cost known, mean"),
    ]
    rows: list[list[Value]] = []
    for method in methods:
        mine = results.of(method)
        sizes = [median(run.row.facts.get(name) for run in mine) for name in SIZES]
        gaps = [mean(run.root_gap for run in mine), mean(run.final_gap for run in mine)]
        rows.append([Cell.of_method(method), *sizes, *gaps])
    return Table(
        columns,
        rows,
        "Sizes and nodes are medians over the problems, gaps are means, relative to the best cost known. A dash: the "
        "method has no such thing, or does not say.",
    )


def listing(results: Results, link: Callable[[Judged], str | None]) -> Table:
    """Return a line a run; ``link`` says where its log is."""
    columns = [
        Column("instance"),
        Column("method"),
        Column("seed", "d"),
        Column("ended"),
        Column("ΣD", ".8g"),
        Column("bound", ".8g"),
        Column("gap", ".2%"),
        Column("above best", ".2%"),
        Column("seconds", ".3g"),
        Column("MiB", ".0f"),
        Column("log"),
    ]
    shown = worst_first(results.runs)[:MOST_LISTED]
    rows: list[list[Value]] = []
    for run in shown:
        row, log = run.row, link(run)
        ended = Cell(OUTCOME_NAMES[run.outcome], tone=TONES.get(run.outcome))
        numbers = [row.objective, row.bound, row.gap, run.excess, row.seconds, row.peak_memory / 2**20]
        name = row.instance or row.hash[:12]
        file = None if log is None else Cell("log", href=log)
        rows.append([name, Cell.of_method(row.selector), row.seed, ended, *numbers, file])
    left = len(results.runs) - len(rows)
    all_ = f"All runs but {left}, which are in rows.parquet" if left else "All runs"
    most = f"{results.memory_limit / GIB:g} GiB"
    return Table(
        columns, rows, f"{all_}. ΣD and bound in ms, the gap is to the run's own bound; memory at most {most}."
    )


def worst_first(runs: Sequence[Judged]) -> list[Judged]:
    """Return the runs, those with a wrong answer or an error first."""
    return sorted(runs, key=lambda run: (run.outcome != "wrong", run.outcome != "error"))


def _time(runs: Sequence[Judged]) -> float | None:
    return shifted_geometric_mean(run.seconds_or_limit for run in runs)


def _gap(runs: Sequence[Judged]) -> float | None:
    return mean(run.row.gap for run in runs if run.outcome in ("feasible", "time_limit", "memory_limit"))
