"""The plots of an excess study."""

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from relocbench.reports.pages.figures import banded_line, figure, line, points
from relocbench.reports.pages.method_style import REFERENCE, Style, name_of, styles
from relocbench.reports.statistics import mean_interval
from relocbench.reports.study.excess import Measurement, per_instance

# A logarithmic axis shows every smaller excess, 0 included, at this value.
FLOOR = 1e-5
LOG_TICKS = {
    "tickvals": [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10],
    "ticktext": ["≤0.001%", "0.01%", "0.1%", "1%", "10%", "100%", "1000%"],
}


def against_sigma(measurements: Sequence[Measurement]) -> go.Figure:
    """Plot the mean excess against σ, with 95 % bands.

    Parameters
    ----------
    measurements
        The runs of one group.

    Returns
    -------
    go.Figure
        The plot.
    """
    plot = figure(x="σ, the spread of a topic's members, km", y="mean excess", yaxis_tickformat=".0%", height=420)
    plot.update_yaxes(rangemode="tozero")
    for selector, style in _styles(measurements).items():
        own = [one for one in measurements if one.selector == selector and one.excess is not None]
        sigmas = sorted({one.sigma for one in own if one.sigma is not None})
        intervals = [
            mean_interval(list(per_instance(one for one in own if one.sigma == sigma).values())) for sigma in sigmas
        ]
        if not intervals:
            continue
        hover = [
            f"{name_of(selector)}, σ = {sigma:g} km\nmean excess {mean:.2%}, 95 % [{low:.2%}, {high:.2%}]"
            for sigma, (mean, low, high) in zip(sigmas, intervals, strict=True)
        ]
        middle, low, high = zip(*intervals, strict=True)
        if selector == "random":
            # The excess of RA is several times that of every other method, so it is hidden until it is clicked.
            hidden: dict[str, Any] = {"visible": "legendonly"}
            plot.add_trace(line(name_of(selector), style, x=sigmas, y=middle, **points(hover), **hidden))
        else:
            banded_line(plot, name_of(selector), style, sigmas, middle, low, high, **points(hover))
    return plot


def distribution(measurements: Sequence[Measurement]) -> go.Figure:
    """Plot for each method the share of its runs against the excess.

    Parameters
    ----------
    measurements
        The runs of one group.

    Returns
    -------
    go.Figure
        The plot.
    """
    plot = figure(x="largest excess (logarithmic)", y="share of runs", yaxis_tickformat=".0%", height=400)
    plot.update_xaxes(type="log", **LOG_TICKS)
    plot.update_yaxes(range=[0, 1.02])
    largest = max((one.excess for one in measurements if one.excess is not None), default=1.0)
    for selector, style in _styles(measurements).items():
        own = sorted(one.excess for one in measurements if one.selector == selector and one.excess is not None)
        if not own:
            continue
        x = [FLOOR, *(max(FLOOR, value) for value in own), max(largest, FLOOR) * 1.1]
        y = [0.0, *((np.arange(len(own)) + 1) / len(own)).tolist(), 1.0]
        hover = [
            f"{name_of(selector)}\n{share:.0%} of runs have an excess of at most {value:.3%}"
            for value, share in zip(x, y, strict=True)
        ]
        plot.add_trace(line(name_of(selector), style, x=x, y=y, mode="lines", line={"shape": "hv"}, **points(hover)))
    return plot


