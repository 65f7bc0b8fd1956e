"""The page of a benchmark."""

import math
from collections.abc import Callable, Mapping, Sequence

from relocbench.instances.gap import gap
from relocbench.reports.benchmark import plots, tables
from relocbench.reports.benchmark.assessment import AssessedRun, Problem
from relocbench.reports.benchmark.measures import SHORTEST, mean, primal_dual_integral
from relocbench.reports.benchmark.results import Results, counted
from relocbench.reports.pages.method_style import name_of
from relocbench.reports.pages.page import Page

# The page shows at most this many problems over time, wrong answers and errors; the Parquet file has all.
MOST_PROBLEMS = 4
MOST_WRONG = 20
MOST_ERRORS = 50


def page_of(
    results: Results,
    link: Callable[[AssessedRun], str | None],
    *,
    command: str,
    facts: Mapping[str, object],
    note: str = "",
) -> Page:
    """Return the page of a benchmark.

    Parameters
    ----------
    results
        The runs.
    link
        A function that returns the address of the log of a run, relative to the page, or None if there is no log.
    command, facts
        The origin of the page; see :meth:`reports.pages.page.Page.provenance`.
    note
        A remark that readers need to interpret the times.

    Returns
    -------
    Page
        The page.
    """
    page = Page("Solver benchmark", _lead(results), kind="benchmark")
    page.describe(instances=len({run.row.hash for run in results.runs}), methods=results.methods)
    _add_wrong_answers(page, results)
    _add_numbers(page, results)
    problem = f", and a problem is an instance with one of {results.seeds} seeds" if results.seeds > 1 else ""
    page.section("Methods", f"Every method has {results.time_limit:g} s for each problem{problem}. {note}")
    page.figure(
        plots.outcomes(results.runs, results.methods),
        "How the runs ended. The green part shows the proofs of optimality. A refusal means that a method does not "
        "accept the instance. Limits, refusals, errors and wrong answers are counted separately.",
    )
    page.table(tables.summary(results))
    if results.provers:
        _add_proofs(page, results)
    _add_excess(page, results)
    if results.provers:
        _add_trajectories(page, results)
        _add_models(page, results)
    if 1 < len({run.group for run in results.runs}) < len(results.problems):
        page.section("By group of instances")
        page.table(tables.groups(results))
    page.section("Runs")
    page.table(tables.listing(results, link))
    _add_errors(page, results)
    data = "rows.parquet beside this page has one row per run, with its homes and trace"
    page.provenance(command, {**facts, "data": data})
    return page


def _lead(results: Results) -> str:
    problems = counted(len(results.problems), "problem")
    if not results.provers:
        means = {method: mean(run.excess for run in results.of(method)) for method in results.methods}
        known = {method: value for method, value in means.items() if value is not None}
        if not known:
            return f"No method has homes for any of {problems}."
        best = min(known, key=lambda method: known[method])
        return (
            f"{counted(len(results.methods), 'heuristic')} on {problems}: **{name_of(best)}** has the least mean "
            f"excess over the best known objective, {known[best]:.1%}."
        )
    proved = {method: sum(run.proved for run in results.of(method)) for method in results.provers}
    most = max(proved.values())
    if most == 0:
        return f"Within {results.time_limit:g} s **no method proved optimality** for any of {problems}."
    best_ones = [name_of(method) for method in results.provers if proved[method] == most]
    rest = [count for count in proved.values() if count < most]
    others = ""
    if rest:
        least, more = min(rest), max(rest)
        others = f"; the other proving methods, {least if least == more else f'{least} to {more}'}"
    *before, last = best_ones
    listed = f"{', '.join(before)} and {last}" if before else last
    names = listed if len(best_ones) < 4 else f"{len(best_ones)} methods"
    verb = "proves" if len(best_ones) == 1 else "prove"
    return f"Within {results.time_limit:g} s **{names}** {verb} the optimum of **{most} of {problems}**{others}."


def _add_wrong_answers(page: Page, results: Results) -> None:
    if not results.wrong:
        return
    many = "a wrong answer" if len(results.wrong) == 1 else f"{len(results.wrong)} wrong answers"
    page.warning(
        f"**This benchmark contains {many}.** The claims below contradict the cost of homes that the evaluator has "
        "verified. These runs count as unsolved, and other results of the same methods should not be trusted."
    )
    lines = [
        f"`{one.instance}`, seed {one.seed}: {one.message}"
        + ("" if one.file is None else f"; a smallest instance that shows it: `{one.file}`")
        for one in results.wrong
    ]
    page.listing(_first(lines, MOST_WRONG))


def _add_numbers(page: Page, results: Results) -> None:
    total = f" / {len(results.problems)}"
    runs = f"runs: {counted(len(results.methods), 'method')} on {counted(len(results.problems), 'problem')}"
    numbers = {runs: str(len(results.runs))}
    if results.provers:
        proved = {run.problem for run in results.runs if run.proved}
        numbers["problems proved by at least one method"] = f"{len(proved)}{total}"
        numbers["problems proved by all proving methods"] = f"{len(results.common)}{total}"
    numbers["problems whose optimum is known, from here or the library"] = f"{results.optima_known}{total}"
    numbers["wrong answers"] = str(len(results.wrong))
    page.numbers(numbers)


