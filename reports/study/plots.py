"""The plots of a gap study."""

import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from relocbench.reports.pages.figures import banded_line, figure, line, points
from relocbench.reports.pages.method_style import REFERENCE, Look, looks, name_of
from relocbench.reports.statistics import mean_interval
from relocbench.reports.study.excess import Gap, per_instance

# On a logarithmic axis smaller gaps, and none at all, are drawn here.
FLOOR = 1e-5
LOG_GAPS = {
    "tickvals": [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10],
    "ticktext": ["≤0.001%", "0.01%", "0.1%", "1%", "10%", "100%", "1000%"],
}


def against_sigma(gaps: Sequence[Gap]) -> go.Figure:
    """Draw the mean gap against σ, with 95 % bands; gaps of one group."""
    plot = figure(x="σ, the spread of a topic's members, km", y="gap", yaxis_tickformat=".0%", height=420)
    plot.update_yaxes(rangemode="tozero")
    for selector, look in _looks(gaps).items():
        mine = [gap for gap in gaps if gap.selector == selector and gap.gap is not None]
        sigmas = sorted({gap.sigma for gap in mine if gap.sigma is not None})
        told = [
            mean_interval(list(per_instance(gap for gap in mine if gap.sigma == sigma).values())) for sigma in sigmas
        ]
        if not told:
            continue
        hover = [
            f"{name_of(selector)}, σ = {sigma:g} km\nmean gap {mean:.2%}, 95 % [{low:.2%}, {high:.2%}]"
            for sigma, (mean, low, high) in zip(sigmas, told, strict=True)
        ]
        # Random homes are several times as far away as anything else.
        shown: dict[str, Any] = {"visible": "legendonly"} if selector == "random" else {}
        middle, low, high = zip(*told, strict=True)
        if shown:
            plot.add_trace(line(name_of(selector), look, x=sigmas, y=middle, **points(hover), **shown))
        else:
            banded_line(plot, name_of(selector), look, sigmas, middle, low, high, **points(hover))
    return plot


def distribution(gaps: Sequence[Gap]) -> go.Figure:
    """Draw for each method which share of its runs has at most which gap."""
    plot = figure(x="gap (logarithmic)", y="share of runs with at most this gap", yaxis_tickformat=".0%", height=400)
    plot.update_xaxes(type="log", **LOG_GAPS)
    plot.update_yaxes(range=[0, 1.02])
    largest = max((gap.gap for gap in gaps if gap.gap is not None), default=1.0)
    for selector, look in _looks(gaps).items():
        mine = sorted(gap.gap for gap in gaps if gap.selector == selector and gap.gap is not None)
        if not mine:
            continue
        x = [FLOOR, *(max(FLOOR, value) for value in mine), max(largest, FLOOR) * 1.1]
        y = [0.0, *((np.arange(len(mine)) + 1) / len(mine)).tolist(), 1.0]
        hover = [
            f"{name_of(selector)}\n{share:.0%} of runs within {value:.3%}" for value, share in zip(x, y, strict=True)
        ]
        plot.add_trace(line(name_of(selector), look, x=x, y=y, mode="lines", line={"shape": "hv"}, **points(hover)))
    return plot


