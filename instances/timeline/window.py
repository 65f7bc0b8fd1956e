"""A window of epochs as one instance: what homes cost if they stay for a while."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from relocbench.instances.instance import Instance
from relocbench.instances.timeline.epoch import Epoch


def window_instance(epochs: Sequence[Epoch]) -> tuple[Instance, float]:
    """Return one instance for several epochs.

    Its clients and topics are those of the first epoch. The delay ``dH`` of a client is its mean over the window,
    weighted by the lengths of the epochs; an epoch in which the client is absent counts with a delay of 0. So ``ΣD``
    of homes, times the rounds of publications in the window, is what they cost if they stay, as long as no client
    arrives and no topic changes.

    Parameters
    ----------
    epochs
        The present epoch and those that follow.

    Returns
    -------
    instance
        The instance; that of the present epoch itself if no epoch follows.
    seconds
        The total length of the epochs.
    """
    first = epochs[0]
    seconds = sum(epoch.length for epoch in epochs)
    if len(epochs) == 1:
        return first.instance, seconds
    servers = np.arange(first.instance.n_servers)
    total = np.zeros((first.instance.n_clients, len(servers)))
    for epoch in epochs:
        _, here, there = np.intersect1d(first.clients, epoch.clients, assume_unique=True, return_indices=True)
        total[here] += epoch.length * epoch.instance.client_delay(there[:, None], servers[None, :])
    return dataclasses.replace(first.instance, client_server_delay=total / seconds), seconds
