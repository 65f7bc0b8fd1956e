"""The tables of a benchmark's page."""

from collections.abc import Callable, Sequence

from relocbench.reports.benchmark.assessment import AssessedRun
from relocbench.reports.benchmark.measures import (
    SHIFT,
    mean,
    median,
    primal_dual_integral,
    primal_integral,
)
from relocbench.reports.benchmark.plots import OUTCOME_NAMES
from relocbench.reports.benchmark.results import Results, counted
from relocbench.reports.pages.method_style import VIRTUAL_BEST
from relocbench.reports.pages.tables import Cell, Column, Table, Value
from relocbench.reports.statistics import shifted_geometric_mean
from relocbench.runs.isolation.supervisor import GIB

# The page lists at most this many runs; the Parquet file has all.
MOST_LISTED = 1000
# The facts that describe the size of a model and of its search.
SIZES = ("variables", "constraints", "binaries", "nodes")
TONES = {"optimal": "good", "wrong": "bad", "error": "bad"}

TIME = Column(
    "SGM time", ".3g", f"shifted geometric mean, shift {SHIFT:g} s; a run without a proof counts as the limit"
)
EXCESS = Column("excess", ".2%", "over the best known objective, mean over the problems with homes")
GAP = Column("gap", ".2%", "between its objective and its own bound, mean over the runs without a proof")


def summary(results: Results) -> Table:
    """Return the table with one row per method.

    Parameters
    ----------
    results
        The benchmark.

    Returns
    -------
    Table
        The table.
    """
    columns = [
        Column("method"),
        Column("proved", "d"),
        TIME,
        Column("SGM all", ".3g", "the same over the problems that all proving methods have proved"),
        Column("PD int.", ".3g", "primal–dual integral over the time limit, mean, s"),
        Column("P int.", ".3g", "primal integral: incumbent against the best known objective, mean, s"),
        EXCESS,
        GAP,
        Column("MiB", ".0f", "largest memory use of a run"),
    ]
    rows: list[list[Value]] = []
    for method in results.methods:
        own = results.of(method)
        proofs: list[Value] = [None] * 4
        if method in results.provers:
            proofs = [
                sum(run.proved for run in own),
                _time(own),
                _time(results.of(method, results.common)),
                mean(map(primal_dual_integral, own)),
            ]
        quality = [mean(map(primal_integral, own)), mean(run.excess for run in own), _gap(own)]
        rows.append([Cell.of_method(method), *proofs, *quality, max(run.row.peak_memory for run in own) / 2**20])
    if len(results.methods) > 1:
        rows.append(_virtual_best(results))
    return Table(
        columns,
        rows,
        f"{counted(len(results.problems), 'problem')}. `proved`: problems with a proof of optimality. `SGM time`: "
        f"shifted geometric mean of the seconds to the proof (shift {SHIFT:g} s); a run without a proof counts as "
        f"{results.time_limit:g} s. `SGM all`: the same over the {counted(len(results.common), 'problem')} that all "
        "proving methods have proved. `PD int.` and `P int.`: mean primal–dual and primal integral in seconds; smaller "
        "is better. `excess`: mean excess over the best known objective. `gap`: mean gap to the method's own bound, "
        "over the runs without a proof. `MiB`: the largest memory use of a run. The **virtual best** has on every "
        "problem the least value of any method.",
    )


def _virtual_best(results: Results) -> list[Value]:
    """Return the row of the best method of each problem, measure by measure."""
    runs = [results.on(problem) for problem in results.problems]
    proofs: list[Value] = [None] * 4
    if results.provers:
        proving = [[run for run in own if run.row.selector in results.provers] for own in runs]
        common = [own for own in proving if own and own[0].problem in results.common]
        proofs = [
            sum(any(run.proved for run in own) for own in proving),
            *(
                shifted_geometric_mean((min(run.seconds_or_limit for run in own) for own in some if own), SHIFT)
                for some in (proving, common)
            ),
            mean(min(map(primal_dual_integral, own)) for own in proving if own),
        ]
    integrals = [[value for run in own if (value := primal_integral(run)) is not None] for own in runs]
    excess = [[run.excess for run in own if run.excess is not None] for own in runs]
    quality = [mean(min(values) for values in measure if values) for measure in (integrals, excess)]
    return [Cell.of_method(VIRTUAL_BEST), *proofs, *quality, None, None]


