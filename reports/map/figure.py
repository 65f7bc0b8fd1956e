"""An assignment on a map: clients coloured by home, θ of overloaded servers, and bars of the loads below the map."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from relocbench.instances.evaluation import use
from relocbench.instances.kernels.ragged import FloatArray
from relocbench.reports.map.assignments import Assignment
from relocbench.reports.map.colours import server_colours
from relocbench.reports.pages.figures import figure, points
from relocbench.reports.pages.method_style import BAD, REFERENCE

# The colours of the load bars.
STORAGE = "#3b8bd0"
COMPUTE = "#e08e1b"
# With more clients, a sample of this size is drawn: more points overlap, and the browser becomes slow.
MOST_CLIENTS = 5000
# The longest bar, as a share of the capacity. The hover text has the exact load.
LONGEST_BAR = 2.0
# The shares of the height below the map: of the bars, and of the labels between the two.
BARS, LABELS = 0.15, 0.14
# With more servers, their numbers would overlap.
MOST_NUMBERED = 60
# The name of the trace in which ``links.js`` draws.
LINKS = "links"


def draw_map(assignment: Assignment, *, height: int = 640, loads: bool = False) -> go.Figure:
    """Draw the map of an assignment.

    Parameters
    ----------
    assignment
        The assignment.
    height
        The height in pixels.
    loads
        Whether bars below the map show the loads of the servers.

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
    colours = server_colours(instance)
    _home_lines(plot, assignment, drawn, colours)
    links = len(plot.data)
    plot.add_trace(
        go.Scatter(
            x=[], y=[], mode="lines", name=LINKS, showlegend=False, hoverinfo="skip", line={"width": 1, "color": BAD}
        )
    )
    _clients(plot, assignment, drawn, colours)
    _servers(plot, assignment, colours)
    if loads:
        _bars(plot, assignment)
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


def _home_lines(plot: go.Figure, assignment: Assignment, drawn: Any, colours: list[str]) -> None:
    """Add a thin line from each client to its home, in the colour of the home."""
    instance = assignment.instance
    name = "to its home"
    for server in np.unique(assignment.home[drawn]).tolist():
        own = drawn[assignment.home[drawn] == server]
        x, y = np.full(3 * len(own), np.nan), np.full(3 * len(own), np.nan)
        x[0::3], y[0::3] = instance.client_x[own], instance.client_y[own]
        x[1::3], y[1::3] = instance.server_x[server], instance.server_y[server]
        plot.add_trace(
            go.Scatter(
                x=_with_breaks(x),
                y=_with_breaks(y),
                mode="lines",
                line={"width": 0.8, "color": colours[server]},
                opacity=0.55,
                hoverinfo="skip",
                name=name,
                legendgroup=name,
                showlegend=all(trace.name != name for trace in plot.data),
            )
        )


def _clients(plot: go.Figure, assignment: Assignment, drawn: Any, colours: list[str]) -> None:
    instance, home = assignment.instance, assignment.home
    delay = instance.client_delay(drawn, home[drawn])
    texts = []
    for client, dh in zip(drawn.tolist(), delay.tolist(), strict=True):
        topics = instance.topics[client].tolist()
        listed = ", ".join(map(str, topics[:12])) + (" …" if len(topics) > 12 else "")
        word = "topic" if len(topics) == 1 else "topics"
        texts.append(f"client {client}: home is server {home[client]}, {dh:.3g} ms away\n{word} {listed}")
    arguments = points(texts, columns={"client": drawn.tolist(), "home": home[drawn].tolist()})
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


