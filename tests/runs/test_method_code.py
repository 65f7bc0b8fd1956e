"""The version of a function that is given by value."""

import random

from relocbench.runs.method_code import function_code


def test_a_function_has_the_same_version_each_time_whatever_else_is_in_memory():
    def mine(history, epoch):
        return history.solve(scale=(0.5, {"a": [1, 2]}))

    rng = random.Random(0)
    kept, versions = [], set()
    for _ in range(500):
        versions.add(function_code(mine, "mine"))
        # Allocations between two calls give the temporary values of the next one other addresses.
        kept.append([[] for _ in range(rng.randrange(50))])
        if rng.random() < 0.3:
            kept.clear()
    assert len(versions) == 1


def test_a_function_that_does_or_uses_something_else_has_another_version():
    def made(factor, default=(1, 2)):
        def mine(instance, values=default):
            return [factor * value for value in values]

        return mine

    versions = {
        function_code(made(*given), "mine") for given in [(1,), (2,), (1, (1, 3)), (1, (1, 2, 3)), ([1],), ({1},)]
    }
    assert len(versions) == 6
    assert function_code(made(1), "mine") == function_code(made(1), "mine")
