"""The problem in whole numbers, for proofs: loads exactly, costs rounded down.

Written from the fields of an instance alone and used by the verifier: nothing here is shared with the evaluator or the
solvers, so that a mistake of theirs cannot hide itself.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.formulations.certificates.packed_arrays import Array
from relocbench.instances.errors import InputError
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, Ragged

Bools = npt.NDArray[np.bool_]
# Python integers in a numpy array: as long as they need to be.
Whole = npt.NDArray[Any]

WEIGHT_BITS = 40  # weights are sums of 1/|R| in this unit, each rounded down
# So that a product of a weight and a delay fits 64 bits.
WEIGHT_MANTISSA = 29
DELAY_MANTISSA = 33
# Delays that differ by no more than this many bits are rounded in one unit.
NEAR_BITS = 10
MOST_PUBLICATIONS = 1 << 20
MOST_PAIRS = 1 << 25


@dataclass(frozen=True, eq=False)
class Rounded:
    """Numbers from 0 on, rounded to ``mantissa·2^exponent``; there may be one exponent for all."""

    mantissa: Array
    exponent: Array

    @property
    def bits(self) -> int:
        """All numbers are below ``2^bits``."""
        return int((self.exponent + _bit_length(self.mantissa)).max(initial=-5000, where=self.mantissa > 0))

    def __getitem__(self, place: Any) -> "Rounded":
        """Return some of the numbers."""
        one = self.exponent.size == 1
        return Rounded(self.mantissa[place], self.exponent.ravel() if one else self.exponent[place])


def rounded_weights(values: Array, upwards: bool = False) -> Rounded:
    """Round weights, which are integers in units of ``2^-40``."""
    cut = np.maximum(_bit_length(values) - WEIGHT_MANTISSA, 0)
    return Rounded(-(-values >> cut) if upwards else values >> cut, cut - WEIGHT_BITS)


def rounded_delays(values: FloatArray, upwards: bool = False) -> Rounded:
    """Round delays, each by itself, or in one unit where that is as good."""
    mantissa, exponent = np.frexp(values)
    towards = np.ceil if upwards else np.floor
    kept = towards(np.ldexp(mantissa, DELAY_MANTISSA)).astype(np.int64)
    places = exponent.astype(np.int64) - DELAY_MANTISSA
    least, most = places.min(initial=5000, where=kept > 0), places.max(initial=-5000, where=kept > 0)
    if most - least > NEAR_BITS:
        return Rounded(kept, places)
    one = np.full((1,) * values.ndim, max(most, -5000), np.int64)
    cut = np.clip(one - places, 0, 63)
    return Rounded(-(-kept >> cut) if upwards else kept >> cut, one)


def floor_shift(values: Whole, by: Array) -> Whole:
    """Return ``⌊values·2^by⌋``; the caller knows that it fits."""
    if values.dtype == object:
        up, down = np.maximum(by, 0).astype(object), np.maximum(-by, 0).astype(object)
        long: Whole = (values << up) >> down
        return long
    if by.size and by.max() > 0:
        values = values << np.clip(by, 0, 63)
    shifted: Whole = values >> np.clip(-by, 0, 63)
    return shifted


def exact_integers(*columns: FloatArray) -> tuple[list[Whole], int]:
    """Return columns of floats as integers in one unit ``2^-bits``, without rounding, and ``bits``."""
    ratios = [[float(value).as_integer_ratio() for value in column] for column in columns]
    bits = max((below.bit_length() - 1 for column in ratios for _, below in column), default=0)
    return [whole([above << bits - below.bit_length() + 1 for above, below in column]) for column in ratios], bits


def whole(values: list[int]) -> Whole:
    """Return Python integers as an array of them."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def client_delay(instance: Instance, client: Any, server: Any) -> FloatArray:
    """Return ``dH``: as given, or the float64 that ``γ·√(dx² + dy²)`` is under IEEE 754."""
    if instance.client_server_delay is not None:
        return np.asarray(instance.client_server_delay[client, server], np.float64)
    dx = instance.client_x[client] - instance.server_x[server]
    dy = instance.client_y[client] - instance.server_y[server]
    return np.asarray(instance.delay_per_km * np.sqrt(dx * dx + dy * dy), np.float64)


def server_delay(instance: Instance) -> FloatArray:
    """Return ``dS``, likewise."""
    if instance.server_server_delay is not None:
        return np.asarray(instance.server_server_delay, np.float64)
    dx = instance.server_x[:, None] - instance.server_x[None, :]
    dy = instance.server_y[:, None] - instance.server_y[None, :]
    return np.asarray(instance.delay_per_km * np.sqrt(dx * dx + dy * dy), np.float64)


