"""The gate: whether a heuristic got worse than it was, on instances whose optimum is known or enclosed."""
