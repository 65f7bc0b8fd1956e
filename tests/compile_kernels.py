"""Compile every kernel into the cache on disk, by running every method and policy once on a toy instance.

python -m tests.compile_kernels [reversed]

Two processes that begin at opposite ends share the work: what one has compiled, the other finds in the cache.
"""

import sys

from relocbench.runs.certify import _load_contents
from relocbench.runs.methods import METHODS
from relocbench.runs.solve import warm_up
from relocbench.runs.timeline.policies import POLICIES
from relocbench.runs.timeline.policy_selectors import as_policy


def compile_method(name):
    if not METHODS[name].unavailable():
        warm_up(name)


if __name__ == "__main__":
    work = [(compile_method, name) for name in METHODS]
    work += [(lambda policy: as_policy(policy).warm_up(), policy) for policy in POLICIES]
    work.append((lambda _: _load_contents(), None))
    for compile_one, what in reversed(work) if sys.argv[1:] == ["reversed"] else work:
        compile_one(what)
