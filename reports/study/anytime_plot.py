"""The plot of the excess of incumbents over time."""

from collections.abc import Sequence

import plotly.graph_objects as go

from relocbench.reports.pages.figures import figure, line, points
from relocbench.reports.pages.method_style import name_of, styles
from relocbench.reports.study.anytime import SHORTEST, Curve

# A logarithmic axis shows every smaller excess, 0 included, at this value.
FLOOR = 1e-5
EXCESS_TICKS = {
    "tickvals": [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10],
    "ticktext": ["≤0.001%", "0.01%", "0.1%", "1%", "10%", "100%", "1000%"],
}


def over_time(curves: Sequence[Curve]) -> go.Figure:
    """Plot the mean excess of the incumbents of each method over time.

    Parameters
    ----------
    curves
        The curves of the methods of one group.

    Returns
    -------
    go.Figure
        The plot: a step curve for each method that reports progress, a point for each other method.
    """
    plot = figure(x="seconds since the start of the run (logarithmic)", y="mean excess (logarithmic)", height=440)
    plot.update_xaxes(type="log", dtick=1, tickformat="~g")
    plot.update_yaxes(type="log", **EXCESS_TICKS)
    chosen = styles([one.selector for one in curves])
    for one in curves:
        x = [max(SHORTEST, at) for at in one.seconds]
        y = [max(FLOOR, value) for value in one.excess]
        hover = [
            f"{name_of(one.selector)}\nafter {at:.3g} s: mean excess {value:.3%} ({one.runs} runs)"
            for at, value in zip(one.seconds, one.excess, strict=True)
        ]
        # The end of a curve has a symbol, so that a reader sees where the runs end.
        sizes = [0] * (len(x) - 1) + [11]
        plot.add_trace(
            line(
                name_of(one.selector),
                chosen[one.selector],
                x=x,
                y=y,
                mode="lines+markers" if one.reported else "markers",
                line={"shape": "hv"},
                marker={"size": sizes},
                **points(hover),
            )
        )
    return plot
