import numpy as np
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.files.places import Places
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.generators.paper_generator import PaperParameters, generate_paper, scatter
from relocbench.instances.kernels.ragged import Ragged
from relocbench.instances.kernels.random_streams import stream


def paper(seed=0, **overrides):
    return FAMILIES["paper"].cells({"sigma": 5} | overrides)[0].build(seed)


@pytest.mark.parametrize("seed", range(10))
def test_paper_instances_have_the_papers_numbers(seed):
    instance = paper(seed)
    assert (instance.n_topics, instance.n_servers) == (64, 16)
    assert (instance.members.sizes.min(), instance.members.sizes.max()) == (2, 21)
    assert (instance.topics.sizes.min(), instance.topics.sizes.max()) == (1, 4)
    assert instance.spool.tolist() == (2 * instance.members.sizes).tolist()
    assert set(instance.storage_capacity) == {640}
    assert set(instance.compute_capacity) == {3200}
    assert instance.cloud_is_far
    assert instance.n_publications == instance.members.sizes.sum()
    for coordinates in (instance.client_x, instance.client_y):
        assert coordinates.min() >= 0
        assert coordinates.max() <= 25


def test_a_square_number_of_servers_forms_a_grid():
    grid = sorted(zip(paper().server_x.tolist(), paper().server_y.tolist(), strict=True))
    steps = [3.125, 9.375, 15.625, 21.875]
    assert grid == [(x, y) for x in steps for y in steps]
    assert len(set(paper(servers=7).server_x.tolist())) == 7
    assert len(set(paper(servers_at="random").server_x.tolist())) == 16
    with pytest.raises(InputError, match="servers: expected a square number for a grid, got 7"):
        paper(servers=7, servers_at="grid")


def test_members_lie_around_the_centre_of_their_first_topic():
    topics = Ragged.of([list(range(4000)), [0, *range(4000, 8000)]])
    at = scatter(topics, 2.0, np.zeros(2), np.full(2, 1000.0), stream("scatter"))
    first, second = at[:4000], at[4000:]
    assert first.std(axis=0) == pytest.approx(2.0, rel=0.05)
    assert np.linalg.norm(at[0] - first.mean(axis=0)) < 12 < np.linalg.norm(at[0] - second.mean(axis=0))


def test_topics_are_disjoint_if_clients_have_one_topic():
    assert paper(max_topics_per_client=1).topics.sizes.max() == 1


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ({"sigma": -1.0}, "sigma: expected a number from 0 to 1e9, got -1.0"),
        ({"sigma": float("nan")}, "sigma: expected a number from 0 to 1e9, got nan"),
        ({"topics": 0}, "topics: expected a whole number from 1 to 10000000, got 0"),
        ({"topics": 1.5}, "topics: expected a whole number from 1 to 10000000, got 1.5"),
        ({"servers_at": "moon"}, "servers_at: expected auto, grid or random, got 'moon'"),
        ({"min_topic_size": 1}, "min_topic_size: expected 2 to 21, got 1"),
        ({"field_km": 0.0}, "field_km: expected more than 0, got 0.0"),
    ],
)
def test_impossible_parameters_are_rejected_by_name(setting, problem):
    with pytest.raises(InputError) as caught:
        PaperParameters(**setting)
    assert str(caught.value) == problem


def test_a_spread_far_beyond_the_area_is_rejected():
    with pytest.raises(InputError, match="sigma: expected at most 20 times the field's 25 km, got 1e"):
        paper(sigma=1e6)
    line = Places(np.array([[0.0, 0.0], [9.0, 0.0]]))
    with pytest.raises(InputError, match="sigma: expected at most 20 times the field's 0 km, got 5"):
        FAMILIES["paper"].cells({"sigma": 5, "servers": 2})[0].build(0, places=line)


def test_without_spread_all_members_are_at_the_centre():
    instance = generate_paper(PaperParameters(sigma=0.0, topics=3), members=stream("m"), positions=stream("f"))
    assert len(set(zip(instance.client_x.tolist(), instance.client_y.tolist(), strict=True))) <= 3
