"""Interfaces to solvers: which are installed, models in PuLP, and how PuLP and Pyomo are run."""
