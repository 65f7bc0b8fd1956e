"""The network of a timeline: the servers, capacities and delays that all its epochs share."""

from typing import Any

import numpy as np

from relocbench.instances.errors import InputError
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import Ragged

# The fields of an instance that all epochs of a timeline share.
NETWORK_FIELDS = (
    "cloud_delay",
    "delay_per_km",
    "server_x",
    "server_y",
    "storage_capacity",
    "compute_capacity",
    "server_server_delay",
)


def network_of(instance: Instance) -> Instance:
    """Return an instance with the servers of another one, and one client and topic without meaning.

    Parameters
    ----------
    instance
        The instance whose servers are kept.

    Returns
    -------
    Instance
        The instance.
    """
    return make_network(**{name: getattr(instance, name) for name in NETWORK_FIELDS})


def make_network(**servers: Any) -> Instance:
    """Return an instance with given servers, and one client and topic without meaning.

    Parameters
    ----------
    **servers
        The fields ``NETWORK_FIELDS``.

    Returns
    -------
    Instance
        The instance.

    Raises
    ------
    InputError
        If a field is wrong.
    """
    nobody = Ragged.of([[0]])
    nowhere = np.zeros(1)
    return Instance(**servers, client_x=nowhere, client_y=nowhere, spool=nowhere, publishers=nobody, subscribers=nobody)


def check_network(instance: Instance, network: Instance) -> None:
    """Check that an instance has the servers of a timeline.

    Parameters
    ----------
    instance, network
        The two instances.

    Raises
    ------
    InputError
        If a field of the servers differs.
    """
    for name in NETWORK_FIELDS:
        one, other = getattr(instance, name), getattr(network, name)
        # Most epochs share the arrays of the timeline, which need no comparison.
        if one is not other and not np.array_equal(one, other):
            raise InputError(name, "expected the same servers, capacities and delays in every epoch")
