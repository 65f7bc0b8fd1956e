"""The three studies as curves: what each method uses and how fast it delivers, against what is varied."""

from collections.abc import Callable, Sequence

import plotly.graph_objects as go

from relocbench.reports.pages.figures import banded_line, figure, line, points
from relocbench.reports.pages.method_style import BAD, Look, colour_of
from relocbench.reports.paper.evaluation import ANNEAL, BASELINES
from relocbench.reports.paper.measures import BEST, Interval, Measures
from relocbench.reports.paper.readings import reloc
from relocbench.reports.statistics import FEWEST_FOR_INTERVAL

# What is drawn, its title, how it is written, and whether there is a capacity to draw.
PANELS = (
    ("storage_use", "Storage, mean of servers, share of A", ".0%", True),
    ("fullest_compute", "Compute, fullest server, share of B", ".0%", True),
    ("distance_km", "Client to home, km", ".2f", False),
    ("y", "Y, mean delay, ms", ".3f", False),
    ("y1", "Y1, distance, ms", ".3f", False),
    ("y2", "Y2, resources, ms", ".3f", False),
)
AXES = {"sigma": "σ, km", "spool": "p, spool a member"}
SYMBOLS = {"sigma": "σ", "spool": "p"}
# The first is drawn first, below the others.
METHODS = {
    BEST: "best homes known",
    **dict(zip(BASELINES, ("RA", "NS", "OTOS"), strict=True)),
    reloc(): "RELOC",
    ANNEAL: "annealing",
}
CAPACITY = Look(BAD, "dash")
CERTIFIED = Look(colour_of("bound"), "dot", "x")
BEST_LOOK = Look("#a9b0b8", "solid", "diamond")
# From local to spread out.
SPREADS = ("#5e3c99", "#2f6db3", "#2f9e77", "#e08e1b", "#d9455f", "#9a7b5f")

# Study, value, method -> the command that does it again, if there is one.
Command = Callable[[str, float, str], str | None]


def legend() -> list[tuple[str, Look]]:
    """Return the legend of the studies over σ and p."""
    drawn = [(title, _look(method)) for method, title in METHODS.items()]
    return [*drawn, ("certified bound", CERTIFIED), ("capacity", CAPACITY)]


def curves(measures: Measures, study: str, command: Command) -> list[tuple[str, go.Figure]]:
    """Return the six panels of a study over σ or p."""
    values = measures.values(study)
    panels = []
    for what, title, form, limited in PANELS:
        plot = _panel(AXES[study], form)
        plot.update_layout(xaxis_tickvals=values)
        drawn = [(method, name, what, _look(method)) for method, name in METHODS.items()]
        if what == "y":
            drawn.append((BEST, "certified bound", "bound", CERTIFIED))
        for method, name, number, look in drawn:
            found = {x: mean for x in values if (mean := measures.mean(study, x, method, number)) is not None}
            hover = [f"{name}, {SYMBOLS[study]} = {x:g}: {_written(mean, form, measures)}" for x, mean in found.items()]
            told = points(hover, [command(study, x, method) for x in found])
            middle, low, high = zip(*found.values(), strict=True) if found else ((), (), ())
            # Wide and below the others: annealing lies on it.
            width = 7 if method == BEST and look is BEST_LOOK else 2.5
            banded_line(plot, name, look, list(found), middle, low, high, line={"width": width}, **told)
        if limited:
            _capacity(plot)
        panels.append((title, plot))
    return panels


def spreads(measures: Measures) -> list[tuple[str, Look]]:
    """Return the legend of the study over K: a colour for each σ."""
    drawn = [(f"σ = {x:g} km", Look(_spread(number))) for number, x in enumerate(measures.values("sigma"))]
    return [*drawn, ("capacity", CAPACITY)]


def cluster_curves(measures: Measures, clusters: Sequence[int], command: Command) -> list[tuple[str, go.Figure]]:
    """Return the six panels over K, a line a spread; annealing and the best homes known stand to the right of it."""
    beside = {"SA": ANNEAL, "best": BEST}
    methods = {str(k): reloc(k=k) for k in clusters} | beside
    panels = []
    for what, title, form, limited in PANELS:
        plot = _panel("K", form)
        axis = {"type": "category", "categoryorder": "array", "categoryarray": list(methods), "tickangle": 0}
        plot.update_layout(xaxis=axis)
        for number, x in enumerate(measures.values("sigma")):
            found = {
                place: mean
                for place, method in methods.items()
                if (mean := measures.mean("sigma", x, method, what)) is not None
            }
            for joined in (True, False):
                part = {place: mean for place, mean in found.items() if (place not in beside) == joined}
                hover = [
                    f"σ = {x:g} km, {f'K = {place}' if joined else METHODS[methods[place]]}: "
                    f"{_written(mean, form, measures)}"
                    for place, mean in part.items()
                ]
                told = points(hover, [command("sigma", x, methods[place]) for place in part])
                middle, low, high = zip(*part.values(), strict=True) if part else ((), (), ())
                name, look = f"σ = {x:g}", Look(_spread(number), symbol="circle" if joined else "diamond")
                if joined:
                    banded_line(plot, name, look, list(part), middle, low, high, **told)
                else:
                    plot.add_trace(line(name, look, x=list(part), y=middle, mode="markers", **told))
        if limited:
            _capacity(plot)
        panels.append((title, plot))
    return panels


def _panel(x: str, form: str) -> go.Figure:
    plot = figure(x=x, y="", height=280, showlegend=False, yaxis_rangemode="tozero")
    return plot.update_layout(
        margin={"l": 44, "r": 10, "t": 8, "b": 42}, yaxis_tickformat=".0%" if form.endswith("%") else ""
    )


def _look(method: str) -> Look:
    return BEST_LOOK if method == BEST else Look(colour_of(method))


def _spread(number: int) -> str:
    return SPREADS[number % len(SPREADS)]


def _capacity(plot: go.Figure) -> None:
    plot.add_hline(y=1.0, line={"color": CAPACITY.colour, "dash": CAPACITY.dash, "width": 1.5})


def _written(mean: Interval, form: str, measures: Measures) -> str:
    middle, low, high = (format(value, form) for value in mean)
    return f"{middle} [{low}, {high}]" if len(measures.seeds) >= FEWEST_FOR_INTERVAL else middle
