"""The lower bound that a contents step proves for a region, in integers; docs/certificates.md shows that it is one."""

from fractions import Fraction

import numpy as np

from relocbench.formulations.certificates.certificate import Contents, check_bits
from relocbench.formulations.certificates.integer_problem import (
    IntegerProblem,
    Rounded,
    capped_product,
)
from relocbench.formulations.certificates.least_content import VALUE_BITS, ContentValues, ServerLoads, content_below
from relocbench.formulations.certificates.packed_arrays import Int64Array, unpacked
from relocbench.formulations.certificates.region import Region
from relocbench.instances.errors import InputError

# Costs are cut off so that those of all clients, and those of all pairs, sum to at most 2^COST_BITS.
COST_BITS = VALUE_BITS - 4
# The largest number of clients, and of pairs of clients of which one sends to the other. Sums of so many prices fit 64
# bits.
MOST_PAIRS = 1 << 15


class ContentBound:
    """The lower bound that a contents step proves for a region.

    Parameters
    ----------
    problem, region, step
        The instance, the region and the step. :class:`instances.errors.InputError` is raised if the step is not valid.

    Attributes
    ----------
    value
        No assignment of the region costs less than this if :meth:`check` finds no content below its limit.
    """

    def __init__(self, problem: IntegerProblem, region: Region, step: Contents) -> None:
        self._problem, self._region = problem, region
        servers, pairs = problem.n_servers, len(problem.sender)
        check_bits(step.bits, "bits")
        if max(pairs, problem.n_clients) > MOST_PAIRS:
            problem_text = f"expected at most {MOST_PAIRS} clients and pairs of clients that exchange messages"
            raise InputError("", f"{problem_text}, got {problem.n_clients} and {pairs}; larger instances need a dual")
        self._memory = problem.size.problem_bytes + problem.region_memory + problem.size.contents_bytes(pairs)
        problem.budget.check_memory(self._memory)
        self._client_price = unpacked(step.client_prices, (problem.n_clients,), "client_prices")
        self._pair_price = unpacked(step.pair_prices, (pairs, servers), "pair_prices")
        self._least = unpacked(step.least, (servers,), "least")
        _check_prices(self._client_price, 1 - (1 << VALUE_BITS), "client_prices")
        _check_prices(self._pair_price.ravel(), 0, "pair_prices")
        self.value = (sum(self._client_price.tolist()) + sum(self._least.tolist())) * Fraction(2) ** -step.bits

        order = np.lexsort((problem.receiver, problem.sender))
        self._sender, self._receiver = problem.sender[order], problem.receiver[order]
        most = (1 << COST_BITS) // max(problem.n_clients, 1)
        self._distance = capped_product(problem.weight[:, None], problem.distance, step.bits, most)
        detour = problem.detour * Fraction(2) ** step.bits
        self._detour = np.array([min(int(detour * f), most) for f in problem.publications.tolist()], np.int64)
        weight = problem.sent_least[order]
        weight = Rounded(weight.mantissa[:, None], weight.exponent[:, None])
        self._weight, self._bits, self._most_pair = weight, step.bits, (1 << COST_BITS) // max(pairs, 1)

    def check(self) -> None:
        """Check that every content of every server has at least its limit.

        Raises
        ------
        InputError
            If a content is below, or it cannot be found out within the budget.
        """
        problem, allowed = self._problem, self._region.allowed
        single = allowed.sum(axis=1) == 1
        for l in range(problem.n_servers):
            loads = ServerLoads(
                problem.storage_capacity[l],
                problem.compute_capacity[l],
                problem.spool,
                problem.publisher_client,
                problem.publisher_topic,
            )
            required, threshold = allowed[:, l] & single, int(self._least[l])
            try:
                found = content_below(
                    loads, self.values(l), required, allowed[:, l], threshold, problem.budget, self._memory
                )
            except InputError as error:
                raise error.inside(f"server {l}") from error
            if found is not None:
                clients = ", ".join(map(str, found[:10].tolist())) + (", …" if len(found) > 10 else "")
                problem_text = f"expected at most the value of every content, but that of clients [{clients}] is less"
                raise InputError(f"least[{l}]", problem_text)

    def values(self, server: int) -> ContentValues:
        """Return the values of the contents of a server.

        Parameters
        ----------
        server
            The server.

        Returns
        -------
        ContentValues
            The coefficients that docs/certificates.md defines.
        """
        problem, sender, receiver = self._problem, self._sender, self._receiver
        sent = capped_product(self._weight, problem.between[server], self._bits, self._most_pair) + self._pair_price
        # What a message to another server costs at least; a receiver without another home is always here.
        elsewhere = self._region.allowed[receiver].copy()
        elsewhere[:, server] = False
        least_sent = np.where(elsewhere, sent, np.iinfo(np.int64).max).min(axis=1)
        least_sent[~elsewhere.any(axis=1)] = 0
        received = self._pair_price[:, server]
        fixed, local = self._distance[:, server] - self._client_price + self._detour, -self._detour
        np.subtract.at(fixed, receiver, received)
        np.add.at(local, sender, least_sent)
        first, second, where = self._edges()
        pair_fixed, pair_local = np.zeros((2, len(first)), np.int64)
        np.add.at(pair_fixed, where, received)
        np.subtract.at(pair_local, where, least_sent)
        return ContentValues(fixed, local, first, second, pair_fixed, pair_local)

    def _edges(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Return the pairs without a direction, and the index of each directed pair among them."""
        clients = self._problem.n_clients
        key = np.minimum(self._sender, self._receiver) * clients + np.maximum(self._sender, self._receiver)
        edges, where = np.unique(key, return_inverse=True)
        return edges // clients, edges % clients, where


def _check_prices(prices: Int64Array, least: int, label: str) -> None:
    wrong = (prices < least) | (prices >= 1 << VALUE_BITS)
    if wrong.any():
        where = int(wrong.argmax())
        wanted = f"expected a number from {'0' if least == 0 else f'-2^{VALUE_BITS}'} to 2^{VALUE_BITS}"
        raise InputError(f"{label}[{where}]", f"{wanted}, got {prices[where]}")
