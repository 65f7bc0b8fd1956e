"""The process in which toulbar2 runs: it counts no fractions of a second, prints as it likes and keeps global state.

Reads one pickled task from its input and lets toulbar2 print what it finds while it searches. The last line is
``finished``, the number of nodes, the minimum and its values; 0 and no values where nothing is below the limit.
"""

import ctypes
import math
import pickle
import signal
import sys
from typing import Any

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Solve the network on the standard input."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # not to outlive a caller who was killed
    import pytoulbar2

    task: dict[str, Any] = pickle.load(sys.stdin.buffer)
    network = pytoulbar2.CFN(ubinit=float(task["limit"]), resolution=0, seed=task["seed"], verbose=0)
    for name, value in task["options"].items():
        setattr(network.Option, name, value)
    for index, size in enumerate(task["domains"]):
        network.AddVariable(f"v{index}", range(size))
    for scope, costs in task["functions"]:
        # Lists of floats are what it takes; a cost below 0 stands for none.
        network.AddFunction(list(scope), [math.inf if cost < 0 else float(cost) for cost in costs.ravel().tolist()])
    for terms, operand, right in task["rows"]:
        network.AddGeneralizedLinearConstraint(terms, operand, right)
    result = network.Solve(showSolutions=1)
    values, cost, _ = result if result is not None else ([], 0, 0)
    print("\nfinished", network.GetNbNodes(), int(cost), *values, flush=True)


if __name__ == "__main__":
    main()
