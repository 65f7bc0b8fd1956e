import numpy as np
import pytest

from relocbench.runs.shrink_instance import shrink, shrink_with_homes
from tests.samples import random_instance


@pytest.mark.parametrize("seed", range(8))
def test_everything_that_the_fault_does_not_need_is_removed(seed):
    instance = random_instance(seed + 64)
    small = shrink(instance, lambda candidate: candidate.n_clients >= 1)
    assert (small.n_clients, small.n_servers, small.n_topics) == (1, 1, 1)
    assert len(small.publishers.item) + len(small.subscribers.item) == 1
    assert not np.concatenate(
        [small.server_x, small.storage_capacity, small.compute_capacity, small.spool, small.client_x]
    ).any()
    assert small.cloud_delay == small.delay_per_km == 0


def test_everything_that_the_fault_needs_is_kept():
    instance = random_instance(3)
    target = int(instance.publishers.sizes.argmax())
    spool, size = float(instance.spool[target]), len(instance.publishers[target])
    assert size >= 2

    def shows_fault(candidate):
        return any(
            len(topic) == size and u == spool for topic, u in zip(candidate.publishers, candidate.spool, strict=True)
        )

    small = shrink(instance, shows_fault)
    assert shows_fault(small)
    assert (small.n_topics, small.n_clients, small.n_servers) == (1, size, 1)
    assert not len(small.subscribers.item)


def test_numbers_are_simplified_as_far_as_the_fault_remains():
    instance = random_instance(0)
    small = shrink(instance, lambda candidate: candidate.spool.max() > 1.2 and candidate.cloud_delay > 1)
    assert len(f"{small.spool[0]:g}") == 1
    assert small.cloud_delay == 5.0


def test_without_time_the_instance_is_returned_unchanged():
    instance = random_instance(0)
    small = shrink(instance, lambda candidate: True, seconds=0.0)
    assert small.hash == instance.hash
    assert small.parameters["shrunk_from"] == instance.name


def test_no_instance_is_tried_twice():
    seen = []

    def shows_fault(candidate):
        seen.append(candidate.hash)
        return candidate.n_clients >= 3

    shrink(random_instance(5), shows_fault)
    assert len(seen) == len(set(seen)) > 10


@pytest.mark.parametrize("seed", range(4))
def test_an_assignment_is_shrunk_together_with_its_instance(seed):
    instance = random_instance(seed + 64)
    home = np.random.default_rng(seed).integers(instance.n_servers, size=instance.n_clients).astype(np.int32)
    # The fault needs only the last client and its home.
    place, at = (instance.client_x[-1], instance.client_y[-1]), home[-1]
    server = instance.server_x[at], instance.server_y[at]

    def shows_fault(found, homes):
        assert homes.shape == (found.n_clients,)
        assert ((homes >= 0) & (homes < found.n_servers)).all()
        mine = np.flatnonzero((found.client_x == place[0]) & (found.client_y == place[1]))
        return any((found.server_x[homes[m]], found.server_y[homes[m]]) == server for m in mine)

    assert shows_fault(instance, home)
    small, left = shrink_with_homes(instance, home, shows_fault)
    assert (small.n_clients, small.n_servers, left.tolist()) == (1, 1, [0])
