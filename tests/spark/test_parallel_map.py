import pytest

from relocbench.spark.parallel_map import cut, shuffled, spread


@pytest.mark.parametrize(
    ("count", "cores", "parts"), [(1, 1, 12), (7, 2, 24), (2000, 2, 24), (10_000, 64, 768), (5, 8, 1)]
)
def test_portions_hold_everything_once_and_end_small(count, cores, parts):
    portions = list(cut(range(count), cores, parts))
    assert [item for portion in portions for item in portion] == list(range(count))
    sizes = [len(portion) for portion in portions]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1
    assert max(sizes) <= max(1, count // parts)


def test_two_thousand_jobs_on_two_cores_make_ten_to_twenty_portions_a_core():
    assert 20 <= len(list(cut(range(2000), 2, 24))) <= 42


def test_items_are_mixed_the_same_way_every_time():
    assert shuffled(range(100)) == shuffled(range(100)) != list(range(100))
    assert sorted(shuffled(range(100))) == list(range(100))


def test_every_item_is_worked_on_once(spark):
    factor = 3
    answers = spread(spark, range(200), lambda number: number * factor, "multiplying")
    assert sorted(answers) == [number * 3 for number in range(200)]
    assert spread(spark, [], lambda number: number, "nothing") == []
