"""Lower bounds at any size: the clients as a graph, its linear relaxation, and branch and bound on it."""
