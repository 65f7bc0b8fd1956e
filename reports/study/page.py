"""The page of a gap study."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from relocbench.reports.pages.method_style import name_of
from relocbench.reports.pages.page import Page
from relocbench.reports.pages.tables import Cell, Column, Table, Value
from relocbench.reports.statistics import FEWEST_FOR_INTERVAL
from relocbench.reports.study import plots
from relocbench.reports.study.excess import SAME, Comparison, Gap, Summary, comparisons, summaries
from relocbench.reports.study.references import BOUND, OPTIMUM
from relocbench.runs.methods import METHODS

DEFINITION = (
    "The **gap** of a run is `ΣD / reference - 1`: how much more delay its homes cause than the reference. The "
    "reference is the **proven optimum** where one is known, else the **certified bound**, which no assignment is "
    "below. Against a bound a gap is the most a method can be above the optimum; it may be nearer."
)


def write_page(
    gaps: Sequence[Gap], path: Path, *, command: str, facts: dict[str, object], warnings: Sequence[str]
) -> Path:
    """Write the page of a study.

    Parameters
    ----------
    gaps, path
        What was measured, and the file.
    command, facts
        How it was made.
    warnings
        What a reader has to know first: contradictions, failed runs.
    """
    page = Page("How far from optimal?", lead=lead(gaps))
    for warning in warnings:
        page.warning(warning)
    page.text(DEFINITION)
    page.numbers(_numbers(gaps))
    groups = list(dict.fromkeys(gap.group for gap in gaps))
    _add_tables(page, gaps)
    _add_sigma(page, gaps, groups)
    _add_distributions(page, gaps, groups)
    _add_time(page, gaps, groups)
    _add_runs(page, gaps, groups)
    _add_comparisons(page, comparisons(gaps))
    page.provenance(command, {"data": "gaps.parquet beside this page, one row a run; runs/ holds the homes", **facts})
    return page.write(path)


def lead(gaps: Sequence[Gap]) -> str:
    """Say what was found, a paragraph a group."""
    groups = dict.fromkeys(gap.group for gap in gaps if gap.gap is not None)
    return "\n\n".join(_finding(group, [gap for gap in gaps if gap.group == group]) for group in groups)


COLUMNS = [
    Column("regime"),
    Column("method"),
    Column("against", hint="how many instances have a proven optimum, how many a certified bound"),
    Column("mean", ".2%", "over instances, of the mean over seeds"),
    Column("95 % CI", hint=f"bootstrap over instances; from {FEWEST_FOR_INTERVAL} instances on"),
    Column("median", ".2%", "over instances"),
    Column("worst", ".1%", "over runs"),
    Column("optimal", hint="runs that are optimal, of those whose instance has a proven optimum"),
    Column("seconds", ".2g", "median of a run"),
    Column("failed", "d", "runs without homes"),
]


def against(summary: Summary) -> str:
    """Say what the gaps of a line are measured against."""
    told = [(summary.optima, "optimum", "optima"), (summary.bounds, "bound", "bounds")]
    return ", ".join(f"{number} {one if number == 1 else many}" for number, one, many in told if number)


def interval(summary: Summary) -> str:
    """Write the interval of a mean."""
    return "" if summary.low is None or summary.high is None else f"{summary.low:.2%} … {summary.high:.2%}"


def _finding(group: str, gaps: Sequence[Gap]) -> str:
    told = {summary.selector: summary for summary in summaries(gaps, by="group")}
    chosen = "reloc" if "reloc" in told else next(iter(told))
    mine, best = told[chosen], min(told.values(), key=lambda summary: summary.mean)
    clients = sorted({gap.clients for gap in gaps})
    size = f"{clients[0]}–{clients[-1]}" if len(clients) > 1 else str(clients[0])
    text = (
        f"`{group}`, {mine.instances} instances of {size} clients ({_proved(mine)}): {name_of(chosen)} is on average "
        f"**{_percent(mine.mean)}** above what is proved, at worst {_percent(mine.worst)}."
    )
    if best.selector != chosen:
        text += f" The best, {name_of(best.selector)}, is **{_percent(best.mean)}** above"
        text += f", and optimal in {best.hits} of {best.hits_of} runs whose optimum is known." if best.hits_of else "."
    return text + _one_server_a_cluster(gaps)


def _proved(summary: Summary) -> str:
    told = [(summary.optima, OPTIMUM, "proven optima"), (summary.bounds, BOUND, f"{BOUND}s")]
    return ", ".join(f"{number} {one if number == 1 else many}" for number, one, many in told if number)


def _one_server_a_cluster(gaps: Sequence[Gap]) -> str:
    """Explain why RELOC does what NS does, where it does."""
    clusters = METHODS["reloc"].parameters()["k"].default
    names = {gap.selector for gap in gaps}
    if not {"reloc", "nearest"} <= names or not isinstance(clusters, int | str):
        return ""
    servers = max(gap.servers for gap in gaps)
    if not str(clusters).isdecimal() or servers > int(clusters):
        return ""
    return f" (With its K = {clusters} clusters and at most {servers} servers RELOC is the same as NS here.)"


def _percent(value: float) -> str:
    return f"{value:.0%}" if value >= 0.1 else f"{value:.1%}" if value >= 0.01 else f"{value:.2%}"


def _numbers(gaps: Sequence[Gap]) -> dict[str, str]:
    kinds = {gap.hash: gap.reference_kind for gap in gaps}
    proved = sum(kind == OPTIMUM for kind in kinds.values())
    bounded = sum(kind == BOUND for kind in kinds.values())
    told = {"runs": f"{len(gaps):,}", f"of {len(kinds)} instances have a proven optimum": str(proved)}
    if bounded:
        widths = [
            gap.best_known / gap.reference - 1
            for gap in {gap.hash: gap for gap in gaps if gap.reference_kind == BOUND}.values()
            if gap.best_known is not None and gap.reference
        ]
        told["have a certified bound"] = str(bounded)
        told["between bound and best homes known, on average"] = f"{sum(widths) / len(widths):.2%}"
    return told


def _add_sigma(page: Page, gaps: Sequence[Gap], groups: Sequence[str]) -> None:
    for group, inside in _measured(gaps, groups):
        sigmas = sorted({gap.sigma for gap in inside if gap.sigma is not None})
        if len(sigmas) < 2:
            continue
        page.section(f"Gap against σ, `{group}`")
        page.figure(plots.against_sigma(inside), _sigma_caption(inside, sigmas))


def _sigma_caption(gaps: Sequence[Gap], sigmas: Sequence[float]) -> str:
    # Variants of a method would make the order too long to read.
    plainly = [gap for gap in gaps if "[" not in gap.selector] or gaps
    ranks = []
    for end in (sigmas[0], sigmas[-1]):
        told = summaries([gap for gap in plainly if gap.sigma == end], by="group")
        ranks.append(" < ".join(name_of(one.selector) for one in sorted(told, key=lambda one: one.mean)))
    order = f"At σ = {sigmas[0]:g} km gaps are {ranks[0]}"
    order += (
        f", at σ = {sigmas[-1]:g} km {ranks[1]}." if ranks[0] != ranks[1] else ", and so they are at the other end."
    )
    hidden = " RA is far above all others and hidden; click it in the legend." if "random" in _selectors(gaps) else ""
    what = f"Mean gap to the {_kinds(gaps)} over instances; bands are 95 % bootstrap intervals."
    return f"{what} Lower is better. {order}{hidden}"


def _measured(gaps: Sequence[Gap], groups: Sequence[str]) -> Iterator[tuple[str, list[Gap]]]:
    """Yield the groups in which a gap is known, and these gaps."""
    for group in groups:
        if inside := [gap for gap in gaps if gap.group == group and gap.gap is not None]:
            yield group, inside


def _selectors(gaps: Sequence[Gap]) -> list[str]:
    return list(dict.fromkeys(gap.selector for gap in gaps))


def _add_tables(page: Page, gaps: Sequence[Gap]) -> None:
    told = summaries(gaps)
    page.section("Regime by regime")
    page.table(_overview(told))
    rows = [
        [
            Cell(f"`{summary.regime}`", summary.regime),
            Cell.of_method(summary.selector),
            against(summary),
            summary.mean,
            Cell(interval(summary), summary.low, tone="soft"),
            summary.median,
            summary.worst,
            Cell(f"{summary.hits} / {summary.hits_of}", summary.hits / summary.hits_of) if summary.hits_of else None,
            summary.seconds,
            Cell(str(summary.failed), summary.failed, tone="bad") if summary.failed else 0,
        ]
        for summary in told
    ]
    caption = (
        "Gaps of each method in each regime. The third column says how many instances have a proven optimum and how "
        "many a certified bound. Click a heading to sort."
    )
    page.table(
        Table(COLUMNS, rows, caption),
        folded=f"**Mean, interval, median, worst, how often optimal** ({len(rows)} lines)",
    )


def _overview(told: Sequence[Summary]) -> Table:
    regimes = list(dict.fromkeys(summary.regime for summary in told))
    found = {(summary.selector, summary.regime): summary for summary in told}
    best = {regime: min(one.mean for one in told if one.regime == regime) for regime in regimes}
    rows: list[list[Value]] = []
    for selector in dict.fromkeys(summary.selector for summary in told):
        line: list[Value] = [Cell.of_method(selector)]
        for regime in regimes:
            summary = found.get((selector, regime))
            if summary is None:
                line.append(None)
            elif summary.mean <= best[regime] + SAME:
                line.append(Cell(f"**{summary.mean:.2%}**", summary.mean, tone="good"))
            else:
                line.append(summary.mean)
        rows.append(line)
    kinds = {regime: against(next(one for one in told if one.regime == regime)) for regime in regimes}
    columns = [Column("mean gap"), *(Column(regime, ".2%", f"against {kinds[regime]}") for regime in regimes)]
    measured = "; ".join(f"{regime} {kind}" for regime, kind in kinds.items())
    return Table(columns, rows, f"Mean gap, the least of each regime in bold. Measured against: {measured}.")


def _add_distributions(page: Page, gaps: Sequence[Gap], groups: Sequence[str]) -> None:
    page.section("How gaps are distributed")
    for group, inside in _measured(gaps, groups):
        page.subsection(f"`{group}`")
        page.figure(
            plots.distribution(inside),
            f"Each line says which share of a method's runs is within which gap of the {_kinds(inside)}; higher and "
            f"further left is better. {_distribution_finding(inside)}",
        )


def _distribution_finding(gaps: Sequence[Gap]) -> str:
    shares = []
    for selector in dict.fromkeys(gap.selector for gap in gaps):
        mine = [gap.gap for gap in gaps if gap.selector == selector and gap.gap is not None]
        shares.append((sum(value <= 0.1 for value in mine) / len(mine), name_of(selector)))
    return "Within 10 %: " + ", ".join(f"{name} {share:.0%}" for share, name in shares) + "."


def _add_time(page: Page, gaps: Sequence[Gap], groups: Sequence[str]) -> None:
    page.section("Gap against time")
    for group, inside in _measured(gaps, groups):
        page.subsection(f"`{group}`")
        page.figure(
            plots.against_time(inside),
            f"Each point is a method: the median time of a run, and the mean gap to the {_kinds(inside)} with its "
            "95 % interval. Points of one method with several budgets are joined: what more time buys. Further left "
            "and lower is better.",
        )


def _add_runs(page: Page, gaps: Sequence[Gap], groups: Sequence[str]) -> None:
    page.section("Where a method loses")
    for _, inside in _measured(gaps, groups):
        worst = max(inside, key=lambda gap: gap.gap or 0.0)
        named = [gap for gap in inside if gap.selector != "random"]
        hardest = max(named, key=lambda gap: gap.gap or 0.0) if named else worst
        page.figure(
            plots.each_run(inside),
            "Every run is a point. Hover to see which, **click for the command that repeats it**. "
            f"The largest gap but RA's: {name_of(hardest.selector)} on `{hardest.instance}`, {hardest.gap:.0%} above "
            f"the {hardest.reference_kind}.",
        )


def _add_comparisons(page: Page, told: Sequence[Comparison]) -> None:
    if not told:
        return
    page.section(
        "Method against method",
        "Pair by pair on the same instances (mean gap over seeds), two-sided Wilcoxon signed-rank tests, p-values "
        "adjusted for all comparisons of this page by Holm's method. The effect is the matched-pairs rank-biserial "
        "correlation: -1 if the first is better on every instance, +1 if the second is. All regimes of a group are "
        "taken together: of two methods that change places from one regime to the next neither is clearly better.",
    )
    columns = [
        Column("group"),
        Column("first"),
        Column("second"),
        Column("pairs", "d", "instances that both have"),
        Column("first better", "d", "on how many instances"),
        Column("second better", "d", "on how many instances"),
        Column("median difference", "+.2%", "of the gaps, first minus second"),
        Column("effect", "+.2f"),
        Column("p (Holm)", ".2g"),
        Column("better", hint="at 5 %, after correction"),
    ]
    rows: list[list[Value]] = [
        [
            Cell(f"`{one.group}`", one.group),
            Cell.of_method(one.first),
            Cell.of_method(one.second),
            one.paired.pairs,
            one.paired.wins,
            one.paired.losses,
            one.paired.median_difference,
            one.paired.effect,
            one.p,
            Cell.of_method(one.better) if one.better else Cell("not clear", tone="soft"),
        ]
        for one in told
    ]
    clear = sum(one.better is not None for one in told)
    caption = f"Of all {len(told)} comparisons {clear} are clear at 5 % after correction."
    shown = [line for one, line in zip(told, rows, strict=True) if "reloc" in (one.first, one.second)]
    if 0 < len(shown) < len(rows):
        page.table(Table(columns, shown, f"RELOC against every other method. {caption}"))
        page.table(Table(columns, rows, caption), folded=f"**All {len(rows)} comparisons**")
    else:
        page.table(Table(columns, rows, caption))


def _kinds(gaps: Sequence[Gap]) -> str:
    kinds = sorted({gap.reference_kind for gap in gaps if gap.reference_kind is not None}, reverse=True)
    return " or ".join(kinds)
