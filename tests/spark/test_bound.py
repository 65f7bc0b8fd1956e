import json
import shutil
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relocbench.formulations.certificates.block_bound import UNIT_BITS, check_delegation
from relocbench.formulations.certificates.certificate import Dual
from relocbench.formulations.certificates.exact_bound import DualBound
from relocbench.formulations.certificates.integer_problem import IntegerProblem
from relocbench.formulations.certificates.region import root_region
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.paper_generator import PaperParameters
from relocbench.spark.assign import RelocOptions
from relocbench.spark.bound import BoundOptions, bound_folder, verified_sum, verify_folder
from relocbench.spark.checkpoints import read_record
from relocbench.spark.compare_local import read_local
from relocbench.spark.pipeline import solve_field
from relocbench.spark.topics_from_graph import Filters, arrange

OPTIONS = BoundOptions(rounds=2, labels=5, iterations=200, region_clients=180)


@pytest.fixture(scope="module")
def bounded(spark, regions_field, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bound") / "out"
    shutil.copytree(regions_field, folder)
    seen = []
    record, _ = bound_folder(spark, folder, folder / "nearest" / "homes", OPTIONS, lambda number, bound: seen.append(bound))
    return folder, record, seen


@pytest.mark.slow
def test_the_bound_rises_and_its_exact_value_is_that_of_the_messages(bounded):
    folder, record, seen = bounded
    rounds = [read_record(folder / "bound" / "rounds" / name) for name in ("0001", "0002")]
    assert [now["blocks"] > 1 for now in rounds] == [True, True]
    assert rounds[0]["before"] < rounds[0]["after"] == pytest.approx(rounds[1]["before"], rel=1e-9)
    assert rounds[1]["before"] < rounds[1]["after"]
    assert record["bound"] == pytest.approx(seen[-1], rel=1e-6)
    assert Fraction(record["bound"]) <= Fraction(int(record["claim"]), 1 << UNIT_BITS)
    assert 0 < record["gap"] < 0.3
