"""A cost function network of the problem, solved with toulbar2."""
