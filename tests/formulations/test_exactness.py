"""What holds for every exact method in the registry; a new method is tested here without a line of its own.

Each method is compared with enumeration on tiny instances of every regime and shape. For each method,
the number of instances and the largest number of assignments of one of them:
"""

import dataclasses
import functools
import itertools
from dataclasses import dataclass

import numpy as np
import pytest

from relocbench.formulations.incumbent import slack
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.kernels.ragged import Ragged
from relocbench.runs.methods import METHODS
from relocbench.runs.selectors import parse_selector
from relocbench.runs.solve import solve_here as solve
from tests.samples import KINDS, enumerable_instance, relabelled, scaled_delays


@dataclass(frozen=True)
class Sample:
    """The tiny instances that a method must solve in each regime and shape.

    Attributes
    ----------
    instances
        Their number in each regime and shape.
    most_assignments
        Larger instances are left out, and the next seeds take their place. The default is the size of the largest.
    """

    instances: int = 20
    most_assignments: int = 4**7


# Methods that need much longer than the others. They meet larger instances in the tests below.
SMALLER_SAMPLES = {
    "pyomo-direct": Sample(instances=10, most_assignments=256),
    "pyomo-gdp": Sample(most_assignments=1024),
    "cfn": Sample(instances=10),
}
EXACT = [name for name, method in METHODS.items() if method.proves == "optimality" and not method.unavailable()]
COMPARED = {name: SMALLER_SAMPLES.get(name, Sample()) for name in EXACT if name != "enumerate"}
VARIANTS = [
    "milp-basic[solver=scip]",
    "milp-basic[solver=cbc]",
    "milp-strong[solver=scip]",
    "pyomo-gdp[transform=hull]",
]
SELECTORS = [*COMPARED, *(text for text in VARIANTS if not parse_selector(text).method.unavailable())]
CELLS = {f"{cell['regime']}-{cell['shape']}": cell for cell in FAMILIES["tiny"].grid}
__doc__ += "".join(
    f"\n{name}: {sample.instances * len(CELLS)}, {sample.most_assignments}" for name, sample in COMPARED.items()
)


@functools.cache
def tiny(cell, seed):
    """Return an instance and its optimum by enumeration."""
    instance = FAMILIES["tiny"].cells(CELLS[cell])[0].build(seed)
    return instance, solve(instance, "enumerate").evaluation.objective


def small_enough(cell, most_assignments):
    """Yield the instances of a cell with at most so many assignments, and their optima."""
    for seed in itertools.count():
        instance, least = tiny(cell, seed)
        if instance.n_servers**instance.n_clients <= most_assignments:
            yield instance, least


def optimum(instance, selector):
    result = solve(instance, selector, time_limit=300)
    assert result.solution.status == "optimal", (instance.name, selector, result.solution)
    return result.evaluation.objective


def agree(one, other):
    return abs(one - other) <= slack(other)


@pytest.mark.slow
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("selector", COMPARED)
def test_the_optimum_of_tiny_instances_is_that_of_enumeration(selector, cell):
    sample = COMPARED[selector]
    for instance, least in itertools.islice(small_enough(cell, sample.most_assignments), sample.instances):
        assert agree(optimum(instance, selector), least), instance.name


@pytest.mark.slow
@pytest.mark.parametrize("selector", SELECTORS)
def test_the_optimum_of_every_kind_of_instance_is_that_of_enumeration(selector):
    for seed in range(len(KINDS)):
        instance = enumerable_instance(seed, least_servers=2)
        assert agree(optimum(instance, selector), optimum(instance, "enumerate")), instance.name


@pytest.mark.parametrize("selector", EXACT)
def test_a_home_is_either_fixed_or_forbidden(selector):
    """A client has a certain home or it has not: the lesser of the two optima is the optimum."""
    for shape in ("plain", "asymmetric", "near-cloud"):
        instance, least = tiny(f"scarce-{shape}", 3)
        client = int(instance.client_weight.argmax())
        every = np.arange(instance.n_servers)
        delay = instance.client_delay(np.arange(instance.n_clients)[:, None], every[None, :])
        halves = []
        for kept in (every == 0, every != 0):
            far = delay.copy()
            far[client, ~kept] += 1000.0
            halves.append(optimum(dataclasses.replace(instance, client_server_delay=far), selector))
        assert agree(min(halves), least), instance.name


@pytest.mark.parametrize("selector", EXACT)
def test_the_numbering_of_clients_and_servers_does_not_matter(selector):
    rng = np.random.default_rng(5)
    for cell in ("scarce-roles", "overloaded-asymmetric", "overloaded-near-cloud"):
        instance, least = tiny(cell, 4)
        other = relabelled(instance, rng.permutation(instance.n_clients), rng.permutation(instance.n_servers))
        assert agree(optimum(other, selector), least), instance.name


@pytest.mark.parametrize("selector", EXACT)
def test_the_order_of_topics_and_members_does_not_matter(selector):
    rng = np.random.default_rng(6)
    instance, least = tiny("overloaded-roles", 5)
    order = rng.permutation(instance.n_topics)
    shuffled = dataclasses.replace(
        instance,
        spool=instance.spool[order],
        publishers=Ragged.of([rng.permutation(instance.publishers[n]).tolist() for n in order]),
        subscribers=Ragged.of([rng.permutation(instance.subscribers[n]).tolist() for n in order]),
    )
    assert agree(optimum(shuffled, selector), least)


@pytest.mark.parametrize("selector", EXACT)
def test_scaling_all_delays_scales_the_optimum(selector):
    for cell in ("scarce-plain", "overloaded-near-cloud"):
        instance, least = tiny(cell, 6)
        assert agree(optimum(scaled_delays(instance, 3), selector), 3 * least), instance.name


@pytest.mark.parametrize("name", [name for name in EXACT if "presolve" in METHODS[name].parameters()])
def test_presolve_does_not_change_the_optimum(name):
    for cell in ("scarce-plain", "scarce-near-cloud", "overloaded-single"):
        instance, least = tiny(cell, 7)
        assert agree(optimum(instance, f"{name}[presolve=false]"), least), instance.name


@pytest.mark.parametrize("name", EXACT)
def test_an_optimal_start_is_kept_and_proved_optimal(name):
    instance, least = tiny("overloaded-asymmetric", 8)
    best = solve(instance, "enumerate").solution.home
    solution = METHODS[name].load()(instance, seed=0, time_limit=300, start=best)
    assert solution.status == "optimal"
    assert agree(solution.bound, least)
    assert solution.home.tolist() == best.tolist()


@pytest.mark.parametrize("name", EXACT)
def test_without_time_there_are_homes_and_a_valid_bound(name):
    clients = 10 if name == "enumerate" else 15  # enumerate refuses instances that it cannot finish
    instance = FAMILIES["small"].cells({"regime": "overloaded", "clients": clients})[0].build(0)
    result = solve(instance, name, time_limit=0.05)
    assert result.solution.bound <= result.evaluation.objective
    assert result.solution.status in ("time_limit", "optimal")
