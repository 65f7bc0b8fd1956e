"""A family with a generator of its own needs one class and one entry in FAMILIES."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.files.follower_graph import FollowerGraph
from relocbench.instances.files.places import Places
from relocbench.instances.generators.families import FAMILIES, Family
from relocbench.instances.generators.generator import Generator, Streams
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import read_instances
from relocbench.instances.kernels.ragged import Ragged


@dataclass(frozen=True, kw_only=True)
class RingParameters(Generator):
    """Clients at random angles of a circle, servers at equal angles, and one topic for all clients."""

    clients: int = 6
    servers: int = 3
    storage: float = 20.0

    @property
    def without_effect_on_positions(self):
        return ("storage",)

    def build(self, streams, graph=None, places=None):
        angle = np.round(2 * np.pi * streams.of_cell("angles").random(self.clients), 6)
        server_angle = np.round(2 * np.pi * np.arange(self.servers) / self.servers, 6)
        topic = Ragged.of([range(self.clients)])
        return Instance(
            cloud_delay=5.0,
            delay_per_km=0.1,
            server_x=np.round(10 * np.cos(server_angle), 6),
            server_y=np.round(10 * np.sin(server_angle), 6),
            storage_capacity=np.full(self.servers, self.storage),
            compute_capacity=np.full(self.servers, 100.0),
            client_x=np.round(10 * np.cos(angle), 6),
            client_y=np.round(10 * np.sin(angle), 6),
            spool=np.array([float(self.clients)]),
            publishers=topic,
            subscribers=topic,
        )


RING = Family(
    name="ring",
    summary="servers and clients on a circle",
    parameters_class=RingParameters,
    fixed={"servers": 4},
    grid=[{"clients": 5, "storage": 5.0}, {"clients": 5, "storage": 20.0}],
    label="m{clients}-a{storage:g}",
    replicates=2,
)


@pytest.fixture
def ring(monkeypatch):
    monkeypatch.setitem(FAMILIES, "ring", RING)


def test_a_family_builds_instances_with_its_generator():
    tight, wide = (cell.build(1) for cell in RING.cells())
    assert (tight.name, wide.name) == ("ring-m5-a5-1", "ring-m5-a20-1")
    assert tight.parameters == {"family": "ring", "seed": 1, "clients": 5, "servers": 4, "storage": 5.0}
    assert tight.client_x.tolist() == wide.client_x.tolist()
    assert RING.cells({"clients": "7", "storage": 5})[0].build(1).n_clients == 7
    with pytest.raises(InputError, match="radius: expected one of clients, servers, storage, clusters"):
        RING.cells({"radius": 2})


def test_streams_of_a_family_are_shared_by_its_cells():
    first, second = Streams("ring", '{"clients":5}', 0), Streams("ring", '{"clients":7}', 0)
    assert first.of_family("a").random() == second.of_family("a").random()
    assert first.of_cell("a").random() != second.of_cell("a").random()
    assert first.of_cell("a").random() != first.of_cell("b").random()


@pytest.mark.parametrize(
    ("accepts_graph", "accepts_places", "message"),
    [
        (False, False, "family: ring takes neither a follower graph nor places"),
        (True, False, "family: ring takes no places"),
        (False, True, "family: ring takes no follower graph"),
    ],
)
def test_a_family_rejects_data_that_its_generator_does_not_accept(monkeypatch, accepts_graph, accepts_places, message):
    monkeypatch.setattr(RingParameters, "accepts_graph", accepts_graph)
    monkeypatch.setattr(RingParameters, "accepts_places", accepts_places)
    graph = FollowerGraph(np.array([1]), np.array([2]))
    with pytest.raises(InputError) as caught:
        RING.cells()[0].build(0, graph=graph, places=Places(np.zeros((4, 2))))
    assert str(caught.value) == message


@pytest.mark.usefixtures("ring")
def test_commands_accept_a_registered_family(run, tmp_path):
    code, out, _ = run("families", "--json")
    assert code == 0
    assert json.loads(out)[-1]["name"] == "ring"
    code, _, err = run("generate", "--family", "ring", "--out", tmp_path / "ring.parquet")
    assert code == 0, err
    expected = [cell.build(seed).hash for cell in RING.cells() for seed in range(2)]
    assert [instance.hash for instance in read_instances(tmp_path / "ring.parquet")] == expected
    limits = ("--seeds", 0, "--time-limit", 20)
    code, out, err = run(
        "bench", "--family", "ring", "--method", "nearest", *limits, "--out", tmp_path / "bench", "--json"
    )
    assert code == 0, err
    assert json.loads(out)["runs"] == 2
    chosen = ("--set", "storage=5", "--seed", 0, "--reference-time", 2)
    code, _, err = run(
        *("study", "--family", "ring", "--method", "nearest", *limits, *chosen, "--out", tmp_path / "study", "--json")
    )
    assert code == 0, err
