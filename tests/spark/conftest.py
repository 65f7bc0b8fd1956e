from pathlib import Path

import pytest

from spark.session import session

HERE = Path(__file__).parent
# Compiling less pays off in jobs of seconds.
QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Let one of the processes that run tests have all of these: they share a session."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark():
    """Give the one session of all tests here; commands that run in this process use it too."""
    with session("local[2]", memory=1, partitions=4, settings=QUICK) as running:
        yield running
