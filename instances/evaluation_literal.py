"""The literal evaluator: the delay model term by term, as the paper states it.

It is slow, but simple enough to be verified by reading. In the symbols of docs/model.md it computes

    ``ΣD = Σ_i D_i``,  ``D_i = dH[m,h] + 2·dC·(1-θ_h) + mean over r in R of ( θ_h·dS[h,home_r] + dH[r,home_r] )``

over all publications ``i`` = (topic ``n``, publisher ``m``) that have receivers. The receivers ``R`` are the
subscribers of ``n`` without ``m``, and ``h = home[m]``. Further,

    ``θ_l = min(A_l/a_l, B_l/v_l, 1)``,  ``a_l = Σ_{n: c[n,l] > 0} u_n``,  ``v_l = Σ_n c[n,l]·u_n``,

where ``c[n,l]`` is the number of publishers of topic ``n`` whose home is server ``l``.
"""

import numpy as np
import numpy.typing as npt

from relocbench.instances.evaluation import Evaluation, checked_home
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray


def evaluate_literal(instance: Instance, home: npt.ArrayLike) -> Evaluation:
    """Evaluate an assignment by the double sum over publications and their receivers.

    This is the reference for the other two evaluators.

    Parameters
    ----------
    instance
        The problem.
    home
        One server index per client.

    Returns
    -------
    Evaluation
        ``ΣD`` and its parts, in float64.

    Raises
    ------
    InputError
        If ``home`` is not an assignment of the instance.
    """
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
