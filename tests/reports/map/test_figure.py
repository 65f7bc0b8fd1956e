import dataclasses

import numpy as np
import pytest

from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.nearest_server import nearest_server
from relocbench.reports.map import figure as maps
from relocbench.reports.map.assignments import Assignment
from relocbench.reports.map.colours import server_colours
from relocbench.reports.map.figure import draw_map, use


@pytest.fixture
def assignment():
    instance = FAMILIES["small"].cells({"regime": "scarce", "clients": 15})[0].build(0)
    return Assignment(instance, "nearest", nearest_server(instance))


def trace(plot, name):
    return next(one for one in plot.data if one.name == name)


def test_clients_have_the_colour_of_their_home_and_only_overloaded_servers_show_theta(assignment):
    plot = draw_map(assignment)
    instance, colours = assignment.instance, server_colours(assignment.instance)
    clients, servers = trace(plot, "client, coloured by home"), trace(plot, "server")
    assert list(clients.marker.color) == [colours[server] for server in assignment.home]
    assert [data[2] for data in clients.customdata] == list(range(instance.n_clients))
    assert list(servers.marker.color) == colours
    assert len(set(colours)) == len(colours)
    over = [theta for theta in assignment.cost.theta if theta < 1]
    assert 0 < len(over) < instance.n_servers
    assert [note.text for note in plot.layout.annotations] == [f"θ {theta:.2f}" for theta in over]


def test_the_colours_of_near_servers_differ_most():
    instance = FAMILIES["paper"].cells({"sigma": 10})[0].build(0)
    colours = server_colours(instance)
    x, y = instance.server_x, instance.server_y
    same = [
        np.hypot(x[one] - x[other], y[one] - y[other])
        for one in range(instance.n_servers)
        for other in range(one)
        if colours[one] == colours[other]
    ]
    nearest = np.sort(np.hypot(x - x[0], y - y[0]))[1]
    assert min(same) > 2 * nearest


def test_bars_show_the_share_of_each_capacity(assignment):
    instance, cost = assignment.instance, assignment.cost
    shares = use(cost.storage_load, instance.storage_capacity)
    bars = trace(draw_map(assignment, loads=True), "storage in use")
    assert list(bars.meta["y"]) == pytest.approx(shares)
    assert list(bars.y) == pytest.approx(np.minimum(shares, maps.LONGEST_BAR))
    assert shares.max() > 1


def test_a_load_without_capacity_is_infinite_and_still_drawn(assignment):
    bare = dataclasses.replace(assignment.instance, storage_capacity=np.zeros(assignment.instance.n_servers))
    plot = draw_map(Assignment(bare, "nearest", assignment.home), loads=True)
    assert use(np.array([0.0, 1.0, 2.0]), np.array([0.0, 0.0, 4.0])).tolist() == [0.0, np.inf, 0.5]
    assert "(inf%)" in "".join(data[0] for data in trace(plot, "storage in use").customdata)
    assert all(value is None or np.isfinite(value) for one in plot.data for value in one.y)


def test_with_many_clients_a_sample_is_drawn_without_links(assignment, monkeypatch):
    monkeypatch.setattr(maps, "MOST_CLIENTS", 3)
    plot = draw_map(assignment)
    assert len(trace(plot, "client, coloured by home").x) == 3
    assert plot.layout.meta is None
