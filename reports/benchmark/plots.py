"""The plots of a benchmark."""

import math
from collections.abc import Mapping, Sequence

import plotly.graph_objects as go

from relocbench.reports.benchmark.assessment import OUTCOMES, Judged
from relocbench.reports.benchmark.measures import (
    SHORTEST,
    Curve,
    cost_profile,
    counts,
    course,
    gap_curve,
    mean_curve,
    performance_profile,
)
from relocbench.reports.benchmark.rerun_command import command_of
from relocbench.reports.pages.figures import figure, line, points
from relocbench.reports.pages.method_style import REFERENCE, Look, name_of

OUTCOME_NAMES = {
    "optimal": "proved optimal",
    "feasible": "homes, no proof",
    "time_limit": "at the time limit",
    "memory_limit": "at the memory limit",
    "refused": "refused",
    "error": "error",
    "wrong": "wrong answer",
}
OUTCOME_COLOURS = dict(
    zip(OUTCOMES, ("#2f9e77", "#3b8bd0", "#e0a83b", "#c2703d", "#9aa3ad", "#5f6872", "#d9455f"), strict=True)
)

# On a logarithmic axis, nothing above the best is drawn as this.
LEAST_EXCESS = 1e-4

Looks = Mapping[str, Look]


def time_profile(runs: Sequence[Judged], methods: Sequence[str], looks: Looks) -> go.Figure:
    """Draw the performance profile by time to proof."""
    plot = figure(
        x="times the fastest proof",
        y="share of problems proved",
        xaxis_type="log",
        xaxis_dtick=1,
        yaxis_tickformat=".0%",
    )
    curves = performance_profile(runs, methods)
    _profile(plot, curves, looks, 1.0, 10.0)
    return plot


def cost_curves(runs: Sequence[Judged], methods: Sequence[str], looks: Looks) -> go.Figure:
    """Draw the share of problems against how far above the best known cost a method may be."""
    plot = figure(
        x="cost above the best known, at most",
        y="share of problems",
        xaxis_type="log",
        xaxis_dtick=1,
        xaxis_tickformat="~%",
        yaxis_tickformat=".0%",
    )
    curves = {
        method: ([max(x, LEAST_EXCESS) for x in xs], ys) for method, (xs, ys) in cost_profile(runs, methods).items()
    }
    _profile(plot, curves, looks, LEAST_EXCESS, 0.01)
    return plot


def _profile(plot: go.Figure, curves: Mapping[str, Curve], looks: Looks, start: float, least: float) -> None:
    """Add step functions that go on to the right end of the plot."""
    end = max([least, *(x for xs, _ in curves.values() for x in xs)]) * 1.08
    for method, (xs, ys) in curves.items():
        last = ys[-1] if ys else 0.0
        plot.add_trace(
            line(
                name_of(method),
                looks[method],
                x=[start, *xs, end],
                y=[0.0, *ys, last],
                mode="lines",
                line_shape="hv",
                hovertemplate=f"{name_of(method)}: %{{y:.0%}} at %{{x:.3g}}<extra></extra>",
            )
        )
    plot.update_layout(yaxis_range=[-0.02, 1.04], xaxis_range=[math.log10(start) - 0.02, math.log10(end)])


def cactus(runs: Sequence[Judged], methods: Sequence[str], looks: Looks, limit: float) -> go.Figure:
    """Draw how long a method takes for each further problem, its fastest proofs first."""
    plot = figure(
        x="problems proved", y="seconds for the last of them", yaxis_type="log", yaxis_dtick=1, xaxis_rangemode="tozero"
    )
    for method in methods:
        mine = sorted(
            (run for run in runs if run.row.selector == method and run.proved), key=lambda run: run.row.seconds
        )
        told = points(
            [f"{name_of(method)}\n{run.row.instance}: {run.row.seconds:.3g} s" for run in mine],
            list(map(command_of, mine)),
        )
        plot.add_trace(
            line(
                name_of(method),
                looks[method],
                x=list(range(1, len(mine) + 1)),
                y=[max(run.row.seconds, SHORTEST) for run in mine],
                **told,
            )
        )
    if limit > SHORTEST:
        plot.add_hline(y=limit, line={"color": REFERENCE, "dash": "dot", "width": 1.5})
    return plot