class WholeProblem:
    """An instance as the bound needs it; the letters are those of docs/formulations.md.

    Attributes
    ----------
    storage, compute, demand, spool
        ``A, B, U, u`` exactly, in units of ``2^-load_bits``; ``u`` is 0 for topics without a publisher.
    publisher_client, publisher_topic
        Who publishes to which loading topic (one with a publisher and a spool above 0), by client, then by topic.
    publications
        ``f``.
    weight, distance, between
        ``w`` (``M``), ``dH`` (``M×L``) and ``dS`` (``L×L``), rounded down; ``server_delay`` is ``dS`` as it is.
    first, second
        The edges: pairs of clients ``i < j`` of which one sends to the other, in lexicographic order.
    edge_weights
        ``W[i,j]`` and ``W[j,i]`` of the edges, rounded down; only their sums where ``dS`` is symmetric.
    sender, receiver, sent
        The pairs with ``W[sender, receiver] > 0``, and these ``W`` rounded up.
    degree
        The most edges that one client has.
    detour
        ``2·dC``.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.n_clients, self.n_servers, self.n_topics = instance.n_clients, instance.n_servers, instance.n_topics
        publishing, subscribing = instance.publishers, instance.subscribers
        pairs = sum(int(p) * int(s) for p, s in zip(publishing.sizes, subscribing.sizes, strict=True))
        if len(publishing.item) > MOST_PUBLICATIONS or pairs > MOST_PAIRS:
            raise InputError("", f"expected at most {MOST_PAIRS} pairs of publisher and subscriber, got {pairs}")

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
        brought = self.spool[self.publisher_topic]
        self._brought = brought.astype(np.int64) if sum(brought) < 1 << 62 else brought
        self.demand = self.topic_sums(np.ones(self.n_topics, np.bool_))

        self.detour = 2 * Fraction(instance.cloud_delay)
        self.server_delay = server_delay(instance)
        self.between = rounded_delays(self.server_delay)
        every = np.arange(self.n_clients)[:, None], np.arange(self.n_servers)[None, :]
        self.distance = rounded_delays(client_delay(instance, *every))
        self._weigh(publishing, subscribing)

    def _weigh(self, publishing: Ragged, subscribing: Ragged) -> None:
        """Compute ``f``, ``w`` and ``W``."""
        clients = self.n_clients
        publications, heard = np.zeros(clients, np.int64), np.zeros(clients, np.int64)
        keys, values = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for publishers, subscribers in zip(publishing, subscribing, strict=True):
            sender, receiver = publishers.astype(np.int64), subscribers.astype(np.int64)
            reached = len(receiver) - np.isin(sender, receiver)
            sender, reached = sender[reached > 0], reached[reached > 0]
            share = (1 << WEIGHT_BITS) // reached
            publications[sender] += 1
            # Summed before rounding: what one hears of a topic in which all publish is exactly 1 for each publication.
            sizes, counts = np.unique(reached, return_counts=True)
            own = np.zeros(clients, np.int64)
            own[sender] = reached
            for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
                others = count - (own[receiver] == size)
                heard[receiver] += (others << WEIGHT_BITS) // size
            key = (sender[:, None] * clients + receiver[None, :]).ravel()
            keys.append(key)
            values.append(np.repeat(share, len(receiver)))
        self.publications = publications
        self.weight = rounded_weights((publications << WEIGHT_BITS) + heard)

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
        # Each term of the sums was rounded down by less than 1.
        self.sent = rounded_weights((sums + terms).ravel()[sends], upwards=True)

    def open_topics(self, homes: Bools) -> Bools:
        """Tell which topics (``N×L``) have a publisher with a home among these (``M×L``); only loading ones count."""
        found = np.zeros((self.n_topics, self.n_servers), np.bool_)
        if len(self._loading):
            rows = homes[self.publisher_client[self._by_topic]]
            found[self._loading] = np.logical_or.reduceat(rows, self._topic_start, axis=0)
        return found

    def topic_sums(self, counted: Bools) -> Whole:
        """Return for each client the sum of the spools of those topics it publishes to that are counted (``N``)."""
        total = whole([0] * self.n_clients)
        if len(self._publishing):
            spool = np.where(counted[self.publisher_topic], self._brought, 0)
            total[self._publishing] = np.add.reduceat(spool, self._client_start).astype(object)
        return total


def _bit_length(values: Array) -> Array:
    length = np.zeros(values.shape, np.int64)
    rest = values.copy()
    for step in (32, 16, 8, 4, 2, 1):
        large = rest >= 1 << step
        length[large] += step
        rest[large] >>= step
    return length + (rest > 0)
