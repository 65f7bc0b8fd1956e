import dataclasses

import numpy as np
import pytest

from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.nearest_server import nearest_server
from relocbench.reports.map import figure as maps
from relocbench.reports.map.assignments import Assignment
from relocbench.reports.map.figure import draw_map, home_colours, use


@pytest.fixture
def assignment():
    instance = FAMILIES["small"].cells({"regime": "overloaded", "clients": 15})[0].build(0)
    return Assignment(instance, "nearest", nearest_server(instance))


def trace(plot, name):
    return next(one for one in plot.data if one.name == name)


def test_clients_have_the_colour_of_their_home_and_servers_show_theta(assignment):
    plot = draw_map(assignment)
    instance, colours = assignment.instance, home_colours(assignment.instance.n_servers)
    clients, servers = trace(plot, "client, coloured by home"), trace(plot, "server, with θ")
    assert list(clients.marker.color) == [colours[server] for server in assignment.home]
    assert [data[2] for data in clients.customdata] == list(range(instance.n_clients))
    assert list(servers.marker.color) == colours
    for text, theta in zip(servers.text, assignment.cost.theta, strict=True):
        assert (text == "θ 1") == (theta == 1)
    assert len(set(colours)) == len(colours)


def test_the_height_of_bars_is_proportional_to_the_load(assignment):
    plot = draw_map(assignment)
    frame, bars = trace(plot, "capacity"), trace(plot, "storage in use")
    instance, cost = assignment.instance, assignment.cost
    full = frame.y[2] - frame.y[0]
    shares = use(cost.storage_load, instance.storage_capacity)
    heights = [bars.y[start + 2] - bars.y[start] for start in range(0, len(bars.y), 6)]
    assert heights == pytest.approx([full * min(share, 1) for share in shares if share > 0])


def test_a_load_without_capacity_is_infinite_and_still_drawn(assignment):
    bare = dataclasses.replace(assignment.instance, storage_capacity=np.zeros(assignment.instance.n_servers))
    plot = draw_map(Assignment(bare, "nearest", assignment.home))
    assert use(np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.0, 4.0])).tolist() == [0.0, np.inf, 0.5]
    assert "(inf%)" in "".join(data[0] for data in trace(plot, "server, with θ").customdata)
    assert all(value is None or np.isfinite(value) for one in plot.data for value in one.y)


def test_with_many_clients_a_sample_is_drawn_without_links(assignment, monkeypatch):
    monkeypatch.setattr(maps, "MOST_CLIENTS", 3)
    plot = draw_map(assignment)
    assert len(trace(plot, "client, coloured by home").x) == 3
    assert plot.layout.meta is None
