"""Runs in processes of their own, behind hard limits of time and memory."""
