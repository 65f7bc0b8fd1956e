import tempfile
from pathlib import Path

import numpy as np
import pytest

from relocbench.spark.factors import factorise

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
        rows = sorted((row["client"], row["factors"]) for row in found.collect())
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
    found, wanted = factors(spark, topics_of, 3, rank=4, rounds=4), best(topics_of, 4)
    # The squared norm of F is at most that of the best factorisation of the same rank.
    assert 0.99 < (found**2).sum() / (wanted**2).sum() <= 1.0 + 1e-12


@pytest.mark.slow
def test_factors_are_the_same_to_the_last_bit_however_the_data_is_partitioned(spark):
    topics_of = memberships(1)
    first = factors(spark, topics_of, 5, rank=6, rounds=2, parts=1)
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", 3)
    try:
        again = factors(spark, topics_of, 5, rank=6, rounds=2, parts=7)
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
