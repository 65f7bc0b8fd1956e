"""The page of an excess study."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from relocbench.instances.errors import plural
from relocbench.instances.gap import excess
from relocbench.instances.generators.families import FAMILIES
from relocbench.reports.pages.glossary import TERMS
from relocbench.reports.pages.method_style import VIRTUAL_BEST, name_of
from relocbench.reports.pages.page import Page
from relocbench.reports.pages.tables import Cell, Column, Table, Value
from relocbench.reports.statistics import FEWEST_FOR_INTERVAL, Paired
from relocbench.reports.study import plots
from relocbench.reports.study.anytime import Course, Curve, TimeToTarget, curves, times_to_targets
from relocbench.reports.study.anytime_plot import over_time
from relocbench.reports.study.excess import SAME, SHIFT, Comparison, Measurement, Summary, comparisons, summaries
from relocbench.reports.study.explanation_section import add_explanations
from relocbench.reports.study.mean_ranks import add_ranks
from relocbench.reports.study.references import BOUND, OPTIMUM
from relocbench.reports.study.versions import Versions
from relocbench.reports.study.virtual_best import times_best, virtual_best
from relocbench.runs.methods import METHODS
from relocbench.runs.version import __version__

DEFINITION = (
    "The **excess** of a run is `ΣD / reference - 1`: how far the delay of its homes is above the reference. The "
    "reference is the **proven optimum** where one is known, otherwise a **certified bound**, which no assignment is "
    "below. Over a bound, the excess is an upper limit of the excess over the optimum."
)
# With more groups than this, the first paragraphs of the page do not describe all of them.
MOST_FINDINGS = 3
# With more groups than this, each has a figure of its own.
MOST_GROUPS_IN_A_FIGURE = 12
# The share of runs up to this excess stands in the captions of the distributions.
NEAR = 0.1


def write_page(
    measurements: Sequence[Measurement],
    path: Path,
    *,
    command: str,
    facts: dict[str, object],
    warnings: Sequence[str],
    courses: Sequence[Course] = (),
    versions: Versions | None = None,
    families: Sequence[str] = (),
    features: Mapping[str, Mapping[str, float]] | None = None,
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
    courses
        The progress of the runs, for curves over time.
    versions
        The versions that the runs were made with.
    families
        The families that the instances belong to, which the page explains.
    features
        The features of each instance, by hash, for a section that says where methods lose.

    Returns
    -------
    Path
        The file.
    """
    page = Page("How far from optimal?", lead=lead(measurements), kind="study")
    page.describe(
        instances=len({one.hash for one in measurements}),
        methods=list(dict.fromkeys(one.selector for one in measurements)),
    )
    for warning in warnings:
        page.warning(warning)
    groups = list(dict.fromkeys(one.group for one in measurements))
    # The first figure shows the main result and belongs to the first screen; what is compared comes after it.
    against_sigma = any(len(_sigmas(inside)) > 1 for _, inside in _with_excess(measurements, groups))
    if against_sigma:
        _add_sigma(page, measurements, groups)
    else:
        _add_runs(page, measurements, groups)
    page.section("What is compared", DEFINITION)
    page.listing(_explanations(measurements, families))
    page.numbers(_numbers(measurements))
    _add_tables(page, measurements)
    _add_distributions(page, measurements, groups)
    _add_time(page, measurements, groups)
    _add_progress(page, courses)
    if against_sigma:
        _add_runs(page, measurements, groups)
    _add_comparisons(page, comparisons(measurements))
    add_ranks(page, measurements)
    add_explanations(page, measurements, features or {})
    data = "excess.parquet beside this page has one row per run, features.parquet and metadata.csv have one row per "
    data += "instance, the folder runs has the homes"
    if versions is None:
        page.provenance(command, {"data": data, **facts})
    else:
        _add_versions(page, versions)
        written = f"with relocbench {__version__}; the following versions are those of the runs"
        page.provenance(command, {"data": data, **facts, "page written": written}, versions.common)
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
        One paragraph per group, for the first groups, with the marks of :func:`reports.pages.markup.marked`.
    """
    groups = list(dict.fromkeys(one.group for one in measurements if one.excess is not None))
    # The first figure must stay on the first screen.
    shown = groups if len(groups) <= MOST_FINDINGS else groups[: MOST_FINDINGS - 1]
    parts = [_finding(group, [one for one in measurements if one.group == group]) for group in shown]
    if len(shown) < len(groups):
        parts.append(f"The results of the other {len(groups) - len(shown)} groups are in the table below.")
    return "\n\n".join(parts)


COLUMNS = [
    Column("instances"),
    Column("method"),
    Column("reference", hint="the number of instances with a proven optimum, and with a certified bound"),
    Column("mean", ".2%", "mean excess over instances; the seeds of an instance are averaged first"),
    Column("95 % CI", hint=f"bootstrap over independent samples; needs at least {FEWEST_FOR_INTERVAL}"),
    Column("n", "d", "independent samples: instances that share random draws count once"),
    Column("SGM", ".2%", f"geometric mean of the excess over instances, shifted by {SHIFT:.0%}"),
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
    # A method of the reader's own comes first, then the paper's.
    own_methods = [selector for selector in found if ":" in selector.partition("[")[0]]
    chosen = next(iter(own_methods), "reloc" if "reloc" in found else next(iter(found)))
    own, best = found[chosen], min(found.values(), key=lambda summary: summary.mean)
    clients = sorted({one.clients for one in measurements})
    size = f"{clients[0]}–{clients[-1]}" if len(clients) > 1 else str(clients[0])
    instances = plural(own.instances, "instance")
    if own.blocks < own.instances:
        instances += f", n = {plural(own.blocks, 'independent sample')},"
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
        sigmas = _sigmas(inside)
        if len(sigmas) < 2:
            continue
        page.section(f"Excess against σ, `{group}`")
        page.figure(plots.against_sigma(inside), _sigma_caption(inside, sigmas))


def _sigmas(measurements: Sequence[Measurement]) -> list[float]:
    return sorted({one.sigma for one in measurements if one.sigma is not None})


def _explanations(measurements: Sequence[Measurement], families: Sequence[str]) -> list[str]:
    """Return one line for each method and each family of the study."""
    terms = {term.name: term.meaning for term in TERMS}
    settings: dict[str, list[str]] = {}
    for selector in dict.fromkeys(one.selector for one in measurements):
        settings.setdefault(selector.partition("[")[0], []).append(name_of(selector).partition("[")[2].rstrip("]"))
    lines = []
    for method, variants in settings.items():
        name = name_of(method)
        known = METHODS[method].summary if method in METHODS else "a method that does not belong to this project"
        chosen = "; ".join(text or "default settings" for text in variants)
        shown = f" Here with: {chosen}." if any(variants) else ""
        lines.append(
            f"**{name}**: {terms[name]}{shown}" if name in terms else f"**{name}** (`{method}`): {known}.{shown}"
        )
    lines += [f"Family `{family}`: {FAMILIES[family].summary}." for family in families]
    if len(_sigmas(measurements)) > 1:
        lines.append("**σ**: the spread of the members of a topic around its centre, in km.")
    return lines


def _sigma_caption(measurements: Sequence[Measurement], sigmas: Sequence[float]) -> str:
    # With the variants of each method, the order would be too long to read.
    without_settings = [one for one in measurements if "[" not in one.selector] or measurements
    orders = []
    for end in (sigmas[0], sigmas[-1]):
        found = summaries([one for one in without_settings if one.sigma == end], by="group")
        orders.append(" < ".join(name_of(one.selector) for one in sorted(found, key=lambda one: one.mean)))
    order = f"The order at σ = {sigmas[0]:g} km is {orders[0]}"
    order += f", at σ = {sigmas[-1]:g} km it is {orders[1]}." if orders[0] != orders[1] else ", also at the largest σ."
    return f"Mean excess over the {_kinds(measurements)}; {_bands(measurements)}. Lower is better. {order}"


def _bands(measurements: Sequence[Measurement]) -> str:
    """Return what the bands of a plot against σ are, and the number of independent samples behind each point."""
    blocks: dict[float | None, set[str]] = {}
    for one in measurements:
        blocks.setdefault(one.sigma, set()).add(one.block)
    few, many = min(map(len, blocks.values())), max(map(len, blocks.values()))
    samples = f"n = {few} independent samples" if few == many else f"n = {few} to {many} independent samples"
    if many < FEWEST_FOR_INTERVAL:
        return f"{samples} at each σ are too few for an interval"
    return f"bands are 95 % bootstrap intervals ({samples} at each σ)"


def _with_excess(measurements: Sequence[Measurement], groups: Sequence[str]) -> Iterator[tuple[str, list[Measurement]]]:
    """Yield each group that has runs with an excess, and these runs."""
    for group in groups:
        if inside := [one for one in measurements if one.group == group and one.excess is not None]:
            yield group, inside


def _add_tables(page: Page, measurements: Sequence[Measurement]) -> None:
    found = summaries([*measurements, *virtual_best(measurements)])
    page.section("Row by row")
    page.table(_overview(found))
    if counts := _times_best(measurements):
        page.note(counts)
    rows = [
        [
            Cell(f"`{summary.regime}`", summary.regime),
            Cell.of_method(summary.selector),
            reference_counts(summary),
            summary.mean,
            Cell(_interval(summary), summary.low, tone="soft"),
            summary.blocks,
            summary.geometric,
            summary.median,
            summary.worst,
            Cell(f"{summary.hits} / {summary.hits_of}", summary.hits / summary.hits_of) if summary.hits_of else None,
            summary.seconds,
            Cell(str(summary.failed), summary.failed, tone="bad") if summary.failed else 0,
        ]
        for summary in found
    ]
    caption = (
        "Excess of each method on each set of instances. The column `reference` counts the instances with a proven "
        f"optimum and those with a certified bound. `SGM` is the geometric mean of the excess over instances, shifted "
        f"by {SHIFT:.0%}. {_virtual_note(found)}Click a heading to sort."
    )
    columns = COLUMNS
    if not any(summary.failed for summary in found):  # the table is wide
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    page.table(
        Table(columns, rows, caption),
        folded=f"**Mean, interval, median, worst run and optimal runs** ({len(rows)} rows)",
    )


def _times_best(measurements: Sequence[Measurement]) -> str:
    """Return on how many instances each method is the best."""
    counts = times_best(measurements)
    if len(counts) < 2:
        return ""
    instances = len({one.hash for one in measurements if one.excess is not None})
    listed = ", ".join(f"{name_of(name)} {number}" for name, number in sorted(counts.items(), key=lambda one: -one[1]))
    return f"Of {plural(instances, 'instance')}, each method is the best or one of the best on this many: {listed}."


def _virtual_note(found: Sequence[Summary]) -> str:
    if all(summary.selector != VIRTUAL_BEST for summary in found):
        return ""
    return "The **virtual best** takes on every instance the method with the least mean excess there. "


def _overview(found: Sequence[Summary]) -> Table:
    parts: dict[tuple[str, str], dict[str, Summary]] = {}
    for summary in found:
        parts.setdefault((summary.group, summary.regime), {})[summary.selector] = summary
    best = {
        key: min(one.mean for name, one in part.items() if name != VIRTUAL_BEST or len(part) == 1)
        for key, part in parts.items()
    }
    rows: list[list[Value]] = []
    for selector in dict.fromkeys(summary.selector for summary in found):
        row: list[Value] = [Cell.of_method(selector)]
        for key, part in parts.items():
            mean = part[selector].mean if selector in part else None
            bold = mean is not None and selector != VIRTUAL_BEST and mean <= best[key] + SAME
            row.append(Cell(f"**{mean:.2%}**", mean, tone="good") if bold else mean)
        rows.append(row)
    what = {key: _reference_and_size(next(iter(part.values()))) for key, part in parts.items()}
    columns = [Column("mean excess"), *(Column(key[1], ".2%", f"reference: {text}") for key, text in what.items())]
    references = "; ".join(f"{regime}: {text}" for (_, regime), text in what.items())
    return Table(
        columns,
        rows,
        f"Mean excess; the least of each column is bold. {_virtual_note(found)}References, and the number n of "
        f"independent samples: {references}.",
    )


def _reference_and_size(summary: Summary) -> str:
    return f"{reference_counts(summary)} (n = {summary.blocks})"


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


def _add_progress(page: Page, courses: Sequence[Course]) -> None:
    groups = list(dict.fromkeys(one.group for one in courses if one.reported))
    if not groups:
        return
    page.section(
        "Progress during a run",
        "Methods that report their progress have a curve: the mean over runs of the excess of the incumbent at each "
        "moment. The seeds of an instance are averaged first, and a run that has ended keeps its last excess. A curve "
        "begins when all runs of the method have homes. A method that reports no progress is a point "
        "at its median time.",
    )
    for group in groups:
        inside = curves([one for one in courses if one.group == group])
        page.subsection(f"`{group}`")
        page.figure(over_time(inside), f"{_beginnings(inside)} Further left and lower is better.")
    _add_targets(page, times_to_targets(one for one in courses if one.group in groups))


def _beginnings(found: Sequence[Curve]) -> str:
    listed = ", ".join(f"{name_of(one.selector)} {one.seconds[0]:.2g} s" for one in found if one.reported)
    return f"All runs have homes from these times on: {listed}."


def _add_targets(page: Page, found: Sequence[TimeToTarget]) -> None:
    targets = list(dict.fromkeys(one.target for one in found))
    columns = [Column("group"), Column("method"), Column("runs", "d")]
    for target in targets:
        columns += [
            Column(f"≤ {100 * target:g} %", ".0%", f"share of the runs with an excess of at most {100 * target:g} %"),
            Column("seconds", ".2g", f"median time to reach {100 * target:g} %; – if at most half of the runs do"),
        ]
    rows: dict[tuple[str, str], list[Value]] = {}
    for one in found:
        start: list[Value] = [Cell(f"`{one.group}`", one.group), Cell.of_method(one.selector), one.runs]
        rows.setdefault((one.group, one.selector), start).extend([one.reached / one.runs, one.seconds])
    page.table(
        Table(
            columns,
            list(rows.values()),
            "Time to target: the share of the runs that reach an excess of at most 5 %, 1 % and 0.1 % over the "
            "reference, and the median time until then; a run that does not reach the target counts as longer than all "
            "others. Where the reference is a certified bound, a small target may be out of reach for every method.",
        )
    )


def _add_runs(page: Page, measurements: Sequence[Measurement], groups: Sequence[str]) -> None:
    page.section("Every run")
    parts = [inside for _, inside in _with_excess(measurements, groups)]
    if len({(one.group, one.regime) for one in measurements}) == len(groups) <= MOST_GROUPS_IN_A_FIGURE:
        # Every group is one row of the table, so one figure has room for all of them.
        parts = [[one for inside in parts for one in inside]] if parts else []
    for inside in parts:
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
        "Each pair of methods is compared on the same instances of a group. Instances that share random draws, such as "
        "the σ cells of one seed, are not independent: they form a block, and the mean difference of a block is one "
        "value of the sample. `n` is the number of blocks. The difference of the excess is in percentage points, with "
        f"its 95 % interval, which is not adjusted. {_tests(found[0].tests)} The difference is a mean over the cells "
        "of a group: two methods may change places from one cell to the next. `--group-by` tests each cell for itself.",
    )
    columns = [
        Column("group"),
        Column("first"),
        Column("second"),
        Column("n", "d", "blocks of instances with runs of both methods; the sample size of the test"),
        Column("won", hint="number of blocks in which the first and the second method is better"),
        Column("difference (pp)", "+.2f", "of the mean excess, first minus second, in percentage points"),
        Column("95 % CI (pp)", hint=f"of the difference; needs n of at least {FEWEST_FOR_INTERVAL}"),
        Column("p (Holm)", ".2g", f"adjusted for {found[0].tests} tests"),
        Column("better", hint="at 5 %, after the correction"),
    ]
    rows: list[list[Value]] = [
        [
            Cell(f"`{one.group}`", one.group),
            Cell.of_method(one.first),
            Cell.of_method(one.second),
            one.paired.blocks,
            Cell(f"{one.paired.wins} : {one.paired.losses}", one.paired.wins - one.paired.losses),
            Cell(_pp(one.paired.difference), one.paired.difference),
            Cell(_points(one.paired), one.paired.low, tone="soft"),
            one.p,
            _verdict(one),
        ]
        for one in found
    ]
    clear = sum(one.better is not None for one in found)
    caption = (
        f"{clear} of {found[0].tests} tests are significant at 5 % after the correction." if found[0].tests else ""
    )
    few = {one.group: one.paired.blocks for one in found if one.p is None}
    if few:
        listed = ", ".join(f"`{group}` (n = {blocks})" for group, blocks in few.items())
        caption += f" Too few independent samples for a test: {listed}; it needs {FEWEST_FOR_INTERVAL}."
    with_reloc = [row for one, row in zip(found, rows, strict=True) if "reloc" in (one.first, one.second)]
    if 0 < len(with_reloc) < len(rows):
        page.table(Table(columns, with_reloc, f"RELOC against every other method. {caption}"))
        page.table(Table(columns, rows, caption), folded=f"**All {len(rows)} comparisons**")
    else:
        page.table(Table(columns, rows, caption))


def _tests(number: int) -> str:
    if number == 0:
        return f"A test needs at least {FEWEST_FOR_INTERVAL} independent samples, so there is none here."
    many = f"the {number} tests" if number > 1 else "the only test"
    return (
        f"The p-values are those of two-sided paired t-tests on the blocks, adjusted by Holm's method for {many} of "
        "this page."
    )


def _points(pair: Paired) -> str:
    return "" if pair.low is None or pair.high is None else f"{_pp(pair.low)} … {_pp(pair.high)}"


def _pp(difference: float) -> str:
    """Return a difference of shares in percentage points."""
    return f"{100 * difference:+.1f}" if abs(difference) >= 0.1 else f"{100 * difference:+.2f}"


def _verdict(one: Comparison) -> Cell:
    if one.better:
        return Cell.of_method(one.better)
    return Cell("not clear" if one.p is not None else f"too few (n = {one.paired.blocks})", tone="soft")


def _add_versions(page: Page, versions: Versions) -> None:
    rows: list[list[Value]] = [
        [Cell(f"`{name}`", name), value, count]
        for found in (versions.differing, versions.code)
        for name, counts in found.items()
        for value, count in counts.items()
    ]
    if not rows:
        return
    columns = [Column("what"), Column("version"), Column("runs", "d")]
    if versions.differing:
        page.section("Versions of the runs")
        page.table(Table(columns, rows, "What differs between runs, and the version of the code of each method."))
    else:
        caption = "The version of the code of each method, as each run has recorded it."
        page.table(Table(columns, rows, caption), folded="**Versions of the methods**")


def _kinds(measurements: Sequence[Measurement]) -> str:
    kinds = sorted({one.reference_kind for one in measurements if one.reference_kind is not None}, reverse=True)
    return " or ".join(kinds)
