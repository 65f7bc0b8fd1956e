"""The plots of a study at full scale."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from relocbench.reports.full_scale.tables import STAGE_COLUMNS, Result, Study, variant
from relocbench.reports.pages.figures import figure, line, log_axis, points
from relocbench.reports.pages.method_style import REFERENCE, Style, faded, name_of, styles
from relocbench.reports.pages.tables import ABSENT
from relocbench.spark.pipeline import RESULTS
from relocbench.spark.study_jobs import ONLY_ON_SPARK

BOUND = "lower bound"
BOUND_STYLE = Style(REFERENCE, "dot")
# Colours of the stages: the steps of one result, and those that results share.
STAGE_COLOURS = {
    "field": "#9a7b5f",
    "factors": "#e08e1b",
    "homes": "#3b8bd0",
    "evaluation": "#2f9e77",
    "bound": "#8c62c7",
}
STAGE_TITLES = {
    "seconds": "seconds",
    "cpu_seconds": "processor seconds",
    "memory_mib": "memory, MiB",
}
assert set(STAGE_TITLES) == set(STAGE_COLUMNS)


def result_names(results: Sequence[Result]) -> dict[str, str]:
    """Return a short name for each result.

    Parameters
    ----------
    results
        The results.

    Returns
    -------
    dict
        The name by folder: the method with its settings, with the seed where a method has several. Of methods that
        exist on Spark only, settings are left out where there is one variant.
    """
    variants = _variants([one.label for one in results])
    seeds: dict[str, set[int]] = {}
    for one in results:
        seeds.setdefault(one.label, set()).add(one.seed)
    return {
        one.folder: variants[one.label] + (f", seed {one.seed}" if len(seeds[one.label]) > 1 else "") for one in results
    }


def _variants(labels: Sequence[str]) -> dict[str, str]:
    """Return a short name of each selector, without the settings of Spark's own methods that have one variant."""
    methods = [label.partition("[")[0] for label in dict.fromkeys(labels)]
    alone = {name for name in methods if name in ONLY_ON_SPARK and methods.count(name) == 1}
    plain = {label: label.partition("[")[0] for label in labels}
    return {label: name_of(plain[label]) if plain[label] in alone else short_name(label) for label in labels}


def short_name(selector: str) -> str:
    """Return a short name of a method: for RELOC without the names of the usual settings.

    Parameters
    ----------
    selector
        The selector.

    Returns
    -------
    str
        The name, such as ``RELOC pseudocode, svd, K = 8``.
    """
    method, _, settings = selector.partition("[")
    if method != "reloc":
        return name_of(selector)
    given = dict(part.split("=", 1) for part in settings.rstrip("]").split(",") if part)
    k = given.pop("k", None)
    parts = [given.pop(name) for name in ("reading", "relation") if name in given]
    parts += [f"{name}={value}" for name, value in given.items()]
    parts += [] if k is None else [f"K = {k}"]
    return f"{name_of(method)} {', '.join(parts)}".strip()


def delay_bars(study: Study) -> go.Figure:
    """Draw ``Y1`` and ``Y2`` of each result as bars, the best at the top.

    Parameters
    ----------
    study
        The results.

    Returns
    -------
    go.Figure
        The plot.
    """
    results = study.shown[::-1]
    names = result_names(study.results)
    rows = [names[one.folder] for one in results]
    plot = figure(x="Y, ms", y="", height=130 + 30 * len(rows), barmode="stack")
    colours = [style.colour for style in (styles([one.label])[one.label] for one in results)]
    parts = (
        ("Y1, clients and their homes", [one.y1 for one in results], [faded(colour, 0.55) for colour in colours]),
        ("Y2, between servers and to the cloud", [one.y2 for one in results], colours),
    )
    for name, values, shades in parts:
        hover = [f"{row}\n{name}: {value:.4f} ms" for row, value in zip(rows, values, strict=True)]
        plot.add_trace(go.Bar(x=values, y=rows, orientation="h", name=name, marker={"color": shades}, **points(hover)))
    if study.bound is not None:
        x = study.bound / study.publications
        hover = [f"no assignment has a Y below {x:.4f} ms"] * 2
        ends = [rows[0], rows[-1]]
        plot.add_trace(line(BOUND, BOUND_STYLE, x=[x, x], y=ends, mode="lines", **points(hover)))
    return plot


def cluster_plot(study: Study) -> go.Figure | None:
    """Draw ``Y`` against the number of clusters, one line for each reading, with the other methods as levels.

    Parameters
    ----------
    study
        The results.

    Returns
    -------
    go.Figure or None
        The plot; None if no reading was run with several numbers of clusters.
    """
    curves = curves_of(study)
    if not any(len(curve) > 1 for curve in curves.values()):
        return None
    others = {one.label: one for one in study.shown if one.k is None}
    counts = sorted({one.k for curve in curves.values() for one in curve if one.k is not None})
    plot = figure(
        x="number of clusters K",
        y="Y, ms",
        height=420,
        xaxis={"type": "log", "tickvals": counts, "ticktext": [str(count) for count in counts]},
    )
    looks = styles([*others, *curves])
    for label, curve in curves.items():
        hover = [f"{short_name(one.label)}\nY {one.y:.4f} ms = {one.y1:.4f} + {one.y2:.4f}" for one in curve]
        x, y = [one.k for one in curve], [one.y for one in curve]
        plot.add_trace(line(short_name(label), looks[label], x=x, y=y, **points(hover)))
    ends = [counts[0], counts[-1]]
    for label, one in others.items():
        hover = [f"{short_name(label)}: Y {one.y:.4f} ms"] * 2
        plot.add_trace(line(short_name(label), looks[label], x=ends, y=[one.y] * 2, mode="lines", **points(hover)))
    if study.bound is not None:
        level = study.bound / study.publications
        hover = [f"no assignment has a Y below {level:.4f} ms"] * 2
        plot.add_trace(line(BOUND, BOUND_STYLE, x=ends, y=[level] * 2, mode="lines", **points(hover)))
    return plot


