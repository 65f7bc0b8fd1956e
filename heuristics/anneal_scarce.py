"""The rounds of annealing where capacity is scarce.

Where capacity is scarce, most proposals open a topic on a full server, and the changes of the objective are many times
larger than the differences between delays. So the temperatures of these rounds are relative to delays, and some
proposals replace a topic on a server by another one.

The first part of a cooling decides which topics are on which servers, and which server is sacrificed. Lower
temperatures cannot change that any more. So a *population* of assignments cools in small steps. After each step cheap
assignments are copied and expensive ones are dropped, each in proportion to the ratio of its probabilities at the next
temperature and at the present one (population annealing). At low temperatures all members are copies of a few, so the
population shrinks to one. A cooling has prices unless the best homes so far sacrifice a server.

Then follow short warm rounds on all servers, and shorter ones on a few neighbouring servers each, as long as they find
better homes.
"""

import itertools
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from relocbench.heuristics.anneal_prices import Prices, sacrificed_servers
from relocbench.heuristics.anneal_rounds import Round, Task, Tasks
from relocbench.instances.evaluation import evaluate
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray
from relocbench.instances.kernels.random_numbers import Words, random_words, uniform
from relocbench.instances.nearest_server import nearest_server


@dataclass(frozen=True)
class PopulationParams:
    """The parameters of the populations.

    Attributes
    ----------
    first_members, most_members
        The number of members of the first population, which doubles from one population to the next, and the largest
        number. So the first homes are found early.
    effort
        The length of the cooling of one member, relative to a usual round.
    hot, cold
        The first and the last temperature, as shares of the typical change of the delays.
    steps
        The number of steps, between which the temperature falls by the same factor.
    extra_capacity
        The share by which capacities are larger at the start of a cooling.
    select_from
        The part of a cooling from which members are copied and dropped. Before it, costs say little about the end.
    shrink_from, alone_from
        The parts of a cooling at which the population begins to shrink, and from which it has one member.
    populations
        After this many populations the best homes of all are improved by longer rounds, and longer coolings follow.
    """

    first_members: int = 4
    most_members: int = 16
    effort: float = 0.6
    hot: float = 3.5
    cold: float = 0.06
    steps: int = 100
    extra_capacity: float = 0.2
    select_from: float = 0.28
    shrink_from: float = 0.5
    alone_from: float = 0.9
    populations: int = 8


PARAMS = PopulationParams()
# Rounds of the first kind follow the cooling until several in sequence find nothing better, and then rounds on regions.
WARM_ROUNDS = (
    Round(1.2, priced=True, extra_capacity=0.1, scarce=True, effort=0.3),
    Round(1.2, priced=True, extra_capacity=0.2, scarce=True, effort=0.3),
)
WARM_PATIENCE = 4
# The effort of a round on a region is for a region of all servers; it is shorter as far as the region is smaller.
REGION_ROUNDS = (Round(1.2, priced=True, extra_capacity=0.1, scarce=True, effort=0.1, region=6),)
REGION_PATIENCE = 32
MOST_DOUBLINGS = 10
# Costs that differ by less than this share are equal up to rounding.
SAME_COST = 1e-9