def against_time(measurements: Sequence[Measurement]) -> go.Figure:
    """Plot the mean excess of each method against its median time.

    Parameters
    ----------
    measurements
        The runs of one group.

    Returns
    -------
    go.Figure
        The plot. A line joins the points of one method with several budgets.
    """
    plot = figure(x="median seconds of a run (logarithmic)", y="mean excess (logarithmic)", height=420)
    plot.update_xaxes(type="log", dtick=1, tickformat="~g")
    plot.update_yaxes(type="log", **LOG_TICKS)
    found: dict[str, list[tuple[float, str, float, float, float]]] = {}
    for selector in dict.fromkeys(one.selector for one in measurements):
        own = [one for one in measurements if one.selector == selector and one.excess is not None]
        if own:
            seconds = max(1e-4, statistics.median(one.seconds for one in own))
            interval = mean_interval(list(per_instance(own).values()))
            found.setdefault(_without_budget(selector), []).append((seconds, selector, *interval))
    for number, (method, budgets) in enumerate(sorted(found.items(), key=lambda item: min(item[1]))):
        budgets.sort()
        style = styles([method])[method]
        y = [max(FLOOR, mean) for _, _, mean, _, _ in budgets]
        hover = [
            f"{name_of(selector)}\n{seconds:.3g} s, mean excess {mean:.3%} [{low:.3%}, {high:.3%}]"
            for seconds, selector, mean, low, high in budgets
        ]
        labels = [name_of(selector) for _, selector, *_ in budgets]
        if len(budgets) > 1:
            labels = [labels[0], *(label.partition("[")[2].rstrip("]") or label for label in labels[1:])]
        plot.add_trace(
            line(
                name_of(method),
                style,
                x=[seconds for seconds, *_ in budgets],
                y=y,
                mode="lines+markers+text",
                text=labels,
                # The labels of neighbouring points alternate between above and below, so that they do not overlap.
                textposition="bottom center" if number % 2 and len(budgets) == 1 else "top center",
                marker={"size": 11},
                showlegend=False,
                cliponaxis=False,
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": [max(FLOOR, high) - at for (*_, high), at in zip(budgets, y, strict=True)],
                    "arrayminus": [at - max(FLOOR, low) for (_, _, _, low, _), at in zip(budgets, y, strict=True)],
                    "thickness": 1,
                },
                **points(hover),
            )
        )
    return plot


def each_run(measurements: Sequence[Measurement]) -> go.Figure:
    """Plot every run as a point, by regime and method.

    Parameters
    ----------
    measurements
        The runs of one group.

    Returns
    -------
    go.Figure
        The plot. A click on a point shows the command that repeats the run.
    """
    regimes = list(dict.fromkeys(one.regime for one in measurements))
    chosen = _styles(measurements)
    plot = figure(x="", y="excess (logarithmic)", height=520)
    plot.update_yaxes(type="log", **LOG_TICKS)
    plot.update_xaxes(tickvals=list(range(len(regimes))), ticktext=regimes, showgrid=False)
    for edge in range(1, len(regimes)):
        plot.add_vline(x=edge - 0.5, line={"color": REFERENCE, "width": 1, "dash": "dot"}, opacity=0.6)
    width = 0.8 / max(1, len(chosen))
    for number, (selector, style) in enumerate(chosen.items()):
        own = [one for one in measurements if one.selector == selector and one.excess is not None]
        # The position inside a column is the rank of the run: points do not overlap, and the plot is deterministic.
        place = {id(one): part for regime in regimes for one, part in _spread(own, regime)}
        left = -0.4 + number * width
        x = [regimes.index(one.regime) + left + width * (0.15 + 0.7 * place[id(one)]) for one in own]
        plot.add_trace(
            go.Scatter(
                name=name_of(selector),
                mode="markers",
                x=x,
                y=[max(FLOOR, one.excess) for one in own if one.excess is not None],
                marker={"color": style.colour, "symbol": style.symbol, "size": 6, "opacity": 0.75},
                **points([_hover(one) for one in own], [one.command for one in own]),
            )
        )
    return plot


# The plots that a program can ask for by name; each takes the runs of one group.
KINDS = {"runs": each_run, "distribution": distribution, "time": against_time, "sigma": against_sigma}


def _spread(measurements: Sequence[Measurement], regime: str) -> list[tuple[Measurement, float]]:
    inside = [one for one in measurements if one.regime == regime]
    return [(one, (rank + 0.5) / len(inside)) for rank, one in enumerate(inside)]


def _hover(one: Measurement) -> str:
    return (
        f"{one.instance}, {name_of(one.selector)}, seed {one.seed}\n"
        f"excess {one.excess:.3%} over the {one.reference_kind} {one.reference:.6g}\n"
        f"ΣD {one.objective:.6g}, {one.clients} clients, {one.servers} servers, {one.seconds:.2g} s"
    )


def _without_budget(selector: str) -> str:
    """Return ``anneal`` for every budget of annealing, and every other selector unchanged."""
    return "anneal" if selector.startswith("anneal") else selector


def _styles(measurements: Sequence[Measurement]) -> dict[str, Style]:
    return styles(list(dict.fromkeys(one.selector for one in measurements)))
