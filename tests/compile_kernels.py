"""Compile every kernel into the cache on disk, by running every method and policy once on a toy instance."""

from relocbench.runs.methods import METHODS
from relocbench.runs.solve import warm_up
from relocbench.runs.timeline.policies import POLICIES, as_policy

if __name__ == "__main__":
    for name, method in METHODS.items():
        if not method.unavailable():
            warm_up(name)
    for policy in POLICIES:
        as_policy(policy).warm_up()
