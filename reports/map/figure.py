"""An assignment on a map: clients coloured by home, servers with bars for their loads and with θ."""

import colorsys
from typing import Any

import numpy as np
import plotly.graph_objects as go

from relocbench.instances.evaluation import use
from relocbench.instances.kernels.ragged import FloatArray
from relocbench.reports.map.assignments import Assignment
from relocbench.reports.pages.figures import figure, points
from relocbench.reports.pages.method_style import BAD, REFERENCE, faded

# The colours of the load bars.
STORAGE = "#3b8bd0"
COMPUTE = "#e08e1b"
# With more clients, a sample of this size is drawn: more points overlap, and the browser becomes slow.
MOST_CLIENTS = 5000
# The longest bar, as a share of the capacity. The hover text has the exact load.
LONGEST_BAR = 1.8
# Steps of the golden ratio give neighbouring servers clearly different hues.
GOLDEN = 0.61803398875
# The name of the trace in which ``links.js`` draws.
LINKS = "links"


def draw_map(assignment: Assignment, *, height: int = 640) -> go.Figure:
    """Draw the map of an assignment.

    Parameters
    ----------
    assignment
        The assignment.
    height
        The height in pixels.

    Returns
    -------
    go.Figure
        The map. Its ``layout.meta`` holds the data with which ``links.js`` draws the links of the client under the
        pointer.
    """
    instance = assignment.instance
    plot = figure(x="km", y="km", height=height, xaxis_constrain="domain", yaxis_constrain="domain")
    plot.update_layout(yaxis_scaleanchor="x", yaxis_scaleratio=1, hoverdistance=12)
    drawn = drawn_clients(assignment)
    _home_lines(plot, assignment, drawn)
    links = len(plot.data)
    plot.add_trace(
        go.Scatter(
            x=[], y=[], mode="lines", name=LINKS, showlegend=False, hoverinfo="skip", line={"width": 1, "color": BAD}
        )
    )
    _clients(plot, assignment, drawn)
    _servers(plot, assignment)
    if len(drawn) == instance.n_clients:
        plot.update_layout(meta=_links(assignment, links))
    return plot


