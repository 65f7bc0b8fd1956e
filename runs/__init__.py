"""Runs: the registry of methods, isolated runs, the run store, sweeps, certified gaps, the cross-check."""
