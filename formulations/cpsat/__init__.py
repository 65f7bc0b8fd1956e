"""Constraint programming on whole numbers, solved by CP-SAT."""
