"""Compile every kernel into the cache on disk, by running every method once on a toy instance."""

from relocbench.runs.methods import METHODS
from relocbench.runs.solve import warm_up

if __name__ == "__main__":
    for name, method in METHODS.items():
        if not method.unavailable():
            warm_up(name)
