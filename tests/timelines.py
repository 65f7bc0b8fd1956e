"""Timelines for tests: random ones of every kind, and a literal evaluator of schedules."""

import dataclasses

import numpy as np

from relocbench.instances.evaluation_literal import evaluate_literal
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import Ragged
from relocbench.instances.timeline.epoch import Epoch
from relocbench.instances.timeline.prices import Prices
from relocbench.instances.timeline.timeline import Timeline
from tests.samples import KINDS, random_instance


def random_timeline(seed, n_epochs=4):
    """Return a small timeline of the seed's kind in which clients move, come and go, and topics change."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    base = random_instance(seed, kind)
    epochs, start = [], float(rng.uniform(-5, 5))
    for number in range(n_epochs):
        other = random_instance(int(rng.integers(10**6)), kind)
        clients = rng.permutation(15)[: other.n_clients]
        topics = rng.permutation(9)[: other.n_topics]
        instance = _with_clients(base, other, rng)
        length = float(rng.uniform(0.5, 90))
        epochs.append(Epoch(number, start, length, clients, topics, instance))
        start += length + (0.0 if rng.random() < 0.7 else float(rng.uniform(0, 9)))
    prices = Prices(
        handover=float(rng.choice([0.0, rng.uniform(0, 60)])),
        spool=float(rng.choice([0.0, rng.uniform(0, 4)])),
        publication_period=float(rng.uniform(0.1, 5)),
    )
    return Timeline(base, lambda: iter(epochs), n_epochs, name=f"random-{seed}", prices=prices)


def _with_clients(base, other, rng):
    """Return the servers of one instance with the clients and topics of another one."""
    explicit = base.client_server_delay is not None
    return dataclasses.replace(
        base,
        client_x=other.client_x,
        client_y=other.client_y,
        spool=other.spool,
        publishers=other.publishers,
        subscribers=other.subscribers,
        client_server_delay=rng.uniform(0, 3, (other.n_clients, base.n_servers)) if explicit else None,
    )


def tiny_timeline(seed, n_epochs=3, most=100):
    """Return a timeline of the seed's kind with at most ``most`` assignments of each epoch, and prices of all sizes."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    base = random_instance(seed, kind)
    while not 2 <= base.n_servers <= 3:
        base = random_instance(int(rng.integers(10**6)), kind)
    epochs, start = [], float(rng.uniform(-5, 5))
    for number in range(n_epochs):
        other = random_instance(int(rng.integers(10**6)), kind)
        while base.n_servers**other.n_clients > most:
            other = random_instance(int(rng.integers(10**6)), kind)
        # In every third epoch the memberships stay, and clients move only.
        if number % 3 == 2 and kind[1] != "explicit":
            last = epochs[-1]
            moved = last.instance.client_x + rng.uniform(-1, 1, last.instance.n_clients)
            clients, topics, instance = last.clients, last.topics, dataclasses.replace(last.instance, client_x=moved)
        else:
            clients, topics = rng.permutation(7)[: other.n_clients], rng.permutation(8)[: other.n_topics]
            instance = _with_clients(base, other, rng)
        length = float(rng.uniform(0.5, 9))
        epochs.append(Epoch(number, start, length, clients, topics, instance))
        start += length + (0.0 if rng.random() < 0.7 else float(rng.uniform(0, 9)))
    prices = Prices(
        handover=float(rng.choice([0.0, rng.uniform(0, 3), rng.uniform(0, 60), 1e4])),
        spool=float(rng.choice([0.0, rng.uniform(0, 1), 4.0])),
        publication_period=float(rng.uniform(0.1, 5)),
    )
    return Timeline(base, lambda: iter(epochs), n_epochs, name=f"tiny-{seed}", prices=prices)


def random_homes(timeline, seed):
    """Return random homes for every epoch; some of them are those of the epoch before."""
    rng = np.random.default_rng(seed)
    last, homes = {}, []
    for epoch in timeline.epochs():
        home = rng.integers(timeline.n_servers, size=epoch.instance.n_clients)
        for position, client in enumerate(epoch.clients.tolist()):
            if client in last and rng.random() < 0.6:
                home[position] = last[client]
            last[client] = int(home[position])
        homes.append(home)
    return homes


def literal_schedule_cost(timeline, homes):
    """Return the parts of the cost of a schedule, straight from the definition in docs/moving.md."""
    prices = timeline.prices
    delay, handovers, spool, overloaded, time, client_time = 0.0, 0, 0.0, 0.0, 0.0, 0.0
    home_before, open_before = {}, set()
    for epoch, home in zip(timeline.epochs(), homes, strict=True):
        now = evaluate_literal(epoch.instance, home)
        delay += epoch.length / prices.publication_period * now.objective
        home_now = {int(client): int(server) for client, server in zip(epoch.clients, home, strict=True)}
        for client, server in home_now.items():
            if client in home_before and home_before[client] != server:
                handovers += 1
        open_now, spool_of = set(), {}
        for position, topic in enumerate(epoch.topics.tolist()):
            spool_of[topic] = float(epoch.instance.spool[position])
            for publisher in epoch.instance.publishers[position]:
                open_now.add((topic, int(home[publisher])))
        for topic, server in open_now:
            existed = any(other == topic for other, _ in open_before)
            if existed and (topic, server) not in open_before:
                spool += spool_of[topic]
        if any(share < 1 for share in now.theta):
            overloaded += epoch.length
        time += epoch.length
        client_time += epoch.length * len(home_now)
        home_before, open_before = home_now, open_now
    return {
        "delay_cost": delay,
        "handovers": handovers,
        "handover_cost": prices.handover * handovers,
        "spool_moved": spool,
        "spool_cost": prices.spool * spool,
        "overloaded_share": overloaded / time,
        "handovers_per_client_hour": handovers / (client_time / 3600),
        "total": delay + prices.handover * handovers + prices.spool * spool,
    }


def two_servers(clients, topics, *, storage=100.0, spool=5.0):
    """Return an instance with servers at 0 and 10 km; ``clients`` are their x, ``topics`` lists of members."""
    return Instance(
        cloud_delay=5.0,
        delay_per_km=0.1,
        server_x=[0.0, 10.0],
        server_y=[0.0, 0.0],
        storage_capacity=[storage] * 2,
        compute_capacity=[1000.0] * 2,
        client_x=np.array(clients, float),
        client_y=np.zeros(len(clients)),
        spool=np.full(len(topics), spool),
        publishers=Ragged.of(topics),
        subscribers=Ragged.of(topics),
    )


def timeline_of(*parts, **prices):
    """Return a timeline of epochs ``(clients, topics, instance)`` of 10 s each."""
    epochs = [
        Epoch(number, 10.0 * number, 10.0, clients, topics, instance)
        for number, (clients, topics, instance) in enumerate(parts)
    ]
    return Timeline(epochs[0].instance, lambda: iter(epochs), len(epochs), prices=Prices(**prices))
