import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from relocbench.instances.kernels.id_hash import hash_ids


@given(st.sets(st.integers(-(2**63), 2**63 - 1)), st.integers(0, 2**62))
def test_different_ids_have_different_hashes(ids, salt):
    assert len(set(hash_ids(np.array(list(ids), np.int64), salt).tolist())) == len(ids)
