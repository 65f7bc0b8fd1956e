"""Runs of methods: the registry, isolated processes, the run store, sweeps, certified gaps and the cross-check."""
