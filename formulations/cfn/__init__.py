"""Cost function networks, solved by toulbar2."""
