"""Potentials: how a certificate moves costs of relocation between the epochs of a timeline, checked in integers.

A *potential* of a client for each server is added to its homes in one epoch and subtracted in the next one. *Shares of
spools* are added to the homes of a topic's publishers in one epoch; their sum is subtracted from the homes of all its
publishers in the epoch before. docs/certificates.md shows that this never adds more than relocation costs.
"""

from fractions import Fraction

import numpy as np

from relocbench.formulations.certificates.budget import Budget
from relocbench.formulations.certificates.integer_problem import AddedCosts, check_size
from relocbench.formulations.certificates.packed_arrays import Int64Array, unpacked
from relocbench.formulations.certificates.timeline_certificate import EpochProof
from relocbench.instances.errors import InputError
from relocbench.instances.timeline.epoch import Epoch
from relocbench.instances.timeline.prices import Prices

# Potentials and shares are at most this in size. An epoch has at most 2^20 pairs of topic and publisher, so all sums
# fit into 64 bits.
LARGEST_POTENTIAL = 1 << 40


class Transition:
    """What the potentials between two successive epochs add to the homes of each of them.

    Parameters
    ----------
    epoch, proof
        The earlier epoch and its part of the certificate, with the potentials.
    later, later_proof
        The later epoch and its part of the certificate, with the shares of spools.
    bits
        All numbers are in units of ``2^-bits``.
    prices
        The prices of the timeline.
    budget
        The limits of the verification.

    Attributes
    ----------
    to_epoch, to_later
        The added costs (``M×L``); None if nothing is added.

    Raises
    ------
    InputError
        If potentials or shares are larger than the prices allow, or have a wrong size.
    """

    def __init__(
        self,
        epoch: Epoch,
        proof: EpochProof,
        later: Epoch,
        later_proof: EpochProof,
        bits: int,
        prices: Prices,
        budget: Budget,
    ) -> None:
        self.to_epoch: Int64Array | None = None
        self.to_later: Int64Array | None = None
        if proof.potentials is None and later_proof.spool_shares is None:
            return
        servers = epoch.instance.n_servers
        for one in (epoch, later):
            size = check_size(one.instance)
            budget.check_memory(size.problem_bytes + size.added_bytes)
        self.to_epoch, self.to_later = (np.zeros((one.instance.n_clients, servers), np.int64) for one in (epoch, later))
        unit = Fraction(2) ** bits
        if proof.potentials is not None:
            here, there = present_in_both(epoch, later)
            potentials = unpacked(proof.potentials, (len(here), servers), "potentials")
            _check_size(potentials, "potentials")
            spread = potentials.max(axis=1) - potentials.min(axis=1)
            if int(spread.max(initial=0)) > Fraction(prices.handover) * unit:
                problem = "expected no two numbers of a client that differ by more than the handover price"
                raise InputError("potentials", problem)
            self.to_epoch[here] += potentials
            self.to_later[there] -= potentials
        if later_proof.spool_shares is not None:
            try:
                self._add_shares(epoch, later, later_proof, unit * Fraction(prices.spool))
            except InputError as error:
                raise error.inside(f"epochs[{later.number}]") from error

    def _add_shares(self, epoch: Epoch, later: Epoch, proof: EpochProof, price: Fraction) -> None:
        """Add shares of spools to the later epoch, and subtract their sums in the earlier one."""
        assert self.to_epoch is not None
        assert self.to_later is not None
        assert proof.spool_shares is not None
        servers = epoch.instance.n_servers
        client, topic = copied_spools(epoch, later)
        shares = unpacked(proof.spool_shares, (len(client), servers), "spool_shares")
        _check_size(shares, "spool_shares")
        if int(shares.min(initial=0)) < 0:
            raise InputError("spool_shares", "expected numbers from 0, got one below")
        total = np.zeros((later.instance.n_topics, servers), np.int64)
        np.add.at(total, topic, shares)
        spool = later.instance.spool.tolist()
        for n, most in enumerate(total.max(axis=1).tolist()):
            if most > price * Fraction(spool[n]):
                raise InputError("spool_shares", f"expected no more than the price of copying topic {n}, got more")
        np.add.at(self.to_later, client, shares)
        of_topic = {number: n for n, number in enumerate(later.topics.tolist())}
        for number, publishers in zip(epoch.topics.tolist(), epoch.instance.publishers, strict=True):
            if number in of_topic:
                self.to_epoch[publishers] -= total[of_topic[number]]


def present_in_both(epoch: Epoch, later: Epoch) -> tuple[Int64Array, Int64Array]:
    """Return the clients that are in both of two epochs.

    Parameters
    ----------
    epoch, later
        The epochs.

    Returns
    -------
    here, there
        Their positions in the two epochs, in the order of the first.
    """
    position = {number: place for place, number in enumerate(later.clients.tolist())}
    pairs = [(m, position[number]) for m, number in enumerate(epoch.clients.tolist()) if number in position]
    here, there = np.array(pairs, np.int64).reshape(-1, 2).T
    return here, there


def copied_spools(epoch: Epoch, later: Epoch) -> tuple[Int64Array, Int64Array]:
    """Return the publishers of the topics whose spool has to be copied to a server where the topic was not open.

    These are the topics with a spool above 0 that have a publisher in the epoch before: they were open there.

    Parameters
    ----------
    epoch, later
        Two successive epochs.

    Returns
    -------
    client, topic
        The pairs of a publisher and its topic in the later epoch, by client, then by topic.
    """
    pairs = zip(epoch.topics.tolist(), epoch.instance.publishers.sizes.tolist(), strict=True)
    were_open = {number for number, publishers in pairs if publishers}
    instance = later.instance
    counted = (instance.spool > 0) & np.array([number in were_open for number in later.topics.tolist()], np.bool_)
    client, topic = instance.publishers.item.astype(np.int64), instance.publishers.owner().astype(np.int64)
    client, topic = client[counted[topic]], topic[counted[topic]]
    order = np.lexsort((topic, client))
    return client[order], topic[order]


def added_costs(first: Int64Array | None, second: Int64Array | None, bits: int, rounds: Fraction) -> AddedCosts | None:
    """Return what is added to the cost ``ΣD`` of one epoch.

    Parameters
    ----------
    first, second
        What the transitions from the epoch before and to the next one add (``M×L``); None for nothing.
    bits
        The unit of these numbers is ``2^-bits``.
    rounds
        ``s/T`` of the epoch. The schedule pays ``ΣD`` this often, and potentials once.

    Returns
    -------
    AddedCosts or None
        The costs; None if there are none.
    """
    total = sum(part for part in (first, second) if part is not None)
    if isinstance(total, int) or not total.any():
        return None
    return AddedCosts(total.astype(object), Fraction(2) ** -bits / rounds)


def _check_size(values: Int64Array, label: str) -> None:
    if int(values.max(initial=0)) > LARGEST_POTENTIAL or int(values.min(initial=0)) < -LARGEST_POTENTIAL:
        raise InputError(label, "expected numbers of at most 2^40 in size, got a larger one")
