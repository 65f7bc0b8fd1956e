"""The curves of the three studies: loads, distances and delays of each method against the varied parameter."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from relocbench.reports.pages.figures import banded_line, figure, line, points
from relocbench.reports.pages.method_style import BAD, Style, colour_of
from relocbench.reports.paper.evaluation import ANNEAL
from relocbench.reports.paper.measures import BEST, Measures
from relocbench.reports.paper.readings import otos, reloc
from relocbench.reports.statistics import FEWEST_FOR_INTERVAL, Interval


@dataclass(frozen=True)
class Panel:
    """One panel of a study.

    Attributes
    ----------
    measure
        The attribute of :class:`reports.paper.measures.Measured` that is drawn.
    title
        The title, with units.
    form
        The format of its numbers.
    has_capacity
        Whether the panel shows the capacity.
    """

    measure: str
    title: str
    form: str
    has_capacity: bool = False


PANELS = (
    Panel("storage_use", "Storage, mean of servers, share of A", ".0%", has_capacity=True),
    Panel("fullest_compute", "Compute, fullest server, share of B", ".0%", has_capacity=True),
    Panel("distance_km", "Client to home, km", ".2f"),
    Panel("y", "Y, mean delay, ms", ".3f"),
    Panel("y1", "Y1, distance, ms", ".3f"),
    Panel("y2", "Y2, resources, ms", ".3f"),
)
AXES = {"sigma": "σ, km", "spool": "p, spool size per member"}
SYMBOLS = {"sigma": "σ", "spool": "p"}
# The methods in the order in which they are drawn; later ones cover earlier ones.
METHODS = {
    BEST: "best known homes",
    "random": "RA",
    "nearest": "NS",
    otos(): "OTOS",
    reloc(): "RELOC",
    ANNEAL: "annealing",
}
CAPACITY = Style(BAD, "dash")
CERTIFIED = Style(colour_of("bound"), "dot", "x")
BEST_STYLE = Style("#a9b0b8", "solid", "diamond")
# The values of σ, from small to large: shades of one hue that is no method's on this page, and different symbols.
SPREADS = (
    Style("#8fd0d6", symbol="circle"),
    Style("#5fb9c4", "dash", "square"),
    Style("#349eae", "dot", "triangle-up"),
    Style("#1f8296", "dashdot", "x"),
    Style("#16667a", "longdash", "cross"),
    Style("#2b5363", "longdashdot", "diamond"),
)

# A function of study, value and method that returns the command that repeats the runs, or None.
Command = Callable[[str, float, str], str | None]


def curves(measures: Measures, study: str, command: Command) -> list[tuple[str, go.Figure]]:
    """Draw the panels of a study over σ or p.

    Parameters
    ----------
    measures
        The measures of all assignments.
    study
        ``sigma`` or ``spool``.
    command
        The command of each point.

    Returns
    -------
    list
        A title and a plot for each panel.
    """
    values = measures.values(study)
    panels = []
    for panel in PANELS:
        form = panel.form
        plot = empty_panel(AXES[study], form)
        plot.update_layout(xaxis_tickvals=values)
        drawn = [(method, name, panel.measure, style_of(method)) for method, name in METHODS.items()]
        if panel.measure == "y":
            drawn.append((BEST, "certified bound", "bound", CERTIFIED))
        for method, name, measure, style in drawn:
            found = {x: mean for x in values if (mean := measures.mean(study, x, method, measure)) is not None}
            hover = [
                f"{name}, {SYMBOLS[study]} = {x:g}: {_formatted(mean, form, measures)}" for x, mean in found.items()
            ]
            data = points(hover, [command(study, x, method) for x in found])
            middle, low, high = columns(found.values())
            # The line of the best known homes is wide, because the line of annealing lies on top of it.
            width = 7 if style is BEST_STYLE else 2.5
            banded_line(plot, name, style, list(found), middle, low, high, line={"width": width}, **data)
        if panel.has_capacity:
            _add_capacity(plot, values)
        panels.append((panel.title, plot))
    return panels


def cluster_curves(measures: Measures, clusters: Sequence[int], command: Command) -> list[tuple[str, go.Figure]]:
    """Draw the panels of the study over K.

    Parameters
    ----------
    measures
        The measures of all assignments.
    clusters
        The values of K.
    command
        The command of each point.

    Returns
    -------
    list
        A title and a plot for each panel, with one line for each σ. Annealing and the best known homes are points to
        the right of the line.
    """
    separate = {"SA": ANNEAL, "best": BEST}
    methods = {str(k): reloc(k=k) for k in clusters} | separate
    panels = []
    for panel in PANELS:
        form = panel.form
        plot = empty_panel("K", form)
        axis = {"type": "category", "categoryorder": "array", "categoryarray": list(methods), "tickangle": 0}
        plot.update_layout(xaxis=axis)
        for number, x in enumerate(measures.values("sigma")):
            found = {
                label: mean
                for label, method in methods.items()
                if (mean := measures.mean("sigma", x, method, panel.measure)) is not None
            }
            for joined in (True, False):
                part = {label: mean for label, mean in found.items() if (label not in separate) == joined}
                hover = [
                    f"σ = {x:g} km, {f'K = {label}' if joined else METHODS[methods[label]]}: "
                    f"{_formatted(mean, form, measures)}"
                    for label, mean in part.items()
                ]
                data = points(hover, [command("sigma", x, methods[label]) for label in part])
                middle, low, high = columns(part.values())
                name, style = f"σ = {x:g} km", SPREADS[number % len(SPREADS)]
                if joined:
                    banded_line(plot, name, style, list(part), middle, low, high, **data)
                else:
                    plot.add_trace(line(name, style, x=list(part), y=middle, mode="markers", showlegend=False, **data))
        if panel.has_capacity:
            _add_capacity(plot, list(methods))
        panels.append((panel.title, plot))
    return panels


def empty_panel(x: str, form: str) -> go.Figure:
    """Return an empty panel.

    Parameters
    ----------
    x
        The title of the x-axis.
    form
        The format of the numbers of the y-axis.

    Returns
    -------
    go.Figure
        The panel.
    """
    plot = figure(x=x, y="", height=280, showlegend=False, yaxis_rangemode="tozero")
    return plot.update_layout(
        margin={"l": 44, "r": 10, "t": 8, "b": 42}, yaxis_tickformat="~%" if form.endswith("%") else "~r"
    )


def columns(means: Collection[Interval]) -> tuple[list[float], list[float], list[float]]:
    """Return intervals as columns.

    Parameters
    ----------
    means
        The intervals.

    Returns
    -------
    tuple
        The means, and the lower and the upper ends.
    """
    return (
        [found.mean for found in means],
        [found.limits[0] for found in means],
        [found.limits[1] for found in means],
    )


def style_of(method: str) -> Style:
    """Return the style of a method's line.

    Parameters
    ----------
    method
        The selector of the method, or the name of the best known homes.

    Returns
    -------
    Style
        The style.
    """
    return BEST_STYLE if method == BEST else Style(colour_of(method))


def _add_capacity(plot: go.Figure, ends: Sequence[float] | Sequence[str]) -> None:
    style = {"color": CAPACITY.colour, "dash": CAPACITY.dash, "width": 1.5}
    x = [ends[0], ends[-1]]
    plot.add_trace(go.Scatter(x=x, y=[1.0, 1.0], mode="lines", line=style, name="capacity", hoverinfo="skip"))


def _formatted(mean: Interval, form: str, measures: Measures) -> str:
    middle, low, high = (format(value, form) for value in (mean.mean, *mean.limits))
    return f"{middle} [{low}, {high}]" if len(measures.seeds) >= FEWEST_FOR_INTERVAL else middle
