"""The gate: check that a heuristic did not get worse, on instances whose optimum is known or bounded."""
