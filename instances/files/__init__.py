"""Files: instances, solutions, edge lists and places, each format in one module."""
