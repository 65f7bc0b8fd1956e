"""The delay model as the paper prints it: slow, and plain enough to be checked by reading."""

import numpy as np
import numpy.typing as npt

from relocbench.instances.evaluation import Evaluation, checked_home
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray


def evaluate_literal(instance: Instance, home: npt.ArrayLike) -> Evaluation:
    """Evaluate by the double sum over publications and receivers; the reference for the other two evaluators."""
    homes = [int(server) for server in checked_home(instance, home)]
    publishers = [[int(m) for m in topic] for topic in instance.publishers]
    subscribers = [[int(m) for m in topic] for topic in instance.subscribers]
    servers = range(instance.n_servers)

    storage, compute, theta = [], [], []
    for server in servers:
        count = [sum(homes[m] == server for m in topic) for topic in publishers]
        storage.append(sum(float(u) for u, c in zip(instance.spool, count, strict=True) if c > 0))
        compute.append(sum(float(u) * c for u, c in zip(instance.spool, count, strict=True)))
        shares = [1.0]
        if storage[-1] > 0:
            shares.append(float(instance.storage_capacity[server]) / storage[-1])
        if compute[-1] > 0:
            shares.append(float(instance.compute_capacity[server]) / compute[-1])
        theta.append(min(shares))

    def client_delay(client: int) -> float:
        return float(instance.client_delay(client, homes[client]))

    publications, distance, processing = 0, 0.0, 0.0
    sent, spread = [0.0] * len(servers), [0.0] * len(servers)
    for topic, senders in enumerate(publishers):
        for sender in senders:
            receivers = [r for r in subscribers[topic] if r != sender]
            if not receivers:
                continue
            publications += 1
            here = homes[sender]
            between = sum(float(instance.server_delay[here, homes[r]]) for r in receivers) / len(receivers)
            distance += client_delay(sender) + sum(client_delay(r) for r in receivers) / len(receivers)
            processing += 2 * instance.cloud_delay * (1 - theta[here]) + theta[here] * between
            sent[here] += 1
            spread[here] += between

    def column(values: list[float]) -> FloatArray:
        return np.array(values)

    return Evaluation(
        publications,
        distance,
        processing,
        column(theta),
        column(storage),
        column(compute),
        column(sent),
        column(spread),
    )
