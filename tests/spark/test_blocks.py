import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from relocbench.spark.blocks import block_of, pack, unpack

IDS = st.lists(st.integers(-(2**63), 2**63 - 1))


@given(IDS, st.integers(1, 300))
def test_unpacking_a_block_returns_the_packed_records(ids, blocks):
    key = np.array(ids, np.int64)
    other = np.linspace(-1.0, 1.0, len(key))
    batch = pack(blocks, key, np.arange(len(key)), other)
    found = []
    for block, payload in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
        keys, numbers, floats = unpack([payload], 3)
        assert block_of(keys, blocks).tolist() == [block] * len(keys)
        assert numbers.tolist() == sorted(numbers.tolist())
        found += zip(keys.tolist(), numbers.tolist(), floats.view(np.float64).tolist(), strict=True)
    assert sorted(found) == sorted(zip(key.tolist(), range(len(key)), other.tolist(), strict=True))


def test_blocks_have_about_the_same_size():
    count = np.bincount(block_of(np.arange(100_000), 10), minlength=10)
    assert count.min() > 9_500
    assert count.max() < 10_500
