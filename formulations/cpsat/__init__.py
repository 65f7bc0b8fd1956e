"""An integer model of the problem, solved with CP-SAT of OR-Tools."""
