"""The benchmark as a page."""

import math
from collections.abc import Callable, Mapping, Sequence

from relocbench.reports.benchmark import plots, tables
from relocbench.reports.benchmark.assessment import Judged, Problem
from relocbench.reports.benchmark.measures import SHORTEST, mean, primal_dual_integral
from relocbench.reports.benchmark.results import Results, several
from relocbench.reports.pages.method_style import name_of
from relocbench.reports.pages.page import Page

# So many are drawn, or told; all are in the Parquet file.
MOST_RACES = 4
MOST_WRONG = 20
MOST_ERRORS = 50


def page_of(
    results: Results, link: Callable[[Judged], str | None], *, command: str, facts: Mapping[str, object], note: str = ""
) -> Page:
    """Return the page of a benchmark.

    Parameters
    ----------
    results
        The runs.
    link
        Where the log of a run is, as a page beside it would say; None if there is none.
    command, facts
        How it was made.
    note
        What else has to be known to read the times.
    """
    page = Page("Solver benchmark", _lead(results))
    _warn(page, results)
    _numbers(page, results)
    problem = f", and a problem is an instance with one of {results.seeds} seeds" if results.seeds > 1 else ""
    page.section("Methods", f"Every method has {results.time_limit:g} s for each problem{problem}. {note}")
    page.table(tables.summary(results))
    page.figure(
        plots.outcomes(results.runs, results.methods),
        "How the runs ended: the longer the green, the more was proved. Limits of time and memory, refusals (an "
        "instance that a method does not take), errors and wrong answers are different things, and kept apart.",
    )
    if results.provers:
        _proofs(page, results)
    _costs(page, results)
    if results.provers:
        _courses(page, results)
        _models(page, results)
    if 1 < len({run.group for run in results.runs}) < len(results.problems):
        page.section("By group of instances")
        page.table(tables.groups(results))
    page.section("Runs")
    page.table(tables.listing(results, link))
    _errors(page, results)
    page.provenance(command, {**facts, "data": "rows.parquet beside this page: a row a run, with its homes and trace"})
    return page


def _lead(results: Results) -> str:
    problems = several(len(results.problems), "problem")
    if not results.provers:
        excess = {method: mean(run.excess for run in results.of(method)) for method in results.methods}
        costed = {method: value for method, value in excess.items() if value is not None}
        if not costed:
            return f"No method has homes for any of {problems}."
        best = min(costed, key=lambda method: costed[method])
        return (
            f"{several(len(results.methods), 'method')} that prove nothing, on {problems}: **{name_of(best)}** comes "
            f"closest to the best cost known, {costed[best]:.1%} above it on average."
        )
    proved = {method: sum(run.proved for run in results.of(method)) for method in results.provers}
    most = max(proved.values())
    if most == 0:
        return f"Within {results.time_limit:g} s **nothing was proved** of {problems}."
    best_ones = [name_of(method) for method in results.provers if proved[method] == most]
    rest = [count for count in proved.values() if count < most]
    others = ""
    if rest:
        least, more = min(rest), max(rest)
        others = f"; the others that can prove anything, {least if least == more else f'{least} to {more}'}"
    *before, last = best_ones
    listed = f"{', '.join(before)} and {last}" if before else last
    names = listed if len(best_ones) < 4 else f"{len(best_ones)} methods"
    verb = "proves" if len(best_ones) == 1 else "prove"
    return f"Within {results.time_limit:g} s **{names}** {verb} the optimum of **{most} of {problems}**{others}."


def _warn(page: Page, results: Results) -> None:
    if not results.wrong:
        return
    many = "a wrong answer" if len(results.wrong) == 1 else f"{len(results.wrong)} wrong answers"
    page.warning(
        f"**This benchmark has {many} in it.** What is claimed there cannot be true, by the cost of homes that the "
        "evaluator has verified. These runs count as unsolved below; the other runs of these methods deserve no trust."
    )
    told = [
        f"`{one.instance}`, seed {one.seed}: {one.message}"
        + ("" if one.file is None else f"; a smallest instance that shows it: `{one.file}`")
        for one in results.wrong
    ]
    page.listing(_first(told, MOST_WRONG))


def _numbers(page: Page, results: Results) -> None:
    of_all = f" / {len(results.problems)}"
    what = f"runs: {several(len(results.methods), 'method')} on {several(len(results.problems), 'problem')}"
    told = {what: str(len(results.runs))}
    if results.provers:
        proved = {run.problem for run in results.runs if run.proved}
        told["problems proved by at least one method"] = f"{len(proved)}{of_all}"
        told["problems proved by every method that can prove"] = f"{len(results.common)}{of_all}"
    told["problems whose optimum is known, from here or the library"] = f"{results.optima_known}{of_all}"
    told["wrong answers"] = str(len(results.wrong))
    page.numbers(told)


