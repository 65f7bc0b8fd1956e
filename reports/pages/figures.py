"""Plots in the style of the pages.

A plot is a plotly figure that can be shown by itself, for example in a notebook. On a page, the script of the page sets
its colours for light, dark and print, replaces its legend by one whose entries hide a method in all plots, and adds the
switches and the download of the data. What the script must know besides the figure is in ``meta`` of its traces:

- ``methods``: the method of each point, for a trace with points of several methods;
- ``x``, ``y``: the exact values, where the trace shows others, such as the smallest value of a logarithmic axis for 0;
- ``columns``: further columns of the data by name, with one value per point.

A trace with ``hoverinfo="skip"`` is decoration, such as a band: its points are not part of the data.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from relocbench.reports.pages.method_style import Style, faded

MARGIN = {"l": 56, "r": 16, "t": 12, "b": 48}
# A logarithmic axis of at most this many decades has ticks at 1, 2 and 5 of each decade, a longer one at 1.
DECADES_WITH_STEPS = 2.0
# An axis of counts has at most about this many ticks.
MOST_COUNT_TICKS = 8


def figure(*, x: str, y: str, height: int = 380, **layout: Any) -> go.Figure:
    """Return an empty plot.

    Parameters
    ----------
    x, y
        The axis titles, with units.
    height
        The height in pixels.
    **layout
        Any other argument of plotly's layout (``yaxis_tickformat=".0%"``, ``xaxis_type="log"``).

    Returns
    -------
    go.Figure
        The plot.
    """
    plot = go.Figure()
    plot.update_layout(
        template="none",
        height=height,
        margin=MARGIN,
        hovermode="closest",
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        # The labels of the two axes must not touch in the corner.
        xaxis={"title": {"text": x}, "automargin": True, "zeroline": False, "ticklabelstandoff": 6},
        yaxis={"title": {"text": y}, "automargin": True, "zeroline": False, "ticklabelstandoff": 3},
    )
    plot.update_layout(**layout)
    return plot


def points(
    hover: Sequence[str],
    command: Sequence[str | None] | None = None,
    *,
    columns: Mapping[str, Sequence[Any]] | None = None,
    methods: Sequence[str] | None = None,
    **exact: Sequence[Any],
) -> dict[str, Any]:
    """Return trace arguments that give each point a hover text, a command, and what the page needs to know of it.

    Parameters
    ----------
    hover
        One text per point; a newline starts a new line.
    command
        One command per point, which a click shows; None for points without a command.
    columns
        Further columns of the data that readers download, by name.
    methods
        The name of the method of each point, if the trace has points of several methods.
    **exact
        The exact values ``x`` or ``y``, if the trace shows others (:func:`at_least`).

    Returns
    -------
    dict
        Keyword arguments for a plotly trace.
    """
    commands = [None] * len(hover) if command is None else list(command)
    data = [[_hover_text(text), one] for text, one in zip(hover, commands, strict=True)]
    meta: dict[str, Any] = {axis: list(values) for axis, values in exact.items()}
    if columns:
        meta["columns"] = {name: list(values) for name, values in columns.items()}
    if methods is not None:
        meta["methods"] = list(methods)
    return {"customdata": data, "hovertemplate": "%{customdata[0]}<extra></extra>"} | ({"meta": meta} if meta else {})


def at_least(floor: float, values: Iterable[float]) -> list[float]:
    """Return values for a logarithmic axis, which cannot show 0.

    Parameters
    ----------
    floor
        The smallest value of the axis, which :func:`log_axis` labels as such.
    values
        The values.

    Returns
    -------
    list of float
        The values; smaller ones are replaced by the floor.
    """
    return [max(floor, value) for value in values]


def log_axis(values: Iterable[float], *, percent: bool = False, floor: float | None = None) -> dict[str, Any]:
    """Return the settings of a logarithmic axis, with ticks that suit its range.

    Parameters
    ----------
    values
        The values that the axis shows.
    percent
        Whether the labels are percentages.
    floor
        The value at which the plot shows all smaller values; its label says so.

    Returns
    -------
    dict
        Keyword arguments for an axis of plotly.
    """
    shown = [value for value in values if value > 0 and math.isfinite(value)] or [1.0]
    low, high = math.log10(min(shown)), math.log10(max(shown))
    steps = (1, 2, 5) if high - low <= DECADES_WITH_STEPS else (1,)
    ticks = [float(f"{step}e{power}") for power in range(math.floor(low) - 1, math.ceil(high) + 1) for step in steps]
    if floor is not None:
        ticks = [tick for tick in ticks if tick >= floor]
    labels = [f"{100 * tick:.12g}%" if percent else f"{tick:.12g}" for tick in ticks]
    if floor is not None and ticks and math.isclose(ticks[0], floor):
        labels[0] = f"≤{labels[0]}"
    # The format is for the linear axis to which a reader can switch.
    return {"type": "log", "tickvals": ticks, "ticktext": labels, "tickformat": "~%" if percent else "~r"}


def spread_axis(values: Iterable[float], floor: float) -> dict[str, Any]:
    """Return the settings of an axis of shares: logarithmic if they span more than a decade, otherwise from zero.

    Parameters
    ----------
    values
        The shares, not negative.
    floor
        As for :func:`log_axis`.

    Returns
    -------
    dict
        Keyword arguments for an axis of plotly.
    """
    shown = at_least(floor, values)
    if shown and max(shown) > 10 * min(shown):
        return log_axis(shown, percent=True, floor=floor)
    return {"type": "linear", "rangemode": "tozero", "tickformat": "~%"}


def count_axis(largest: float) -> dict[str, Any]:
    """Return the settings of an axis of counts: from zero, with ticks at whole numbers.

    Parameters
    ----------
    largest
        The largest count.

    Returns
    -------
    dict
        Keyword arguments for an axis of plotly.
    """
    steps = (step * 10**power for power in range(16) for step in (1, 2, 5))
    step = next(step for step in steps if step * MOST_COUNT_TICKS >= largest)
    return {"rangemode": "tozero", "tick0": 0, "dtick": step, "tickformat": "~r"}


def line(name: str, style: Style, **arguments: Any) -> go.Scatter:
    """Return a line in the style of a method.

    Parameters
    ----------
    name
        The name in the legend.
    style
        The style of the method.
    **arguments
        Arguments of plotly's ``Scatter`` (x, y, mode, line_shape, ...).

    Returns
    -------
    go.Scatter
        The trace.
    """
    stroke = {"color": style.colour, "dash": style.dash, "width": 2.5} | arguments.pop("line", {})
    marker = {"color": style.colour, "symbol": style.symbol, "size": 7} | arguments.pop("marker", {})
    defaults = {"mode": "lines+markers", "name": name}
    return go.Scatter(**(defaults | arguments), line=stroke, marker=marker, legendgroup=name)


def banded_line(
    plot: go.Figure,
    name: str,
    style: Style,
    x: Sequence[float] | Sequence[str],
    middle: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    **arguments: Any,
) -> None:
    """Add a line with a band around it to a plot.

    Parameters
    ----------
    plot
        The plot.
    name, style
        As for :func:`line`.
    x, middle
        The points of the line.
    low, high
        The lower and upper limit of the band at each point.
    **arguments
        Further arguments of the line, such as the result of :func:`points`.
    """
    meta = arguments.pop("meta", {})
    columns = {"low": list(low), "high": list(high)} | meta.get("columns", {})
    plot.add_trace(
        go.Scatter(
            x=[*x, *reversed(x)],
            y=[*high, *reversed(low)],
            fill="toself",
            fillcolor=faded(style.colour, 0.18),
            line={"width": 0},
            mode="lines",
            hoverinfo="skip",
            showlegend=False,
            legendgroup=name,
        )
    )
    plot.add_trace(line(name, style, x=list(x), y=list(middle), meta=meta | {"columns": columns}, **arguments))


def _hover_text(text: str) -> str:
    """Return text in the form of plotly's hover labels: ``<br>`` between lines, and no other tags."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("\n", "<br>")