def curves_of(study: Study) -> dict[str, list[Result]]:
    """Return the results of RELOC by reading, in the order of their numbers of clusters.

    Parameters
    ----------
    study
        The results.

    Returns
    -------
    dict
        For the selector without ``k`` and each seed the results with a given number of clusters.
    """
    curves: dict[str, list[Result]] = {}
    several = len({one.seed for one in study.results if one.method == "reloc"}) > 1
    for one in study.results:
        if one.method == "reloc" and not one.chosen:
            label = variant(one.label).replace("[]", "")
            if several:
                label = f"{label}[seed={one.seed}]" if label == "reloc" else f"{label[:-1]},seed={one.seed}]"
            curves.setdefault(label, []).append(one)
    return {label: sorted(curve, key=lambda one: one.k or 0) for label, curve in sorted(curves.items())}


def use_plot(study: Study, resource: str) -> go.Figure:
    """Draw the load of the servers as a distribution: the share of servers with at least a given use.

    Parameters
    ----------
    study
        The results.
    resource
        ``storage`` or ``compute``.

    Returns
    -------
    go.Figure
        The plot.
    """
    names = result_names(study.results)
    uses = {one.folder: np.sort(getattr(one, f"{resource}_use"))[::-1] for one in study.shown}
    plot = figure(
        x="share of the servers",
        y=f"{resource} load / capacity, at least",
        height=380,
        xaxis_tickformat=".0%",
        yaxis=log_axis([float(value) for use in uses.values() for value in use if value > 0], percent=True),
    )
    looks = styles([one.label for one in study.shown])
    for one in study.shown:
        use = uses[one.folder]
        positive = use[use > 0]
        x = (np.arange(len(positive)) + 1) / len(use)
        hover = [
            f"{names[one.folder]}\n{share:.0%} of the servers use at least {value:.1%}"
            for share, value in zip(x, positive, strict=True)
        ]
        style = looks[one.label]
        plot.add_trace(
            line(
                names[one.folder],
                style,
                x=x.tolist(),
                y=positive.tolist(),
                mode="lines",
                line={"shape": "hv"},
                **points(hover),
            )
        )
    plot.add_trace(
        line("capacity", BOUND_STYLE, x=[0, 1], y=[1, 1], mode="lines", **points(["load equals capacity"] * 2))
    )
    return plot


def skew_plot(study: Study) -> go.Figure | None:
    """Draw the clients of each cluster, relative to the mean, against the number of clusters.

    Parameters
    ----------
    study
        The results.

    Returns
    -------
    go.Figure or None
        The plot; None without a result of RELOC with several clusters.
    """
    first: dict[int, Result] = {}
    for one in study.results:
        if one.k is not None and len(one.cluster_clients) > 1:
            first.setdefault(one.k, one)
    if not first:
        return None
    counts = sorted(first)
    plot = figure(
        x="number of clusters K",
        y="clients of a cluster / mean",
        height=360,
        xaxis={"type": "log", "tickvals": counts, "ticktext": [str(count) for count in counts]},
        yaxis_rangemode="tozero",
    )
    x, y, hover = [], [], []
    for k in counts:
        one = first[k]
        for cluster, (servers, clients) in enumerate(zip(one.cluster_servers, one.cluster_clients, strict=True)):
            x.append(k)
            y.append(float(clients / one.cluster_clients.mean()))
            hover.append(f"K = {k}, cluster {cluster}\n{clients:,} clients, {servers} servers")
    marker = {"color": faded("#d9455f", 0.6), "size": 8}
    plot.add_trace(go.Scatter(x=x, y=y, mode="markers", name="cluster", marker=marker, **points(hover)))
    return plot


def stage_plot(study: Study, column: str) -> go.Figure:
    """Draw what the stages of each result used.

    Parameters
    ----------
    study
        The results.
    column
        One of ``STAGE_COLUMNS``.

    Returns
    -------
    go.Figure
        The plot.
    """
    names = result_names(study.results)
    steps = {names[one.folder]: one.stages for one in study.results if one.stages}
    variants = _variants([one.label for one in study.bounds])
    bounds = {f"{RESULTS}/{one.folder}": variants[one.label] for one in study.bounds}
    steps |= {bounds.get(step, step): stages for step, stages in study.steps.items() if stages}
    rows = list(steps)[::-1]
    title = STAGE_TITLES[column]
    mode = "group" if column == "memory_mib" else "stack"
    plot = figure(x=title, y="", height=130 + 26 * len(rows), barmode=mode)
    for stage in dict.fromkeys(stage for stages in steps.values() for stage in stages):
        shown = [row for row in rows if stage in steps[row]]
        values = [steps[row][stage][column] for row in shown]
        hover = [f"{row}\n{stage}: {value:,.1f} {title}" for row, value in zip(shown, values, strict=True)]
        colour = STAGE_COLOURS.get(stage, REFERENCE)
        plot.add_trace(
            go.Bar(x=values, y=shown, orientation="h", name=stage, marker={"color": colour}, **points(hover))
        )
    plot.update_yaxes(categoryorder="array", categoryarray=rows)
    return plot


def number(value: float | None, form: str) -> str:
    """Return a number as text.

    Parameters
    ----------
    value
        The number, or None.
    form
        Its format.

    Returns
    -------
    str
        The text; a dash for None.
    """
    return ABSENT if value is None else format(value, form)
