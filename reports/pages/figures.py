"""Plots in the pages' own style: plotly figures whose axes and texts the page paints for light, dark and print."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from relocbench.reports.pages.method_style import Look, faded

MARGIN = {"l": 56, "r": 16, "t": 12, "b": 48}


def figure(*, x: str, y: str, height: int = 380, **layout: Any) -> go.Figure:
    """Return an empty plot.

    Parameters
    ----------
    x, y
        What the axes show, with units.
    height
        Pixels.
    layout
        Anything else of plotly's layout (``yaxis_tickformat=".0%"``, ``xaxis_type="log"``).
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
    """Return the arguments of a trace that give each point a text on hovering and a command on clicking."""
    commands = [None] * len(hover) if command is None else list(command)
    told = [[_hoverable(text), given] for text, given in zip(hover, commands, strict=True)]
    return {"customdata": told, "hovertemplate": "%{customdata[0]}<extra></extra>"}


def line(name: str, look: Look, **given: Any) -> go.Scatter:
    """Return a line in a method's look; ``given`` are plotly's arguments (x, y, mode, line_shape …)."""
    style = {"color": look.colour, "dash": look.dash, "width": 2.5} | given.pop("line", {})
    marker = {"color": look.colour, "symbol": look.symbol, "size": 7} | given.pop("marker", {})
    return go.Scatter(**({"mode": "lines+markers", "name": name} | given), line=style, marker=marker, legendgroup=name)


def banded_line(
    plot: go.Figure,
    name: str,
    look: Look,
    x: Sequence[float] | Sequence[str],
    middle: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    **given: Any,
) -> None:
    """Add a line with a band from low to high; ``given`` goes to the line, such as what :func:`points` returns."""
    plot.add_trace(
        go.Scatter(
            x=[*x, *reversed(x)],
            y=[*high, *reversed(low)],
            fill="toself",
            fillcolor=faded(look.colour, 0.18),
            line={"width": 0},
            mode="lines",
            hoverinfo="skip",
            showlegend=False,
            legendgroup=name,
        )
    )
    plot.add_trace(line(name, look, x=list(x), y=list(middle), **given))


def _hoverable(text: str) -> str:
    """Return text as plotly's hover labels take it: lines by ``<br>``, no other tags."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("\n", "<br>")
