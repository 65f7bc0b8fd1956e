"""The page of a study of moving clients."""

from pathlib import Path
from typing import Any

from markupsafe import Markup

from relocbench.instances.errors import plural
from relocbench.reports.moving.epoch_map import EpochMaps
from relocbench.reports.moving.findings import answers, at, percent
from relocbench.reports.moving.plan import CLUSTER_PERIOD
from relocbench.reports.moving.plots import cluster_plot, part_panels, period_panels, time_plot
from relocbench.reports.moving.study import Results
from relocbench.reports.moving.summary import Line, Summary, time_text
from relocbench.reports.pages.method_style import colour_of, name_of
from relocbench.reports.pages.page import Page
from relocbench.reports.pages.tables import Cell, Column, Table, Value
from relocbench.reports.statistics import FEWEST_FOR_INTERVAL, Interval

KIND = "moving"
SLIDER = Markup(
    "<style>.epochs{display:grid;grid-template-columns:auto 1fr;gap:.3rem .8rem;align-items:center;margin:.6rem 0}"
    ".epochs output{grid-column:1/-1;font-variant-numeric:tabular-nums;min-height:3.1em}"
    ".epochs input{width:100%;accent-color:var(--accent)}"
    ".epochs button{font:inherit;font-size:.85rem;color:var(--ink);background:none;border:1px solid var(--line);"
    "border-radius:4px;padding:.1rem .7rem;cursor:pointer;min-width:4rem}"
    "@media print{.epochs button,.epochs input{display:none}}</style>"
    '<div class="epochs"><button type="button">play</button>'
    '<input type="range" min="0" max="0" value="0" aria-label="Epoch"><output></output></div>'
)


def write_page(results: Results, summary: Summary, command: str, path: Path) -> Path:
    """Write the page of a study.

    Parameters
    ----------
    results, summary
        The results, and their means.
    command
        The command that makes the page.
    path
        The file to write.

    Returns
    -------
    Path
        The file.
    """
    page = Page("Clients that move: how often must homes be computed again?", _lead(summary), kind=KIND)
    page.describe(instances=len(results.subjects), methods=summary.methods)
    page.section("Answers")
    for answer in answers(summary):
        page.subsection(answer.question, answer.verdict)
        if answer.details:
            page.listing(list(answer.details))
    seeds = len({one.seed for one in results.subjects})
    if seeds < FEWEST_FOR_INTERVAL:
        page.note(f"There are no intervals: they need {FEWEST_FOR_INTERVAL} seeds, and this study has {seeds}.")
    else:
        page.note("Numbers in brackets are 95 % intervals over the seeds: timelines of one seed count as one sample.")
    _periods(page, summary)
    _parts(page, summary)
    _policies(page, summary)
    _clusters(page, summary)
    _times(page, summary)
    _map(page, summary)
    _timelines(page, results)
    facts: dict[str, object] = {
        "timelines": len(results.subjects),
        "schedules": len(results.schedules),
        "data": "schedules.parquet, bounds.parquet, times.parquet beside this page; the folder replays has the homes",
    }
    page.provenance(command, facts)
    return page.write(path)


def _lead(summary: Summary) -> str:
    name = name_of(summary.main)
    bests = [(group, line) for group in summary.groups if (line := summary.best(group, summary.main)) is not None]
    sentences = [
        "Clients move, so homes that were good become bad. Computing them again costs handovers and copies of spools."
    ]
    if bests:
        listed = ", ".join(f"**{time_text(line.period or 0.0)}** {at(summary, group)}" for group, line in bests)
        sentences.append(f"The best period of {name} is {listed}.")
    cheapest = [
        (group, line, line.ratio.mean - 1)
        for group in summary.groups
        if (line := summary.cheapest(group)) is not None and line.ratio is not None
    ]
    if cheapest and len({line.name for _, line, _ in cheapest}) == 1:
        ends = [percent(choose(above for *_, above in cheapest)) for choose in (min, max)]
        above = ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
        sentences.append(f"The cheapest policy of all is `{cheapest[0][1].name}`, {above} above the certified bound.")
    elif cheapest:
        parts = [f"`{line.name}` {at(summary, group)} ({percent(above)})" for group, line, above in cheapest]
        sentences.append(f"The cheapest of all, with its distance to the certified bound, is {', '.join(parts)}.")
    return " ".join(sentences)


def _periods(page: Page, summary: Summary) -> None:
    panels = period_panels(summary)
    if not panels:
        return
    page.section(
        "Cost against the period",
        "A timeline is divided into epochs; clients move from one to the next. A handover is a client that gets "
        "another home; a spool is copied when a topic opens on another server. The cost of a schedule is the delay of "
        "all publications, plus a price for each handover and for each copied message of spool. It is shown per "
        "publication, so without relocation it would be `Y`.",
    )
    page.panels(
        panels,
        "Homes are computed again after each period; the star marks the best period of each method. A short period "
        "pays for many relocations, a long one for homes that have become bad. Horizontal lines are policies without a "
        "period. The dashed grey line is the certified bound: no schedule costs less. Bands are 95 % intervals. "
        + summary.bound_words,
    )


def _parts(page: Page, summary: Summary) -> None:
    page.section("What the cost consists of")
    caption = (
        "What schedules cost above the certified bound on delay, from the cheapest at the top: delay that a better "
        "schedule might avoid, handovers, and copies of spools. Of each method the best period is shown, of the first "
        "method also the shortest and the longest."
    )
    if any(summary.bound(group) > summary.delay_bound(group) for group in summary.groups):
        caption += (
            " The bars begin at the sum of the bounds of all epochs, which is a bound on delay alone. The dashed grey "
            "line is the bound on the whole cost, which counts relocation: no bar can end to the left of it."
        )
    page.panels(part_panels(summary), caption, least=400)


