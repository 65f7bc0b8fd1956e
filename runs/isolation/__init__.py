"""Runs of methods in separate processes, with hard limits on time and memory."""
