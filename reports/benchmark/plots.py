"""The plots of a benchmark."""

import math
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from relocbench.reports.benchmark.assessment import OUTCOMES, AssessedRun
from relocbench.reports.benchmark.measures import (
    SHORTEST,
    Curve,
    excess_profile,
    gap_curve,
    mean_curve,
    outcome_counts,
    performance_profile,
    trajectory,
)
from relocbench.reports.benchmark.rerun_command import command_of
from relocbench.reports.pages.figures import at_least, count_axis, figure, line, log_axis, points
from relocbench.reports.pages.method_style import REFERENCE, Style, name_of

OUTCOME_NAMES = {
    "optimal": "proved optimal",
    "claimed": "claimed, not proved",
    "feasible": "homes without a proof",
    "time_limit": "at the time limit",
    "memory_limit": "at the memory limit",
    "refused": "refused",
    "error": "error",
    "wrong": "wrong answer",
}
OUTCOME_COLOURS = dict(
    zip(OUTCOMES, ("#2f9e77", "#8a6fc9", "#3b8bd0", "#e0a83b", "#c2703d", "#9aa3ad", "#5f6872", "#d9455f"), strict=True)
)

# The axis of root gaps has at least this range, because the tick labels of smaller numbers would all be 0 %.
LEAST_ROOT_RANGE = 1e-3
# A smaller root gap is a rounding error of the root bound, and is drawn as 0.
NOISE = 1e-9
# A logarithmic axis shows every smaller excess, 0 included, at this value.
LEAST_EXCESS = 1e-4

Styles = Mapping[str, Style]


def time_profile(runs: Sequence[AssessedRun], methods: Sequence[str], styles: Styles) -> go.Figure:
    """Plot the performance profile of the time to proof.

    Parameters
    ----------
    runs
        The runs.
    methods
        The selectors of the methods.
    styles
        The style of each method.

    Returns
    -------
    go.Figure
        The plot.
    """
    plot = figure(
        x="times the fastest proof",
        y="share of problems proved",
        yaxis_tickformat=".0%",
    )
    curves = performance_profile(runs, methods)
    _profile(plot, curves, styles, 1.0, 10.0)
    plot.update_xaxes(log_axis(x for trace in plot.data for x in trace.x))
    return plot


def excess_curves(runs: Sequence[AssessedRun], methods: Sequence[str], styles: Styles) -> go.Figure:
    """Plot the share of problems against the excess over the best known objective.

    Parameters
    ----------
    runs
        The runs.
    methods
        The selectors of the methods.
    styles
        The style of each method.

    Returns
    -------
    go.Figure
        The plot.
    """
    plot = figure(
        x="largest excess over the best known objective",
        y="share of problems",
        yaxis_tickformat=".0%",
    )
    _profile(plot, excess_profile(runs, methods), styles, LEAST_EXCESS, 0.01)
    plot.update_xaxes(log_axis((x for trace in plot.data for x in trace.x), percent=True, floor=LEAST_EXCESS))
    return plot


def _profile(plot: go.Figure, curves: Mapping[str, Curve], styles: Styles, start: float, least: float) -> None:
    """Add step functions of at least ``start``, extended to the right end of the plot."""
    end = max([least, *(x for xs, _ in curves.values() for x in xs)]) * 1.08
    for method, (xs, ys) in curves.items():
        last = ys[-1] if ys else 0.0
        plot.add_trace(
            line(
                name_of(method),
                styles[method],
                x=[start, *at_least(start, xs), end],
                y=[0.0, *ys, last],
                mode="lines",
                line_shape="hv",
                meta={"x": [min([start, *xs]), *xs, end]},
                hovertemplate=f"{name_of(method)}: %{{y:.0%}} at %{{x:.3g}}<extra></extra>",
            )
        )
    plot.update_layout(yaxis_range=[-0.02, 1.04], xaxis_range=[math.log10(start) - 0.02, math.log10(end)])


