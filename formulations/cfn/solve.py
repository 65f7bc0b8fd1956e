"""A cost function network, by toulbar2."""

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.formulations.cfn.levels import Levels
from relocbench.formulations.cfn.network import Labels, Network, build
from relocbench.formulations.cfn.process import StuckError, search
from relocbench.formulations.incumbent import Incumbent, OutOfTimeError, slack
from relocbench.formulations.integer_scaling import lower_bound, scale_exponent, upper_limit
from relocbench.formulations.linearisation import linearise
from relocbench.formulations.local_search import descend
from relocbench.formulations.solvers.availability import require
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.solution import Progress, Solution

# toulbar2 takes costs as floats: whole numbers below 2^53 are exact.
MOST_BITS = 51
# The search round a minimum tries all swaps of two clients.
MOST_CLIENTS_TO_SWAP = 500
# Levels are split at the last homes of a search, not only at its minimum: fewer rounds for hardly more levels.
LAST_FOUND = 8
# The usual consistency is strong and, rarely, runs in circles; then plain arc consistency has to do.
OPTIONS: tuple[dict[str, Any], ...] = ({}, {"LcLevel": 1})


def solve(
    instance: Instance,
    *,
    seed: int,
    time_limit: float,
    start: npt.ArrayLike | None = None,
    on_progress: Progress | None = None,
    log: bool = False,
    levels: int = 4,
) -> Solution:
    """Solve the network of :mod:`formulations.cfn.network`, whose minimum is a lower bound, and cost its homes.

    If the bound does not meet the cost, the levels of ``θ`` are split at the shares of the homes found, for which the
    next network is then exact. That ends, as there are finitely many shares.

    Parameters
    ----------
    levels
        How many levels below ``θ = 1`` each server starts with.

    Raises
    ------
    RuntimeError
        If toulbar2 fails.
    """
    require("method cfn", "pytoulbar2")
    incumbent = Incumbent(instance, start, on_progress)
    run = _Run(incumbent, incumbent.begin + time_limit, seed, log)
    linear = linearise(instance)
    least = linear.least_distance_cost
    terms = linear.n_clients + len(linear.sender)
    several = Levels(linear, max(levels, 1))
    _improve(incumbent, incumbent.home)
    several.split(incumbent.home)
    excluded: list[IntArray] = []
    while time.perf_counter() < run.deadline:
        exponent = scale_exponent(slack(max(least, incumbent.bound)) / 4, terms, incumbent.cutoff, MOST_BITS)
        try:
            network, labels = build(linear, several, exponent, excluded, run.deadline)
        except OutOfTimeError:
            break
        run.facts["levels"] = float(several.count())
        found = run.minimise(network, labels, exponent)
        if not found or incumbent.proved:
            break
        _improve(incumbent, found[-1])
        if not several.split(found[-1]):
            excluded.append(found[-1])  # the levels are exact for these homes: what is off is the rounding
        for home in (*found[-LAST_FOUND:-1], incumbent.home):
            several.split(home)
    return incumbent.solution(False, run.facts)


def _improve(incumbent: Incumbent, home: IntArray) -> None:
    """Search round some homes: the closer the cut-off, the fewer levels matter."""
    if len(home) <= MOST_CLIENTS_TO_SWAP:
        incumbent.offer(descend(incumbent.instance, home))


class _Run:
    """What stays the same, or is counted, from one network to the next."""

    def __init__(self, incumbent: Incumbent, deadline: float, seed: int, log: bool) -> None:
        self.incumbent, self.deadline, self.seed, self.log = incumbent, deadline, seed, log
        self.facts = {"rounds": 0.0, "nodes": 0.0}
        self._options = list(OPTIONS)

    def minimise(self, network: Network, labels: Labels, exponent: int) -> list[IntArray]:
        """Return the homes found, the last a minimum; none if none is below the cut-off, or there was no time."""
        self.facts["rounds"] += 1
        self.facts["variables"] = float(len(network.domains))
        self.facts["constraints"] = float(len(network.functions) + len(network.rows))
        task = {
            "domains": network.domains,
            "functions": network.functions,
            "rows": network.rows,
            "limit": upper_limit(self.incumbent.cutoff, exponent) + 1,
            "seed": self.seed % 2**31,
        }
        while True:
            try:
                return self._follow(task | {"options": self._options[0]}, labels, exponent)
            except StuckError as error:
                self._options.pop(0)
                if not self._options:
                    raise RuntimeError(str(error)) from error

    def _follow(self, task: dict[str, Any], labels: Labels, exponent: int) -> list[IntArray]:
        incumbent, found = self.incumbent, []
        for event in search(task, self.deadline, self.log):
            if event.values is not None:
                found.append(labels.server[event.values[: incumbent.instance.n_clients]].astype(np.int32))
                incumbent.offer(found[-1])
            if event.bound is not None:
                # Homes that are excluded are no better than the best.
                incumbent.raise_bound_of_better(lower_bound(event.bound, exponent))
            if event.finished:
                self.facts["nodes"] += event.nodes
                if event.values is None:
                    incumbent.raise_bound(incumbent.cost)
                    return []
                return found
        return []
