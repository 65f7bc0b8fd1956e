"""Generation, sweeps and RELOC at scale, on Spark. Imports instances, heuristics, formulations and runs."""
