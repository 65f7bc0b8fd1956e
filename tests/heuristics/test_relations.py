import numpy as np
import pytest

from relocbench.heuristics.readings import Reading
from relocbench.heuristics.relations import (
    most_related_by_factors,
    most_related_exactly,
    nmf_factors,
    off_diagonal_factors,
    relation_factors,
    svd_factors,
    tie_break,
)
from relocbench.heuristics.relations_kernel import SCORE_STEPS
from relocbench.instances.errors import InputError
from relocbench.instances.generators.families import FAMILIES
from tests.samples import random_instance


def incidence(instance):
    matrix = np.zeros((instance.n_clients, instance.n_topics))
    matrix[instance.topics.owner(), instance.topics.item] = 1
    return matrix


def lists(start, item, _level):
    return [item[start[m] : start[m + 1]].tolist() for m in range(len(start) - 1)]


def by(ties, count, x=None, seed=0):
    """Return the order of ties of clients on a line, at 0, 1, 2, … unless their positions are given."""
    x = np.arange(count, dtype=float) if x is None else x
    return tie_break(ties, x, np.zeros(count), np.arange(count), seed)


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


def test_a_full_rank_leaves_nothing_out():
    instance = FAMILIES["paper"].cells({"sigma": 5, "topics": 12})[0].build(0)
    shared = incidence(instance) @ incidence(instance).T
    factors = svd_factors(instance, "full")
    np.testing.assert_allclose(factors @ factors.T, shared, atol=1e-12)
    positive = off_diagonal_factors(instance, "full")
    values, vectors = np.linalg.eigh(shared - np.diag(np.diag(shared)))
    expected = (vectors * np.maximum(values, 0)) @ vectors.T
    np.testing.assert_allclose(positive @ positive.T, expected, atol=1e-12)


@pytest.mark.parametrize("reading", [Reading(rank="full"), Reading(rank="full", diagonal=False)])
def test_a_full_rank_is_refused_where_it_would_need_a_large_dense_matrix(monkeypatch, reading):
    instance = FAMILIES["paper"].cells({"sigma": 5, "topics": 12})[0].build(0)
    monkeypatch.setattr("relocbench.heuristics.relations.DENSE_TOPICS", 0)
    monkeypatch.setattr("relocbench.heuristics.relations.DENSE_CLIENTS", 0)
    with pytest.raises(InputError, match="rank: full is possible up to 0"):
        relation_factors(instance, reading, 0)


def test_factors_of_the_incidence_score_by_singular_values_instead_of_their_squares():
    instance = FAMILIES["paper"].cells({"sigma": 5})[0].build(0)
    left, values, _ = np.linalg.svd(incidence(instance))
    assert values[15] - values[16] > 1e-3  # the first 16 are unique
    factors = svd_factors(instance, 16, "incidence")
    np.testing.assert_allclose(factors @ factors.T, (left[:, :16] * values[:16]) @ left[:, :16].T, atol=1e-9)
    # The factors of Z from the same decomposition, for comparison.
    of_z = svd_factors(instance, 16)
    np.testing.assert_allclose(of_z @ of_z.T, (left[:, :16] * values[:16] ** 2) @ left[:, :16].T, atol=1e-9)


def test_factors_without_the_diagonal_are_the_best_of_their_kind_dense_or_sparse(monkeypatch):
    instance = FAMILIES["paper"].cells({"sigma": 5})[0].build(0)
    shared = incidence(instance) @ incidence(instance).T
    values, vectors = np.linalg.eigh(shared - np.diag(np.diag(shared)))
    expected = (vectors[:, -8:] * values[-8:]) @ vectors[:, -8:].T
    dense = off_diagonal_factors(instance, 8)
    np.testing.assert_allclose(dense @ dense.T, expected, atol=1e-9)
    monkeypatch.setattr("relocbench.heuristics.relations.DENSE_CLIENTS", 0)
    sparse = off_diagonal_factors(instance, 8)
    np.testing.assert_allclose(sparse @ sparse.T, expected, atol=1e-7)
    assert off_diagonal_factors(instance, 8).tolist() == sparse.tolist()


def test_both_halves_of_a_non_negative_factorisation_of_the_incidence_are_equally_long():
    instance = FAMILIES["paper"].cells({"sigma": 5, "topics": 12})[0].build(0)
    factors = nmf_factors(instance, 6, 0, "incidence")
    assert (factors >= 0).all()
    topics = np.linalg.lstsq(factors, incidence(instance), rcond=None)[0]
    np.testing.assert_allclose(np.linalg.norm(factors, axis=0), np.linalg.norm(topics, axis=1), rtol=0.1)


