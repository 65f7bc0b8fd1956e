"""Algorithm 1 of the paper on the whole instance at once, in plain Python.

It is slow, and written to be compared with the paper line by line. The numbers in comments are the line numbers of
Algorithm 1.
"""

import math
from fractions import Fraction

import numpy as np

from relocbench.heuristics.clusters import make_clusters
from relocbench.heuristics.readings import Reading
from relocbench.heuristics.relations import relation_factors
from relocbench.instances.kernels.id_hash import hash_ids
from relocbench.instances.kernels.random_streams import stream


class Loads:
    """The publishers of each topic that have been counted on each server."""

    def __init__(self, instance):
        self.instance = instance
        self.publishers = [{} for _ in range(instance.n_servers)]  # server -> topic -> clients

    # Loads are exact rationals, so that an empty server has load 0 and a load equal to the capacity fits.
    def storage(self, server):
        return sum((Fraction(float(self.instance.spool[topic])) for topic in self.publishers[server]), Fraction(0))

    def compute(self, server):
        counted = self.publishers[server].items()
        return sum((len(clients) * Fraction(float(self.instance.spool[n])) for n, clients in counted), Fraction(0))

    def theta_is_1(self, server):
        fits = self.storage(server) <= Fraction(float(self.instance.storage_capacity[server]))
        return fits and self.compute(server) <= Fraction(float(self.instance.compute_capacity[server]))

    def usage(self, server):
        def share(load, capacity):
            return 0 if load == 0 else load / Fraction(capacity) if capacity > 0 else math.inf

        storage = share(self.storage(server), float(self.instance.storage_capacity[server]))
        return max(storage, share(self.compute(server), float(self.instance.compute_capacity[server])))

    def add(self, client, topic, server):
        self.publishers[server].setdefault(topic, set()).add(client)

    def move(self, client, old, new):
        """Move a client with all its topics that have been counted (COOPERATION, 1 to 14)."""
        for topic in [topic for topic, clients in self.publishers[old].items() if client in clients]:
            self.publishers[old][topic].remove(client)
            if not self.publishers[old][topic]:
                del self.publishers[old][topic]
            self.add(client, topic, new)


def relation_scores(instance, reading, seed):
    topics = [set(instance.topics[m].tolist()) for m in range(instance.n_clients)]
    if reading.relation == "exact":
        return lambda a, b: len(topics[a] & topics[b])
    factors = relation_factors(instance, reading, seed)

    def score(a, b):
        total = 0.0
        for mine, other in zip(factors[a].tolist(), factors[b].tolist(), strict=True):
            total += mine * other
        return math.floor(total * 1e9 + 0.5)

    return score


def draws(purpose, count, seed):
    """Return a random number for each of the numbers below ``count``."""
    return hash_ids(np.arange(count), int(stream("reloc", purpose, seed).integers(2**62))).tolist()


def mixed(word):
    """Return a random number that depends on a word (splitmix64)."""
    word = (word + 0x9E3779B97F4A7C15) % 2**64
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
    return (word ^ (word >> 31)) >> 11


def visited(order, numbers, sizes, draw):
    """Return topics or clients in the order in which lines 20 and 21 visit them."""
    key = {"given": lambda i: 0, "large": lambda i: -sizes[i], "small": lambda i: sizes[i], "random": lambda i: draw[i]}
    return sorted(numbers, key=key[order])


def reloc(instance, *, seed, k=4, related=100, **choices):
    reading = Reading(**choices)
    clusters = make_clusters(instance, k, seed)  # 17
    score = relation_scores(instance, reading, seed)  # 18, 19
    topic_draw, client_draw, tie_draw = (
        draws(purpose, count, seed)
        for purpose, count in (
            ("topics", instance.n_topics),
            ("clients", instance.n_clients),
            ("ties", instance.n_clients),
        )
    )
    publishers = [set(topic.tolist()) for topic in instance.publishers]
    loads = Loads(instance)
    home = [None] * instance.n_clients  # 16

    def cluster_servers(client):
        return [l for l in range(instance.n_servers) if clusters.of_server[l] == clusters.of_client[client]]

    def tie(client, other):
        if reading.ties == "nearest":
            dx = float(instance.client_x[client] - instance.client_x[other])
            dy = float(instance.client_y[client] - instance.client_y[other])
            return dx * dx + dy * dy
        return mixed(tie_draw[client] ^ other) if reading.ties == "random" else 0

    def strongest(client):  # 22
        others = [
            (-score(client, other), tie(client, other), other)
            for other in range(instance.n_clients)
            if other != client and clusters.of_client[other] == clusters.of_client[client]
        ]
        return [(negative, other) for negative, _, other in sorted(others) if negative < 0][:related]

    def reordered(client, listed):
        """Return the list with the clients of equal score in the order of a rule that looks at their homes."""

        def rule(entry):
            negative, other = entry
            server = home[other]
            if reading.ties == "placed":
                return (negative, math.inf if server is None else float(instance.client_delay(client, server)))
            if reading.ties == "loaded":
                usable = server is not None and loads.theta_is_1(server)
                return (negative, -loads.usage(server) if usable else math.inf)
            return negative

        return sorted(listed, key=rule)

    def choose(client):
        for _, other in reordered(client, strongest(client)):  # 24 to 31
            if home[other] is not None and loads.theta_is_1(home[other]):
                return home[other]
        # 23
        free = [l for l in cluster_servers(client) if loads.theta_is_1(l)]
        if free and reading.initial == "nearest":
            return min(free, key=lambda l: (float(instance.client_delay(client, l)), l))
        return min(cluster_servers(client), key=lambda l: (loads.usage(l), l))

    topic_sizes = [len(instance.members[topic]) for topic in range(instance.n_topics)]
    client_sizes = [len(instance.topics[client]) for client in range(instance.n_clients)]
    for topic in visited(reading.topic_order, range(instance.n_topics), topic_sizes, topic_draw):  # 20
        members = instance.members[topic].tolist()
        for client in visited(reading.client_order, members, client_sizes, client_draw):  # 21
            if home[client] is None:
                home[client] = choose(client)  # 32
            elif reading.revisit:
                new = choose(client)
                loads.move(client, home[client], new)
                home[client] = new
            if client not in publishers[topic]:  # 33
                continue
            server = home[client]
            loads.add(client, topic, server)  # 34, 35
            if not loads.theta_is_1(server):  # 36
                new = min(cluster_servers(client), key=lambda l: (loads.usage(l), l))  # 38
                if new != server:
                    together = loads.publishers[server][topic] if reading.cooperation == "topic" else {client}
                    for mover in sorted(together):  # 39 to 41
                        loads.move(mover, server, new)
                        home[mover] = new
    return [cluster_servers(client)[0] if server is None else server for client, server in enumerate(home)]
