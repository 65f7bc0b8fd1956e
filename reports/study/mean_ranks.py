"""The mean ranks of the methods of a study, and the critical-difference diagram."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from relocbench.reports.pages.figures import figure, points
from relocbench.reports.pages.method_style import REFERENCE, name_of, styles
from relocbench.reports.pages.page import Page
from relocbench.reports.statistics import FEWEST_FOR_INTERVAL, Ranks, mean_ranks
from relocbench.reports.study.excess import SAME, Measurement, per_instance


@dataclass(frozen=True)
class Ranking:
    """The ranks of methods within one group of instances.

    Attributes
    ----------
    group
        The group.
    selectors
        The methods, in the order of the ranks.
    ranks
        Their mean ranks over blocks, and the critical difference.
    """

    group: str
    selectors: list[str]
    ranks: Ranks


def rankings(measurements: Sequence[Measurement]) -> list[Ranking]:
    """Rank the methods of each group that has enough independent samples.

    The methods are ranked by their mean excess over the instances of each block. Only instances count on which all
    methods have an excess.

    Parameters
    ----------
    measurements
        The runs of a study.

    Returns
    -------
    list of Ranking
        One for each group with at least three methods and five blocks.
    """
    found = []
    for group in dict.fromkeys(one.group for one in measurements):
        inside = [one for one in measurements if one.group == group]
        selectors = list(dict.fromkeys(one.selector for one in inside))
        means = [per_instance(one for one in inside if one.selector == name) for name in selectors]
        block_of = {one.hash: one.block for one in inside}
        blocks: dict[str, list[str]] = {}
        for key in set.intersection(*(set(values) for values in means)):
            blocks.setdefault(block_of[key], []).append(key)
        if len(selectors) < 3 or len(blocks) < FEWEST_FOR_INTERVAL:
            continue
        samples = [
            [sum(values[key] for key in sorted(blocks[block])) / len(blocks[block]) for values in means]
            for block in sorted(blocks)
        ]
        found.append(Ranking(group, selectors, mean_ranks(samples, SAME)))
    return found


def critical_difference_diagram(ranking: Ranking) -> go.Figure:
    """Plot the mean rank of each method; bars join methods that do not differ significantly.

    Parameters
    ----------
    ranking
        The ranks.

    Returns
    -------
    go.Figure
        The plot, with the best method at the top and the critical difference as a ruler below.
    """
    ranks, names = ranking.ranks, [name_of(selector) for selector in ranking.selectors]
    order = sorted(range(len(names)), key=lambda method: ranks.mean[method])
    row = {method: number for number, method in enumerate(order)}
    cliques, chosen = ranks.cliques(), styles(ranking.selectors)
    last = len(order) + len(cliques)
    plot = figure(x="mean rank", y="", height=120 + 26 * (last + 1), showlegend=False)
    for number, clique in enumerate(cliques):
        plot.add_trace(
            go.Scatter(
                x=[ranks.mean[clique[0]] - 0.05, ranks.mean[clique[-1]] + 0.05],
                y=[len(order) + number] * 2,
                mode="lines",
                line={"color": REFERENCE, "width": 6},
                hovertemplate="no significant difference: "
                + ", ".join(names[one] for one in clique)
                + "<extra></extra>",
                meta={"columns": {"line": ["not significant"] * 2}},
            )
        )
        for method in clique:
            plot.add_shape(
                type="line",
                x0=ranks.mean[method],
                x1=ranks.mean[method],
                y0=row[method],
                y1=len(order) + number,
                line={"color": REFERENCE, "width": 1, "dash": "dot"},
                opacity=0.5,
                layer="below",
            )
    plot.add_trace(
        go.Scatter(
            x=[1, 1 + ranks.critical_difference],
            y=[last] * 2,
            mode="lines+markers",
            line={"color": REFERENCE, "width": 2},
            marker={"symbol": "line-ns-open", "size": 10, "color": REFERENCE},
            hovertemplate=f"critical difference {ranks.critical_difference:.2f}<extra></extra>",
            meta={"columns": {"line": ["critical difference"] * 2}},
        )
    )
    for method in order:
        selector = ranking.selectors[method]
        plot.add_trace(
            go.Scatter(
                x=[ranks.mean[method]],
                y=[row[method]],
                mode="markers",
                name=names[method],
                legendgroup=names[method],
                marker={"color": chosen[selector].colour, "symbol": chosen[selector].symbol, "size": 12},
                **points([f"{names[method]}: mean rank {ranks.mean[method]:.2f}"]),
            )
        )
    labels = [*(names[method] for method in order), *[""] * len(cliques), "critical difference"]
    plot.update_yaxes(
        tickvals=list(range(last + 1)), ticktext=labels, range=[last + 0.6, -0.6], showgrid=False, zeroline=False
    )
    plot.update_xaxes(range=[0.8, max(len(order), 1 + ranks.critical_difference) + 0.2], dtick=1)
    return plot


def add_ranks(page: Page, measurements: Sequence[Measurement]) -> None:
    """Add the critical-difference diagram of each group to a page.

    Parameters
    ----------
    page
        The page of a study.
    measurements
        The runs of the study.
    """
    found = rankings(measurements)
    if not found:
        return
    page.section(
        "Mean ranks",
        "The methods are ranked on every block of instances by their mean excess, and the ranks are averaged (rank 1 "
        "is the best). A rank says how often a method is ahead, and not by how much. Friedman's test asks whether the "
        "methods differ at all. Two methods differ significantly at 5 % over all pairs of a group if their ranks "
        "differ by the critical difference of Nemenyi's test; grey bars join methods that do not. This test is weaker "
        "than the comparisons above with few blocks, and its verdict on two methods depends on the others.",
    )
    for ranking in found:
        ranks = ranking.ranks
        ordered = sorted(zip(ranks.mean, ranking.selectors, strict=True))
        listed = ", ".join(f"{name_of(selector)} {mean:.2f}" for mean, selector in ordered)
        page.subsection(f"`{ranking.group}`")
        page.figure(
            critical_difference_diagram(ranking),
            f"Critical-difference diagram over n = {ranks.samples} blocks: {listed}. The critical difference is "
            f"{ranks.critical_difference:.2f}; Friedman's test: p = {ranks.p:.2g}.",
        )