def _servers(plot: go.Figure, assignment: Assignment, colours: list[str]) -> None:
    instance, cost = assignment.instance, assignment.cost
    homed = np.bincount(assignment.home, minlength=instance.n_servers)
    numbers = range(instance.n_servers)
    storage = _loads(cost.storage_load, instance.storage_capacity)
    compute = _loads(cost.compute_load, instance.compute_capacity)
    texts = [
        f"server {server}: home of {homed[server]} clients, θ = {cost.theta[server]:.3g}\n"
        f"storage {storage[server]}\ncompute {compute[server]}"
        for server in numbers
    ]
    columns = {"server": list(numbers), "clients": homed.tolist(), "theta": cost.theta.tolist()}
    numbered = instance.n_servers <= MOST_NUMBERED
    plot.add_trace(
        go.Scatter(
            x=instance.server_x.tolist(),
            y=instance.server_y.tolist(),
            mode="markers+text" if numbered else "markers",
            name="server",
            text=[f"<b>{server}</b>" for server in numbers],
            textposition="middle center",
            textfont={"size": 10, "color": "#ffffff"},
            marker={
                "symbol": "square",
                "size": 17 if numbered else 11,
                "color": colours,
                "line": {"width": 1.5, "color": [BAD if theta < 1 else REFERENCE for theta in cost.theta]},
            },
            **points(texts, columns=columns),
        )
    )
    for server in np.flatnonzero(cost.theta < 1).tolist() if numbered else ():
        plot.add_annotation(
            x=instance.server_x[server],
            y=instance.server_y[server],
            yshift=-18,
            text=f"θ {cost.theta[server]:.2f}",
            showarrow=False,
            bgcolor=BAD,
            borderpad=1,
            font={"size": 10, "color": "#ffffff"},
        )


def _bars(plot: go.Figure, assignment: Assignment) -> None:
    """Add the loads of the servers below the map, as shares of their capacities."""
    instance, cost = assignment.instance, assignment.cost
    servers = [str(server) for server in range(instance.n_servers)]
    loads = (
        ("storage in use", STORAGE, cost.storage_load, instance.storage_capacity),
        ("compute in use", COMPUTE, cost.compute_load, instance.compute_capacity),
    )
    longest = 1.0
    for name, colour, load, capacity in loads:
        share = use(load, capacity)
        texts = zip(servers, _loads(load, capacity), strict=True)
        hover = [f"server {server}, {name}: {text}" for server, text in texts]
        height = np.minimum(share, LONGEST_BAR)
        longest = max(longest, float(height.max()))
        bars = {"marker": {"color": colour}, "xaxis": "x2", "yaxis": "y2"} | points(hover, y=share.tolist())
        plot.add_trace(go.Bar(x=servers, y=height.tolist(), name=name, **bars))
    line = {"color": BAD, "width": 1.5, "dash": "dash"}
    limit = {"x": [servers[0], servers[-1]], "y": [1.0, 1.0], "xaxis": "x2", "yaxis": "y2", "hoverinfo": "skip"}
    plot.add_trace(go.Scatter(mode="lines", name="capacity", line=line, **limit))
    plot.update_layout(
        xaxis_title_standoff=2,
        yaxis_domain=[BARS + LABELS, 1.0],
        barmode="group",
        bargap=0.25,
        xaxis2={
            "automargin": True,
            "anchor": "y2",
            "type": "category",
            "title": {"text": "server", "standoff": 2},
            "tickangle": 0,
        },
        yaxis2={
            "automargin": True,
            "zeroline": False,
            "anchor": "x2",
            "domain": [0.0, BARS],
            "range": [0.0, 1.06 * longest],
            "tickvals": [0.0, 0.5, 1.0, 1.5, 2.0],
            "tickformat": ".0%",
            "title": {"text": "use"},
        },
    )


def _loads(load: FloatArray, capacity: FloatArray) -> list[str]:
    shares = zip(load, capacity, use(load, capacity), strict=True)
    return [f"{one:.6g} of {most:.6g} ({share:.0%})" for one, most, share in shares]


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


def _with_breaks(values: FloatArray) -> list[float | None]:
    """Return numbers for plotly, with None instead of nan: plotly interrupts a line there."""
    return [None if np.isnan(value) else float(value) for value in values]