def cactus(runs: Sequence[AssessedRun], methods: Sequence[str], styles: Styles, limit: float) -> go.Figure:
    """Plot the time to proof of each method, its fastest proofs first.

    Parameters
    ----------
    runs
        The runs.
    methods
        The selectors of the methods.
    styles
        The style of each method.
    limit
        The time limit in seconds.

    Returns
    -------
    go.Figure
        The plot.
    """
    plot = figure(x="problems proved", y="seconds to the proof")
    for method in methods:
        own = sorted(
            (run for run in runs if run.row.selector == method and run.proved), key=lambda run: run.row.seconds
        )
        data = points(
            [f"{name_of(method)}\n{run.row.instance}: {run.row.seconds:.3g} s" for run in own],
            list(map(command_of, own)),
            columns={"instance": [run.row.instance for run in own], "seed": [run.row.seed for run in own]},
            y=[run.row.seconds for run in own],
        )
        seconds = at_least(SHORTEST, (run.row.seconds for run in own))
        plot.add_trace(line(name_of(method), styles[method], x=list(range(1, len(own) + 1)), y=seconds, **data))
    plot.update_xaxes(count_axis(max((len(trace.x) for trace in plot.data), default=1)))
    plot.update_yaxes(log_axis(y for trace in plot.data for y in (*trace.y, max(limit, SHORTEST))))
    if limit > SHORTEST:
        plot.add_hline(y=limit, line={"color": REFERENCE, "dash": "dot", "width": 1.5})
    return plot


def gaps_over_time(runs: Sequence[AssessedRun], methods: Sequence[str], styles: Styles, limit: float) -> go.Figure:
    """Plot the mean primal–dual gap over time.

    Parameters
    ----------
    runs
        The runs.
    methods
        The selectors of the methods.
    styles
        The style of each method.
    limit
        The time limit in seconds.

    Returns
    -------
    go.Figure
        The plot.
    """
    plot = figure(
        x="seconds",
        y="mean primal–dual gap",
        yaxis_tickformat=".0%",
        yaxis_range=[-0.02, 1.04],
    )
    for method in methods:
        seconds, gaps = mean_curve([gap_curve(run) for run in runs if run.row.selector == method], limit)
        hover = f"{name_of(method)}: %{{y:.1%}} after %{{x:.3g}} s<extra></extra>"
        plot.add_trace(
            line(name_of(method), styles[method], x=seconds, y=gaps, mode="lines", line_shape="hv", hovertemplate=hover)
        )
    plot.update_xaxes(log_axis(x for trace in plot.data for x in trace.x))
    return plot


def one_problem(runs: Sequence[AssessedRun], styles: Styles) -> go.Figure:
    """Plot the incumbents (thick lines) and bounds (thin lines) of all methods on one problem.

    Parameters
    ----------
    runs
        The runs on the problem.
    styles
        The style of each method.

    Returns
    -------
    go.Figure
        The plot.
    """
    limit, best = runs[0].row.time_limit, runs[0].best
    plot = figure(x="seconds", y="ΣD, ms", height=340)
    firsts: list[float] = []
    lasts: list[float] = []
    for run in runs:
        course = trajectory(run.row)
        style, name = styles[run.row.selector], name_of(run.row.selector)
        seconds = [max(second, SHORTEST) for second in course.seconds]
        end = limit if run.outcome in ("time_limit", "memory_limit", "feasible") else seconds[-1]
        for label, values, stroke in (
            ("incumbent", course.incumbent, {"width": 2.8}),
            ("bound", course.bound, {"width": 1.2}),
        ):
            steps = [(x, y) for x, y in zip(seconds, values, strict=True) if math.isfinite(y)]
            if not steps:
                continue
            firsts.append(steps[0][1])
            lasts.append(steps[-1][1])
            steps.append((max(end, steps[-1][0]), steps[-1][1]))
            plot.add_trace(
                line(
                    name,
                    style,
                    x=[x for x, _ in steps],
                    y=[y for _, y in steps],
                    mode="lines",
                    line_shape="hv",
                    line=stroke,
                    showlegend=label == "incumbent",
                    meta={"columns": {"line": [label] * len(steps)}},
                    hovertemplate=f"{name}, {label}: %{{y:.6g}} after %{{x:.3g}} s<extra></extra>",
                )
            )
    if best is not None:
        plot.add_hline(y=best, line={"color": REFERENCE, "width": 1})
        # The axis contains all final values. It contains first values only if they are not far away, because very weak
        # bounds and very poor incumbents would compress all lines into one.
        ends = [best, *(end for end in lasts if end > 0)]
        low = min(*ends, max(0.6 * best, min(firsts, default=best)))
        high = max(*ends, min(1.6 * best, max(firsts, default=best)))
        room = 0.06 * max(high - low, 0.01 * best)
        plot.update_layout(yaxis_range=[low - room, high + room])
    longest = max(limit, 2 * SHORTEST)
    plot.update_xaxes(log_axis([SHORTEST, longest]), range=[math.log10(SHORTEST), math.log10(longest)])
    return plot


