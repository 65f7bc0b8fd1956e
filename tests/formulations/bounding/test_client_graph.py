import numpy as np
import pytest

from relocbench.formulations.bounding.client_graph import client_graph
from relocbench.formulations.linearisation import linearise
from tests.samples import KINDS, random_instance


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_the_graph_has_the_coefficients_of_the_linear_models(seed):
    instance = random_instance(seed)
    graph, model = client_graph(instance), linearise(instance)
    weights = dict(
        zip(zip(model.sender.tolist(), model.receiver.tolist(), strict=True), model.pair_weight, strict=True)
    )
    pairs = {(min(pair), max(pair)) for pair in weights}
    assert list(zip(graph.first.tolist(), graph.second.tolist(), strict=True)) == sorted(pairs)
    for i, j, forward, backward in zip(graph.first, graph.second, graph.forward, graph.backward, strict=True):
        assert forward == pytest.approx(weights.get((i, j), 0.0))
        assert backward == pytest.approx(weights.get((j, i), 0.0))
    assert graph.distance_cost == pytest.approx(model.weight[:, None] * model.client_delay)
    assert graph.detour == pytest.approx(model.detour * model.publications)
    assert graph.demand == pytest.approx(model.demand)
    assert graph.spool.tolist() == model.spool.tolist()
    assert tuple(tuple(sorted(clients.tolist())) for clients in graph.publishers) == tuple(
        tuple(sorted(clients)) for clients in model.publishers
    )
    for m, topics in enumerate(model.client_topics):
        assert graph.topic[graph.topic_start[m] : graph.topic_start[m + 1]].tolist() == list(topics)
    assert graph.typical_cost > 0
    assert np.array_equal(instance.spool[graph.loading], graph.spool)
