"""The incremental evaluator of a part of an instance: some clients move among some servers, all others stay.

The servers of the part are its *own* servers. Its clients are all clients whose homes are among them, so the loads of
its own servers depend on its clients only. The other members of their topics are known by number: each topic has
*outside slots*, which say how many of its members have which home outside.
"""

from dataclasses import dataclass

import numpy as np

from relocbench.instances.incremental_state import (
    State,
    StateArrays,
    _arrays,
    _fill_slots,
    _renew_all_thetas,
    server_cost,
)
from relocbench.instances.instance import PUBLISHES, SUBSCRIBES, Instance
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray, offsets
from relocbench.instances.role_weights import Counts, publications_and_weights


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What a part of an instance needs to know about the rest.

    Attributes
    ----------
    own
        The own servers.
    topic_size, topic_publishers, topic_subscribers
        The numbers of members, publishers and subscribers of each topic, those outside included.
    topic, server
        The outside slots, sorted by topic: a topic, and a server that is not an own one.
    only, both, subscribers
        How many members of the topic have their home there: publishers that do not subscribe, publishers that also
        subscribe, and all subscribers.
    loads
        ``a``, ``v``, ``F`` and ``Q`` of every server, those of the own clients included (``4×L``).
    """

    own: IntArray
    topic_size: Counts
    topic_publishers: Counts
    topic_subscribers: Counts
    topic: IntArray
    server: IntArray
    only: IntArray
    both: IntArray
    subscribers: IntArray
    loads: FloatArray


class RegionState(State):
    """An assignment of the clients of a part, with running sums that include the rest.

    Parameters
    ----------
    instance
        The part: all servers, its clients, and their topics with the members in the part only. Spools are those of the
        whole topics.
    home
        The homes of the clients; all are own servers.
    around
        The rest.
    """

    def __init__(self, instance: Instance, home: IntArray, around: Surroundings) -> None:
        self.instance = instance
        self.arrays = _arrays(instance, np.array(home, np.int32))
        self._history: list[tuple[int, int]] = []
        self._moves = 0
        self._complete_topics(around)
        _fill_slots(self.arrays)
        now = slot_loads(self.arrays)
        # The own servers have loads from own clients only. A rounding error of the difference would matter for a
        # capacity of 0.
        self._rest = around.loads - now
        self._rest[:, around.own] = 0.0
        self.refresh()

    def _complete_topics(self, around: Surroundings) -> None:
        """Add the members outside to the topics."""
        s, instance = self.arrays, self.instance
        subscribers, number = around.topic_subscribers, s.entry["topic"].astype(np.int64)
        share_only, share_both = np.zeros((2, instance.n_topics))
        np.divide(1.0, subscribers, out=share_only, where=subscribers > 0)
        np.divide(1.0, subscribers - 1, out=share_both, where=subscribers > 1)
        s.topic["share_only"], s.topic["share_both"] = share_only, share_both
        role = instance.topic_role.astype(np.int64)
        s.entry["share"] = np.select(
            [role == PUBLISHES, role == (PUBLISHES | SUBSCRIBES)], [share_only[number], share_both[number]]
        )
        s.client["publications"], s.client["weight"] = publications_and_weights(
            instance.topics.owner().astype(np.int64),
            role,
            around.topic_size[number],
            around.topic_publishers[number],
            subscribers[number],
            instance.n_clients,
        )
        outside = np.bincount(around.topic, minlength=instance.n_topics)
        first = offsets(np.minimum(instance.members.sizes + outside, instance.n_servers))
        slot = np.zeros(int(first[-1]), s.slot.dtype)
        place = first[around.topic] + np.arange(len(around.topic)) - offsets(outside)[around.topic]
        slot["server"][place] = around.server
        slot["only"][place], slot["both"][place] = around.only, around.both
        slot["subscribers"][place] = around.subscribers
        slot["sending"][place] = around.only * share_only[around.topic] + around.both * share_both[around.topic]
        s.topic["first"], s.topic["last"] = first[:-1], first[:-1] + outside
        self.arrays = s._replace(slot=slot)

    def refresh(self) -> None:
        """Compute all running sums again from the homes."""
        server = self.arrays.server
        server["storage_load"], server["compute_load"], server["sent"], server["spread"] = self._rest + slot_loads(
            self.arrays
        )
        home, client = self.arrays.home, self.arrays.client
        delay = self.instance.client_delay(np.arange(len(home)), home)
        self.arrays.distance[0] = float(client["weight"] @ delay)
        _renew_all_thetas(self.arrays)
        self.cost = float(self.arrays.distance[0]) + float(_server_costs(self.arrays))


@compiled
def slot_loads(s: StateArrays) -> FloatArray:
    """Return the loads that the topics of a state cause by their slots.

    Parameters
    ----------
    s
        The arrays of the state.

    Returns
    -------
    array
        ``a``, ``v``, ``F`` and ``Q`` of each server (``4×L``).
    """
    loads = np.zeros((4, len(s.server)))
    for n in range(len(s.topic)):
        spool = s.topic[n].spool
        for j in range(s.topic[n].first, s.topic[n].last):
            l = s.slot[j].server
            publishers = s.slot[j].only + s.slot[j].both
            if publishers == 0:
                continue
            loads[0, l] += spool
            loads[1, l] += publishers * spool
            if s.topic[n].share_only > 0.0:
                loads[2, l] += s.slot[j].only
            if s.topic[n].share_both > 0.0:
                loads[2, l] += s.slot[j].both
            for i in range(s.topic[n].first, s.topic[n].last):
                loads[3, l] += s.slot[j].sending * s.slot[i].subscribers * s.delay_out[l, s.slot[i].server]
    return loads


@compiled
def _server_costs(s: StateArrays) -> float:
    total = 0.0
    for l in range(len(s.server)):
        total += server_cost(s.detour, s.server[l].theta, s.server[l].sent, s.server[l].spread)
    return total
