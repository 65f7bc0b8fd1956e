"""File formats: instances, solutions, edge lists and places, each in one module."""
