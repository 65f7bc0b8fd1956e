"""Files of the exact models, which any solver can read, and the answers of solvers that have read them."""