def _add_proofs(page: Page, results: Results) -> None:
    page.section("Proofs")
    page.figure(
        plots.time_profile(results.runs, results.provers, results.styles),
        "Performance profile: the share of all problems that a method proved within a multiple of the time of the "
        "fastest proof. The left end shows how often the method was the fastest, the right end how much it proved in "
        f"total. Times below {SHORTEST:g} s count as {SHORTEST:g} s. Between the ends, the order of two lines also "
        "depends on the other methods.",
    )
    page.figure(
        plots.cactus(results.runs, results.provers, results.styles, results.time_limit),
        "Cactus plot: the proofs of a method from the fastest to the slowest. A line that reaches further right has "
        f"more proofs, a lower line is faster. The dotted line is the time limit of {results.time_limit:g} s. A click "
        "on a point shows the command that repeats the run.",
    )


def _add_excess(page: Page, results: Results) -> None:
    count, known = len(results.problems), results.optima_known
    proved = f"The best known objective is proved optimal for {known} of {counted(count, 'problem')}, by a method here "
    proved += "or by a certificate of the library."
    page.section("Excess over the best known objective")
    page.figure(
        plots.excess_curves(results.runs, results.methods, results.styles),
        "The share of problems for which the objective of a method has at most a given excess over the best known one. "
        f"The left end shows how often the method has the best one itself (up to 0.01 %). {proved}",
    )


def _add_trajectories(page: Page, results: Results) -> None:
    page.section("Bound and incumbent over time")
    page.figure(
        plots.gaps_over_time(results.runs, results.provers, results.styles, results.time_limit),
        "The gap between the incumbent and the bound of a method, mean over all problems. A line that falls earlier is "
        "better. The gap is 100 % while one of the two is missing, and all the time for a run that ended in an error. "
        "The area below a line is the primal–dual integral of the table above.",
    )
    hardest = _hardest(results)
    if not hardest:
        return
    page.subsection(
        "The hardest problems" if len(results.problems) > len(hardest) else "Problem by problem",
        "Thick lines are incumbents, thin lines are bounds; they meet where the method has proved optimality. The grey "
        "line is the best known objective.",
    )
    for problem in hardest:
        runs = results.on(problem)
        row = runs[0].row
        size = f"{row.clients} clients, {row.servers} servers, {row.topics} topics"
        seed = f", seed {row.seed}" if results.seeds > 1 else ""
        page.figure(plots.one_problem(runs, results.styles), f"`{row.instance}`{seed} ({size}): {_result(runs)}")


def _hardest(results: Results) -> list[Problem]:
    """Return the problems with the fewest proofs; those with the largest integrals come first among equals."""

    def hardness(problem: Problem) -> tuple[int, float]:
        runs = [run for run in results.on(problem) if run.row.selector in results.provers]
        return sum(run.proved for run in runs), -math.fsum(map(primal_dual_integral, runs))

    answered = {run.problem for run in results.runs if run.row.objective is not None or run.row.bound is not None}
    return sorted((problem for problem in results.problems if problem in answered), key=hardness)[:MOST_PROBLEMS]


def _result(runs: Sequence[AssessedRun]) -> str:
    """Return which methods have proved a problem, or how large the remaining gap is."""
    proved = sorted((run for run in runs if run.proved), key=lambda run: run.row.seconds)
    if proved:
        fastest = ", ".join(f"{name_of(run.row.selector)} after {run.row.seconds:.3g} s" for run in proved[:3])
        return f"proved by {fastest}{f' and {len(proved) - 3} more' if len(proved) > 3 else ''}."
    best, bound = runs[0].best, runs[0].bound
    if best is None or bound is None:
        return "no method has proved anything."
    if runs[0].optimum_known:
        return "no method has proved it here; a certificate of the library proves that the grey line is optimal."
    return f"no method has proved it; the gap between the best known objective and bound is {gap(best, bound):.1%}."


def _add_models(page: Page, results: Results) -> None:
    facts = {method: set().union(*(run.row.facts for run in results.of(method))) for method in results.provers}
    sized = [method for method, names in facts.items() if names & {*tables.SIZES, "root_bound"}]
    if not sized:
        return
    page.section("Models and root bounds", "What each method reports about its model and search.")
    page.table(tables.models(results, sized))
    rooted = [method for method in sized if any(run.root_gap is not None for run in results.of(method))]
    if rooted:
        page.figure(
            plots.root_gaps(results.runs, rooted, results.styles),
            "The gap between the best known objective and the bound of the root relaxation, one point per problem. "
            "Further left is better: less remains for branching.",
        )


def _add_errors(page: Page, results: Results) -> None:
    failed = [run for run in tables.worst_first(results.runs) if run.row.error is not None]
    if failed:
        page.subsection("Error messages")
        lines = [
            f"`{run.row.selector}` on `{run.row.instance}`, seed {run.row.seed}: {run.row.error}" for run in failed
        ]
        page.listing(_first(lines, MOST_ERRORS))


def _first(lines: list[str], most: int) -> list[str]:
    return lines[:most] + ([f"and {len(lines) - most} more, in rows.parquet"] if len(lines) > most else [])
