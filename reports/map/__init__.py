"""One instance with one or several assignments, on a map."""
