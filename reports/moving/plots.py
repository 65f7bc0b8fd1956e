"""The plots of a study of moving clients."""

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from relocbench.reports.moving.growth import CLIENTS, growth
from relocbench.reports.moving.summary import Line, Summary, time_text
from relocbench.reports.pages.figures import banded_line, figure, line, log_axis, points
from relocbench.reports.pages.method_style import BAD, DASHES, REFERENCE, Style, colour_of, name_of, styles

Panels = list[tuple[str, go.Figure]]
BEST = "best period"
BOUND = "certified bound"
BOUND_STYLE = Style(REFERENCE, "dash")
# The colours of the parts of the cost.
PARTS = {"delay": "#3b8bd0", "handover": "#e08e1b", "spool": "#a548b8"}
HEIGHT = 330
MARGIN = {"l": 46, "r": 10, "t": 8, "b": 44}


def period_panels(summary: Summary) -> Panels:
    """Draw the cost against the period, one panel for each group.

    Parameters
    ----------
    summary
        The results.

    Returns
    -------
    list
        A title and a plot for each panel; empty if no period was studied.
    """
    panels: Panels = []
    own_styles = styles(summary.methods)
    for group in summary.groups:
        every = [line for method in summary.methods for line in summary.periodic(group, method)]
        if not every:
            continue
        periods = sorted({(one.period or 0.0) / 60 for one in every})
        plot = figure(x="period, minutes", y="cost, ms per publication", height=HEIGHT, margin=MARGIN)
        plot.update_xaxes(**_minutes(periods))
        for method in summary.methods:
            _add_method(plot, summary, group, method, own_styles[method])
        ends = [periods[0], periods[-1]] if len(periods) > 1 else [periods[0] / 2, periods[0] * 2]
        for other, style in _other_styles(summary, group):
            cost = other.cost.mean
            hover = f"{other.name}: {_with_limits(other)}\n{other.handovers:.2g} handovers per client and hour"
            plot.add_trace(line(other.name, style, x=ends, y=[cost, cost], mode="lines", **points([hover, hover])))
        bound = summary.bound(group)
        hover = f"no schedule costs less than {bound:.4f} ms per publication"
        plot.add_trace(line(BOUND, BOUND_STYLE, x=ends, y=[bound, bound], mode="lines", **points([hover, hover])))
        panels.append((_title(summary, group), plot))
    return panels


def _title(summary: Summary, group: str) -> str:
    count = len({row.hash for row in summary.results.schedules if row.group == group})
    return group if count == 1 else f"{group} ({count} timelines)"


def _minutes(periods: Sequence[float]) -> dict[str, object]:
    """Return the settings of the axis of periods: logarithmic, with the periods themselves as ticks."""
    shown: list[float] = []
    for period in periods:
        if not shown or math.log10(period / shown[-1]) > 0.25:
            shown.append(period)
    return log_axis(periods) | {"tickvals": shown, "ticktext": [f"{period:.3g}" for period in shown]}


def _add_method(plot: go.Figure, summary: Summary, group: str, method: str, style: Style) -> None:
    lines = summary.periodic(group, method)
    best = summary.best(group, method)
    if best is None:
        return
    x = [(one.period or 0.0) / 60 for one in lines]
    costs = [one.cost for one in lines]
    hover = [
        f"{one.name}: {_with_limits(one)}\n{one.handovers:.2g} handovers per client and hour, "
        f"{one.overload:.0%} of the time overloaded"
        for one in lines
    ]
    means, low, high = [one.mean for one in costs], [one.limits[0] for one in costs], [one.limits[1] for one in costs]
    banded_line(plot, name_of(method), style, x, means, low, high, **points(hover))
    plot.add_trace(
        go.Scatter(
            x=[(best.period or 0.0) / 60],
            y=[best.cost.mean],
            mode="markers",
            name=BEST,
            legendgroup=BEST,
            marker={"symbol": "star", "size": 15, "color": style.colour, "line": {"width": 1.5, "color": "#ffffff"}},
            hoverinfo="skip",
            showlegend=method == summary.methods[0],
        )
    )


def _with_limits(one: Line) -> str:
    cost = one.cost
    limits = "" if cost.low is None else f" [{cost.low:.4f}, {cost.high:.4f}]"
    return f"{cost.mean:.4f} ms{limits}"


def _other_styles(summary: Summary, group: str) -> list[tuple[Line, Style]]:
    """Return the other policies with their styles: relocation in the colour of annealing, others in the method's."""
    found, aware = [], 0
    for one in summary.others(group):
        if one.counts_relocation:
            found.append((one, Style(colour_of("anneal"), DASHES[aware % len(DASHES)])))
            aware += 1
        else:
            found.append((one, Style(colour_of(one.method), "dot")))
    return found


