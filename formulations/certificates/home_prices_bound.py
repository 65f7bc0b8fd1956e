"""The lower bound that prices of homes prove for a region, in integers; docs/certificates.md shows that it is one."""

from fractions import Fraction
from typing import Any

import numpy as np

from relocbench.formulations.certificates.certificate import HomePrices, check_bits
from relocbench.formulations.certificates.integer_problem import (
    BoolArray,
    IntegerProblem,
    Rounded,
    capped_product,
    floor_shift,
    integer_array,
)
from relocbench.formulations.certificates.packed_arrays import Int64Array, unpacked
from relocbench.formulations.certificates.region import Region
from relocbench.formulations.certificates.topic_search import PROFIT_BITS, ServerRanges, TopicSearch
from relocbench.instances.errors import InputError, shown

# The ends of the ranges of θ are in units of 2^-END_BITS.
END_BITS = 20
# The largest number of ends for each server.
MOST_ENDS = 256
# The compute load has several prices in turn: these tenths of the given one, and 0. The best price of a node is mostly
# below that of the root.
PRICE_TENTHS = (4, 6, 2)
# The bound is computed in a unit that is finer than that of the step by this many bits, so that rounding costs little.
FINER_BITS = 12
# Prices, messages and costs are at most 2^PROFIT_BITS units of the step. In the finer unit, the sums for a client with
# this number of edges fit into 63 bits.
MOST_EDGES = 1 << 9
# Edges are processed in blocks of about this number of pairs of labels.
ENTRIES = 1 << 16
# The part of a client's loss that a pair bears is in units of 2^-SHARE_BITS.
SHARE_BITS = 20


