"""Heuristics: fast methods that find a good home for every client, without a lower bound. Imports only instances."""