def gaps_over_time(runs: Sequence[Judged], methods: Sequence[str], looks: Looks, limit: float) -> go.Figure:
    """Draw the mean primal–dual gap over time."""
    plot = figure(
        x="seconds",
        y="mean primal–dual gap",
        xaxis_type="log",
        xaxis_dtick=1,
        yaxis_tickformat=".0%",
        yaxis_range=[-0.02, 1.04],
    )
    for method in methods:
        seconds, gaps = mean_curve([gap_curve(run) for run in runs if run.row.selector == method], limit)
        said = f"{name_of(method)}: %{{y:.1%}} after %{{x:.3g}} s<extra></extra>"
        plot.add_trace(
            line(name_of(method), looks[method], x=seconds, y=gaps, mode="lines", line_shape="hv", hovertemplate=said)
        )
    return plot


def one_race(runs: Sequence[Judged], looks: Looks) -> go.Figure:
    """Draw incumbents (thick lines) and bounds (thin ones) of all methods on one problem."""
    limit, best = runs[0].row.time_limit, runs[0].best
    plot = figure(x="seconds", y="ΣD, ms", height=340, xaxis_type="log", xaxis_dtick=1)
    firsts: list[float] = []
    lasts: list[float] = []
    for run in runs:
        went = course(run.row)
        look, name = looks[run.row.selector], name_of(run.row.selector)
        seconds = [max(second, SHORTEST) for second in went.seconds]
        end = limit if run.outcome in ("time_limit", "memory_limit", "feasible") else seconds[-1]
        for what, values, style in (
            ("homes", went.incumbent, {"width": 2.8}),
            ("bound", went.bound, {"width": 1.2}),
        ):
            shown = [(x, y) for x, y in zip(seconds, values, strict=True) if math.isfinite(y)]
            if not shown:
                continue
            firsts.append(shown[0][1])
            lasts.append(shown[-1][1])
            shown.append((max(end, shown[-1][0]), shown[-1][1]))
            plot.add_trace(
                line(
                    name,
                    look,
                    x=[x for x, _ in shown],
                    y=[y for _, y in shown],
                    mode="lines",
                    line_shape="hv",
                    line=style,
                    showlegend=what == "homes",
                    hovertemplate=f"{name}, {what}: %{{y:.6g}} after %{{x:.3g}} s<extra></extra>",
                )
            )
    if best is not None:
        plot.add_hline(y=best, line={"color": REFERENCE, "width": 1})
        # What everything ended with is in the picture, what it began with only if that is not far off: very weak
        # bounds and very poor homes would press the rest into one line.
        ends = [best, *(end for end in lasts if end > 0)]
        low = min(*ends, max(0.6 * best, min(firsts, default=best)))
        high = max(*ends, min(1.6 * best, max(firsts, default=best)))
        room = 0.06 * max(high - low, 0.01 * best)
        plot.update_layout(yaxis_range=[low - room, high + room])
    plot.update_layout(xaxis_range=[math.log10(SHORTEST), math.log10(max(limit, 2 * SHORTEST))])
    return plot


def outcomes(runs: Sequence[Judged], methods: Sequence[str]) -> go.Figure:
    """Draw how the runs of each method ended."""
    names = [name_of(method) for method in methods]
    plot = figure(
        x="runs",
        y="",
        height=110 + 34 * len(methods),
        barmode="stack",
        yaxis_autorange="reversed",
        yaxis_showgrid=False,
        legend_traceorder="normal",
    )
    found = [counts([run for run in runs if run.row.selector == method]) for method in methods]
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
                    hovertemplate=f"%{{y}}: %{{x}} {OUTCOME_NAMES[outcome]}<extra></extra>",
                )
            )
    return plot


def root_gaps(runs: Sequence[Judged], methods: Sequence[str], looks: Looks) -> go.Figure:
    """Draw how far each first relaxation is below the best known cost."""
    plot = figure(
        x="gap of the root bound to the best cost known", y="", height=110 + 40 * len(methods), xaxis_tickformat="~%",
        yaxis_autorange="reversed", xaxis_rangemode="tozero", showlegend=False,
    )  # fmt: skip
    for method in methods:
        mine = [run for run in runs if run.row.selector == method and run.root_gap is not None]
        told = points(
            [f"{name_of(method)}\n{run.row.instance}: {run.root_gap:.2%}" for run in mine], list(map(command_of, mine))
        )
        plot.add_trace(
            go.Box(
                orientation="h",
                name=name_of(method),
                x=[run.root_gap for run in mine],
                boxpoints="all",
                jitter=0.5,
                pointpos=0,
                marker={"color": looks[method].colour, "size": 5, "opacity": 0.7},
                line={"color": looks[method].colour, "width": 1.5},
                fillcolor="rgba(0,0,0,0)",
                hoveron="points",
                **told,
            )
        )
    return plot
