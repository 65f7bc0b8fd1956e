import pytest

from relocbench.spark.parallel_map import parallel_map, shuffled, tapered_chunks


@pytest.mark.parametrize(
    ("count", "cores", "chunks"), [(1, 1, 12), (7, 2, 24), (2000, 2, 24), (10_000, 64, 768), (5, 8, 1)]
)
def test_chunks_hold_every_item_once_and_become_smaller(count, cores, chunks):
    portions = list(tapered_chunks(range(count), cores, chunks))
    assert [item for portion in portions for item in portion] == list(range(count))
    sizes = [len(portion) for portion in portions]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1
    assert max(sizes) <= max(1, count // chunks)


def test_two_thousand_items_on_two_cores_make_ten_to_twenty_chunks_per_core():
    assert 20 <= len(list(tapered_chunks(range(2000), 2, 24))) <= 42


def test_items_are_shuffled_the_same_way_every_time():
    assert shuffled(range(100)) == shuffled(range(100)) != list(range(100))
    assert sorted(shuffled(range(100))) == list(range(100))


def test_the_function_is_applied_to_every_item_once(spark):
    factor = 3
    results = parallel_map(spark, range(200), lambda number: number * factor, "multiplying")
    assert sorted(results) == [number * 3 for number in range(200)]
    assert parallel_map(spark, [], lambda number: number, "nothing") == []
