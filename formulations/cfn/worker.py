"""The process in which toulbar2 runs.

toulbar2 needs a separate process, because its time limit is in whole seconds, it prints to the standard output, and it
has global state. The worker reads one pickled task from its standard input, and toulbar2 prints solutions and lower
bounds during the search. The last line is ``finished``, the number of nodes, the minimum and its values. If no solution
is below the limit, the minimum is 0 and there are no values.
"""

import ctypes
import math
import pickle
import signal
import sys
from typing import Any

# The option of prctl that sends this process a signal when its parent dies.
PR_SET_PDEATHSIG = 1


def main() -> None:
    """Solve the network on the standard input."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # the worker must not outlive its parent
    import pytoulbar2

    task: dict[str, Any] = pickle.load(sys.stdin.buffer)
    network = pytoulbar2.CFN(ubinit=float(task["limit"]), resolution=0, seed=task["seed"], verbose=0)
    for name, value in task["options"].items():
        setattr(network.Option, name, value)
    for index, size in enumerate(task["domains"]):
        network.AddVariable(f"v{index}", range(size))
    for scope, costs in task["functions"]:
        # toulbar2 takes lists of floats. A negative cost is FORBIDDEN.
        network.AddFunction(list(scope), [math.inf if cost < 0 else float(cost) for cost in costs.ravel().tolist()])
    for terms, operand, right in task["rows"]:
        network.AddGeneralizedLinearConstraint(terms, operand, right)
    result = network.Solve(showSolutions=1)
    values, cost, _ = result if result is not None else ([], 0, 0)
    print("\nfinished", network.GetNbNodes(), int(cost), *values, flush=True)


if __name__ == "__main__":
    main()
