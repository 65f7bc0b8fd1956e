"""The weights of clients in the objective, from the roles in their topics and the numbers of members with each role."""

import numpy as np
import numpy.typing as npt

from relocbench.instances.instance import PUBLISHES, SUBSCRIBES
from relocbench.instances.kernels.ragged import FloatArray

Counts = npt.NDArray[np.int64]


def receiver_counts(role: Counts, subscribers: Counts) -> Counts:
    """Return the number of receivers of what a client publishes to a topic.

    Parameters
    ----------
    role
        The role of each membership.
    subscribers
        ``|S|`` of its topic.

    Returns
    -------
    array
        ``|R|``, the subscribers without the client; 0 for a client that only subscribes.
    """
    return np.where(role & PUBLISHES, subscribers - (role == (PUBLISHES | SUBSCRIBES)), 0)


def senders_by_receivers(role: Counts, size: Counts, publishers: Counts, subscribers: Counts) -> tuple[Counts, Counts]:
    """Count the publishers of a topic from which a client receives, by the number of their receivers.

    Parameters
    ----------
    role
        The role of each membership.
    size, publishers, subscribers
        ``|C|``, ``|P|`` and ``|S|`` of its topic, in the whole instance.

    Returns
    -------
    only, others
        The publishers that do not subscribe, which have ``|S|`` receivers, and the other publishers that subscribe,
        too, which have ``|S|-1``; 0 for a client that only publishes.
    """
    subscribes = (role & SUBSCRIBES) > 0
    only = size - subscribers
    return only * subscribes, (publishers - only - (role == (PUBLISHES | SUBSCRIBES))) * subscribes


def publications_and_weights(
    owner: Counts, role: Counts, size: Counts, publishers: Counts, subscribers: Counts, clients: int
) -> tuple[Counts, FloatArray]:
    """Return the publications and the weight of each client.

    Parameters
    ----------
    owner
        The client of each membership.
    role
        Its role.
    size, publishers, subscribers
        ``|C|``, ``|P|`` and ``|S|`` of its topic, in the whole instance.
    clients
        The number of clients.

    Returns
    -------
    publications, weight
        ``f`` and ``w`` of docs/model.md. Where all members publish and subscribe, ``w`` is exactly ``2·f``.
    """
    published = np.bincount(owner[receiver_counts(role, subscribers) > 0], minlength=clients)
    only, others = senders_by_receivers(role, size, publishers, subscribers)
    received, shared = np.zeros(len(role)), np.zeros(len(role))
    np.divide(only, subscribers, out=received, where=subscribers > 0)
    # Without another subscriber there is no other publisher that subscribes.
    np.divide(others, subscribers - 1, out=shared, where=subscribers > 1)
    weight = published + np.bincount(owner, received + shared, clients)
    return published.astype(np.int64), weight.astype(np.float64)
