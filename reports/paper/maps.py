"""Maps of clients, topics and homes, and bar charts of the loads of servers."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from relocbench.instances.errors import plural
from relocbench.instances.evaluation import evaluate
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray, OffsetArray
from relocbench.reports.map.colours import colours_by_number, server_colours
from relocbench.reports.pages.figures import count_axis, figure, points
from relocbench.reports.pages.method_style import BAD, REFERENCE

MAP_HEIGHT = 460
BARS_HEIGHT = 590
# The colour of the histogram is not that of a method.
SIZES = "#6b7f99"
SERVER = {"symbol": "square", "size": 11, "line": {"width": 1, "color": REFERENCE}}


def topic_map(instance: Instance) -> go.Figure:
    """Draw clients and topics.

    Parameters
    ----------
    instance
        The instance.

    Returns
    -------
    go.Figure
        The map. Lines join the members of a topic, and clients in several topics have a ring.
    """
    plot = figure(x="km", y="km", height=MAP_HEIGHT, showlegend=False)
    _square(plot)
    members = instance.members
    for topic, colour in enumerate(colours_by_number(instance.n_topics)):
        inside = members.item[members.start[topic] : members.start[topic + 1]]
        pairs = itertools.combinations(inside.tolist(), 2)
        plot.add_trace(
            _lines(*_between(instance, instance, pairs), colour, 0.6, 0.35 if instance.n_topics < 20 else 0.12)
        )
        hover = [f"client {client}\ntopic {topic}, {len(inside)} members" for client in inside]
        plot.add_trace(_clients(instance, inside, colour, hover))
    several = np.flatnonzero(np.diff(instance.topics.start) > 1)
    plot.add_trace(
        go.Scatter(
            x=instance.client_x[several],
            y=instance.client_y[several],
            mode="markers",
            hoverinfo="skip",
            marker={
                "symbol": "circle-open",
                "size": 12 if instance.n_topics < 20 else 7,
                "color": REFERENCE,
                "line": {"width": 1.5},
            },
        )
    )
    plot.add_trace(_servers(instance, [REFERENCE] * instance.n_servers, _names(instance)))
    return plot


def home_map(instance: Instance, home: IntArray) -> go.Figure:
    """Draw clients and their homes.

    Parameters
    ----------
    instance
        The instance.
    home
        The homes.

    Returns
    -------
    go.Figure
        The map. A line in the colour of the home joins each client to its home.
    """
    plot = figure(x="km", y="km", height=MAP_HEIGHT, showlegend=False)
    _square(plot)
    for trace in _homes(instance, home):
        plot.add_trace(trace)
    return plot


def load_panel(instance: Instance, home: IntArray) -> go.Figure:
    """Draw clients and their homes, with bar charts of the loads below.

    Parameters
    ----------
    instance
        The instance.
    home
        The homes.

    Returns
    -------
    go.Figure
        The map, and bars of the storage and compute load of each server with its capacity.
    """
    plot = make_subplots(rows=3, cols=1, row_heights=[0.58, 0.21, 0.21], vertical_spacing=0.09)
    plot.update_layout(
        template="none", height=BARS_HEIGHT, margin={"l": 46, "r": 10, "t": 8, "b": 40}, showlegend=False
    )
    _square(plot)
    plot.update_xaxes(title_text="km", title_standoff=2, title_font_size=11, row=1, col=1)
    plot.update_yaxes(title_text="km", title_standoff=2, title_font_size=11, row=1, col=1)
    for trace in _homes(instance, home):
        plot.add_trace(trace, row=1, col=1)
    cost = evaluate(instance, home)
    names = [str(server) for server in range(instance.n_servers)]
    step = 1 + instance.n_servers // 16
    parts = (
        ("storage a", cost.storage_load, instance.storage_capacity),
        ("compute v", cost.compute_load, instance.compute_capacity),
    )
    for row, (what, load, capacity) in enumerate(parts, start=2):
        hover = [
            f"server {name}\n{what} = {one:g} of {most:g}"
            for name, one, most in zip(names, load, capacity, strict=True)
        ]
        plot.add_trace(
            go.Bar(x=names, y=load, marker={"color": server_colours(instance)}, **points(hover)), row=row, col=1
        )
        # The line has a step for each server, because capacities may differ.
        plot.add_trace(
            go.Scatter(
                x=names, y=capacity, mode="lines", line={"color": BAD, "width": 1.5, "shape": "hvh"}, hoverinfo="skip"
            ),
            row=row,
            col=1,
        )
        plot.update_yaxes(
            title_text=what, title_standoff=2, title_font_size=11, zeroline=False, rangemode="tozero", row=row, col=1
        )
        plot.update_xaxes(type="category", tickfont_size=9, tickangle=0, tickvals=names[::step], row=row, col=1)
    plot.update_xaxes(title_text="server", title_standoff=2, title_font_size=11, row=3, col=1)
    return plot


def size_histogram(sizes: Sequence[OffsetArray]) -> go.Figure:
    """Draw the histogram of topic sizes.

    Parameters
    ----------
    sizes
        The sizes of the topics of each replicate.

    Returns
    -------
    go.Figure
        Bars for the first replicate, and points for the mean of all replicates.
    """
    plot = figure(x="members of the topic, |C|", y="topics", height=340, bargap=0.15)
    most = max(int(one.max()) for one in sizes)
    count = np.array([np.bincount(one, minlength=most + 1) for one in sizes])
    plot.update_xaxes(count_axis(most), rangemode="normal")
    plot.update_yaxes(count_axis(int(count.max())))
    members = np.arange(most + 1)
    first = members >= min(int(one.min()) for one in sizes)
    hover = [
        f"{plural(int(n), 'topic')} of {plural(int(size), 'member')}"
        for size, n in zip(members[first], count[0][first], strict=True)
    ]
    plot.add_trace(go.Bar(x=members[first], y=count[0][first], name="seed 0", marker_color=SIZES, **points(hover)))
    if len(sizes) > 1:
        mean = count.mean(axis=0)[first]
        hover = [f"{n:.1f} topics of {size} members on average" for size, n in zip(members[first], mean, strict=True)]
        plot.add_trace(
            go.Scatter(
                x=members[first],
                y=mean,
                mode="lines+markers",
                name=f"mean of {plural(len(sizes), 'seed')}",
                line={"color": REFERENCE, "dash": "dot"},
                **points(hover),
            )
        )
    return plot


def _square(plot: go.Figure) -> None:
    """Give both axes the same scale."""
    plot.update_layout(
        xaxis={"constrain": "domain", "zeroline": False, "showgrid": False},
        yaxis={"scaleanchor": "x", "constrain": "domain", "zeroline": False, "showgrid": False},
    )


def _homes(instance: Instance, home: IntArray) -> list[go.Scatter]:
    cost = evaluate(instance, home)
    colours = server_colours(instance)
    traces = []
    for server in np.unique(home).tolist():
        inside = np.flatnonzero(home == server)
        ends = _between(instance, _Servers(instance), ((client, server) for client in inside.tolist()))
        traces.append(_lines(*ends, colours[server], 1.2, 0.75))
        traces.append(_clients(instance, inside, colours[server], [f"client {one}\nhome {server}" for one in inside]))
    hover = [
        f"server {server}: {plural(int((home == server).sum()), 'client')}\nstorage {cost.storage_load[server]:g} of "
        f"{instance.storage_capacity[server]:g}\ncompute {cost.compute_load[server]:g} of "
        f"{instance.compute_capacity[server]:g}\n"
        f"θ = {cost.theta[server]:.3f}"
        for server in range(instance.n_servers)
    ]
    servers = _servers(instance, colours, hover)
    servers.marker.line = {
        "color": [BAD if theta < 1 else REFERENCE for theta in cost.theta],
        "width": [3 if theta < 1 else 1 for theta in cost.theta],
    }
    return [*traces, servers]


class _Servers:
    """The positions of servers under the names of the positions of clients, for :func:`_between`."""

    def __init__(self, instance: Instance) -> None:
        self.client_x, self.client_y = instance.server_x, instance.server_y


def _between(
    one: Instance, other: "Instance | _Servers", pairs: Iterable[tuple[int, int]]
) -> tuple[list[float | None], list[float | None]]:
    """Return lines between pairs of positions, as one path with breaks."""
    x: list[float | None] = []
    y: list[float | None] = []
    for first, second in pairs:
        x += [float(one.client_x[first]), float(other.client_x[second]), None]
        y += [float(one.client_y[first]), float(other.client_y[second]), None]
    return x, y


def _lines(x: list[float | None], y: list[float | None], colour: str, width: float, opacity: float) -> go.Scatter:
    return go.Scatter(x=x, y=y, mode="lines", line={"color": colour, "width": width}, opacity=opacity, hoverinfo="skip")


def _clients(instance: Instance, clients: IntArray | OffsetArray, colour: str, hover: list[str]) -> go.Scatter:
    marker: dict[str, Any] = {"color": colour, "size": 7 if instance.n_clients < 100 else 4.5}
    return go.Scatter(
        x=instance.client_x[clients], y=instance.client_y[clients], mode="markers", marker=marker, **points(hover)
    )


def _servers(instance: Instance, colours: list[str], hover: list[str]) -> go.Scatter:
    marker = SERVER | {"color": colours}
    return go.Scatter(x=instance.server_x, y=instance.server_y, mode="markers", marker=marker, **points(hover))


def _names(instance: Instance) -> list[str]:
    return [f"server {server}" for server in range(instance.n_servers)]
