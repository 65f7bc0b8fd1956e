"""The same work at scale, on Spark. Imports instances, heuristics, formulations and relocbench."""
