"""The study over tightness: the excess of each method over the certified bound, against how full the servers are."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from relocbench.instances.gap import excess
from relocbench.reports.pages.figures import banded_line, points
from relocbench.reports.paper.curves import METHODS, Command, columns, empty_panel, style_of
from relocbench.reports.paper.evaluation import ANNEAL
from relocbench.reports.paper.measures import BEST, Measured, Measures, interval
from relocbench.reports.paper.planner import PAPER
from relocbench.reports.paper.readings import otos, reloc
from relocbench.reports.statistics import FEWEST_FOR_INTERVAL, Interval

# The two measures of tightness: what every assignment needs, and what RELOC uses.
ONCE = "storage, each topic once / capacity"
USED = "storage used by RELOC / capacity"
# The drawn methods with their names.
DRAWN = {method: name for method, name in METHODS.items() if method != ANNEAL}
# The y-axis ends at this multiple of the largest mean excess of the methods other than RA.
HEADROOM = 1.3
WINDOW = "rgba(52, 158, 174, 0.18)"


@dataclass(frozen=True)
class Point:
    """The instances of one least topic size at one σ.

    Attributes
    ----------
    size
        The least topic size.
    once, used
        The mean storage that is needed if every topic is stored once, and that RELOC uses, as shares of the capacity.
    excess
        The mean excess over the certified bound of each method.
    advantage
        The mean of Y of RELOC minus the least Y of the other three; None without runs.
    """

    size: str
    once: float
    used: float
    excess: Mapping[str, Interval]
    advantage: Interval | None

    @property
    def reloc_is_fastest(self) -> bool:
        """Whether RELOC is faster than the other three; with five seeds or more, by its 95 % interval."""
        return self.advantage is not None and self.advantage.limits[1] < 0


def tightness_studies(groups: Mapping[str, Measures], spreads: Sequence[float]) -> dict[float, list[Point]]:
    """Return the study over tightness.

    Parameters
    ----------
    groups
        The measures of each group.
    spreads
        The values of σ.

    Returns
    -------
    dict
        For each σ with certified bounds, one point per least size, ascending.
    """
    found = {sigma: list(_points(groups, sigma)) for sigma in spreads}
    return {sigma: study for sigma, study in found.items() if study}


def _points(groups: Mapping[str, Measures], sigma: float) -> Iterator[Point]:
    for size, measures in groups.items():
        best = {row.seed: row for row in measures.of("sigma", sigma, BEST)}
        own = measures.of("sigma", sigma, reloc())
        if size == PAPER or not best or not own:
            continue
        over = {method: _excess(measures.of("sigma", sigma, method), best) for method in DRAWN}
        differences = measures.differences("sigma", sigma, reloc(), ["random", "nearest", otos()])
        yield Point(
            size=size,
            once=sum(row.storage_once for row in own) / len(own),
            used=sum(row.storage_use for row in own) / len(own),
            excess={method: value for method, value in over.items() if value is not None},
            advantage=interval(differences) if differences else None,
        )


def _excess(rows: Sequence[Measured], best: Mapping[int, Measured]) -> Interval | None:
    values = [
        value
        for row in rows
        if row.seed in best
        and (bound := best[row.seed].bound) is not None
        and (value := excess(row.y, bound)) is not None
    ]
    return interval(values) if values else None


def window(study: Sequence[Point]) -> list[Point]:
    """Return the points of the window in which RELOC is the fastest of the four.

    Parameters
    ----------
    study
        The study over tightness at one σ.

    Returns
    -------
    list of Point
        The longest sequence of neighbouring points at which RELOC is the fastest; empty if there is none.
    """
    longest: list[Point] = []
    current: list[Point] = []
    for point in study:
        current = [*current, point] if point.reloc_is_fastest else []
        if len(current) > len(longest):
            longest = current
    return longest


def tightness_curves(
    studies: Mapping[float, Sequence[Point]], command: Command, *, used: bool
) -> list[tuple[str, go.Figure]]:
    """Draw the excess of each method against tightness, one panel for each σ.

    Parameters
    ----------
    studies
        The study at each σ.
    command
        The command of each point.
    used
        Whether tightness is what RELOC uses. Otherwise it is what is needed if every topic is stored once.

    Returns
    -------
    list
        A title and a plot for each σ.
    """
    panels = []
    for sigma, study in studies.items():
        plot = empty_panel(USED if used else ONCE, ".0%").update_layout(xaxis_tickformat="~%")
        x = [point.used if used else point.once for point in study]
        # RA is so far above the others that it would hide their differences.
        highest = max(
            (found.mean for point in study for method, found in point.excess.items() if method != "random"), default=1.0
        )
        plot.update_layout(yaxis_range=[0, HEADROOM * highest])
        _add_window(plot, study, x)
        for method, name in DRAWN.items():
            drawn = [(at, point) for at, point in zip(x, study, strict=True) if method in point.excess]
            hover = [
                f"{name}, least size {point.size}: {_text(point.excess[method])}\nstored once {point.once:.0%}, "
                f"RELOC uses {point.used:.0%}"
                for _, point in drawn
            ]
            data = points(
                hover,
                [command(point.size, sigma, method) for _, point in drawn],
                columns={"least size": [point.size for _, point in drawn]},
            )
            ends = columns([point.excess[method] for _, point in drawn])
            width = 7 if method == BEST else 2.5
            banded_line(plot, name, style_of(method), [at for at, _ in drawn], *ends, line={"width": width}, **data)
        panels.append((f"σ = {sigma:g} km", plot))
    return panels


def _add_window(plot: go.Figure, study: Sequence[Point], x: Sequence[float]) -> None:
    """Shade the window, from half way to the point before it to half way to the point after it."""
    chosen = window(study)
    if not chosen:
        return
    first, last = study.index(chosen[0]), study.index(chosen[-1])
    low = x[0] if first == 0 else (x[first - 1] + x[first]) / 2
    high = x[-1] if last == len(x) - 1 else (x[last] + x[last + 1]) / 2
    plot.add_vrect(x0=low, x1=high, fillcolor=WINDOW, line_width=0, layer="below")


def _text(found: Interval) -> str:
    if found.blocks < FEWEST_FOR_INTERVAL:
        return f"{found.mean:.0%} above the bound"
    return f"{found.mean:.0%} [{found.limits[0]:.0%}, {found.limits[1]:.0%}] above the bound"
