import numpy as np
import pytest

from relocbench.heuristics.relations import most_related_by_factors, most_related_exactly, nmf_factors, svd_factors
from relocbench.instances.generators.families import FAMILIES
from tests.samples import random_instance


def incidence(instance):
    matrix = np.zeros((instance.n_clients, instance.n_topics))
    matrix[instance.topics.owner(), instance.topics.item] = 1
    return matrix


def lists(start, item):
    return [item[start[m] : start[m + 1]].tolist() for m in range(len(start) - 1)]


def test_svd_factors_are_the_best_of_their_rank():
    instance = FAMILIES["paper"].cells({"sigma": 5})[0].build(0)
    shared = incidence(instance) @ incidence(instance).T
    factors = svd_factors(instance, 16)
    assert factors.shape == (instance.n_clients, 16)
    values = np.linalg.eigvalsh(shared)[::-1]
    assert np.linalg.norm(shared - factors @ factors.T) == pytest.approx(np.linalg.norm(values[16:]), rel=1e-9)


def test_sparse_and_dense_factors_give_the_same_scores(monkeypatch):
    instance = FAMILIES["paper"].cells({"sigma": 5, "topics": 200})[0].build(0)
    dense = svd_factors(instance, 8)
    monkeypatch.setattr("relocbench.heuristics.relations.DENSE_TOPICS", 0)
    sparse = svd_factors(instance, 8)
    np.testing.assert_allclose(sparse @ sparse.T, dense @ dense.T, atol=1e-7)


def test_nmf_factors_approximate_shared_topics():
    instance = FAMILIES["paper"].cells({"sigma": 5, "topics": 12})[0].build(0)
    shared = incidence(instance) @ incidence(instance).T
    factors = nmf_factors(instance, 11, 0)
    assert np.linalg.norm(shared - factors @ factors.T) < 0.3 * np.linalg.norm(shared)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("most", [0, 1, 3, 100])
def test_the_strongest_come_first_and_ties_go_to_the_lowest_index(seed, most):
    rng = np.random.default_rng(seed)
    # Small whole numbers give many ties. Seed 0 has more rows than four tiles.
    factors = rng.integers(-2, 3, (rng.integers(1, 40) if seed else 1030, 3)).astype(float)
    scores = factors @ factors.T
    for m, found in enumerate(lists(*most_related_by_factors(factors, most))):
        others = [(-scores[m, r], r) for r in range(len(factors)) if r != m and scores[m, r] > 0]
        assert found == [r for _, r in sorted(others)][:most]


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("most", [1, 3, 100])
def test_exact_relations_count_shared_topics(seed, most):
    instance = random_instance(seed)
    shared = incidence(instance) @ incidence(instance).T
    found = lists(*most_related_exactly(instance.topics.start, instance.topics.item, most))
    for m, related in enumerate(found):
        others = [(-shared[m, r], r) for r in range(instance.n_clients) if r != m and shared[m, r] > 0]
        assert related == [r for _, r in sorted(others)][:most]