def part_panels(summary: Summary) -> Panels:
    """Draw what schedules cost beyond the least delay, split into delay, handovers and spools, for each group.

    No part is below 0, because the bars begin at the bound on the delay part of the cost. A bound that counts
    relocation is larger; it is a line across the bars.

    Parameters
    ----------
    summary
        The results.

    Returns
    -------
    list
        A title and a plot for each panel.
    """
    panels: Panels = []
    for group in summary.groups:
        lines = [one for one in summary.main_lines if one.group == group]
        every = summary.periodic(group, summary.main)
        lines += [one for one in (every[0], every[-1]) if one not in lines] if every else []
        lines.sort(key=lambda one: -one.cost.mean)
        delay_bound = summary.delay_bound(group)
        names = [one.name for one in lines]
        plot = figure(x="ms above delay bound", y="", height=70 + 30 * len(lines))
        plot.update_layout(barmode="stack", bargap=0.3, margin=MARGIN | {"l": 20})
        plot.update_yaxes(type="category")
        for part, colour in PARTS.items():
            exact = [one.parts[part] for one in lines]
            # Rounding errors only: no delay is less than its bound.
            shown = [max(0.0, value - delay_bound) if part == "delay" else value for value in exact]
            hover = [f"{name}: {part} {value:.4f} ms per publication" for name, value in zip(names, exact, strict=True)]
            bars = points(hover, columns={part: exact})
            name = "delay above its bound" if part == "delay" else part
            plot.add_trace(go.Bar(x=shown, y=names, orientation="h", name=name, marker={"color": colour}, **bars))
        if (bound := summary.bound(group)) > delay_bound:
            hover = [f"no schedule costs less than {bound:.4f} ms per publication"] * 2
            x = [bound - delay_bound] * 2
            ends = [names[0], names[-1]]
            plot.add_trace(line(BOUND, BOUND_STYLE, x=x, y=ends, mode="lines", **points(hover)))
        panels.append((_title(summary, group), plot))
    return panels


def cluster_plot(summary: Summary) -> go.Figure | None:
    """Draw the cost against the number of clusters, one line for each group.

    Parameters
    ----------
    summary
        The results.

    Returns
    -------
    go.Figure or None
        The plot; None if numbers of clusters were not compared.
    """
    if not any(summary.clusters(group) for group in summary.groups):
        return None
    plot = figure(x="number of clusters K", y="cost, ms per publication", height=360, xaxis_type="category")
    colours = ("#3b8bd0", "#e08e1b", "#d9455f", "#2f9e77", "#a548b8", "#7f8790")
    for number, group in enumerate(summary.groups):
        lines = summary.clusters(group)
        if not lines:
            continue
        style = Style(colours[number % len(colours)])
        fixed = [one for one in lines if one.cluster_setting != "auto"]
        auto = [one for one in lines if one.cluster_setting == "auto"]
        _add_clusters(plot, group, style, fixed, "lines+markers")
        _add_clusters(plot, group, style, auto, "markers")
    return plot


def _add_clusters(plot: go.Figure, group: str, style: Style, lines: Sequence[Line], mode: str) -> None:
    if not lines:
        return
    costs = [one.cost for one in lines]
    means = [one.mean for one in costs]
    low, high = [one.limits[0] for one in costs], [one.limits[1] for one in costs]
    hover = [
        f"{group}, K = {one.cluster_setting}: {_with_limits(one)}\n{one.handovers:.2g} handovers per client and hour"
        + ("" if one.clusters is None else f", mean K {one.clusters:.3g}")
        for one in lines
    ]
    whiskers = {
        "type": "data",
        "symmetric": False,
        "array": [end - mean for end, mean in zip(high, means, strict=True)],
        "arrayminus": [mean - end for end, mean in zip(low, means, strict=True)],
        "thickness": 1,
        "width": 3,
    }
    data = points(hover, columns={"low": low, "high": high})
    x = [one.cluster_setting for one in lines]
    # A name in the legend for the first trace of a group only.
    named = all(trace.name != group for trace in plot.data)
    plot.add_trace(line(group, style, x=x, y=means, mode=mode, error_y=whiskers, showlegend=named, **data))


def time_plot(summary: Summary) -> go.Figure | None:
    """Draw the time of a run against the number of clients, with the best periods.

    Parameters
    ----------
    summary
        The results.

    Returns
    -------
    go.Figure or None
        The plot; None if no times were measured.
    """
    known = {method: found for method in summary.methods if (found := growth(summary, method)) is not None}
    if not known:
        return None
    plot = figure(x="clients", y="seconds of one run", height=380)
    seconds: list[float] = []
    ends = [min(row.clients for found in known.values() for row in found.rows), CLIENTS[-1]]
    for method, found in known.items():
        style = Style(colour_of(method))
        x, y = [row.clients for row in found.rows], [row.seconds for row in found.rows]
        hover = [
            f"{name_of(method)}: {row.seconds:.3g} s with {row.clients:,} clients and {row.servers} servers, measured"
            for row in found.rows
        ]
        seconds += y
        plot.add_trace(line(name_of(method), style, x=x, y=y, **points(hover, columns={"measured": [True] * len(x)})))
        if x[-1] < CLIENTS[-1] and (more := found.seconds(CLIENTS[-1])) is not None:
            hover = [f"{name_of(method)}: {value:.3g} s, extrapolated" for value in (y[-1], more[0])]
            seconds.append(more[0])
            dotted = line(
                name_of(method), Style(style.colour, "dot", "circle-open"), x=[x[-1], CLIENTS[-1]], y=[y[-1], more[0]]
            )
            plot.add_trace(dotted.update(showlegend=False, **points(hover, columns={"measured": [True, False]})))
    periods: dict[float, list[str]] = {}
    for group in summary.groups:
        if (best := summary.best(group, summary.main)) is not None and best.period:
            periods.setdefault(best.period, []).append(group)
    for number, (period, groups) in enumerate(sorted(periods.items())):
        text = f"best period of {name_of(summary.main)}: {time_text(period)} ({', '.join(groups)})"
        style = Style(BAD, DASHES[(number + 1) % len(DASHES)])
        label = f"best period, {', '.join(groups)}"
        seconds.append(period)
        plot.add_trace(line(label, style, x=ends, y=[period, period], mode="lines", **points([text, text])))
    return plot.update_layout(xaxis=log_axis(ends), yaxis=log_axis(seconds))
