"""Plots in the style of the pages: plotly figures whose colours the page sets for light, dark and print."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from relocbench.reports.pages.method_style import Style, faded

MARGIN = {"l": 56, "r": 16, "t": 12, "b": 48}


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
        xaxis={"title": {"text": x}, "automargin": True, "zeroline": False},
        yaxis={"title": {"text": y}, "automargin": True, "zeroline": False},
    )
    plot.update_layout(**layout)
    return plot


def points(hover: Sequence[str], command: Sequence[str | None] | None = None) -> dict[str, Any]:
    """Return trace arguments that give each point a hover text and a command.

    Parameters
    ----------
    hover
        One text per point; a newline starts a new line.
    command
        One command per point, which a click shows; None for points without a command.

    Returns
    -------
    dict
        Keyword arguments for a plotly trace.
    """
    commands = [None] * len(hover) if command is None else list(command)
    data = [[_hover_text(text), one] for text, one in zip(hover, commands, strict=True)]
    return {"customdata": data, "hovertemplate": "%{customdata[0]}<extra></extra>"}


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
    plot.add_trace(line(name, style, x=list(x), y=list(middle), **arguments))


def _hover_text(text: str) -> str:
    """Return text in the form of plotly's hover labels: ``<br>`` between lines, and no other tags."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("\n", "<br>")