def outcomes(runs: Sequence[AssessedRun], methods: Sequence[str]) -> go.Figure:
    """Plot how the runs of each method ended.

    Parameters
    ----------
    runs
        The runs.
    methods
        The selectors of the methods.

    Returns
    -------
    go.Figure
        The plot.
    """
    names = [name_of(method) for method in methods]
    plot = figure(
        x="runs",
        y="",
        height=110 + 34 * len(methods),
        barmode="stack",
        yaxis_autorange="reversed",
        yaxis_showgrid=False,
        legend_traceorder="normal",
        # By default plotly omits the legend of a single trace.
        showlegend=True,
    )
    found = [outcome_counts([run for run in runs if run.row.selector == method]) for method in methods]
    plot.update_xaxes(count_axis(max((sum(one.values()) for one in found), default=1)))
    for outcome in OUTCOMES:
        numbers = [one.get(outcome, 0) for one in found]
        if any(numbers):
            plot.add_trace(
                go.Bar(
                    orientation="h",
                    name=OUTCOME_NAMES[outcome],
                    x=numbers,
                    y=names,
                    text=[str(number) if number else "" for number in numbers],
                    textposition="inside",
                    insidetextanchor="middle",
                    textangle=0,
                    insidetextfont={"color": "#ffffff"},
                    marker={"color": OUTCOME_COLOURS[outcome]},
                    meta={"methods": names},
                    hovertemplate=f"%{{y}}: %{{x}} {OUTCOME_NAMES[outcome]}<extra></extra>",
                )
            )
    return plot


def root_gaps(runs: Sequence[AssessedRun], methods: Sequence[str], styles: Styles) -> go.Figure:
    """Plot the root gap of each method on each problem.

    Parameters
    ----------
    runs
        The runs.
    methods
        The selectors of the methods.
    styles
        The style of each method.

    Returns
    -------
    go.Figure
        The plot.
    """
    plot = figure(
        x="gap between the best known objective and the root bound",
        y="",
        height=110 + 40 * len(methods),
        xaxis_tickformat="~%",
        xaxis_rangemode="tozero",
        yaxis_autorange="reversed",
        showlegend=False,
    )
    largest = 0.0
    for method in methods:
        own = [(run, run.root_gap) for run in runs if run.row.selector == method and run.root_gap is not None]
        data = points(
            [f"{name_of(method)}\n{run.row.instance}: {gap:.2%}" for run, gap in own],
            [command_of(run) for run, _ in own],
            columns={"instance": [run.row.instance for run, _ in own], "seed": [run.row.seed for run, _ in own]},
        )
        gaps = [0.0 if abs(gap) < NOISE else gap for _, gap in own]
        largest = max([largest, *filter(math.isfinite, gaps)])
        plot.add_trace(
            go.Box(
                orientation="h",
                name=name_of(method),
                x=gaps,
                boxpoints="all",
                jitter=0.5,
                pointpos=0,
                marker={"color": styles[method].colour, "size": 5, "opacity": 0.7},
                line={"color": styles[method].colour, "width": 1.5},
                fillcolor="rgba(0,0,0,0)",
                hoveron="points",
                **data,
            )
        )
    if largest < LEAST_ROOT_RANGE:
        plot.update_xaxes(range=[-0.02 * LEAST_ROOT_RANGE, 1.05 * LEAST_ROOT_RANGE])
    return plot