def against_time(gaps: Sequence[Gap]) -> go.Figure:
    """Draw the mean gap of each method against its median time; budgets of one method are joined."""
    plot = figure(x="median seconds of a run (logarithmic)", y="mean gap (logarithmic)", height=420)
    plot.update_xaxes(type="log", dtick=1, tickformat="~g")
    plot.update_yaxes(type="log", **LOG_GAPS)
    told: dict[str, list[tuple[float, str, float, float, float]]] = {}
    for selector in dict.fromkeys(gap.selector for gap in gaps):
        mine = [gap for gap in gaps if gap.selector == selector and gap.gap is not None]
        if mine:
            seconds = max(1e-4, statistics.median(gap.seconds for gap in mine))
            interval = mean_interval(list(per_instance(mine).values()))
            told.setdefault(_searching(selector), []).append((seconds, selector, *interval))
    for number, (method, several) in enumerate(sorted(told.items(), key=lambda item: min(item[1]))):
        several.sort()
        look = looks([method])[method]
        y = [max(FLOOR, mean) for _, _, mean, _, _ in several]
        hover = [
            f"{name_of(selector)}\n{seconds:.3g} s, mean gap {mean:.3%} [{low:.3%}, {high:.3%}]"
            for seconds, selector, mean, low, high in several
        ]
        labels = [name_of(selector) for _, selector, *_ in several]
        if len(several) > 1:
            labels = [labels[0], *(label.partition("[")[2].rstrip("]") or label for label in labels[1:])]
        plot.add_trace(
            line(
                name_of(method),
                look,
                x=[seconds for seconds, *_ in several],
                y=y,
                mode="lines+markers+text",
                text=labels,
                # Neighbours, in the order of time, have their names on different sides.
                textposition="bottom center" if number % 2 and len(several) == 1 else "top center",
                marker={"size": 11},
                showlegend=False,
                cliponaxis=False,
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": [max(FLOOR, high) - at for (*_, high), at in zip(several, y, strict=True)],
                    "arrayminus": [at - max(FLOOR, low) for (_, _, _, low, _), at in zip(several, y, strict=True)],
                    "thickness": 1,
                },
                **points(hover),
            )
        )
    return plot


def each_run(gaps: Sequence[Gap]) -> go.Figure:
    """Draw every run as a point, regime by regime and method by method; a click names what repeats it."""
    regimes = list(dict.fromkeys(gap.regime for gap in gaps))
    drawn = _looks(gaps)
    plot = figure(x="", y="gap (logarithmic)", height=520)
    plot.update_yaxes(type="log", **LOG_GAPS)
    plot.update_xaxes(tickvals=list(range(len(regimes))), ticktext=regimes, showgrid=False)
    for edge in range(1, len(regimes)):
        plot.add_vline(x=edge - 0.5, line={"color": REFERENCE, "width": 1, "dash": "dot"}, opacity=0.6)
    width = 0.8 / max(1, len(drawn))
    for number, (selector, look) in enumerate(drawn.items()):
        mine = [gap for gap in gaps if gap.selector == selector and gap.gap is not None]
        # Within its column a run's place is its rank: no two on top of each other, and nothing random about it.
        place = {id(gap): part for regime in regimes for gap, part in _spread(mine, regime)}
        left = -0.4 + number * width
        x = [regimes.index(gap.regime) + left + width * (0.15 + 0.7 * place[id(gap)]) for gap in mine]
        plot.add_trace(
            go.Scatter(
                name=name_of(selector),
                mode="markers",
                x=x,
                y=[max(FLOOR, gap.gap) for gap in mine if gap.gap is not None],
                marker={"color": look.colour, "symbol": look.symbol, "size": 6, "opacity": 0.75},
                **points([_hover(gap) for gap in mine], [gap.command for gap in mine]),
            )
        )
    return plot


def _spread(gaps: Sequence[Gap], regime: str) -> list[tuple[Gap, float]]:
    inside = [gap for gap in gaps if gap.regime == regime]
    return [(gap, (rank + 0.5) / len(inside)) for rank, gap in enumerate(inside)]


def _hover(gap: Gap) -> str:
    return (
        f"{gap.instance}, {name_of(gap.selector)}, seed {gap.seed}\n"
        f"{gap.gap:.3%} above the {gap.reference_kind} {gap.reference:.6g}\n"
        f"ΣD {gap.objective:.6g}, {gap.clients} clients, {gap.servers} servers, {gap.seconds:.2g} s"
    )


def _searching(selector: str) -> str:
    """Return what a method's budgets share: ``anneal`` for ``anneal[moves=2e5]``; others are what they are."""
    return "anneal" if selector.startswith("anneal") else selector


def _looks(gaps: Sequence[Gap]) -> dict[str, Look]:
    return looks(list(dict.fromkeys(gap.selector for gap in gaps)))
