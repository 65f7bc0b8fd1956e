"""Lower bounds at any size: the client graph, its linear relaxation, and branch and bound on the relaxation."""
