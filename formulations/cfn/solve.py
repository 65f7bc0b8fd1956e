"""The method ``cfn``: a cost function network, solved with toulbar2 and refined until it is exact."""

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.formulations.cfn.levels import Levels
from relocbench.formulations.cfn.network import Labels, Network, build
from relocbench.formulations.cfn.process import StuckError, search
from relocbench.formulations.incumbent import Incumbent, OutOfTimeError, slack
from relocbench.formulations.integer_scaling import lower_bound, scale_exponent, upper_limit
from relocbench.formulations.local_search import descend
from relocbench.formulations.scaling import ScaledModel
from relocbench.formulations.solvers.availability import require
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.solution import Progress, Solution

# The number of bits of the total cost. toulbar2 takes costs as floats, which are exact for integers below 2^53.
MOST_BITS = 51
# The rounding error of the costs is small beside this share of the cost of the incumbent.
LEAST_SHARE_OF_COST = 0.1
# The local search swaps all pairs of clients, so it is omitted for instances with more clients than this.
MOST_CLIENTS_TO_SWAP = 500
# Levels are split at this many of the last homes of a search, and not only at its minimum. This needs fewer rounds and
# adds few levels.
LAST_FOUND = 8
# The options of toulbar2, in the order in which they are tried. The default consistency is strong, but on rare
# occasions its propagation does not terminate; then arc consistency is used.
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
    """Solve the network of :mod:`formulations.cfn.network`, whose minimum is a lower bound, and evaluate its homes.

    If the lower bound is below the cost of the homes found, the levels of ``θ`` are split at the shares of these homes,
    for which the next network is exact. This terminates, because there are finitely many shares.

    Parameters
    ----------
    instance, seed, time_limit
        As for every method. The time limit includes building the network.
    start
        The initial incumbent.
    on_progress
        Called with (seconds, incumbent, bound) whenever one of the last two improves.
    log
        Whether to print the output of toulbar2.
    levels
        The initial number of levels below ``θ = 1`` of each server.

    Returns
    -------
    Solution
        The best homes found and the lower bound.

    Raises
    ------
    RuntimeError
        If toulbar2 fails.
    """
    require("method cfn", "pytoulbar2")
    incumbent = Incumbent(instance, start, on_progress)
    run = _Run(incumbent, incumbent.begin + time_limit, seed, log)
    _improve(incumbent, incumbent.home)
    for scaled in incumbent.scaled_models():
        if not _solve_scaled(scaled, incumbent, run, max(levels, 1)):
            break
    return incumbent.solution(False, run.facts)


def _solve_scaled(scaled: ScaledModel, incumbent: Incumbent, run: "_Run", several_levels: int) -> bool:
    """Solve a scaled model; return whether it is worth to scale it again, because the incumbent is much better."""
    linear = scaled.linear
    least = linear.least_distance_cost
    terms = linear.n_clients + len(linear.sender)
    several = Levels(linear, several_levels)
    several.split(incumbent.home)
    excluded: list[IntArray] = []
    while time.perf_counter() < run.deadline:
        known = max(incumbent.bound, LEAST_SHARE_OF_COST * incumbent.cost)
        allowed = slack(max(least, scaled.to_model(known))) / 4
        cutoff = incumbent.model_cutoff
        exponent = scale_exponent(allowed, terms, cutoff, MOST_BITS)
        limit = upper_limit(cutoff, exponent) + 1
        try:
            network, labels = build(linear, several, exponent, limit, excluded, run.deadline)
        except OutOfTimeError:
            return False
        run.facts["levels"] = float(several.count())
        found = run.minimise(network, labels, exponent, limit)
        if not found or incumbent.proved:
            return False
        _improve(incumbent, found[-1])
        if incumbent.cost <= scaled.cost / 2:
            return True
        if not several.split(found[-1]):
            excluded.append(found[-1])  # the levels are exact for these homes, so only rounding causes the gap
        for home in (*found[-LAST_FOUND:-1], incumbent.home):
            several.split(home)
    return False


def _improve(incumbent: Incumbent, home: IntArray) -> None:
    """Improve homes by local search. A better cut-off makes more levels irrelevant."""
    if len(home) <= MOST_CLIENTS_TO_SWAP:
        incumbent.offer(descend(incumbent.instance, home))


class _Run:
    """The settings and the counters that all networks of a run share."""

    def __init__(self, incumbent: Incumbent, deadline: float, seed: int, log: bool) -> None:
        self.incumbent, self.deadline, self.seed, self.log = incumbent, deadline, seed, log
        self.facts = {"rounds": 0.0, "nodes": 0.0}
        self._options = list(OPTIONS)

    def minimise(self, network: Network, labels: Labels, exponent: int, limit: int) -> list[IntArray]:
        """Minimise a network below a limit on its cost. Return the homes found, the minimum last.

        The list is empty if no homes are below the cut-off or if the time limit was reached.
        """
        self.facts["rounds"] += 1
        self.facts["variables"] = float(len(network.domains))
        self.facts["constraints"] = float(len(network.functions) + len(network.rows))
        task = {
            "domains": network.domains,
            "functions": network.functions,
            "rows": network.rows,
            "limit": limit,
            "seed": self.seed % 2**31,
        }
        while True:
            try:
                return self._run_search(task | {"options": self._options[0]}, labels, exponent)
            except StuckError as error:
                self._options.pop(0)
                if not self._options:
                    raise RuntimeError(str(error)) from error

    def _run_search(self, task: dict[str, Any], labels: Labels, exponent: int) -> list[IntArray]:
        """Run toulbar2 once, and pass its solutions and lower bounds to the incumbent."""
        incumbent, found = self.incumbent, []
        for event in search(task, self.deadline, self.log):
            if event.values is not None:
                found.append(labels.server[event.values[: incumbent.instance.n_clients]].astype(np.int32))
                incumbent.offer(found[-1])
            if event.bound is not None:
                # The bound does not hold for excluded homes, but these are not better than the incumbent.
                incumbent.raise_model_bound_of_better(lower_bound(event.bound, exponent))
            if event.finished:
                self.facts["nodes"] += event.nodes
                if event.values is None:
                    incumbent.raise_bound(incumbent.cost)
                    return []
                return found
        return []
