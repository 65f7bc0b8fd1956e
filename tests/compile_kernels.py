"""Compile every kernel into the cache on disk, by running every method and policy once on a toy instance.

python -m tests.compile_kernels [reversed]

Two processes that begin at opposite ends share the work: what one has compiled, the other finds in the cache.
"""

import functools
import sys

import numpy as np

from relocbench.formulations.bounding.block_relaxation import improve_block, likely_labels
from relocbench.heuristics.anneal_region import Cooling, anneal_region
from relocbench.instances.evaluation import evaluate
from relocbench.instances.files.places import snap
from relocbench.instances.generators.families import family
from relocbench.instances.kernels.random_numbers import random_words
from relocbench.instances.region_state import RegionState, Surroundings
from relocbench.reports.gate.machine_speed import SpeedMeter
from relocbench.runs.certify import _load_contents
from relocbench.runs.methods import METHODS
from relocbench.runs.solve import warm_up
from relocbench.runs.timeline.policies import POLICIES
from relocbench.runs.timeline.policy_selectors import as_policy
from tests.formulations.certificates.test_block_bound import EVERY, make_block, make_dual, make_instance

# Settings whose kernels the defaults of the method do not call.
SETTINGS = ("reloc[k=1,relation=exact]", "reloc[k=1,relation=svd]")


def compile_method(name):
    if not METHODS[name].unavailable():
        warm_up(name)


def compile_generators():
    family("tiny").cells({"regime": "scarce", "shape": "roles"})[0].build(0)
    snap(np.zeros((2, 2)), np.ones((3, 2)))


def compile_regions_and_blocks():
    """Compile what the tasks of Spark call."""
    instance = make_instance(0)
    home = np.zeros(instance.n_clients, np.int32)
    found = evaluate(instance, home)
    loads = np.array([found.storage_load, found.compute_load, found.sent, found.spread])
    none = np.empty(0, np.int32)
    own, size = np.arange(instance.n_servers, dtype=np.int32), instance.members.sizes.astype(np.int32)
    around = Surroundings(own, size, none, none, none, loads)
    anneal_region(instance, home, around, Cooling(10, 0.2, 0.0, 1.0), random_words(0), None)
    likely_labels(RegionState(instance, home, around), 3)
    block = make_block(instance, make_dual(instance, 0), EVERY)
    improve_block(block, block.labels[:, 0].astype(np.int32), np.ones(len(block.first), np.bool_), 1, 3, 1)


if __name__ == "__main__":
    work = [functools.partial(compile_method, name) for name in METHODS]
    work += [functools.partial(warm_up, selector) for selector in SETTINGS]
    work += [as_policy(policy).warm_up for policy in POLICIES]
    # The speed meter compiles its kernel when it is created.
    work += [compile_regions_and_blocks, compile_generators, _load_contents, SpeedMeter]
    for compile_one in reversed(work) if sys.argv[1:] == ["reversed"] else work:
        compile_one()