class HomePricesBound:
    """The lower bound that prices of homes prove for a region.

    Parameters
    ----------
    problem, region, step
        The instance, the region and the step. :class:`instances.errors.InputError` is raised if the step is not valid.

    Attributes
    ----------
    value
        No assignment of the region costs less than this if :meth:`check` passes.
    """

    def __init__(self, problem: IntegerProblem, region: Region, step: HomePrices) -> None:
        self._problem, self._region, self._bits = problem, region, step.bits
        servers, edges = problem.n_servers, len(problem.first)
        for name, bits in (("bits", step.bits), ("multiplier_bits", step.multiplier_bits)):
            check_bits(bits, name)
        self._price_bits = step.multiplier_bits + problem.load_bits
        if not 0 <= step.ranges <= MOST_ENDS:
            raise InputError("ranges", f"expected a number from 0 to {MOST_ENDS}, got {shown(step.ranges)}")
        if problem.degree > MOST_EDGES:
            expected = f"expected at most {MOST_EDGES} clients that exchange messages with a client"
            raise InputError("", f"{expected}, got {problem.degree}; such instances need a dual")
        self._memory = problem.size.problem_bytes + problem.region_memory
        self._memory += problem.size.home_prices_bytes(edges, step.ranges)
        problem.budget.check_memory(self._memory)
        self._messages = _read(step.messages, (edges, 2 * servers), "messages")
        self._prices = _read(step.prices, (problem.n_clients, 2 * servers), "prices")
        self._pair_prices = _read(step.pair_prices, (edges, 2 * servers), "pair_prices")
        if (self._pair_prices < 0).any():
            raise InputError("pair_prices", "expected numbers from 0")
        self._least = _read(step.least, (servers,), "least")
        self._range_ends = unpacked(step.ends, (servers, step.ranges), "ends")
        self._load_price = unpacked(step.beta, (servers, step.ranges + 2), "beta")
        if (self._load_price < 0).any():
            raise InputError("beta", "expected numbers from 0")
        if ((self._range_ends < 0) | (self._range_ends > 1 << END_BITS)).any() or (
            np.diff(self._range_ends, axis=1) > 0
        ).any():
            raise InputError("ends", f"expected numbers from 2^{END_BITS} down to 0 for each server")
        total = self._labelling() + (sum(self._least.tolist()) << FINER_BITS)
        self.value = total * Fraction(2) ** -(step.bits + FINER_BITS)

    def _labelling(self) -> int:
        """Return the sum of the least label costs of the clients, in the finer unit."""
        problem = self._problem
        unit, most = self._bits + FINER_BITS, 1 << (PROFIT_BITS + FINER_BITS)
        distance = capped_product(problem.weight[:, None], problem.distance, unit, most)
        detour = problem.detour * Fraction(2) ** unit
        delegated = np.array([min(int(detour * f), most) for f in problem.publications.tolist()], np.int64)
        cost = np.hstack([distance, distance + delegated[:, None]]) + (self._prices << FINER_BITS)
        allowed = np.tile(self._region.allowed, 2)
        infinite = np.iinfo(np.int64).max
        forward, backward = self._edge_weights()
        servers = problem.n_servers
        same = np.arange(2 * servers)
        size = max(1, ENTRIES // (4 * servers**2))
        for begin in range(0, len(problem.first), size):
            problem.budget.check_time()
            edges = slice(begin, begin + size)
            first, second = problem.first[edges], problem.second[edges]
            given = self._messages[edges] << FINER_BITS
            sent = capped_product(forward[edges], problem.between[None], unit, most)
            received = capped_product(backward[edges], problem.between[None], unit, most).transpose(0, 2, 1)
            pair = np.zeros((len(first), 2, servers, 2, servers), np.int64)
            pair[:, 0] += sent[:, :, None, :]
            pair[:, :, :, 0] += received[:, None]
            rest = pair.reshape(len(first), 2 * servers, 2 * servers) - given[:, :, None]
            rest[:, same, same] += self._pair_prices[edges] << FINER_BITS
            # The clients of a server are all processed there, or all delegated.
            rest[:, same, (same + servers) % (2 * servers)] = infinite
            to_second = np.where(allowed[first][:, :, None], rest, infinite).min(axis=1)
            np.add.at(cost, first, given)
            np.add.at(cost, second, to_second)
        return sum(np.where(allowed, cost, infinite).min(axis=1).tolist())

    def _edge_weights(self) -> tuple[Rounded, Rounded]:
        """Return ``W[i,j]`` and ``W[j,i]`` of each edge ``i < j``, rounded down, as columns."""
        problem = self._problem
        low, high = np.minimum(problem.sender, problem.receiver), np.maximum(problem.sender, problem.receiver)
        clients = problem.n_clients
        edge = np.searchsorted(problem.first * clients + problem.second, low * clients + high)
        weights = []
        for sends in (problem.sender < problem.receiver, problem.sender > problem.receiver):
            mantissa, exponent = np.zeros((2, len(problem.first), 1, 1), np.int64)
            mantissa[edge[sends], 0, 0] = problem.sent_least.mantissa[sends]
            exponent[edge[sends], 0, 0] = problem.sent_least.exponent[sends]
            weights.append(Rounded(mantissa, exponent))
        return weights[0], weights[1]

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
        for l in range(self._problem.n_servers):
            search = TopicSearch(self._server(l), self._problem.budget, self._memory)
            if search.profit_above(-int(self._least[l])):
                raise InputError(f"least[{l}]", "expected at most the value of every content, but one may be less")
            nodes += search.nodes
        return nodes

    def _server(self, l: int) -> ServerRanges:
        """Return the problem of a server: its contents earn the prices of the labels."""
        problem = self._problem
        one = 1 << END_BITS
        ends = [one]
        if sum(problem.spool) > problem.storage_capacity[l] or sum(problem.demand) > problem.compute_capacity[l]:
            ends += [*self._range_ends[l].tolist(), 0]
        pairs, allowed = self._possible_pairs(l), self._region.allowed[:, l]
        local, delegated = (
            np.concatenate([self._prices[:, label], self._pair_prices[pairs, label]])
            for label in (l, problem.n_servers + l)
        )
        # The difference has at most PROFIT_BITS + 1 bits, its product with a share at most 62.
        lost = local - delegated
        profits, storage, compute = [], [], []
        for low, high in zip(ends, [one, *ends[:-1]], strict=True):
            # What delegation costs is linear in θ, so it is least at an end of the range.
            costs = [((one - end) * lost) >> END_BITS for end in (low, high)]
            profits.append(local - np.minimum(*costs))
            storage.append(_limit(problem.storage_capacity[l], low, sum(problem.spool)))
            compute.append(_limit(problem.compute_capacity[l], low, sum(problem.demand)))
        worth, refund = self._after_payments(l, np.array(profits), compute, allowed, pairs)
        demand = np.concatenate([problem.demand, np.zeros(len(pairs), object)])
        items = self._topics_of_items(pairs)
        return ServerRanges(worth, storage, compute, problem.spool, demand, *items, refund)

    def _possible_pairs(self, l: int) -> Int64Array:
        """List the edges with a price at a server that both clients may have as their home."""
        problem, allowed = self._problem, self._region.allowed[:, l]
        priced = self._pair_prices[:, l] + self._pair_prices[:, problem.n_servers + l] > 0
        return np.flatnonzero(priced & allowed[problem.first] & allowed[problem.second])

    def _after_payments(
        self, l: int, profit: Int64Array, limit: list[int], allowed: BoolArray, pairs: Int64Array
    ) -> tuple[Int64Array, Int64Array]:
        """Return what is left of all profits when the clients pay for compute, and what they pay together at most.

        A client that pays more than its profit has a loss, and is in a content for the sake of its pairs. Each pair
        bears a part of the loss, in proportion to its profit. A content with some of these pairs has the whole loss.
        """
        problem, clients = self._problem, self._problem.n_clients
        shape = len(PRICE_TENTHS) + 1, *profit.shape
        worth, refund = np.zeros(shape, np.int64), np.zeros(shape[:2], np.int64)
        of_clients, earned = np.where(allowed, profit[:, :clients], 0), profit[:, clients:]
        ends = problem.first[pairs], problem.second[pairs]
        total = np.zeros((len(profit), clients), np.int64)
        for end in ends:
            np.add.at(total.T, end, earned.T)
        shares = [(earned << SHARE_BITS) // np.maximum(total[:, end], 1) for end in ends]
        for which, tenths in enumerate((*PRICE_TENTHS, 0)):
            paid = np.zeros((len(profit), clients), np.int64)
            for k, most in enumerate(limit):
                beta = int(self._load_price[l, k]) * tenths // 10
                # Rounded up.
                together = -self._priced(integer_array([-beta * most]))[0]
                # A limit that costs more than all profits is of no use.
                if together < int(np.maximum(profit[k], 0).sum()):
                    paid[k] = np.minimum(self._priced(beta * problem.demand), 1 << PROFIT_BITS).astype(np.int64)
                    refund[which, k] = together
            rest = np.where(allowed, of_clients - paid, 0)
            # A loss has at most PROFIT_BITS + 2 bits, so the product with a share fits 63 bits.
            loss = np.maximum(-rest, 0)
            of_pairs = earned.copy()
            for end, share in zip(ends, shares, strict=True):
                of_pairs -= (loss[:, end] * share) >> SHARE_BITS
            worth[which] = np.maximum(np.hstack([rest, of_pairs]), 0)
        return worth, refund

    def _topics_of_items(self, pairs: Int64Array) -> tuple[Int64Array, Int64Array]:
        """List the topics that each client publishes to, and for each pair those of both clients, by item."""
        problem = self._problem
        start = np.searchsorted(problem.publisher_client, np.arange(problem.n_clients + 1))
        items, topics = [problem.publisher_client], [problem.publisher_topic]
        for index, pair in enumerate(pairs.tolist()):
            if index % 1000 == 0:
                problem.budget.check_time()
            ends = problem.first[pair], problem.second[pair]
            found = np.union1d(*(problem.publisher_topic[start[end] : start[end + 1]] for end in ends))
            items.append(np.full(len(found), problem.n_clients + index))
            topics.append(found)
        return np.concatenate(items), np.concatenate(topics)

    def _priced(self, products: Any) -> Any:
        """Convert products of multiplier and load (Python integers) to the unit of the step, rounded down."""
        return floor_shift(products, np.array(self._bits - self._price_bits))


def _limit(capacity: int, theta: int, total: int) -> int:
    """Return the largest load with at least this ``θ``, but no more than all loads."""
    return min((capacity << END_BITS) // theta, total) if theta else total


def _read(given: Any, shape: tuple[int, ...], label: str) -> Int64Array:
    """Read an array of a step whose numbers have at most ``PROFIT_BITS`` bits."""
    values = unpacked(given, shape, label)
    wrong = (values < -(1 << PROFIT_BITS)) | (values > 1 << PROFIT_BITS)
    if wrong.any():
        where = int(wrong.ravel().argmax())
        wanted = f"expected a number from -2^{PROFIT_BITS} to 2^{PROFIT_BITS}"
        raise InputError(f"{label}[{where}]", f"{wanted}, got {values.ravel()[where]}")
    return values