def _proofs(page: Page, results: Results) -> None:
    page.section("Proofs")
    page.figure(
        plots.time_profile(results.runs, results.provers, results.looks),
        "Performance profile: the share of all problems that a method proved in at most so many times the time of the "
        "fastest proof of each. The left end says how often it was the fastest, the right end how much it proved at "
        f"all. Times below {SHORTEST:g} s count as that. In the middle, the order of two lines also depends on who "
        "else takes part.",
    )
    page.figure(
        plots.cactus(results.runs, results.provers, results.looks, results.time_limit),
        "Cactus plot: a method's proofs from its fastest to its slowest. Lines that reach further right prove more, "
        f"lower ones are faster. Dotted: the limit of {results.time_limit:g} s. A click on a point names the command "
        "that runs it again.",
    )


def _costs(page: Page, results: Results) -> None:
    count, known = len(results.problems), results.optima_known
    proved = f"The best known is proved optimal for {known} of {several(count, 'problem')}, by a method here or by a "
    proved += "certificate of the library" + ("." if known == count else "; for the rest it is the best anybody has.")
    page.section("Costs")
    page.figure(
        plots.cost_curves(results.runs, results.methods, results.looks),
        "The share of problems for which a method's homes cost at most so much more than the best known; the left end "
        f"says how often it has the best itself (up to 0.01 %). {proved}",
    )


def _courses(page: Page, results: Results) -> None:
    page.section("Bound and incumbent over time")
    page.figure(
        plots.gaps_over_time(results.runs, results.provers, results.looks, results.time_limit),
        "The gap between a method's homes and its bound, relative to the larger of the two, mean over all problems: "
        "the sooner a line falls, the better. It is 100 % while one of the two is missing, and throughout where a run "
        "ended in an error. The area below a line, over seconds, is the primal–dual integral of the table above.",
    )
    races = _hardest(results)
    if not races:
        return
    page.subsection(
        "The hardest of them" if len(results.problems) > len(races) else "One by one",
        "Thick lines are the cost of the best homes a method has, thin ones its bound; they meet where it has proved "
        "optimality. Grey: the best cost known.",
    )
    for problem in races:
        race = results.race(problem)
        row = race[0].row
        size = f"{row.clients} clients, {row.servers} servers, {row.topics} topics"
        seed = f", seed {row.seed}" if results.seeds > 1 else ""
        page.figure(plots.one_race(race, results.looks), f"`{row.instance}`{seed} ({size}): {_end(race)}")


def _hardest(results: Results) -> list[Problem]:
    """Return the problems that fewest have proved, and among these those with the largest integrals."""

    def hardness(problem: Problem) -> tuple[int, float]:
        mine = [run for run in results.race(problem) if run.row.selector in results.provers]
        return sum(run.proved for run in mine), -math.fsum(map(primal_dual_integral, mine))

    told = {run.problem for run in results.runs if run.row.objective is not None or run.row.bound is not None}
    return sorted((problem for problem in results.problems if problem in told), key=hardness)[:MOST_RACES]


def _end(race: Sequence[Judged]) -> str:
    """Say how a race ended."""
    proved = sorted((run for run in race if run.proved), key=lambda run: run.row.seconds)
    if proved:
        told = ", ".join(f"{name_of(run.row.selector)} after {run.row.seconds:.3g} s" for run in proved[:3])
        return f"proved by {told}{f' and {len(proved) - 3} more' if len(proved) > 3 else ''}."
    best, bound = race[0].best, race[0].bound
    if best is None or bound is None:
        return "nobody has proved anything."
    if race[0].optimum_known:
        return "nobody has proved it here; by a certificate of the library the grey cost is optimal."
    return f"nobody has proved it; the highest bound known is {(best - bound) / best:.1%} below the best cost known."


def _models(page: Page, results: Results) -> None:
    told = {method: set().union(*(run.row.facts for run in results.of(method))) for method in results.provers}
    sized = [method for method, names in told.items() if names & {*tables.SIZES, "root_bound"}]
    if not sized:
        return
    page.section("Models and root bounds", "What each method says of its own model and search.")
    page.table(tables.models(results, sized))
    rooted = [method for method in sized if any(run.root_gap is not None for run in results.of(method))]
    if rooted:
        page.figure(
            plots.root_gaps(results.runs, rooted, results.looks),
            "How far the bound of each first relaxation is below the best cost known, a point a problem: the further "
            "left, the less is left to branching.",
        )


def _errors(page: Page, results: Results) -> None:
    failed = [run for run in tables.worst_first(results.runs) if run.row.error is not None]
    if failed:
        page.subsection("What they said")
        told = [f"`{run.row.selector}` on `{run.row.instance}`, seed {run.row.seed}: {run.row.error}" for run in failed]
        page.listing(_first(told, MOST_ERRORS))


def _first(lines: list[str], most: int) -> list[str]:
    return lines[:most] + ([f"and {len(lines) - most} more, in rows.parquet"] if len(lines) > most else [])
