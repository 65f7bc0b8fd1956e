"""Every kernel that a run uses is compiled, or loaded from the cache on disk, before the clock of the run starts."""

import json
import subprocess
import sys

import pytest

from relocbench.runs.methods import METHODS

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
