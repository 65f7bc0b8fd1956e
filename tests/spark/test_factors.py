import tempfile
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds

from relocbench.spark.factors import TOLERANCE, factor_blocks, factorise, filter_roots, missing_share

SCHEMA = "client bigint, topic array<bigint>"


def memberships(seed, clients=120, topics=40):
    """Return clients with one to four topics each. Some topics are far more popular than others."""
    rng = np.random.default_rng(seed)
    popular = rng.random(topics) ** 3 + 0.01
    popular /= popular.sum()
    return {
        5 * m - 100: sorted((7 * rng.choice(topics, rng.integers(1, 5), replace=False, p=popular)).tolist())
        for m in range(clients)
    }


def incidence(topics_of):
    names = sorted({topic for topics in topics_of.values() for topic in topics})
    return np.array([[float(topic in topics_of[client]) for topic in names] for client in sorted(topics_of)])


def factors(spark, topics_of, blocks, *, rank, rounds, parts=2, factorised="Z"):
    frame = spark.createDataFrame(list(topics_of.items()), SCHEMA).repartition(parts)
    topics = incidence(topics_of).shape[1]
    with (
        tempfile.TemporaryDirectory() as work,
        factorise(frame, topics, blocks, rank, rounds, Path(work) / "work", factorised) as found,
    ):
        rows = sorted((row["client"], row["factors"]) for row in found.rows.collect())
    assert [client for client, _ in rows] == sorted(topics_of)
    return np.array([values for _, values in rows])


def best(topics_of, rank):
    matrix = incidence(topics_of)
    return matrix @ np.linalg.eigh(matrix.T @ matrix)[1][:, ::-1][:, :rank]


@pytest.mark.slow
def test_with_columns_for_all_topics_the_factorisation_is_the_best(spark):
    topics_of = memberships(0, topics=12)
    found, wanted = factors(spark, topics_of, 3, rank=4, rounds=1), best(topics_of, 4)
    assert np.abs(found @ found.T - wanted @ wanted.T).max() < 1e-9


@pytest.mark.slow
def test_factors_of_the_incidence_score_by_singular_values_instead_of_their_squares(spark):
    topics_of = memberships(0, topics=12)
    found = factors(spark, topics_of, 3, rank=4, rounds=1, factorised="incidence")
    left, values, _ = np.linalg.svd(incidence(topics_of))
    assert np.abs(found @ found.T - (left[:, :4] * values[:4]) @ left[:, :4].T).max() < 1e-9


@pytest.mark.slow
def test_a_few_rounds_come_close_to_the_best(spark):
    topics_of = memberships(0)
    found, wanted = factors(spark, topics_of, 2, rank=4, rounds=4), best(topics_of, 4)
    # The squared norm of F is at most that of the best factorisation of the same rank.
    assert 0.999 < (found**2).sum() / (wanted**2).sum() <= 1.0 + 1e-12


@pytest.mark.slow
@pytest.mark.usefixtures("short_filter")
def test_factors_are_the_same_to_the_last_bit_however_the_data_is_partitioned(spark):
    topics_of = memberships(1)
    first = factors(spark, topics_of, 3, rank=6, rounds=2, parts=1)
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", 5)
    try:
        again = factors(spark, topics_of, 3, rank=6, rounds=2, parts=7)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    assert first.tobytes() == again.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("topics", [1, 2, 3])
def test_few_topics_have_few_columns(spark, topics):
    topics_of = {m: [m % topics] for m in range(9)}
    found = factors(spark, topics_of, 2, rank=16, rounds=1)
    assert found.shape == (9, max(1, topics - 1))
    assert np.isfinite(found).all()


def random_incidence(seed, clients, topics, popularity):
    rng = np.random.default_rng(seed)
    topic = (topics * rng.random(3 * clients) ** popularity).astype(int)
    matrix = csr_array((np.ones(3 * clients), (np.arange(3 * clients) // 3, topic)), shape=(clients, topics))
    matrix.data[:] = 1.0
    return matrix


@pytest.mark.parametrize(("clients", "topics"), [(60, 40), (500, 300), (4000, 3000)])
@pytest.mark.parametrize("popularity", [1.0, 1.3, 3.0])
def test_the_estimate_ends_the_rounds_when_no_more_than_the_tolerance_is_missing(clients, topics, popularity):
    matrix = random_incidence(clients, clients, topics, popularity)
    best_norm = (svds(matrix, 16, random_state=0)[1] ** 2).sum()
    v = np.linalg.qr(np.random.default_rng(0).standard_normal((topics, 24)))[0]
    captured, values = [], None
    while not captured or missing_share(captured) > TOLERANCE:
        if values is not None:
            for root in filter_roots(values):
                v = (matrix.T @ (matrix @ v) - root * v) / (values[0] - root)
        v = np.linalg.qr(v)[0]
        values, vectors = np.linalg.eigh((matrix @ v).T @ (matrix @ v))
        values, v = values[::-1], v @ vectors[:, ::-1]
        captured.append(values[:16].sum())
        assert len(captured) < 30
    assert len(captured) > 2
    assert 1.0 - TOLERANCE <= captured[-1] / best_norm <= 1.0 + 1e-9


def test_rounds_that_gain_equally_much_have_not_converged():
    assert missing_share([1.0, 2.0]) == np.inf
    assert missing_share([1.0, 1.1, 1.25]) == np.inf
    assert missing_share([1.0, 1.1, 1.1]) == 0.0
    # Gains of 0.1 and 0.05 promise another 0.05 + 0.025 + …; doubled.
    assert missing_share([1.0, 1.1, 1.15]) == pytest.approx(0.1 / 1.15)


def test_graphs_of_middle_size_have_several_blocks():
    assert [factor_blocks(m, 1) for m in (10, 102_828, 517_345)] == [1, 4, 8]
    assert factor_blocks(10**9, 1908) == 1908


@pytest.mark.slow
@pytest.mark.usefixtures("short_filter")
def test_a_stopped_factorisation_continues_after_its_last_round(spark, tmp_path):
    frame = spark.createDataFrame(list(memberships(2).items()), SCHEMA)

    def run(work, rounds):
        with factorise(frame, 40, 2, 4, rounds, work) as found:
            return sorted((row["client"], tuple(row["factors"])) for row in found.rows.collect())

    whole = run(tmp_path / "whole", 2)
    with pytest.raises(KeyboardInterrupt), factorise(frame, 40, 2, 4, 1, tmp_path / "work"):
        raise KeyboardInterrupt
    record = tmp_path / "work" / "round-1" / "made.json"
    # If round 1 were computed again, it would fail on the rows of round 0, which are gone.
    assert record.exists()
    assert not (tmp_path / "work" / "round-0" / "rows").exists()
    assert run(tmp_path / "work", 2) == whole
    assert not (tmp_path / "work").exists()
