import math

import numpy as np
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.files.places import read_places, snap
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.kernels.random_streams import stream


def write(path, header, rows):
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def haversine_km(a, b):
    (lat1, lon1), (lat2, lon2) = ([math.radians(value) for value in point] for point in (a, b))
    half = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    return 2 * 6371.0088 * math.asin(math.sqrt(half))


@pytest.mark.parametrize("header", ["latitude,longitude", "LATITUDE,LONGITUDE", "Lat,Lng", " lat , lon "])
def test_distances_agree_with_great_circle_distances(tmp_path, header):
    degrees = [(-37.81517, 144.97476), (-37.81524, 144.95256), (-37.9, 145.1), (-37.5, 144.6)]
    places = read_places(write(tmp_path / "sites.csv", header, degrees))
    for i, a in enumerate(degrees):
        for j, b in enumerate(degrees):
            distance = float(np.linalg.norm(places.sites[i] - places.sites[j]))
            assert distance == pytest.approx(haversine_km(a, b), rel=5e-3, abs=1e-5)


def test_the_date_line_does_not_split_a_map(tmp_path):
    places = read_places(write(tmp_path / "fiji.csv", "lat,lon", [(-17.0, 179.9), (-17.0, -179.9)]))
    assert np.linalg.norm(places.sites[0] - places.sites[1]) == pytest.approx(21.27, rel=1e-3)


def test_other_columns_are_ignored_and_clients_use_the_same_projection(tmp_path):
    sites = write(tmp_path / "s.csv", "ID,LATITUDE,NAME,LONGITUDE", [(1, 10.0, "a", 20.0), (2, 10.1, '"b, c"', 20.1)])
    people = write(tmp_path / "p.csv", "longitude,latitude", [(20.1, 10.1), (20.0, 10.0)])
    places = read_places(sites, people)
    assert places.sites.tolist() == places.clients[::-1].tolist()


def test_servers_are_at_sites_and_clients_at_points(tmp_path):
    rng = np.random.default_rng(0)
    sites = write(tmp_path / "s.csv", "lat,lon", np.round(10 + 0.2 * rng.random((40, 2)), 5).tolist())
    people = write(tmp_path / "p.csv", "lat,lon", np.round(10 + 0.2 * rng.random((900, 2)), 5).tolist())
    places = read_places(sites, people)
    instance = FAMILIES["paper"].cells({"sigma": 2, "servers": 12})[0].build(0, places=places)
    at_sites = {tuple(point) for point in places.sites.tolist()}
    at_points = {tuple(point) for point in places.clients.tolist()}
    servers = list(zip(instance.server_x.tolist(), instance.server_y.tolist(), strict=True))
    clients = list(zip(instance.client_x.tolist(), instance.client_y.tolist(), strict=True))
    assert set(servers) <= at_sites
    assert len(set(servers)) == 12
    assert set(clients) <= at_points
    assert len(set(clients)) == instance.n_clients
    with pytest.raises(InputError, match="servers: expected at most 40, the number of sites, got 41"):
        places.choose_servers(41, stream("x"))


def test_points_are_used_twice_only_if_there_are_too_few():
    points = np.array([[0.0, 0.0], [1.0, 0.0]])
    wanted = np.array([[0.1, 0.0], [0.2, 0.0], [0.9, 0.0]])
    assert snap(wanted[:2], points).tolist() == [[0, 0], [1, 0]]
    assert snap(wanted, points).tolist() == [[0, 0], [0, 0], [1, 0]]
