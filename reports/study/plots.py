"""The plots of an excess study."""

import statistics
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from relocbench.reports.pages.figures import at_least, banded_line, figure, line, log_axis, points, spread_axis
from relocbench.reports.pages.method_style import REFERENCE, Style, name_of, styles
from relocbench.reports.study.excess import Measurement, interval, interval_text

# A logarithmic axis shows every smaller excess, 0 included, at this value.
FLOOR = 1e-5


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
    plot = figure(x="σ, the spread of a topic's members, km", y="mean excess", height=420)
    means: list[float] = []
    for selector, style in _styles(measurements).items():
        own = [one for one in measurements if one.selector == selector and one.excess is not None]
        sigmas = sorted({one.sigma for one in own if one.sigma is not None})
        intervals = [interval(one for one in own if one.sigma == sigma) for sigma in sigmas]
        if not intervals:
            continue
        hover = [
            f"{name_of(selector)}, σ = {sigma:g} km\nmean excess {found.mean:.2%}{interval_text(found)}"
            for sigma, found in zip(sigmas, intervals, strict=True)
        ]
        middle = [found.mean for found in intervals]
        low, high = zip(*(found.limits for found in intervals), strict=True)
        means += middle
        stated = {"low": [found.low for found in intervals], "high": [found.high for found in intervals]}
        data = points(hover, columns=stated, y=middle)
        shown = (at_least(FLOOR, values) for values in (middle, low, high))
        banded_line(plot, name_of(selector), style, sigmas, *shown, **data)
    plot.update_yaxes(spread_axis(means, FLOOR))
    plot.update_xaxes(tickvals=sorted({one.sigma for one in measurements if one.sigma is not None}))
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
    plot = figure(x="largest excess", y="share of runs", yaxis_tickformat=".0%", height=400)
    plot.update_yaxes(range=[0, 1.02])
    every = at_least(FLOOR, (one.excess for one in measurements if one.excess is not None))
    smallest, largest = min(every, default=FLOOR), max(every, default=1.0)
    plot.update_xaxes(log_axis(every, percent=True, floor=FLOOR))
    for selector, style in _styles(measurements).items():
        own = sorted(one.excess for one in measurements if one.selector == selector and one.excess is not None)
        if not own:
            continue
        x = [max(FLOOR, smallest / 1.1), *own, largest * 1.1]
        y = [0.0, *((np.arange(len(own)) + 1) / len(own)).tolist(), 1.0]
        hover = [
            f"{name_of(selector)}\n{share:.0%} of runs have an excess of at most {value:.3%}"
            for value, share in zip(x, y, strict=True)
        ]
        # On a linear axis, the line starts at its smallest value.
        data = points(hover, x=[min(x), *x[1:]]) | {"mode": "lines", "line": {"shape": "hv"}}
        plot.add_trace(line(name_of(selector), style, x=at_least(FLOOR, x), y=y, **data))
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
    plot = figure(x="median seconds of a run", y="mean excess", height=420)
    chosen = _styles(measurements)
    found: dict[str, list[tuple[float, str, float, float, float]]] = {}
    limits: dict[str, str] = {}
    for selector in dict.fromkeys(one.selector for one in measurements):
        own = [one for one in measurements if one.selector == selector and one.excess is not None]
        if own:
            seconds = max(1e-4, statistics.median(one.seconds for one in own))
            own_mean = interval(own)
            limits[selector] = interval_text(own_mean)
            found.setdefault(_without_budget(selector), []).append((seconds, selector, own_mean.mean, *own_mean.limits))
    for budgets in found.values():
        budgets.sort()
        names = [name_of(selector) for _, selector, *_ in budgets]
        times = [second for second, *_ in budgets]
        y = at_least(FLOOR, (mean for _, _, mean, _, _ in budgets))
        if len(budgets) > 1:
            stroke = {"color": chosen[budgets[0][1]].colour, "width": 2}
            plot.add_trace(
                go.Scatter(
                    x=times,
                    y=y,
                    mode="lines",
                    line=stroke,
                    hoverinfo="skip",
                    showlegend=False,
                    meta={"methods": names, "y": [mean for _, _, mean, _, _ in budgets]},
                )
            )
        for name, second, at, (_, selector, mean, low, high) in zip(names, times, y, budgets, strict=True):
            data = points(
                [f"{name}\n{second:.3g} s, mean excess {mean:.3%}{limits[selector]}"],
                columns={"low": [low], "high": [high]},
                y=[mean],
            )
            error = {"array": [max(FLOOR, high) - at], "arrayminus": [at - max(FLOOR, low)], "thickness": 1.2}
            data |= {"mode": "markers", "marker": {"size": 11}, "cliponaxis": False, "error_y": error}
            plot.add_trace(line(name, chosen[selector], x=[second], y=[at], **data))
    every = [budget for budgets in found.values() for budget in budgets]
    plot.update_xaxes(log_axis(second for second, *_ in every))
    plot.update_yaxes(spread_axis([mean for _, _, mean, _, _ in every], FLOOR))
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
    plot = figure(x="instances", y="excess", height=520)
    plot.update_yaxes(spread_axis([one.excess for one in measurements if one.excess is not None], FLOOR))
    plot.update_xaxes(tickvals=list(range(len(regimes))), ticktext=regimes, showgrid=False)
    for edge in range(1, len(regimes)):
        plot.add_vline(x=edge - 0.5, line={"color": REFERENCE, "width": 1, "dash": "dot"}, opacity=0.6)
    width = 0.8 / max(1, len(chosen))
    for number, (selector, style) in enumerate(chosen.items()):
        own = [one for one in measurements if one.selector == selector and one.excess is not None]
        # The position inside a column is the rank of the run: points do not overlap, and the plot is deterministic.
        place = {id(one): part for regime in regimes for one, part in _spread(own, regime)}
        left = -0.4 + number * width
        exact = [one.excess for one in own if one.excess is not None]
        about: dict[str, list[object]] = {
            "instance": [one.instance for one in own],
            "seed": [one.seed for one in own],
        }
        hover, commands = [_hover(one) for one in own], [one.command for one in own]
        x = [regimes.index(one.regime) + left + width * (0.15 + 0.7 * place[id(one)]) for one in own]
        plot.add_trace(
            go.Scatter(
                name=name_of(selector),
                mode="markers",
                x=x,
                y=at_least(FLOOR, exact),
                marker={"color": style.colour, "symbol": style.symbol, "size": 6, "opacity": 0.75},
                **points(hover, commands, columns=about, x=[one.regime for one in own], y=exact),
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
