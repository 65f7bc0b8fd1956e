from pathlib import Path

import pytest

from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import read_instance
from tests.instances.files.bad_files import INSTANCE, json_text


@pytest.fixture
def sample(tmp_path: Path) -> Instance:
    """Return the valid instance, which is also in ``sample.json`` in the test's folder."""
    (tmp_path / "sample.json").write_text(json_text(INSTANCE))
    return read_instance(tmp_path / "sample.json")
