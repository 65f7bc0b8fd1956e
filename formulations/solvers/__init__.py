"""Interfaces to solvers: which are installed, linear models in PuLP, and how PuLP and Pyomo models are solved."""
