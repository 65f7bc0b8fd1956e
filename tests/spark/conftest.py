import pytest

from relocbench.spark.session import session

# Compiling less pays off in jobs of seconds.
QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}


@pytest.fixture(scope="session")
def spark():
    """Give the one session of all tests here; commands that run in this process use it too."""
    with session("local[2]", memory=1, partitions=4, settings=QUICK) as running:
        yield running