def _policies(page: Page, summary: Summary) -> None:
    page.section("Policies")
    page.table(
        _table(
            summary.main_lines,
            "Of each method the best period, and all other policies. `cost`: ms per publication. `cost / bound`: the "
            "cost divided by the certified bound, which is at least the ratio to the best schedule, with its 95 % "
            "interval over the seeds. `handovers`: per client and hour. `spool moved`: messages, per timeline. "
            "`θ < 1`: share of the time in which some server is overloaded. `solves`: how often homes were computed. "
            "`relocate` knows the present epoch only, `relocate[ahead=h]` also where clients will be in the next h.",
        )
    )
    every = [line for line in summary.lines if not line.clusters_only]
    whole = _table(every, "The columns are those of the table above.")
    page.table(whole, folded=f"All {len(every)} policies and methods")


def _table(lines: list[Line], caption: str) -> Table:
    columns = [
        Column("policy"),
        Column("timelines"),
        Column("cost", ".4f", "ms per publication"),
        Column("cost / bound", ".3f", "cost divided by the certified bound, with its 95 % interval"),
        Column("handover", ".4f", "the handover part of the cost"),
        Column("spool", ".4f", "the spool part of the cost"),
        Column("handovers", ".2f", "handovers per client and hour"),
        Column("spool moved", ".0f", "messages of spool that were copied, per timeline"),
        Column("θ < 1", ".0%", "share of the time in which some server is overloaded"),
        Column("solves", ".0f", "how often homes were computed, per timeline"),
        Column("ms per solve", ".1f", "time of one computation of homes"),
    ]
    rows: list[list[Value]] = []
    for line in lines:
        ratio, parts = line.ratio, line.parts
        rows.append(
            [
                Cell(line.name, swatch=colour_of("anneal" if line.counts_relocation else line.method)),
                line.group,
                line.cost.mean,
                None if ratio is None else Cell(_with_limits(ratio), ratio.mean),
                parts["handover"],
                parts["spool"],
                line.handovers,
                line.spool_moved,
                line.overload,
                line.solves,
                1000 * line.seconds_per_solve,
            ]
        )
    return Table(columns, rows, caption)


def _with_limits(ratio: Interval) -> str:
    return f"{ratio.mean:.3f}" + ("" if ratio.low is None else f" [{ratio.low:.3f}, {ratio.high:.3f}]")


def _clusters(page: Page, summary: Summary) -> None:
    plot = cluster_plot(summary)
    if plot is None:
        return
    page.section("Number of clusters")
    page.figure(
        plot,
        f"RELOC divides the servers into K clusters. Homes are computed again every {CLUSTER_PERIOD} epochs. `auto` "
        "tries the number that it chose the last time, its double and its half. Whiskers are 95 % intervals. With as "
        "many clusters as servers, RELOC is NS.",
    )


def _times(page: Page, summary: Summary) -> None:
    plot = time_plot(summary)
    if plot is None:
        return
    page.section("Run time")
    page.figure(
        plot,
        "The least time of a few runs on instances like those of the paper, with more topics, servers and capacity in "
        "proportion. Dotted lines are extrapolated with the exponent of the last two sizes. A run must be shorter than "
        "the period: until it ends, the old homes stay.",
    )


def _map(page: Page, summary: Summary) -> None:
    maps = EpochMaps(summary)
    page.section(
        "What moved when",
        f"The timeline `{maps.subject.name}`. Move the slider to see another epoch. {maps.shown}".strip(),
    )
    page.html(SLIDER)
    page.panels(
        maps.maps(),
        "Squares are servers; clients have the colour of their home. A red ring marks a client that gets a new home in "
        "this epoch: the red line leads to the new home, the dotted line to the former one.",
        least=420,
    )
    page.panels(
        maps.series(),
        "The vertical line marks the epoch that the maps show. The bound of an epoch does not count relocation.",
        least=420,
    )
    page.script(maps.script())


def _timelines(page: Page, results: Results) -> None:
    page.section("Timelines")
    columns = [
        Column("timeline"),
        Column("group"),
        Column("epochs", "d"),
        Column("hours", ".2f"),
        Column("servers", "d"),
        Column("clients", "d", "largest number of clients"),
        Column("topics", "d", "largest number of topics"),
        Column("km/h", ".1f", "mean speed of clients that stay, with pauses"),
        Column("arrivals", "d"),
        Column("load", ".2f", "largest load"),
        Column("handover price", ".3g", "ms"),
        Column("spool price", ".3g", "ms per message"),
    ]
    rows: list[list[Value]] = []
    for one in results.subjects:
        about: dict[str, Any] = results.summaries[one.hash]
        rows.append(
            [
                one.name,
                one.group,
                one.epochs,
                about["seconds"] / 3600,
                about["servers"],
                about["clients"][1],
                about["topics"][1],
                about["mean_speed_km_per_hour"],
                about["arrivals"],
                about["load"][1],
                about["handover_price"],
                about["spool_price"],
            ]
        )
    caption = "The km/h are measured, with pauses, so they are below the speed of a moving client."
    folded = "" if len(rows) <= 6 else f"All {plural(len(rows), 'timeline')}"
    page.table(Table(columns, rows, caption), folded=folded)