def drawn_clients(assignment: Assignment) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the clients that a map draws.

    Parameters
    ----------
    assignment
        The assignment.

    Returns
    -------
    array
        All clients, or an evenly spaced sample of ``MOST_CLIENTS``.
    """
    count = assignment.instance.n_clients
    return np.unique(np.linspace(0, count - 1, min(count, MOST_CLIENTS)).round().astype(np.int64))


def home_colours(servers: int) -> list[str]:
    """Return one colour per server.

    Parameters
    ----------
    servers
        The number of servers.

    Returns
    -------
    list of str
        Colours as ``#rrggbb``; those of consecutive servers differ clearly.
    """
    colours = []
    for server in range(servers):
        lightness, saturation = (0.52, 0.62) if server % 2 else (0.6, 0.5)
        parts = colorsys.hls_to_rgb((0.55 + server * GOLDEN) % 1.0, lightness, saturation)
        colours.append("#" + "".join(f"{round(255 * part):02x}" for part in parts))
    return colours


def _home_lines(plot: go.Figure, assignment: Assignment, drawn: Any) -> None:
    """Add a thin line from each client to its home."""
    instance, home = assignment.instance, assignment.home[drawn]
    x, y = np.full(3 * len(drawn), np.nan), np.full(3 * len(drawn), np.nan)
    x[0::3], y[0::3] = instance.client_x[drawn], instance.client_y[drawn]
    x[1::3], y[1::3] = instance.server_x[home], instance.server_y[home]
    plot.add_trace(
        go.Scatter(
            x=_with_breaks(x),
            y=_with_breaks(y),
            mode="lines",
            line={"width": 0.6, "color": faded(REFERENCE, 0.45)},
            hoverinfo="skip",
            name="to its home",
        )
    )


def _clients(plot: go.Figure, assignment: Assignment, drawn: Any) -> None:
    instance, home = assignment.instance, assignment.home
    colours = home_colours(instance.n_servers)
    delay = instance.client_delay(drawn, home[drawn])
    texts = []
    for client, dh in zip(drawn.tolist(), delay.tolist(), strict=True):
        topics = instance.topics[client].tolist()
        listed = ", ".join(map(str, topics[:12])) + (" …" if len(topics) > 12 else "")
        word = "topic" if len(topics) == 1 else "topics"
        texts.append(f"client {client}: home is server {home[client]}, {dh:.3g} ms away\n{word} {listed}")
    arguments = points(texts)
    arguments["customdata"] = [
        [*data, client] for data, client in zip(arguments["customdata"], drawn.tolist(), strict=True)
    ]
    plot.add_trace(
        go.Scatter(
            x=instance.client_x[drawn].tolist(),
            y=instance.client_y[drawn].tolist(),
            mode="markers",
            name="client, coloured by home",
            marker={
                "size": 7 if len(drawn) <= 600 else 4.5,
                "color": [colours[server] for server in home[drawn]],
                "line": {"width": 0},
            },
            **arguments,
        )
    )


def _servers(plot: go.Figure, assignment: Assignment) -> None:
    instance, cost = assignment.instance, assignment.cost
    storage, compute = (
        use(cost.storage_load, instance.storage_capacity),
        use(cost.compute_load, instance.compute_capacity),
    )
    tall, wide = _bar_size(assignment)
    x, y = instance.server_x, instance.server_y
    full = np.ones(instance.n_servers)
    bars = (
        ("capacity", faded(REFERENCE, 0.4), x - wide, 2 * wide, 0 * full, full),
        ("storage in use", STORAGE, x - wide, 0.92 * wide, 0 * full, np.minimum(storage, 1)),
        ("compute in use", COMPUTE, x + 0.08 * wide, 0.92 * wide, 0 * full, np.minimum(compute, 1)),
        ("over capacity", BAD, x - wide, 0.92 * wide, full, np.clip(storage, 1, LONGEST_BAR)),
        ("over capacity", BAD, x + 0.08 * wide, 0.92 * wide, full, np.clip(compute, 1, LONGEST_BAR)),
    )
    seen: set[str] = set()
    for name, colour, left, width, bottom, top in bars:
        if name == "over capacity" and not (top > bottom).any():
            continue
        _rectangles(plot, name, colour, left, left + width, y + tall * bottom, y + tall * top, name not in seen)
        seen.add(name)
    homed = np.bincount(assignment.home, minlength=instance.n_servers)
    texts = [
        f"server {l}: home of {homed[l]} clients, θ = {cost.theta[l]:.3g}\n"
        f"storage {cost.storage_load[l]:.6g} of {instance.storage_capacity[l]:.6g} ({storage[l]:.0%})\n"
        f"compute {cost.compute_load[l]:.6g} of {instance.compute_capacity[l]:.6g} ({compute[l]:.0%})"
        for l in range(instance.n_servers)
    ]
    plot.add_trace(
        go.Scatter(
            x=x.tolist(),
            y=y.tolist(),
            mode="markers+text",
            name="server, with θ",
            text=[_theta(value) for value in cost.theta] if instance.n_servers <= 60 else None,
            textposition="bottom center",
            textfont={"size": 11},
            marker={
                "symbol": "square",
                "size": 11,
                "color": home_colours(instance.n_servers),
                "line": {"width": 1.5, "color": REFERENCE},
            },
            **points(texts),
        )
    )


def _rectangles(
    plot: go.Figure, name: str, colour: str, left: Any, right: Any, bottom: Any, top: Any, legend: bool
) -> None:
    """Add one filled rectangle per server, all of them in one trace."""
    visible = top > bottom
    breaks = np.full(int(visible.sum()), np.nan)
    left, right, bottom, top = (side[visible] for side in (left, right, bottom, top))
    plot.add_trace(
        go.Scatter(
            x=_with_breaks(np.column_stack([left, right, right, left, left, breaks]).ravel()),
            y=_with_breaks(np.column_stack([bottom, bottom, top, top, bottom, breaks]).ravel()),
            fill="toself",
            fillcolor=colour,
            mode="lines",
            line={"width": 0, "color": colour},
            hoverinfo="skip",
            name=name,
            legendgroup=name,
            showlegend=legend,
        )
    )


def _bar_size(assignment: Assignment) -> tuple[float, float]:
    """Return the height and width of a full bar in km, small enough not to hide the next server."""
    instance = assignment.instance
    x, y = instance.server_x, instance.server_y
    reach = max(float(np.ptp(np.append(instance.client_x, x))), float(np.ptp(np.append(instance.client_y, y))), 1e-9)
    tall = 0.075 * reach
    if instance.n_servers > 1:
        between = np.hypot(x[:, None] - x[None, :], y[:, None] - y[None, :])
        np.fill_diagonal(between, np.inf)
        tall = min(tall, max(0.5 * float(np.median(between.min(axis=1))), 0.015 * reach))
    return tall, 0.22 * tall


def _links(assignment: Assignment, trace: int) -> dict[str, Any]:
    """Return the data that ``links.js`` needs: positions, homes, and the members of topics."""
    instance = assignment.instance
    return {
        "trace": trace,
        "home": assignment.home.tolist(),
        "clients": [instance.client_x.tolist(), instance.client_y.tolist()],
        "servers": [instance.server_x.tolist(), instance.server_y.tolist()],
        "topics": [instance.topics[client].tolist() for client in range(instance.n_clients)],
        "members": [instance.members[topic].tolist() for topic in range(instance.n_topics)],
    }


def _theta(value: float) -> str:
    return "θ 1" if value == 1 else f"<b>θ {value:.2f}</b>"


def _with_breaks(values: FloatArray) -> list[float | None]:
    """Return numbers for plotly, with None instead of nan: plotly interrupts a line there."""
    return [None if np.isnan(value) else float(value) for value in values]