def scarce_rounds(instance: Instance, home: IntArray, unit: float, seed: int) -> Tasks:
    """Yield the rounds for scarce capacity, without end: populations, and then longer ones.

    Parameters
    ----------
    instance
        The problem.
    home
        Good homes, which show whether a server is sacrificed.
    unit
        The typical change of the delays, to which temperatures are relative.
    seed
        The seed of the choice between members of a population.

    Yields
    ------
    Task
        A round and its start. The caller sends the result of the round.
    """
    random = random_words(seed)
    best, cost = home, evaluate(instance, home).objective
    for number in itertools.count():
        sacrificed = sacrificed_servers(evaluate(instance, best).theta)
        members = min(PARAMS.first_members << min(number, MOST_DOUBLINGS), PARAMS.most_members)
        effort = 2.0 ** min(number // PARAMS.populations, MOST_DOUBLINGS)
        # Prices would drive the load away from a server that has to be sacrificed.
        prices = None if sacrificed.any() else Prices(instance, unit, PARAMS.extra_capacity, sacrificed)
        home = yield from _cool_population(instance, members, prices, effort, unit, random)
        home = yield from _improve(instance, home, effort)
        if (number + 1) % PARAMS.populations == 0:
            home = min(home, best, key=lambda home: evaluate(instance, home).objective)
            home = yield from _improve(instance, home, 2 * effort)
        now = evaluate(instance, home).objective
        if now < cost:
            best, cost = home, now


@dataclass(eq=False)
class _Member:
    """An assignment of a population, and the prices of its cooling if it has any."""

    instance: Instance
    home: IntArray
    prices: Prices | None

    @property
    def value(self) -> float:
        """The number by which the members are compared."""
        return evaluate(self.instance, self.home).objective if self.prices is None else self.prices.value(self.home)

    def copy(self) -> "_Member":
        """Return a member that changes independently."""
        return replace(self, prices=None if self.prices is None else self.prices.copy())


def _cool_population(
    instance: Instance, members: int, prices: Prices | None, effort: float, unit: float, random: Words
) -> Generator[Task, IntArray, IntArray]:
    """Yield the rounds in which a population cools, and return the homes of the member that remains."""
    start = nearest_server(instance)
    population = [_Member(instance, start, prices).copy() for _ in range(members)]
    ratio = (PARAMS.cold / PARAMS.hot) ** (1 / PARAMS.steps)
    for step in range(PARAMS.steps):
        part = (step + 1) / PARAMS.steps
        for member in population:
            mode = Round(
                PARAMS.hot,
                priced=prices is not None,
                scarce=True,
                effort=effort * PARAMS.effort / PARAMS.steps,
                final_heat=PARAMS.cold,
                unit=unit,
                begin=step / PARAMS.steps,
                end=part,
                prices=member.prices,
            )
            member.home = yield Task(mode, member.home)
        if part >= PARAMS.select_from and len(population) > 1:
            costs = np.array([member.value for member in population])
            # The difference of the inverse temperatures at the ends of the next step and of this one.
            colder = (1 / ratio - 1) / (unit * PARAMS.hot * ratio ** (step + 1))
            chosen = resample(costs, colder, uniform(random))
            chosen = chosen[np.argsort(costs[chosen], kind="stable")][: _size(members, part)]
            population = [population[i].copy() for i in chosen]
    return population[0].home


def _size(members: int, progress: float) -> int:
    """Return the size of a population of ``members`` at its start after a part of its steps."""
    left = (PARAMS.alone_from - progress) / (PARAMS.alone_from - PARAMS.shrink_from)
    size: float = members ** min(1.0, max(0.0, left))
    return round(size)


def resample(costs: FloatArray, colder: float, offset: float) -> IntArray:
    """Choose the members of a population at a lower temperature, with repetition.

    Parameters
    ----------
    costs
        The cost of each member.
    colder
        The difference between the inverse temperatures. A member is chosen in proportion to
        ``exp(-colder·cost)``, rounded down or up.
    offset
        A random number from 0 to 1, which decides the rounding.

    Returns
    -------
    array
        As many members as there are costs.
    """
    weight = np.exp(-colder * (costs - costs.min()))
    share = np.cumsum(weight) / weight.sum()
    at = (offset + np.arange(len(costs))) / len(costs)
    return np.minimum(np.searchsorted(share, at, side="right"), len(costs) - 1).astype(np.int32)


def _improve(instance: Instance, home: IntArray, effort: float) -> Generator[Task, IntArray, IntArray]:
    """Yield the rounds after the cooling of a population, and return the best homes."""
    home = yield from _while_better(instance, home, [_longer(mode, effort) for mode in WARM_ROUNDS], WARM_PATIENCE)
    regions = [_longer(mode, effort * min(1.0, mode.region / instance.n_servers)) for mode in REGION_ROUNDS]
    return (yield from _while_better(instance, home, regions, REGION_PATIENCE))


def _while_better(
    instance: Instance, home: IntArray, modes: Sequence[Round], patience: int
) -> Generator[Task, IntArray, IntArray]:
    """Yield rounds until ``patience`` of them in sequence do not find better homes, and return the best homes."""
    cost, failures = evaluate(instance, home).objective, 0
    for mode in itertools.cycle(modes):
        if failures == patience:
            break
        found = yield Task(mode, home)
        now = evaluate(instance, found).objective
        failures += 1
        if now < cost * (1 - SAME_COST):
            home, cost, failures = found, now, 0
    return home


def _longer(mode: Round, effort: float) -> Round:
    """Return the same round with another length."""
    return replace(mode, effort=mode.effort * effort)
