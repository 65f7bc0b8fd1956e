"""A result has its main numbers at hand, and no kernel is compiled while the clock of a run is running."""

import json
import math
import subprocess
import sys

import pytest

from relocbench.instances.evaluation import evaluate
from relocbench.instances.solution import Solution
from relocbench.runs.methods import METHODS
from relocbench.runs.selectors import as_selector
from relocbench.runs.solve import Result
from tests.samples import worked_example

# Prints the number of compiled kernels, and those that got a new compiled version after the warm-up, during real runs.
# A version that is loaded from the cache on disk counts like one that is compiled, so the test needs no empty cache.
SCRIPT = """
import json
import sys
from relocbench.instances.generators.families import FAMILIES
from relocbench.runs.selectors import parse_selector
from relocbench.runs.solve import solve_here, warm_up

def versions():
    return {
        f"{module}.{name}": len(value.signatures)
        for module, content in list(sys.modules.items())
        if module.startswith("relocbench.")
        for name, value in vars(content).items()
        if hasattr(value, "signatures")
    }

selector = parse_selector(sys.argv[1])
instances = [cell.build(0) for cell in FAMILIES["tiny"].cells({"regime": "scarce"})]
if selector.method.proves == "nothing":
    instances.append(FAMILIES["paper"].cells({"sigma": 5})[0].build(0))
warm_up(selector)
before = versions()
for instance in instances:
    solve_here(instance, selector, time_limit=0.2)
after = versions()
late = sorted(name for name, count in after.items() if count != before.get(name, 0))
print(json.dumps({"kernels": sum(count > 0 for count in after.values()), "late": late}))
"""
AVAILABLE = [name for name, method in METHODS.items() if not method.unavailable()]


# One process for each method: a kernel that another method has compiled would hide an incomplete warm-up.
@pytest.mark.parametrize("selector", [*AVAILABLE, "anneal[start=otos]"])
def test_no_kernel_is_compiled_while_the_clock_runs(selector):
    done = subprocess.run([sys.executable, "-c", SCRIPT, selector], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["late"] == []
    assert found["kernels"] > 0


@pytest.mark.parametrize("bound", [-math.inf, 2.0])
def test_a_result_has_the_numbers_of_its_parts(bound):
    instance, home = worked_example(), [0, 0, 1, 1]
    cost = evaluate(instance, home)
    result = Result(instance, as_selector("nearest"), 0, Solution(home, bound, "time_limit"), cost, 0.1)
    assert result.home is home
    assert (result.objective, result.y, result.status) == (cost.objective, cost.y, "time_limit")
    assert result.theta is cost.theta
    known = math.isfinite(bound)
    assert result.bound == (bound if known else None)
    assert result.gap == ((cost.objective - bound) / cost.objective if known else None)
    assert result.stored().bound == result.bound
