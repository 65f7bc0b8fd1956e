"""The problem in integers, for the verifier: loads are exact, costs are rounded down.

This module reads the fields of an instance only. It shares no code with the evaluator or the solvers, so that an error
of theirs cannot hide itself.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.formulations.certificates.budget import Budget, Size
from relocbench.formulations.certificates.packed_arrays import Int64Array
from relocbench.instances.errors import InputError
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, Ragged

BoolArray = npt.NDArray[np.bool_]
# An array of int64, or of Python integers (dtype object) where 64 bits may be too few.
IntegerArray = npt.NDArray[Any]

# Weights are sums of 1/|R| in units of 2^-WEIGHT_BITS, each rounded down.
WEIGHT_BITS = 40
# Bits of a rounded weight and of a rounded delay: their product fits into 64 bits.
WEIGHT_MANTISSA = 29
DELAY_MANTISSA = 33
# Delays whose exponents differ by no more than this are rounded in one unit.
NEAR_BITS = 10
# An exponent below that of every float, for arrays without a number above 0.
NO_EXPONENT = -5000
# The largest instance that the verifier accepts: publications, and pairs of publisher and subscriber.
MOST_PUBLICATIONS = 1 << 20
MOST_PAIRS = 1 << 25


@dataclass(frozen=True, eq=False)
class Rounded:
    """Non-negative numbers, rounded to ``mantissa·2^exponent``.

    Attributes
    ----------
    mantissa
        The mantissas.
    exponent
        One exponent per number, or a single one for all.
    """

    mantissa: Int64Array
    exponent: Int64Array

    @property
    def bits(self) -> int:
        """All numbers are below ``2^bits``."""
        return int((self.exponent + bit_length(self.mantissa)).max(initial=NO_EXPONENT, where=self.mantissa > 0))

    def __getitem__(self, place: Any) -> "Rounded":
        """Return some of the numbers."""
        has_one_exponent = self.exponent.size == 1
        return Rounded(self.mantissa[place], self.exponent.ravel() if has_one_exponent else self.exponent[place])


def rounded_weights(values: Int64Array, upwards: bool = False) -> Rounded:
    """Round weights.

    Parameters
    ----------
    values
        Integers in units of ``2^-40``.
    upwards
        Whether to round up instead of down.

    Returns
    -------
    Rounded
        The rounded weights.
    """
    cut = np.maximum(bit_length(values) - WEIGHT_MANTISSA, 0)
    return Rounded(-(-values >> cut) if upwards else values >> cut, cut - WEIGHT_BITS)


def rounded_delays(values: FloatArray, upwards: bool = False, one_unit: bool = True) -> Rounded:
    """Round delays, each in its own unit, or all in one unit if they have similar sizes.

    Parameters
    ----------
    values
        The delays.
    upwards
        Whether to round up instead of down.
    one_unit
        Whether all delays may have one unit. Then how a delay is rounded depends on the others.

    Returns
    -------
    Rounded
        The rounded delays.
    """
    mantissa, exponent = np.frexp(values)
    rounding = np.ceil if upwards else np.floor
    integers = rounding(np.ldexp(mantissa, DELAY_MANTISSA)).astype(np.int64)
    exponents = exponent.astype(np.int64) - DELAY_MANTISSA
    positive = integers > 0
    least = exponents.min(initial=-NO_EXPONENT, where=positive)
    most = exponents.max(initial=NO_EXPONENT, where=positive)
    if not one_unit or most - least > NEAR_BITS:
        return Rounded(integers, exponents)
    common = np.full((1,) * values.ndim, max(most, NO_EXPONENT), np.int64)
    cut = np.clip(common - exponents, 0, 63)
    return Rounded(-(-integers >> cut) if upwards else integers >> cut, common)


def floor_shift(values: IntegerArray, by: Int64Array) -> IntegerArray:
    """Compute ``⌊values·2^by⌋``.

    Parameters
    ----------
    values
        Integers; the caller ensures that the result fits into their type.
    by
        The exponents, of any sign.

    Returns
    -------
    IntegerArray
        The shifted values.
    """
    if values.dtype == object:
        up, down = np.maximum(by, 0).astype(object), np.maximum(-by, 0).astype(object)
        long: IntegerArray = (values << up) >> down
        return long
    if by.size and by.max() > 0:
        values = values << np.clip(by, 0, 63)
    shifted: IntegerArray = values >> np.clip(-by, 0, 63)
    return shifted


def capped_product(one: Rounded, other: Rounded, unit: int, most: int) -> Int64Array:
    """Multiply non-negative numbers.

    Parameters
    ----------
    one, other
        The factors.
    unit
        The products are in units of ``2^-unit``, rounded down.
    most
        Products above this are replaced by it.

    Returns
    -------
    Int64Array
        The products.
    """
    mantissa = one.mantissa * other.mantissa
    by = one.exponent + other.exponent + unit
    fits = bit_length(mantissa) + by <= 62
    values: Int64Array = np.where(fits, floor_shift(mantissa, np.where(fits, by, 0)), most)
    return np.where(mantissa > 0, np.minimum(values, most), 0)


def exact_integers(*columns: FloatArray) -> tuple[list[IntegerArray], int]:
    """Convert floats to integers in one common unit, without rounding.

    Parameters
    ----------
    *columns
        Arrays of floats.

    Returns
    -------
    integers
        One array of Python integers for each column, in units of ``2^-bits``.
    bits
        The unit.
    """
    ratios = [[float(value).as_integer_ratio() for value in column] for column in columns]
    bits = max((below.bit_length() - 1 for column in ratios for _, below in column), default=0)
    return [
        integer_array([above << bits - below.bit_length() + 1 for above, below in column]) for column in ratios
    ], bits


def integer_array(values: list[int]) -> IntegerArray:
    """Create an array of Python integers.

    Parameters
    ----------
    values
        The integers.

    Returns
    -------
    IntegerArray
        An array of dtype object.
    """
    array = np.empty(len(values), object)
    array[:] = values
    return array


def client_delay(instance: Instance, client: Any, server: Any) -> FloatArray:
    """Return ``dH``: the given delays, or the float64 value of ``γ·√(dx² + dy²)`` under IEEE 754.

    Parameters
    ----------
    instance
        The instance.
    client, server
        Indices, of any shapes that numpy can combine.

    Returns
    -------
    FloatArray
        The delays.
    """
    if instance.client_server_delay is not None:
        return np.asarray(instance.client_server_delay[client, server], np.float64)
    dx = instance.client_x[client] - instance.server_x[server]
    dy = instance.client_y[client] - instance.server_y[server]
    return np.asarray(instance.delay_per_km * np.sqrt(dx * dx + dy * dy), np.float64)


def server_delay(instance: Instance) -> FloatArray:
    """Return ``dS``: the given delays, or the float64 value of ``γ·√(dx² + dy²)`` under IEEE 754.

    Parameters
    ----------
    instance
        The instance.

    Returns
    -------
    FloatArray
        The delays (``L×L``).
    """
    if instance.server_server_delay is not None:
        return np.asarray(instance.server_server_delay, np.float64)
    dx = instance.server_x[:, None] - instance.server_x[None, :]
    dy = instance.server_y[:, None] - instance.server_y[None, :]
    return np.asarray(instance.delay_per_km * np.sqrt(dx * dx + dy * dy), np.float64)


@dataclass(frozen=True, eq=False)
class AddedCosts:
    """Costs of any sign that homes have in addition to their delays, without rounding.

    Attributes
    ----------
    integers
        One number for each client and server (``M×L``), as Python integers.
    factor
        The costs are the integers times this number.
    """

    integers: IntegerArray
    factor: Fraction

    def rounded_down(self, unit: int) -> IntegerArray:
        """Return the costs in a unit, rounded down.

        Parameters
        ----------
        unit
            The costs are in units of ``2^-unit``.

        Returns
        -------
        IntegerArray
            The costs (``M×L``), as Python integers.
        """
        factor = self.factor * Fraction(2) ** unit
        scaled: IntegerArray = self.integers * factor.numerator // factor.denominator
        return scaled

    def largest(self, unit: int) -> int:
        """Return an upper bound on the size of all rounded costs.

        Parameters
        ----------
        unit
            The costs are in units of ``2^-unit``.

        Returns
        -------
        int
            The upper bound.
        """
        return math.ceil(int(abs(self.integers).max()) * self.factor * Fraction(2) ** unit) + 1


class IntegerProblem:
    """An instance in integers; the symbols are those of docs/formulations.md.

    Parameters
    ----------
    instance
        The instance. :class:`instances.errors.InputError` is raised if it is too large for the verifier.
    delay_cap, cloud_cap
        Every ``dH`` and ``dS`` above ``2^delay_cap``, and ``dC`` above ``2^cloud_cap``, is replaced by that.
    budget
        The limits of the verification.
    added
        Costs of homes in addition to the delays; None if there are none.

    Attributes
    ----------
    storage_capacity, compute_capacity, demand, spool
        ``A, B, U, u`` without rounding, in units of ``2^-load_bits``; ``u`` is 0 for topics without a publisher.
    publisher_client, publisher_topic
        The pairs of a client and a loading topic (one with a publisher and a spool above 0) that it publishes to, by
        client, then by topic.
    publications
        ``f``.
    weight, distance, between
        ``w`` (``M``), ``dH`` (``M×L``) and ``dS`` (``L×L``), rounded down.
    server_delay
        ``dS`` without rounding, capped.
    first, second
        The edges: pairs of clients ``i < j`` of which at least one sends to the other, in lexicographic order.
    edge_weights
        ``W[i,j]`` and ``W[j,i]`` of the edges, rounded down; only their sums if ``dS`` is symmetric.
    sender, receiver, sent, sent_least
        The pairs with ``W[sender, receiver] > 0``, and these ``W`` rounded up and down.
    degree
        The largest number of edges of a client.
    detour
        ``2·dC``.
    """

    def __init__(
        self,
        instance: Instance,
        delay_cap: int | None = None,
        cloud_cap: int | None = None,
        budget: Budget | None = None,
        added: AddedCosts | None = None,
    ) -> None:
        self.instance, self.added = instance, added
        self.budget = Budget() if budget is None else budget
        self.n_clients, self.n_servers, self.n_topics = instance.n_clients, instance.n_servers, instance.n_topics
        publishing, subscribing = instance.publishers, instance.subscribers
        self.size = check_size(instance)
        # The bytes of all open regions.
        self.region_memory = 3 * self.size.region_bytes
        self.budget.check_memory(self.size.problem_bytes + self.region_memory)
        spool = np.where(publishing.sizes > 0, instance.spool, 0.0)
        (self.storage_capacity, self.compute_capacity, self.spool), self.load_bits = exact_integers(
            instance.storage_capacity, instance.compute_capacity, spool
        )
        client, topic = publishing.item.astype(np.int64), publishing.owner().astype(np.int64)
        loading = spool[topic] > 0
        client, topic = client[loading], topic[loading]
        order = np.lexsort((topic, client))
        self.publisher_client, self.publisher_topic = client[order], topic[order]
        self._publishing, self._client_start = np.unique(self.publisher_client, return_index=True)
        self._by_topic = np.argsort(self.publisher_topic, kind="stable")
        self._loading, self._topic_start = np.unique(self.publisher_topic[self._by_topic], return_index=True)
        spools = self.spool[self.publisher_topic]
        self._publisher_spool = spools.astype(np.int64) if sum(spools) < 1 << 62 else spools
        self.demand = self.topic_sums(np.ones(self.n_topics, np.bool_))

        self.detour = 2 * Fraction(float(_capped(instance.cloud_delay, cloud_cap)))
        self.server_delay = _capped(server_delay(instance), delay_cap)
        self.between = rounded_delays(self.server_delay)
        every = np.arange(self.n_clients)[:, None], np.arange(self.n_servers)[None, :]
        self.distance = rounded_delays(_capped(client_delay(instance, *every), delay_cap))
        self._compute_weights(publishing, subscribing)

    def _compute_weights(self, publishing: Ragged, subscribing: Ragged) -> None:
        """Compute ``f``, ``w`` and ``W``."""
        clients = self.n_clients
        publications, received = np.zeros(clients, np.int64), np.zeros(clients, np.int64)
        keys, values = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for publishers, subscribers in zip(publishing, subscribing, strict=True):
            self.budget.check_time()
            sender, receiver = publishers.astype(np.int64), subscribers.astype(np.int64)
            receivers = len(receiver) - np.isin(sender, receiver)
            sender, receivers = sender[receivers > 0], receivers[receivers > 0]
            share = (1 << WEIGHT_BITS) // receivers
            publications[sender] += 1
            # The sum is rounded, not its terms: if all members of a topic publish, it is then exactly an integer.
            sizes, counts = np.unique(receivers, return_counts=True)
            own = np.zeros(clients, np.int64)
            own[sender] = receivers
            for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
                others = count - (own[receiver] == size)
                received[receiver] += (others << WEIGHT_BITS) // size
            key = (sender[:, None] * clients + receiver[None, :]).ravel()
            keys.append(key)
            values.append(np.repeat(share, len(receiver)))
        self.publications = publications
        self.weight = rounded_weights((publications << WEIGHT_BITS) + received)

        key, value = np.concatenate(keys), np.concatenate(values)
        sender, receiver = key // clients, key % clients
        key = np.minimum(sender, receiver) * clients + np.maximum(sender, receiver)
        apart = sender != receiver
        edge, where = np.unique(key[apart], return_inverse=True)
        self.first, self.second = edge // clients, edge % clients
        sums, terms = np.zeros((2, 2, len(edge)), np.int64)
        place = (sender > receiver)[apart].astype(np.int64), where
        np.add.at(sums, place, value[apart])
        np.add.at(terms, place, 1)
        symmetric = bool((self.server_delay == self.server_delay.T).all())
        self.edge_weights = [rounded_weights(part) for part in ([sums.sum(axis=0)] if symmetric else sums)]
        ends = np.concatenate([self.first, self.second])
        self.degree = int(np.bincount(ends, minlength=1).max())
        sends = sums.ravel() > 0
        self.sender, self.receiver = ends[sends], np.concatenate([self.second, self.first])[sends]
        self.sent_least = rounded_weights(sums.ravel()[sends])
        # Each term of the sums was rounded down by less than 1.
        self.sent = rounded_weights((sums + terms).ravel()[sends], upwards=True)

    def open_topics(self, homes: BoolArray) -> BoolArray:
        """Find the loading topics that have a publisher with one of the given homes.

        Parameters
        ----------
        homes
            The homes (``M×L``).

        Returns
        -------
        BoolArray
            The topics (``N×L``).
        """
        found = np.zeros((self.n_topics, self.n_servers), np.bool_)
        if len(self._loading):
            rows = homes[self.publisher_client[self._by_topic]]
            found[self._loading] = np.logical_or.reduceat(rows, self._topic_start, axis=0)
        return found

    def topic_sums(self, counted: BoolArray) -> IntegerArray:
        """Sum the spools of the topics that each client publishes to.

        Parameters
        ----------
        counted
            The topics to count (``N``).

        Returns
        -------
        IntegerArray
            The sums (``M``), as Python integers.
        """
        total = integer_array([0] * self.n_clients)
        if len(self._publishing):
            spool = np.where(counted[self.publisher_topic], self._publisher_spool, 0)
            total[self._publishing] = np.add.reduceat(spool, self._client_start).astype(object)
        return total


def check_size(instance: Instance) -> Size:
    """Check that an instance is not too large for the verifier.

    Parameters
    ----------
    instance
        The instance.

    Returns
    -------
    Size
        Its size.

    Raises
    ------
    InputError
        If it has too many publications or pairs.
    """
    publications = len(instance.publishers.item)
    if publications > MOST_PUBLICATIONS:
        problem = f"expected at most {MOST_PUBLICATIONS} pairs of topic and publisher, got {publications}"
        raise InputError("topics", f"{problem}; the verifier accepts no larger instance")
    pairs = int((instance.publishers.sizes.astype(np.int64) * instance.subscribers.sizes.astype(np.int64)).sum())
    if pairs > MOST_PAIRS:
        problem = f"expected at most {MOST_PAIRS} pairs of publisher and subscriber, got {pairs}"
        raise InputError("topics", f"{problem}; the verifier accepts no larger instance")
    return Size(instance.n_clients, instance.n_servers, instance.n_topics, publications, pairs)


def _capped(delays: npt.ArrayLike, cap: int | None) -> FloatArray:
    return np.asarray(delays if cap is None else np.minimum(delays, np.ldexp(1.0, cap)), np.float64)


def bit_length(values: Int64Array) -> Int64Array:
    """Compute the number of bits of integers from 0 on.

    Parameters
    ----------
    values
        The integers.

    Returns
    -------
    Int64Array
        The numbers of bits; 0 for 0.
    """
    length = np.zeros(values.shape, np.int64)
    rest = values.copy()
    for step in (32, 16, 8, 4, 2, 1):
        large = rest >= 1 << step
        length[large] += step
        rest[large] >>= step
    return length + (rest > 0)
