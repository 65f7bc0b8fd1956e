"""The lower bound that prices of homes prove for a region, in integers; docs/certificates.md shows that it is one."""

from fractions import Fraction

import numpy as np

from relocbench.formulations.certificates.certificate import Dual, HomePrices
from relocbench.formulations.certificates.exact_bound import DualBound
from relocbench.formulations.certificates.integer_problem import IntegerArray, IntegerProblem
from relocbench.formulations.certificates.packed_arrays import Int64Array, Packed, unpacked
from relocbench.formulations.certificates.region import Region, propagated, restricted
from relocbench.formulations.certificates.topic_search import PROFIT_BITS, ServerRanges, TopicSearch
from relocbench.instances.errors import InputError, shown

# The ends of the ranges of θ are in units of 2^-END_BITS.
END_BITS = 20
# The largest number of ends for each server.
MOST_ENDS = 256
# The compute load has several prices in turn: these tenths of the given one, and 0. The best price of a node is mostly
# below that of the root.
PRICE_TENTHS = (4, 6, 2)


class HomePricesBound(DualBound):
    """The lower bound that prices of homes prove for a region.

    Parameters
    ----------
    problem, region, step
        The instance, the region and the step. :class:`instances.errors.InputError` is raised if the step is not valid.

    Attributes
    ----------
    total
        No assignment of the region costs less than this, in units of ``2^-unit``, if :meth:`check` passes.
    """

    def __init__(self, problem: IntegerProblem, region: Region, step: HomePrices) -> None:
        servers = problem.n_servers
        if not 0 <= step.ranges <= MOST_ENDS:
            raise InputError("ranges", f"expected a number from 0 to {MOST_ENDS}, got {shown(step.ranges)}")
        problem.budget.check_memory(
            problem.size.problem_bytes
            + problem.region_memory
            + problem.size.dual_bytes(0)
            + 40 * servers * (problem.n_clients + 2 * MOST_ENDS)
        )
        self._prices = unpacked(step.prices, (problem.n_clients, servers), "prices")
        self._bottom = unpacked(step.least, (servers,), "least")
        self._range_ends = unpacked(step.ends, (servers, step.ranges), "ends")
        self._load_price = unpacked(step.beta, (servers, step.ranges + 2), "beta")
        _check_size(self._prices, "prices")
        _check_size(self._bottom, "least")
        if (self._load_price < 0).any():
            raise InputError("beta", "expected numbers from 0")
        if ((self._range_ends < 0) | (self._range_ends > 1 << END_BITS)).any() or (
            np.diff(self._range_ends, axis=1) > 0
        ).any():
            raise InputError("ends", f"expected numbers from 2^{END_BITS} down to 0 for each server")
        nothing = (0,) * servers
        dual = Dual(
            bits=step.bits,
            multiplier_bits=step.multiplier_bits,
            fix=step.fix,
            alpha=nothing,
            beta=nothing,
            hard=nothing,
            active=step.active,
            messages=step.messages,
            shares=Packed(0, b""),
        )
        super().__init__(problem, region, dual)

    def _largest_charge(self) -> int:
        return int(np.abs(self._prices).max(initial=0))

    def _charges(self) -> tuple[IntegerArray, int]:
        """Return the prices, and the sum of what each server's contents are at least worth."""
        finer = self.unit - self._dual.bits
        return self._prices.astype(object) << finer, sum(self._bottom.tolist()) << finer

    def check(self) -> int:
        """Check that no content of a server is worth less than its limit.

        Returns
        -------
        int
            The number of nodes of the search.

        Raises
        ------
        InputError
            If a content may be worth less, or it cannot be found out within the budget.
        """
        nodes = 0
        memory = self._problem.size.problem_bytes + self._problem.region_memory + 400 * self._prices.size
        for l in range(self._problem.n_servers):
            search = TopicSearch(self._server(l), self._problem.budget, memory)
            if search.profit_above(-int(self._bottom[l])):
                raise InputError(f"least[{l}]", "expected at most the value of every content, but one may be less")
            nodes += search.nodes
        return nodes

    def _server(self, l: int) -> ServerRanges:
        """Return the problem of a server: its contents earn the prices and pay for delegation."""
        problem, bits = self._problem, self._dual.bits
        remote = self._delegation_cost(l)
        one = 1 << END_BITS
        ends = [one]
        if sum(problem.spool) > problem.storage_capacity[l] or sum(problem.demand) > problem.compute_capacity[l]:
            ends += [*self._range_ends[l].tolist(), 0]
        allowed = self._region.allowed[:, l]
        profits, storage, compute = [], [], []
        for low, high in zip(ends, [one, *ends[:-1]], strict=True):
            # The cost of delegation is linear in θ, so it is least at an end of the range.
            costs = [((one - end) * remote) >> (END_BITS + self.unit - bits) for end in (low, high)]
            profit = self._prices[:, l].astype(object) - np.minimum(*costs)
            profits.append(np.where(allowed, np.maximum(profit, 0), 0))
            storage.append(_limit(problem.storage_capacity[l], low, sum(problem.spool)))
            compute.append(_limit(problem.compute_capacity[l], low, sum(problem.demand)))
        profit = _int64(np.array(profits), "prices")
        payment, refund = self._payments(l, profit, compute)
        return ServerRanges(
            profit,
            storage,
            compute,
            problem.spool,
            problem.demand,
            problem.publisher_client,
            problem.publisher_topic,
            payment,
            refund,
        )

    def _payments(self, l: int, profit: Int64Array, limit: list[int]) -> tuple[Int64Array, Int64Array]:
        """Return what each client pays for its compute load, and what all clients within the limit pay at most."""
        shape = len(PRICE_TENTHS) + 1, *profit.shape
        payment, refund = np.zeros(shape, np.int64), np.zeros(shape[:2], np.int64)
        for which, tenths in enumerate(PRICE_TENTHS):
            for k, most in enumerate(limit):
                beta = int(self._load_price[l, k]) * tenths // 10
                total = self._priced(beta * most, self._dual.bits, upwards=True)
                # A limit that costs more than all profits is of no use.
                if total < int(profit[k].sum()):
                    paid = self._priced(beta * self._problem.demand, self._dual.bits)
                    payment[which, k] = np.minimum(paid, profit[k].astype(object)).astype(np.int64)
                    refund[which, k] = total
        return payment, refund