def test_nmf_factors_approximate_shared_topics():
    instance = FAMILIES["paper"].cells({"sigma": 5, "topics": 12})[0].build(0)
    shared = incidence(instance) @ incidence(instance).T
    factors = nmf_factors(instance, 11, 0)
    assert np.linalg.norm(shared - factors @ factors.T) < 0.3 * np.linalg.norm(shared)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("most", [0, 1, 3, 100])
def test_the_strongest_come_first_and_ties_go_to_the_lowest_index(seed, most):
    rng = np.random.default_rng(seed)
    # Small whole numbers give many ties. Seed 0 has more rows than eight tiles.
    factors = rng.integers(-2, 3, (rng.integers(1, 40) if seed else 1030, 3 + seed % 7)).astype(float)
    scores = factors @ factors.T
    for m, found in enumerate(lists(*most_related_by_factors(factors, most, by("index", len(factors))))):
        others = [(-scores[m, r], r) for r in range(len(factors)) if r != m and scores[m, r] > 0]
        assert found == [r for _, r in sorted(others)][:most]


@pytest.mark.parametrize("columns", [1, 4, 7, 16])
def test_no_strong_relation_is_missed_when_the_search_ends_early(columns):
    rng = np.random.default_rng(columns)
    # Rows of very different lengths, so that most searches end early.
    factors = rng.standard_normal((700, columns)) * rng.random((700, 1)) ** 4
    scores = np.zeros((700, 700))
    for c in range(columns):
        scores += np.outer(factors[:, c], factors[:, c])
    steps = np.floor(scores * SCORE_STEPS + 0.5)
    np.fill_diagonal(steps, 0)
    for m, found in enumerate(lists(*most_related_by_factors(factors, 20, by("index", 700)))):
        assert found == [r for r in np.argsort(-steps[m], kind="stable")[:20] if steps[m, r] > 0]


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("most", [1, 3, 100])
def test_exact_relations_count_shared_topics(seed, most):
    instance = random_instance(seed)
    shared = incidence(instance) @ incidence(instance).T
    ties = by("index", instance.n_clients)
    found = lists(*most_related_exactly(instance.topics.start, instance.topics.item, most, ties))
    for m, related in enumerate(found):
        others = [(-shared[m, r], r) for r in range(instance.n_clients) if r != m and shared[m, r] > 0]
        assert related == [r for _, r in sorted(others)][:most]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("most", [1, 3, 100])
@pytest.mark.parametrize("ties", ["nearest", "random"])
def test_ties_beyond_the_largest_number_are_cut_by_their_rule(seed, most, ties):
    rng = np.random.default_rng(seed)
    factors = rng.integers(-1, 2, (rng.integers(1, 40) if seed else 600, 2)).astype(float)
    x = rng.integers(0, 9, len(factors)).astype(float)
    scores = factors @ factors.T
    rule = by(ties, len(factors), x, seed)
    cut, whole = (lists(*most_related_by_factors(factors, number, rule)) for number in (most, len(factors)))
    assert cut == [row[:most] for row in whole]
    for m, found in enumerate(whole):
        others = [r for r in range(len(factors)) if r != m and scores[m, r] > 0]
        if ties == "nearest":
            assert found == sorted(others, key=lambda r: (-scores[m, r], abs(x[m] - x[r]), r))
        else:
            assert sorted(found) == others
            assert [scores[m, r] for r in found] == sorted((scores[m, r] for r in others), reverse=True)


def test_random_ties_are_drawn_for_every_client_anew():
    # All 30 clients have the same score with each other.
    found = lists(*most_related_by_factors(np.ones((30, 1)), 1, by("random", 30)))
    assert len({row[0] for row in found}) > 10
    assert lists(*most_related_by_factors(np.ones((30, 1)), 1, by("random", 30, seed=1))) != found


def test_levels_separate_different_scores():
    factors = np.array([[1.0], [2.0], [1.0], [2.0], [3.0], [-1.0]])
    related = most_related_by_factors(factors, 4, by("placed", 6))
    assert related.item[:4].tolist() == [4, 1, 3, 2]
    assert related.level[:4].tolist() == [0, 1, 1, 2]
    assert len(most_related_by_factors(factors, 4, by("index", 6)).level) == 0
    # Clients 0 and 1 share two topics; 0 and 2, and 0 and 3, share one.
    topics = ([0, 2, 4, 5, 6], [0, 1, 0, 1, 0, 1])
    exact = most_related_exactly(np.array(topics[0]), np.array(topics[1]), 5, by("loaded", 4))
    assert exact.item[:3].tolist() == [1, 2, 3]
    assert exact.level[:3].tolist() == [0, 1, 1]
    assert len(exact.level) == len(exact.item)
