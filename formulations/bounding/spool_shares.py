"""Shares of spools: the part of the cost of copying spools that a bound over time counts."""

import numpy as np

from relocbench.formulations.bounding.dual_bound import SHARE_ROUNDING
from relocbench.formulations.certificates.packed_arrays import Int64Array
from relocbench.formulations.certificates.potentials import copied_spools
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray, Ragged
from relocbench.instances.timeline.epoch import Epoch

# A share is at most this many units, which a certificate can store.
MOST_UNITS = 2.0**38


def add_spool_shares(
    costs: FloatArray, later_costs: FloatArray, epoch: Epoch, later: Epoch, price: float, unit: float
) -> FloatArray:
    """Count the copying of spools between two epochs, as far as it raises the bound and nothing is lost.

    A share is added where it raises the least cost of a publisher in the later epoch, up to the cost of its second best
    home. It is subtracted from the costs of all publishers of the topic in the earlier epoch, as far as their reduced
    costs allow.

    Parameters
    ----------
    costs, later_costs
        The cost of each home in the two epochs, in ms (``M×L``). Both are changed.
    epoch, later
        The two epochs.
    price
        The spool price.
    unit
        Shares are multiples of this.

    Returns
    -------
    FloatArray
        The shares, one row for each pair that ``copied_spools`` returns (rows × ``L``).
    """
    client, topic = copied_spools(epoch, later)
    shares = np.zeros((len(client), later.instance.n_servers))
    position = {number: n for n, number in enumerate(epoch.topics.tolist())}
    before = Ragged.of(
        [
            epoch.instance.publishers[position[number]].tolist() if number in position else []
            for number in later.topics.tolist()
        ]
    )
    # Rounding must not lift the sum of the shares of a topic above its price.
    most = np.minimum(price * np.asarray(later.instance.spool) * (1 - SHARE_ROUNDING), unit * MOST_UNITS)
    if len(client):
        _add_spool_shares(shares, costs, later_costs, client, topic, before.start, before.item, most, unit)
    return shares


@compiled
def _add_spool_shares(
    shares: FloatArray,
    earlier: FloatArray,
    later: FloatArray,
    client: Int64Array,
    topic: Int64Array,
    start: OffsetArray,
    publisher: IntArray,
    most: FloatArray,
    unit: float,
) -> None:
    used = np.zeros((len(most), later.shape[1]))
    for row in range(len(client)):
        m, n = client[row], topic[row]
        l = later[m].argmin()
        second = np.inf
        for k in range(later.shape[1]):
            if k != l:
                second = min(second, later[m, k])
        share = min(second - later[m, l], most[n] - used[n, l])
        for e in range(start[n], start[n + 1]):
            costs = earlier[publisher[e]]
            share = min(share, costs[l] - costs.min())
        share = np.floor(share / unit) * unit
        if share <= 0 or share == np.inf:
            continue
        shares[row, l] += share
        used[n, l] += share
        later[m, l] += share
        for e in range(start[n], start[n + 1]):
            earlier[publisher[e], l] -= share
