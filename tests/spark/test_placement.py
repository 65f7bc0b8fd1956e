import numpy as np
import pytest

from relocbench.spark.placement import positions

FIELD = np.zeros(2), np.full(2, 25.0)


def test_a_position_depends_on_the_client_its_first_topic_and_the_seed_alone():
    client, topic = np.arange(1000) * 7, np.arange(1000) // 10
    at = positions(client, topic, 5.0, FIELD, 3)
    order = np.random.default_rng(0).permutation(1000)[:300]
    assert positions(client[order], topic[order], 5.0, FIELD, 3).tolist() == at[order].tolist()
    assert positions(client, topic, 5.0, FIELD, 4).tolist() != at.tolist()


@pytest.mark.parametrize("sigma", [0.5, 200.0])
def test_positions_are_gaussian_around_topics_and_inside_the_field(sigma):
    client = np.arange(40_000)
    at = positions(client, client // 200, sigma, FIELD, 0)
    assert at.min() >= 0.0
    assert at.max() <= 25.0
    around = at.reshape(200, 200, 2)
    if sigma < 1:
        # Around centres far from the border no position was drawn again.
        inner = (np.abs(around.mean(axis=1) - 12.5) < 10).all(axis=1)
        spread = (around - around.mean(axis=1, keepdims=True))[inner].std()
        assert abs(spread / sigma - 1) < 0.02
        assert around.mean(axis=1).std() > 5
    else:
        # With such a large σ positions are nearly uniform.
        assert abs(at.std() - 25 / 12**0.5) < 0.1
