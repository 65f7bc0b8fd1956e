"""Rounds of annealing: how one of them runs, and the protocol by which a search is told its rounds."""

from collections.abc import Generator
from dataclasses import dataclass

from relocbench.heuristics.anneal_prices import FirstPrices, Prices
from relocbench.instances.kernels.ragged import IntArray


@dataclass(frozen=True)
class Round:
    """How one round of annealing runs.

    Attributes
    ----------
    heat
        The initial temperature, as a share of the typical change: the median of the absolute changes of the objective
        that random proposals make.
    priced
        Whether the loads of servers have prices (:mod:`heuristics.anneal_prices`) until shortly before the end.
    extra_capacity
        In a priced round, the share by which capacities are larger at its start.
    scarce
        Whether the round is made for scarce capacity: the typical change is that of the delays alone, some proposals
        are refits (:func:`heuristics.anneal_kernel.refit`), and sacrificed servers have no prices.
    effort
        The length of the round, relative to a usual round.
    first_prices
        The initial prices, if they are known.
    final_heat
        The temperature at the end, as a share of the typical change; None for the usual one.
    region
        The number of neighbouring servers among which clients move in this round, which are drawn at its start. All
        other clients stay. With 0 clients move among all servers.
    unit
        The typical change, if it is known; with None it is measured at the start of the round.
    begin, end
        The part of the cooling that this round runs, from 0 to 1. The result of a round that ends before 1 are its last
        homes, not the best ones.
    prices
        The prices of a cooling that began before; the round changes them. With None a priced round has its own.
    """

    heat: float
    priced: bool
    extra_capacity: float = 0.2
    scarce: bool = False
    effort: float = 1.0
    first_prices: FirstPrices | None = None
    final_heat: float | None = None
    region: int = 0
    unit: float | None = None
    begin: float = 0.0
    end: float = 1.0
    prices: Prices | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """One round, and the homes from which it starts.

    Attributes
    ----------
    mode
        How the round runs.
    start
        The homes from which it starts; None for the best homes so far.
    """

    mode: Round
    start: IntArray | None = None


# The rounds of a search. The result of a round is sent before the next one: the best homes that it found, those of its
# start included, or its last homes if the cooling continues.
Tasks = Generator[Task, IntArray, None]
