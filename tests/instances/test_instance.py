import dataclasses
import math
import pickle

import numpy as np
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.instance import PUBLISHES, SUBSCRIBES, Instance
from relocbench.instances.kernels.ragged import Ragged
from relocbench.instances.nearest_server import nearest_server
from tests.samples import KINDS, random_instance, worked_example


def test_arrays_are_copied_and_read_only():
    x = np.array([0.0, 10.0])
    instance = dataclasses.replace(worked_example(), server_x=x)
    x[0] = 99.0
    assert instance.server_x[0] == 0.0
    for array in (
        instance.server_x,
        instance.spool,
        instance.members.item,
        instance.client_weight,
        instance.server_delay,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        instance.cloud_delay = 1.0
    with pytest.raises(TypeError):
        instance.parameters["new"] = 1


def test_pickling_keeps_content_and_read_only_arrays():
    instance = FAMILIES["paper"].cells({"sigma": 5})[0].build(0)
    again = pickle.loads(pickle.dumps(instance))
    assert again.hash == instance.hash
    assert again.name == instance.name
    assert again.parameters == instance.parameters
    assert not again.client_x.flags.writeable
    assert not again.publishers.item.flags.writeable


@pytest.mark.parametrize(
    ("start", "item"), [([0, 3], [0, 1]), ([1, 2], [0, 1]), ([0, 2, 1, 2], [0, 1]), ([], []), ([0, 2], [0.5, 1.0])]
)
def test_invalid_ragged_arrays_are_rejected(start, item):
    with pytest.raises(InputError, match="expected"):
        Ragged(np.array(start, np.int64), np.array(item))


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_memberships_by_topic_and_by_client_agree(seed):
    instance = random_instance(seed)
    expected = set()
    for topic, (publishers, subscribers) in enumerate(zip(instance.publishers, instance.subscribers, strict=True)):
        for m in {*publishers.tolist(), *subscribers.tolist()}:
            role = PUBLISHES * (m in publishers) | SUBSCRIBES * (m in subscribers)
            expected.add((topic, m, role))
        order = [*publishers.tolist(), *(m for m in subscribers.tolist() if m not in publishers)]
        assert instance.members[topic].tolist() == order
    by_topic = zip(instance.members.owner(), instance.members.item, instance.member_role, strict=True)
    by_client = zip(instance.topics.item, instance.topics.owner(), instance.topic_role, strict=True)
    assert {tuple(map(int, entry)) for entry in by_topic} == expected
    assert {tuple(map(int, entry)) for entry in by_client} == expected
    assert all(topics.tolist() == sorted(topics.tolist()) for topics in instance.topics)


def test_weights_are_twice_the_degree_if_all_members_publish_and_subscribe():
    instance = FAMILIES["paper"].cells({"sigma": 5})[0].build(0)
    np.testing.assert_allclose(instance.client_weight, 2 * instance.topics.sizes, rtol=1e-12)


def test_cloud_is_far_if_its_round_trip_is_at_least_every_server_delay():
    instance = worked_example()  # the servers are 1 ms apart
    assert dataclasses.replace(instance, cloud_delay=0.5).cloud_is_far
    assert not dataclasses.replace(instance, cloud_delay=math.nextafter(0.5, 0)).cloud_is_far


def test_euclidean_delay_is_the_same_double_in_python_numpy_and_compiled_code():
    instance = FAMILIES["paper"].cells({"sigma": 20})[0].build(3)
    for m in range(0, instance.n_clients, 7):
        for l in range(instance.n_servers):
            dx = float(instance.client_x[m]) - float(instance.server_x[l])
            dy = float(instance.client_y[m]) - float(instance.server_y[l])
            assert float(instance.client_delay(m, l)) == instance.delay_per_km * math.sqrt(dx * dx + dy * dy)
    # The compiled search must compare the same doubles; otherwise ties would be broken differently.
    table = instance.client_delay(np.arange(instance.n_clients)[:, None], np.arange(instance.n_servers)[None, :])
    assert nearest_server(instance).tolist() == table.argmin(axis=1).tolist()


class TestHash:
    def test_depends_on_everything_that_can_change_a_result(self):
        base = worked_example()
        changes = [
            {"cloud_delay": 4.0},
            {"delay_per_km": 0.2},
            {"server_x": [0.0, 11.0]},
            {"server_y": [0.0, 1.0]},
            {"storage_capacity": [10.0, 11.0]},
            {"compute_capacity": [20.0, 21.0]},
            {"client_x": [1.0, 2.0, 9.0, 12.0]},
            {"client_y": [0.0, 0.0, 0.0, 1.0]},
            {"spool": [8.0, 7.0]},
            {"publishers": Ragged.of([[1, 0, 2], [2]])},
            {"publishers": Ragged.of([[0, 1], [2, 2 - 1]])},
            {"subscribers": Ragged.of([[3], [0]])},
            {"client_server_delay": np.zeros((4, 2))},
            {"server_server_delay": np.zeros((2, 2))},
        ]
        hashes = {base.hash, *(dataclasses.replace(base, **change).hash for change in changes)}
        assert len(hashes) == len(changes) + 1

    def test_does_not_depend_on_name_parameters_or_the_sign_of_zero(self):
        base = worked_example()
        renamed = dataclasses.replace(base, name="other", parameters={"a": 1}, server_y=[-0.0, 0.0])
        assert renamed.hash == base.hash

    def test_never_changes(self):
        assert worked_example().hash == "de693a638177251150c4c2a23bd90935e6232506174bf567f586ed7081d40ee2"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"cloud_delay": math.nan}, "cloud_delay: expected a number from 0 to 1e+12, got nan"),
        ({"delay_per_km": -0.1}, "delay_per_km: expected a number from 0 to 1e+12, got -0.1"),
        ({"storage_capacity": [10.0, -1.0]}, "servers.storage[1]: expected a number from 0 to 1e+15, got -1.0"),
        ({"compute_capacity": [10.0]}, "servers.compute: expected a list of 2 numbers, got 1"),
        ({"client_x": ["a", "b"]}, "clients.x: expected numbers, got ['a', 'b']"),
        ({"client_x": []}, "clients.x: expected at least one entry, got none"),
        ({"spool": [1.0, math.inf]}, "topics[1].spool: expected a number from 0 to 1e+12, got inf"),
        ({"publishers": Ragged.of([[0, 4], [2]])}, "topics[0].publishers[1]: expected a client from 0 to 3, got 4"),
        ({"publishers": Ragged.of([[0, 1], [2, 3, 2]])}, "topics[1].publishers[2]: client 2 is listed twice"),
        (
            {"publishers": Ragged.of([[], [2]]), "subscribers": Ragged.of([[], [3]])},
            "topics[0]: expected a publisher or a subscriber, got neither",
        ),
        (
            {"publishers": Ragged.of([[0]])},
            "topics: expected publishers and subscribers for every topic, got 1 and 2 lists",
        ),
        (
            {"server_server_delay": [[0, 1], [1, 2]]},
            "server_server_delay[1][1]: expected 0 from a server to itself, got 2.0",
        ),
        ({"client_server_delay": [[0, 1]]}, "client_server_delay: expected 4 rows of 2 numbers, got shape (1, 2)"),
        ({"parameters": [1]}, "parameters: expected an object, got [1]"),
        ({"name": 3}, "name: expected text, got 3"),
    ],
)
def test_impossible_values_are_rejected_by_field(change, problem):
    with pytest.raises(InputError) as caught:
        dataclasses.replace(worked_example(), **change)
    assert str(caught.value) == problem


def test_a_million_memberships_build_without_a_client_by_server_matrix():
    instance = FAMILIES["paper"].cells({"sigma": 5, "topics": 105_000, "servers": 1024})[0].build(0)
    assert len(instance.members.item) > 1_000_000
    assert instance.n_clients > 600_000
    derived = [value for value in vars(instance).values() if isinstance(value, np.ndarray)]
    assert max(array.size for array in derived) <= 1_100_000
    assert isinstance(instance, Instance)
