import os
import subprocess
import sys

import pytest

from relocbench.runs.methods import METHODS

# Counts the compiled versions of all kernels after the warm-up and after real runs.
SCRIPT = """
import sys
from relocbench.runs.selectors import parse_selector
from relocbench.runs.solve import solve, warm_up
from relocbench.instances.generators.families import FAMILIES

def compiled():
    found = {}
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").partition(".")[0] in ("instances", "heuristics", "formulations"):
            for name, value in vars(module).items():
                if hasattr(value, "signatures"):
                    found[module.__name__, name] = len(value.signatures)
    return found

selector = sys.argv[1]
instances = [cell.build(0) for cell in FAMILIES["tiny"].cells({"regime": "scarce"})]
if parse_selector(selector).method.proves == "nothing":
    instances.append(FAMILIES["paper"].cells({"sigma": 5})[0].build(0))
warm_up(str(parse_selector(selector)))
before = compiled()
for instance in instances:
    solve(instance, selector, time_limit=0.05)
print({key: (before.get(key), count) for key, count in compiled().items() if before.get(key, 0) != count})
"""


# Of the exact methods those with kernels of their own.
SELECTORS = [
    name for name in METHODS if METHODS[name].proves == "nothing" or name in ("enumerate", "branch-price", "cfn")
]


@pytest.mark.parametrize("selector", [*SELECTORS, "anneal[start=otos]"])
def test_nothing_is_compiled_while_the_clock_runs(selector, tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", SCRIPT, selector]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.stdout.strip(), done.stderr) == ("{}", "")
