"""The page of an excess study."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from relocbench.instances.gap import excess
from relocbench.reports.pages.method_style import name_of
from relocbench.reports.pages.page import Page
from relocbench.reports.pages.tables import Cell, Column, Table, Value
from relocbench.reports.statistics import FEWEST_FOR_INTERVAL
from relocbench.reports.study import plots
from relocbench.reports.study.excess import SAME, Comparison, Measurement, Summary, comparisons, summaries
from relocbench.reports.study.references import BOUND, OPTIMUM
from relocbench.runs.methods import METHODS

DEFINITION = (
    "The **excess** of a run is `ΣD / reference - 1`: how far the delay of its homes is above the reference. The "
    "reference is the **proven optimum** where one is known, otherwise a **certified bound**, which no assignment is "
    "below. Over a bound, the excess is an upper limit of the excess over the optimum."
)
# The share of runs up to this excess stands in the captions of the distributions.
NEAR = 0.1


def write_page(
    measurements: Sequence[Measurement],
    path: Path,
    *,
    command: str,
    facts: dict[str, object],
    warnings: Sequence[str],
) -> Path:
    """Write the page of a study.

    Parameters
    ----------
    measurements
        The runs.
    path
        The file to write.
    command, facts
        The origin of the page; see :meth:`reports.pages.page.Page.provenance`.
    warnings
        What a reader must know first: contradictions and failed runs.

    Returns
    -------
    Path
        The file.
    """
    page = Page("How far from optimal?", lead=lead(measurements))
    for warning in warnings:
        page.warning(warning)
    page.text(DEFINITION)
    page.numbers(_numbers(measurements))
    groups = list(dict.fromkeys(one.group for one in measurements))
    _add_tables(page, measurements)
    _add_sigma(page, measurements, groups)
    _add_distributions(page, measurements, groups)
    _add_time(page, measurements, groups)
    _add_runs(page, measurements, groups)
    _add_comparisons(page, comparisons(measurements))
    data = "excess.parquet beside this page has one row per run; the folder runs has the homes"
    page.provenance(command, {"data": data, **facts})
    return page.write(path)


def lead(measurements: Sequence[Measurement]) -> str:
    """Return the main result of a study.

    Parameters
    ----------
    measurements
        The runs.

    Returns
    -------
    str
        One paragraph per group, with the marks of :func:`reports.pages.markup.marked`.
    """
    groups = dict.fromkeys(one.group for one in measurements if one.excess is not None)
    return "\n\n".join(_finding(group, [one for one in measurements if one.group == group]) for group in groups)


COLUMNS = [
    Column("regime"),
    Column("method"),
    Column("reference", hint="the number of instances with a proven optimum, and with a certified bound"),
    Column("mean", ".2%", "mean excess over instances; the seeds of an instance are averaged first"),
    Column("95 % CI", hint=f"bootstrap over instances; needs at least {FEWEST_FOR_INTERVAL} instances"),
    Column("median", ".2%", "median excess over instances"),
    Column("worst", ".1%", "largest excess of a run"),
    Column("optimal", hint="optimal runs, out of the runs on instances with a proven optimum"),
    Column("seconds", ".2g", "median time of a run"),
    Column("failed", "d", "runs without homes"),
]


def reference_counts(summary: Summary) -> str:
    """Return how many instances have which kind of reference.

    Parameters
    ----------
    summary
        One row of the table.

    Returns
    -------
    str
        A text such as ``1 optimum, 5 bounds``.
    """
    return _counts([(summary.optima, "optimum", "optima"), (summary.bounds, "bound", "bounds")])


def _counts(parts: Sequence[tuple[int, str, str]]) -> str:
    return ", ".join(f"{number} {one if number == 1 else many}" for number, one, many in parts if number)


def _interval(summary: Summary) -> str:
    return "" if summary.low is None or summary.high is None else f"{summary.low:.2%} … {summary.high:.2%}"


def _finding(group: str, measurements: Sequence[Measurement]) -> str:
    found = {summary.selector: summary for summary in summaries(measurements, by="group")}
    chosen = "reloc" if "reloc" in found else next(iter(found))
    own, best = found[chosen], min(found.values(), key=lambda summary: summary.mean)
    clients = sorted({one.clients for one in measurements})
    size = f"{clients[0]}–{clients[-1]}" if len(clients) > 1 else str(clients[0])
    instances = "1 instance" if own.instances == 1 else f"{own.instances} instances"
    references = _counts([(own.optima, OPTIMUM, "proven optima"), (own.bounds, BOUND, f"{BOUND}s")])
    text = (
        f"`{group}`, {instances} of {size} clients ({references}): the mean excess of {name_of(chosen)} is "
        f"**{_percent(own.mean)}**, the largest {_percent(own.worst)}."
    )
    if best.selector != chosen:
        text += f" The best method, {name_of(best.selector)}, has a mean excess of **{_percent(best.mean)}**"
        text += f" and is optimal in {best.hits} of {best.hits_of} runs with a known optimum." if best.hits_of else "."
    return text + _reloc_equals_nearest(measurements)


def _reloc_equals_nearest(measurements: Sequence[Measurement]) -> str:
    """Return a remark if RELOC has at least as many clusters as there are servers, which makes it equal to NS."""
    clusters = METHODS["reloc"].parameters()["k"].default
    names = {one.selector for one in measurements}
    if not {"reloc", "nearest"} <= names or not isinstance(clusters, int | str):
        return ""
    servers = max(one.servers for one in measurements)
    if not str(clusters).isdecimal() or servers > int(clusters):
        return ""
    return f" (With K = {clusters} clusters and at most {servers} servers, RELOC is the same as NS here.)"


def _percent(value: float) -> str:
    return f"{value:.0%}" if value >= 0.1 else f"{value:.1%}" if value >= 0.01 else f"{value:.2%}"


def _numbers(measurements: Sequence[Measurement]) -> dict[str, str]:
    kinds = {one.hash: one.reference_kind for one in measurements}
    proved = sum(kind == OPTIMUM for kind in kinds.values())
    bounded = sum(kind == BOUND for kind in kinds.values())
    numbers = {"runs": f"{len(measurements):,}", f"of {len(kinds)} instances have a proven optimum": str(proved)}
    if bounded:
        open_ = {one.hash: one for one in measurements if one.reference_kind == BOUND}.values()
        widths = [
            width
            for one in open_
            if one.best_known is not None
            and one.reference
            and (width := excess(one.best_known, one.reference)) is not None
        ]
        numbers[f"of {len(kinds)} instances have a certified bound"] = str(bounded)
        numbers["mean excess of the best known homes over these bounds"] = f"{sum(widths) / len(widths):.2%}"
    return numbers


def _add_sigma(page: Page, measurements: Sequence[Measurement], groups: Sequence[str]) -> None:
    for group, inside in _with_excess(measurements, groups):
        sigmas = sorted({one.sigma for one in inside if one.sigma is not None})
        if len(sigmas) < 2:
            continue
        page.section(f"Excess against σ, `{group}`")
        page.figure(plots.against_sigma(inside), _sigma_caption(inside, sigmas))


def _sigma_caption(measurements: Sequence[Measurement], sigmas: Sequence[float]) -> str:
    # With the variants of each method, the order would be too long to read.
    without_settings = [one for one in measurements if "[" not in one.selector] or measurements
    orders = []
    for end in (sigmas[0], sigmas[-1]):
        found = summaries([one for one in without_settings if one.sigma == end], by="group")
        orders.append(" < ".join(name_of(one.selector) for one in sorted(found, key=lambda one: one.mean)))
    order = f"The order at σ = {sigmas[0]:g} km is {orders[0]}"
    order += f", at σ = {sigmas[-1]:g} km it is {orders[1]}." if orders[0] != orders[1] else ", also at the largest σ."
    what = f"Mean excess over the {_kinds(measurements)}; bands are 95 % bootstrap intervals over instances."
    return f"{what} Lower is better. {order}"


def _with_excess(measurements: Sequence[Measurement], groups: Sequence[str]) -> Iterator[tuple[str, list[Measurement]]]:
    """Yield each group that has runs with an excess, and these runs."""
    for group in groups:
        if inside := [one for one in measurements if one.group == group and one.excess is not None]:
            yield group, inside


def _add_tables(page: Page, measurements: Sequence[Measurement]) -> None:
    found = summaries(measurements)
    page.section("Regime by regime")
    page.table(_overview(found))
    rows = [
        [
            Cell(f"`{summary.regime}`", summary.regime),
            Cell.of_method(summary.selector),
            reference_counts(summary),
            summary.mean,
            Cell(_interval(summary), summary.low, tone="soft"),
            summary.median,
            summary.worst,
            Cell(f"{summary.hits} / {summary.hits_of}", summary.hits / summary.hits_of) if summary.hits_of else None,
            summary.seconds,
            Cell(str(summary.failed), summary.failed, tone="bad") if summary.failed else 0,
        ]
        for summary in found
    ]
    caption = (
        "Excess of each method in each regime. The column `reference` counts the instances with a proven optimum and "
        "those with a certified bound. Click a heading to sort."
    )
    page.table(
        Table(COLUMNS, rows, caption),
        folded=f"**Mean, interval, median, worst run and optimal runs** ({len(rows)} rows)",
    )


def _overview(found: Sequence[Summary]) -> Table:
    regimes = list(dict.fromkeys(summary.regime for summary in found))
    by_key = {(summary.selector, summary.regime): summary for summary in found}
    best = {regime: min(one.mean for one in found if one.regime == regime) for regime in regimes}
    rows: list[list[Value]] = []
    for selector in dict.fromkeys(summary.selector for summary in found):
        row: list[Value] = [Cell.of_method(selector)]
        for regime in regimes:
            summary = by_key.get((selector, regime))
            if summary is None:
                row.append(None)
            elif summary.mean <= best[regime] + SAME:
                row.append(Cell(f"**{summary.mean:.2%}**", summary.mean, tone="good"))
            else:
                row.append(summary.mean)
        rows.append(row)
    kinds = {regime: reference_counts(next(one for one in found if one.regime == regime)) for regime in regimes}
    columns = [Column("mean excess"), *(Column(regime, ".2%", f"reference: {kinds[regime]}") for regime in regimes)]
    references = "; ".join(f"{regime}: {kind}" for regime, kind in kinds.items())
    return Table(columns, rows, f"Mean excess; the least of each regime is bold. References: {references}.")


def _add_distributions(page: Page, measurements: Sequence[Measurement], groups: Sequence[str]) -> None:
    page.section("Distribution of the excess")
    for group, inside in _with_excess(measurements, groups):
        page.subsection(f"`{group}`")
        page.figure(
            plots.distribution(inside),
            f"Each line shows which share of a method's runs has at most a given excess over the {_kinds(inside)}. "
            f"Higher and further left is better. {_near_shares(inside)}",
        )


def _near_shares(measurements: Sequence[Measurement]) -> str:
    shares = []
    for selector in dict.fromkeys(one.selector for one in measurements):
        own = [one.excess for one in measurements if one.selector == selector and one.excess is not None]
        shares.append((sum(value <= NEAR for value in own) / len(own), name_of(selector)))
    listed = ", ".join(f"{name} {share:.0%}" for share, name in shares)
    return f"Runs with an excess of at most {NEAR:.0%}: {listed}."


def _add_time(page: Page, measurements: Sequence[Measurement], groups: Sequence[str]) -> None:
    page.section("Excess against time")
    for group, inside in _with_excess(measurements, groups):
        page.subsection(f"`{group}`")
        page.figure(
            plots.against_time(inside),
            f"Each point is a method: the median time of a run, and the mean excess over the {_kinds(inside)} with "
            "its 95 % interval. A line joins one method with several budgets and shows what more time gains. Further "
            "left and lower is better.",
        )


def _add_runs(page: Page, measurements: Sequence[Measurement], groups: Sequence[str]) -> None:
    page.section("Every run")
    for _, inside in _with_excess(measurements, groups):
        without_random = [one for one in inside if one.selector != "random"] or inside
        worst = max(without_random, key=lambda one: one.excess or 0.0)
        besides = ", RA aside" if len(without_random) < len(inside) else ""
        page.figure(
            plots.each_run(inside),
            "Every run is a point. Hover over it to see which run it is; **click it for the command that repeats "
            f"it**. The largest excess{besides}: {name_of(worst.selector)} on `{worst.instance}`, {worst.excess:.0%} "
            f"over the {worst.reference_kind}.",
        )


def _add_comparisons(page: Page, found: Sequence[Comparison]) -> None:
    if not found:
        return
    page.section(
        "Method against method",
        "Each pair of methods is compared on the same instances by the mean excess over seeds, with two-sided Wilcoxon "
        "signed-rank tests. Holm's method adjusts the p-values for all comparisons of this page. The effect is the "
        "matched-pairs rank-biserial correlation: -1 if the first method is better on every instance, +1 if the second "
        "is. All regimes of a group are taken together, so if two methods change places from one regime to the next, "
        "neither is clearly better.",
    )
    columns = [
        Column("group"),
        Column("first"),
        Column("second"),
        Column("pairs", "d", "instances with runs of both methods"),
        Column("first better", "d", "number of instances"),
        Column("second better", "d", "number of instances"),
        Column("median difference", "+.2%", "of the excess, first minus second"),
        Column("effect", "+.2f"),
        Column("p (Holm)", ".2g"),
        Column("better", hint="at 5 %, after the correction"),
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
        for one in found
    ]
    clear = sum(one.better is not None for one in found)
    caption = f"{clear} of {len(found)} comparisons are significant at 5 % after the correction."
    with_reloc = [row for one, row in zip(found, rows, strict=True) if "reloc" in (one.first, one.second)]
    if 0 < len(with_reloc) < len(rows):
        page.table(Table(columns, with_reloc, f"RELOC against every other method. {caption}"))
        page.table(Table(columns, rows, caption), folded=f"**All {len(rows)} comparisons**")
    else:
        page.table(Table(columns, rows, caption))


def _kinds(measurements: Sequence[Measurement]) -> str:
    kinds = sorted({one.reference_kind for one in measurements if one.reference_kind is not None}, reverse=True)
    return " or ".join(kinds)
