"""The plot of the excess of incumbents over time."""

from collections.abc import Sequence

import plotly.graph_objects as go

from relocbench.instances.errors import plural
from relocbench.reports.pages.figures import at_least, figure, line, log_axis, points, spread_axis
from relocbench.reports.pages.method_style import name_of, styles
from relocbench.reports.study.anytime import SHORTEST, Curve
from relocbench.reports.study.plots import FLOOR


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
    plot = figure(x="seconds since the start of the run", y="mean excess", height=440)
    plot.update_xaxes(log_axis(at_least(SHORTEST, (at for one in curves for at in one.seconds))))
    plot.update_yaxes(spread_axis([value for one in curves for value in one.excess], FLOOR))
    chosen = styles([one.selector for one in curves])
    for one in curves:
        hover = [
            f"{name_of(one.selector)}\nafter {at:.3g} s: mean excess {value:.3%} ({plural(one.runs, 'run')})"
            for at, value in zip(one.seconds, one.excess, strict=True)
        ]
        # The end of a curve has a symbol, so that a reader sees where the runs end.
        sizes = [0] * (len(one.seconds) - 1) + [11]
        plot.add_trace(
            line(
                name_of(one.selector),
                chosen[one.selector],
                x=at_least(SHORTEST, one.seconds),
                y=at_least(FLOOR, one.excess),
                mode="lines+markers" if one.reported else "markers",
                line={"shape": "hv"},
                marker={"size": sizes},
                **points(hover, x=one.seconds, y=one.excess),
            )
        )
    return plot