def apply_home_prices(
    problem: IntegerProblem, region: Region, step: HomePrices, claim: Fraction
) -> tuple[Fraction, Region | None]:
    """Apply a step with prices of homes to a region.

    Parameters
    ----------
    problem, region, step
        The instance, the region and the step.
    claim
        The bound to prove.

    Returns
    -------
    value
        The bound that the prices prove.
    rest
        The region that remains to be proved; None if the claim is proved for the whole region.
    """
    bound = HomePricesBound(problem, region, step)
    if bound.value < claim and not step.fix:
        return bound.value, region
    bound.check()
    if bound.value >= claim:
        return bound.value, None
    return bound.value, propagated(problem, restricted(problem, region, ~bound.forbidden(claim)))


def _limit(capacity: int, theta: int, total: int) -> int:
    """Return the largest load with at least this ``θ``, but no more than all loads."""
    return min((capacity << END_BITS) // theta, total) if theta else total


def _int64(values: IntegerArray, label: str) -> Int64Array:
    if values.size and values.max() >= 1 << PROFIT_BITS:
        raise InputError(label, f"expected profits below 2^{PROFIT_BITS}")
    return values.astype(np.int64)


def _check_size(values: Int64Array, label: str) -> None:
    wrong = (values < -(1 << PROFIT_BITS)) | (values > 1 << PROFIT_BITS)
    if wrong.any():
        where = int(wrong.ravel().argmax())
        wanted = f"expected a number from -2^{PROFIT_BITS} to 2^{PROFIT_BITS}"
        raise InputError(f"{label}[{where}]", f"{wanted}, got {values.ravel()[where]}")