def groups(results: Results) -> Table:
    """Return the table with one row per group of instances and method.

    Parameters
    ----------
    results
        The benchmark.

    Returns
    -------
    Table
        The table.
    """
    parts: dict[tuple[str, str], list[AssessedRun]] = {}
    for run in results.runs:
        parts.setdefault((run.group, run.row.selector), []).append(run)
    rows: list[list[Value]] = []
    for (group, method), own in parts.items():
        proves = method in results.provers
        proofs = [sum(run.proved for run in own), _time(own)] if proves else [None, None]
        excess = mean(run.excess for run in own)
        rows.append([group, Cell.of_method(method), len(own), *proofs, excess, _gap(own)])
    columns = [Column("instances"), Column("method"), Column("problems", "d"), Column("proved", "d"), TIME, EXCESS, GAP]
    return Table(columns, rows, "The columns are those of the first table.")


def models(results: Results, methods: Sequence[str]) -> Table:
    """Return the table with one row per method that describes its model and search.

    Parameters
    ----------
    results
        The benchmark.
    methods
        The selectors of the methods.

    Returns
    -------
    Table
        The table.
    """
    columns = [
        Column("method"),
        *(Column(name, ",.0f", "median") for name in SIZES),
        Column("root gap", ".2%", "mean gap between the best known objective and the root bound"),
        Column("final gap", ".2%", "mean gap between the best known objective and the final bound"),
    ]
    rows: list[list[Value]] = []
    for method in methods:
        own = results.of(method)
        sizes = [median(run.row.facts.get(name) for run in own) for name in SIZES]
        gaps = [mean(run.root_gap for run in own), mean(run.final_gap for run in own)]
        rows.append([Cell.of_method(method), *sizes, *gaps])
    return Table(
        columns,
        rows,
        "Sizes and nodes are medians over the problems. Gaps are means; they are relative to the best known objective. "
        "A dash means that the method does not report the value.",
    )


def listing(results: Results, link: Callable[[AssessedRun], str | None]) -> Table:
    """Return the table with one row per run.

    Parameters
    ----------
    results
        The benchmark.
    link
        A function that returns the address of the log of a run, or None if there is no log.

    Returns
    -------
    Table
        The table; wrong answers and errors come first.
    """
    columns = [
        Column("instance"),
        Column("method"),
        Column("seed", "d"),
        Column("ended"),
        Column("ΣD", ".8g"),
        Column("bound", ".8g"),
        Column("gap", ".2%", "between ΣD and the bound of the run"),
        Column("excess", ".2%", "over the best known objective"),
        Column("seconds", ".3g"),
        Column("MiB", ".0f"),
        Column("log"),
    ]
    listed = worst_first(results.runs)[:MOST_LISTED]
    rows: list[list[Value]] = []
    for run in listed:
        row, log = run.row, link(run)
        ended = Cell(OUTCOME_NAMES[run.outcome], tone=TONES.get(run.outcome))
        numbers = [row.objective, row.bound, row.gap, run.excess, row.seconds, row.peak_memory / 2**20]
        name = row.instance or row.hash[:12]
        file = None if log is None else Cell("log", href=log)
        rows.append([name, Cell.of_method(row.selector), row.seed, ended, *numbers, file])
    omitted = len(results.runs) - len(rows)
    which = f"All runs except {omitted}, which are in rows.parquet" if omitted else "All runs"
    limit = f"{results.memory_limit / GIB:g} GiB"
    return Table(
        columns,
        rows,
        f"{which}. ΣD and bound are in ms. The gap is to the bound of the run itself, the excess is over the best "
        f"known objective. The memory limit is {limit}.",
    )


def worst_first(runs: Sequence[AssessedRun]) -> list[AssessedRun]:
    """Sort runs so that wrong answers come first and errors second.

    Parameters
    ----------
    runs
        The runs.

    Returns
    -------
    list of AssessedRun
        The runs; otherwise in the same order.
    """
    return sorted(runs, key=lambda run: (run.outcome != "wrong", run.outcome != "error"))


def _time(runs: Sequence[AssessedRun]) -> float | None:
    return shifted_geometric_mean((run.seconds_or_limit for run in runs), SHIFT)


def _gap(runs: Sequence[AssessedRun]) -> float | None:
    return mean(run.row.gap for run in runs if run.outcome in ("claimed", "feasible", "time_limit", "memory_limit"))
