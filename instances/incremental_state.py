"""The incremental evaluator: an assignment that changes by one client at a time, with the change of its objective.

In the symbols of docs/model.md it maintains ``a_l, v_l, θ_l, F_l, Q_l`` of every server and

    ``ΣD = Σ_m w_m·dH[m,home_m] + Σ_l ( 2·dC·F_l·(1-θ_l) + θ_l·Q_l )``.

If client ``m`` moves from server ``h`` to server ``l``, the change of the objective is

    ``w_m·(dH[m,l] - dH[m,h]) + Σ_k Δ( 2·dC·F_k·(1-θ_k) + θ_k·Q_k )``,

where ``a, v, θ, F`` change only at ``h`` and ``l``, and ``Q`` only at servers with publishers of topics of ``m``; the
formula of ``ΔQ`` is in :func:`move_delta`. A search may also set prices per unit of load; then the priced loads
``Σ_l (storage price·a_l + compute price·v_l)`` are added to the objective.

Each topic has a short list of *slots*, one for each server with a member of the topic, with integer counts. A move
changes only the slots of the client's own topics, so it takes ``O(deg·min(L, |C_n|))`` time. The memory is proportional
to the number of memberships; there is no topic×server table.

Compiled searches call the kernels :func:`move_delta` and :func:`move_apply` with ``state.arrays``. :class:`State`
offers the same operations to Python code.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from relocbench.instances.evaluation import checked_home, evaluate
from relocbench.instances.instance import PUBLISHES, SUBSCRIBES, Instance
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.delays import euclidean_delay
from relocbench.instances.kernels.ragged import FloatArray, IntArray

# Up to this many client×server pairs the client delays are kept in a table, which is faster than square roots.
TABLE_ENTRIES = 1 << 22
# After this many moves a State computes its running sums again from the homes, so that rounding errors cannot
# accumulate. Compiled searches must call State.refresh themselves.
MOVES_BETWEEN_REFRESHES = 1 << 18

# Arrays of records are used instead of one array per column, because a compiled call needs about ten nanoseconds per
# array argument; with thirty columns this was two thirds of the time of a move. Symbols of docs/model.md are in
# brackets.
CLIENT = np.dtype(
    [
        ("x", "f8"),
        ("y", "f8"),
        ("weight", "f8"),  # [w]
        ("demand", "f8"),  # [U]
        ("publications", "f8"),  # [f]
        ("first", "i8"),  # the entries of the client are first..last-1
        ("last", "i8"),
    ]
)
ENTRY = np.dtype(
    [
        ("topic", "i4"),
        ("role", "i4"),
        ("share", "f8"),  # 1/|R|, or 0 without a publication
    ]
)
TOPIC = np.dtype(
    [
        ("spool", "f8"),  # [u]
        ("share_only", "f8"),  # 1/|R| of a publisher that does not subscribe
        ("share_both", "f8"),  # 1/|R| of a publisher that also subscribes
        ("first", "i8"),  # the used slots of the topic are first..last-1
        ("last", "i8"),
    ]
)
SLOT = np.dtype(
    [
        ("server", "i4"),
        ("only", "i4"),  # publishers that do not subscribe
        ("both", "i4"),  # publishers that also subscribe
        ("subscribers", "i4"),
        ("sending", "f8"),  # Σ 1/|R| over the publications of the topic homed at the server
    ]
)
SERVER = np.dtype(
    [
        ("x", "f8"),
        ("y", "f8"),
        ("storage_capacity", "f8"),  # [A]
        ("compute_capacity", "f8"),  # [B]
        ("storage_load", "f8"),  # [a]
        ("compute_load", "f8"),  # [v]
        ("sent", "f8"),  # [F]
        ("spread", "f8"),  # [Q]
        ("theta", "f8"),  # [θ]
        ("storage_price", "f8"),  # additional cost per unit of load; 0 unless a search sets it
        ("compute_price", "f8"),
        ("open", "i8"),  # open topics with a spool above 0; without any, the loads are exactly 0
    ]
)
Records = npt.NDArray[Any]


class StateArrays(NamedTuple):
    """The arrays that the kernels read and change."""

    client: Records
    entry: Records  # one per client and topic of the client
    topic: Records
    slot: Records  # one per topic and server with a member of it
    server: Records
    home: IntArray
    distance: FloatArray  # one number: Σ_m w_m·dH[m,home_m]
    client_delay: FloatArray  # [dH], or empty if it is computed as γ times the distance
    delay_out: FloatArray  # [dS]
    delay_in: FloatArray  # [dS] transposed
    delay_per_km: float  # [γ]
    detour: float  # 2·dC


class State:
    """An assignment with its running sums, which can be changed by single moves.

    Parameters
    ----------
    instance
        The problem.
    home
        The initial assignment; it is copied.
    """

    def __init__(self, instance: Instance, home: npt.ArrayLike) -> None:
        self.instance = instance
        self.arrays = _arrays(instance, checked_home(instance, home))
        _fill_slots(self.arrays)
        self._history: list[tuple[int, int]] = []
        self._moves = 0
        self.refresh()

    @property
    def home(self) -> IntArray:
        """A copy of the current assignment."""
        return self.arrays.home.copy()

    @property
    def objective(self) -> float:
        """``ΣD`` of the current assignment, plus the priced loads if prices are set."""
        return float(state_objective(self.arrays))

    def delta(self, client: int, server: int) -> float:
        """Return the change of the objective if a client moved; the state stays the same.

        Parameters
        ----------
        client
            The client.
        server
            Its new home.

        Returns
        -------
        float
            The objective after the move minus the objective before it.

        Raises
        ------
        IndexError
            If there is no such client or server.
        """
        self._check(client, server)
        return float(move_delta(self.arrays, client, server))

    def move(self, client: int, server: int) -> None:
        """Move a client to another home.

        Parameters
        ----------
        client
            The client.
        server
            Its new home.

        Raises
        ------
        IndexError
            If there is no such client or server.
        """
        self._check(client, server)
        self._history.append((client, int(self.arrays.home[client])))
        self._apply(client, server)

    def undo(self) -> None:
        """Undo the last move that has not been undone.

        Raises
        ------
        IndexError
            If there is no such move.
        """
        if not self._history:
            raise IndexError("there is no move to undo")
        self._apply(*self._history.pop())

    def refresh(self) -> None:
        """Compute all running sums again from the homes, which removes accumulated rounding errors."""
        now = evaluate(self.instance, self.arrays.home)
        for name in ("storage_load", "compute_load", "sent", "spread"):
            self.arrays.server[name] = getattr(now, name)
        self.arrays.distance[0] = now.distance_cost
        _renew_all_thetas(self.arrays)
        self.cost = now.objective

    def relax_capacities(self, room: float | FloatArray, storage_price: FloatArray, compute_price: FloatArray) -> None:
        """Replace the capacities by larger ones and charge prices for loads, so that a search can cross overloads.

        Parameters
        ----------
        room
            Relative increase of the capacities, one number or one for each server.
        storage_price, compute_price
            Additional cost per unit of load at each server.
        """
        server = self.arrays.server
        server["storage_capacity"], server["compute_capacity"] = (
            self.instance.storage_capacity * (1 + room),
            self.instance.compute_capacity * (1 + room),
        )
        server["storage_price"], server["compute_price"] = storage_price, compute_price
        _renew_all_thetas(self.arrays)

    def restore_capacities(self) -> None:
        """Return to the capacities of the instance and to prices of 0."""
        zero = np.zeros(self.instance.n_servers)
        self.relax_capacities(0.0, zero, zero)

    def _apply(self, client: int, server: int) -> None:
        move_apply(self.arrays, client, server)
        self._moves += 1
        if self._moves % MOVES_BETWEEN_REFRESHES == 0:
            self.refresh()

    def _check(self, client: int, server: int) -> None:
        if not 0 <= client < self.instance.n_clients:
            raise IndexError(f"expected a client from 0 to {self.instance.n_clients - 1}, got {client}")
        if not 0 <= server < self.instance.n_servers:
            raise IndexError(f"expected a server from 0 to {self.instance.n_servers - 1}, got {server}")


def _arrays(instance: Instance, home: IntArray) -> StateArrays:
    client = np.zeros(instance.n_clients, CLIENT)
    client["x"], client["y"] = instance.client_x, instance.client_y
    client["weight"], client["demand"] = instance.client_weight, instance.client_demand
    client["publications"] = instance.client_publications
    client["first"], client["last"] = instance.topics.start[:-1], instance.topics.start[1:]

    entry = np.zeros(len(instance.topics.item), ENTRY)
    entry["topic"], entry["role"] = instance.topics.item, instance.topic_role
    np.divide(1.0, instance.receivers, out=entry["share"], where=instance.receivers > 0)

    topic = np.zeros(instance.n_topics, TOPIC)
    topic["spool"] = instance.spool
    subscribers = instance.subscribers.sizes
    np.divide(1.0, subscribers, out=topic["share_only"], where=subscribers > 0)
    np.divide(1.0, subscribers - 1, out=topic["share_both"], where=subscribers > 1)
    # The members of a topic are on at most as many servers as there are members.
    slots = np.cumsum(np.minimum(instance.members.sizes, instance.n_servers))
    topic["first"][1:] = slots[:-1]
    topic["last"] = topic["first"]

    server = np.zeros(instance.n_servers, SERVER)
    server["x"], server["y"] = instance.server_x, instance.server_y
    server["storage_capacity"], server["compute_capacity"] = instance.storage_capacity, instance.compute_capacity

    table = instance.explicit_client_delay
    if not table.size and instance.n_clients * instance.n_servers <= TABLE_ENTRIES:
        table = instance.client_delay(np.arange(instance.n_clients)[:, None], np.arange(instance.n_servers)[None, :])
    return StateArrays(
        client=client,
        entry=entry,
        topic=topic,
        slot=np.zeros(int(slots[-1]), SLOT),
        server=server,
        home=home,
        distance=np.zeros(1),
        client_delay=_read_only(table),
        delay_out=_read_only(instance.server_delay),
        delay_in=_read_only(instance.server_delay.T),
        delay_per_km=instance.delay_per_km,
        detour=2 * instance.cloud_delay,
    )


def _read_only(values: FloatArray) -> FloatArray:
    """Return the values in the layout that the kernels are compiled for; they are copied only if necessary."""
    array = np.ascontiguousarray(values)
    array.flags.writeable = False
    return array


@compiled
def state_objective(s: StateArrays) -> float:
    """Return ``ΣD`` from the running sums, plus the priced loads.

    Parameters
    ----------
    s
        The arrays of the state.

    Returns
    -------
    float
        ``Σ_m w_m·dH[m,home_m] + Σ_l (2·dC·F_l·(1-θ_l) + θ_l·Q_l + storage price·a_l + compute price·v_l)``.
    """
    total = s.distance[0]
    for l in range(len(s.server)):
        now = s.server[l]
        total += server_cost(s.detour, now.theta, now.sent, now.spread)
        total += now.storage_price * now.storage_load + now.compute_price * now.compute_load
    return float(total)


@compiled
def move_delta(s: StateArrays, client: int, server: int) -> float:
    """Return the change of the objective if a client moves; the state stays the same.

    Let ``h`` be the old and ``l`` the new home. The values ``a, v, θ, F`` change only at these two servers, and ``Q``
    at every server ``k`` with a publisher of a topic of the client. For one topic let ``p_k = Σ 1/|R|`` over its
    publications homed at ``k``, ``g`` the part of the client in this sum, ``s_j`` the subscribers at ``j``, and
    ``R_k = Σ_j s_j·dS[k,j]``, all before the move. If the client subscribes to the topic, then

        ``ΔQ_k = p_k·(dS[k,l] - dS[k,h])`` for ``k`` other than ``h`` and ``l``,

        ``ΔQ_h = -g·R_h + (p_h - g)·dS[h,l]``,  ``ΔQ_l = g·R_l - (p_l + g)·dS[l,h]``.

    If it only publishes, then ``ΔQ_h = -g·R_h``, ``ΔQ_l = g·R_l``, and no other ``Q`` changes.

    Parameters
    ----------
    s
        The arrays of the state.
    client
        The client.
    server
        Its new home.

    Returns
    -------
    float
        The objective after the move minus the objective before it.
    """
    old = s.home[client]
    if old == server:
        return 0.0
    spread_old = s.server[old].spread
    spread_new = s.server[server].spread
    storage_old = s.server[old].storage_load
    storage_new = s.server[server].storage_load
    open_old = s.server[old].open
    elsewhere = 0.0
    for e in range(s.client[client].first, s.client[client].last):
        n = s.entry[e].topic
        share = s.entry[e].share
        subscribes = s.entry[e].role & SUBSCRIBES
        reach_old = 0.0
        reach_new = 0.0
        sending_old = 0.0
        sending_new = 0.0
        publishers_old = 0
        publishers_new = 0
        shift = 0.0
        for j in range(s.topic[n].first, s.topic[n].last):
            k = s.slot[j].server
            subscribers = s.slot[j].subscribers
            reach_old += subscribers * s.delay_out[old, k]
            reach_new += subscribers * s.delay_out[server, k]
            if k == old:
                sending_old = s.slot[j].sending
                publishers_old = s.slot[j].only + s.slot[j].both
            elif k == server:
                sending_new = s.slot[j].sending
                publishers_new = s.slot[j].only + s.slot[j].both
            else:
                shift += s.server[k].theta * s.slot[j].sending * (s.delay_in[server, k] - s.delay_in[old, k])
        spread_old -= share * reach_old
        spread_new += share * reach_new
        if subscribes:
            elsewhere += shift
            spread_old += (sending_old - share) * s.delay_out[old, server]
            spread_new -= (sending_new + share) * s.delay_out[server, old]
        if s.entry[e].role & PUBLISHES:
            if publishers_old == 1 and s.topic[n].spool > 0.0:
                storage_old -= s.topic[n].spool
                open_old -= 1
            if publishers_new == 0:
                storage_new += s.topic[n].spool
    demand = s.client[client].demand
    sent = s.client[client].publications
    here = s.server[old]
    there = s.server[server]
    # A server without topics has exactly no load. A rounding error of the difference would matter for a capacity of 0.
    compute_old = here.compute_load - demand if open_old > 0 else 0.0
    storage_old = storage_old if open_old > 0 else 0.0
    theta_old = local_theta(here.storage_capacity, here.compute_capacity, storage_old, compute_old)
    theta_new = local_theta(there.storage_capacity, there.compute_capacity, storage_new, there.compute_load + demand)
    return float(
        s.client[client].weight * (delay_to_server(s, client, server) - delay_to_server(s, client, old))
        + elsewhere
        + here.storage_price * (storage_old - here.storage_load)
        + here.compute_price * (compute_old - here.compute_load)
        + there.storage_price * (storage_new - there.storage_load)
        + there.compute_price * demand
        + server_cost(s.detour, theta_old, here.sent - sent, spread_old)
        - server_cost(s.detour, here.theta, here.sent, here.spread)
        + server_cost(s.detour, theta_new, there.sent + sent, spread_new)
        - server_cost(s.detour, there.theta, there.sent, there.spread)
    )


@compiled
def move_apply(s: StateArrays, client: int, server: int) -> None:
    """Move a client and update all running sums.

    Parameters
    ----------
    s
        The arrays of the state; they are changed.
    client
        The client.
    server
        Its new home.
    """
    old = s.home[client]
    if old == server:
        return
    for e in range(s.client[client].first, s.client[client].last):
        n = s.entry[e].topic
        subscribes = s.entry[e].role & SUBSCRIBES
        # First the client leaves the counts of its old home, because _shift_spread expects the counts without it.
        j = _find_slot(s, n, old)
        _count(s, n, j, s.entry[e].role, -1)
        _shift_spread(s, n, old, server, s.entry[e].share, subscribes)
        if s.entry[e].role & PUBLISHES and s.slot[j].only + s.slot[j].both == 0:
            _open_topic(s, n, old, -1)
        if s.slot[j].only + s.slot[j].subscribers == 0:
            _close_slot(s, n, j)
        j = _find_slot(s, n, server)
        if j < 0:
            j = _open_slot(s, n, server)
        if s.entry[e].role & PUBLISHES and s.slot[j].only + s.slot[j].both == 0:
            _open_topic(s, n, server, 1)
        _count(s, n, j, s.entry[e].role, 1)
    s.server[old].compute_load -= s.client[client].demand
    s.server[server].compute_load += s.client[client].demand
    s.server[old].sent -= s.client[client].publications
    s.server[server].sent += s.client[client].publications
    if s.server[old].open == 0:
        s.server[old].storage_load = 0.0
        s.server[old].compute_load = 0.0
    _renew_theta(s, old)
    _renew_theta(s, server)
    s.distance[0] += s.client[client].weight * (delay_to_server(s, client, server) - delay_to_server(s, client, old))
    s.home[client] = server


@compiled
def _renew_theta(s: StateArrays, l: int) -> None:
    now = s.server[l]
    s.server[l].theta = local_theta(now.storage_capacity, now.compute_capacity, now.storage_load, now.compute_load)


@compiled
def _renew_all_thetas(s: StateArrays) -> None:
    for l in range(len(s.server)):
        _renew_theta(s, l)


@compiled
def _open_topic(s: StateArrays, n: int, l: int, by: int) -> None:
    """Open topic ``n`` on server ``l`` (``by`` is 1) or close it (``by`` is -1)."""
    if s.topic[n].spool > 0.0:
        s.server[l].storage_load += by * s.topic[n].spool
        s.server[l].open += by


@compiled
def _shift_spread(s: StateArrays, n: int, old: int, server: int, share: float, subscribes: int) -> None:
    """Update ``Q`` for a member of topic ``n`` that is no longer counted at ``old`` and not yet at ``server``."""
    reach_old = 0.0
    reach_new = 0.0
    for j in range(s.topic[n].first, s.topic[n].last):
        k = s.slot[j].server
        reach_old += s.slot[j].subscribers * s.delay_out[old, k]
        reach_new += s.slot[j].subscribers * s.delay_out[server, k]
        if subscribes:
            s.server[k].spread += s.slot[j].sending * (s.delay_out[k, server] - s.delay_out[k, old])
    s.server[old].spread -= share * reach_old
    s.server[server].spread += share * reach_new


@compiled
def _count(s: StateArrays, n: int, j: int, role: int, by: int) -> None:
    if role & SUBSCRIBES:
        s.slot[j].subscribers += by
        if role & PUBLISHES:
            s.slot[j].both += by
    else:
        s.slot[j].only += by
    # Computed from the integer counts, so that no rounding error accumulates.
    s.slot[j].sending = s.slot[j].only * s.topic[n].share_only + s.slot[j].both * s.topic[n].share_both


@compiled
def _find_slot(s: StateArrays, n: int, server: int) -> int:
    for j in range(s.topic[n].first, s.topic[n].last):
        if s.slot[j].server == server:
            return int(j)
    return -1


@compiled
def _open_slot(s: StateArrays, n: int, server: int) -> int:
    j = s.topic[n].last
    s.topic[n].last += 1
    s.slot[j].server = server
    s.slot[j].only = 0
    s.slot[j].both = 0
    s.slot[j].subscribers = 0
    s.slot[j].sending = 0.0
    return int(j)


@compiled
def _close_slot(s: StateArrays, n: int, j: int) -> None:
    last = s.topic[n].last - 1
    s.topic[n].last = last
    s.slot[j].server = s.slot[last].server
    s.slot[j].only = s.slot[last].only
    s.slot[j].both = s.slot[last].both
    s.slot[j].subscribers = s.slot[last].subscribers
    s.slot[j].sending = s.slot[last].sending


@compiled
def _fill_slots(s: StateArrays) -> None:
    for client in range(len(s.home)):
        for e in range(s.client[client].first, s.client[client].last):
            n = s.entry[e].topic
            j = _find_slot(s, n, s.home[client])
            if j < 0:
                j = _open_slot(s, n, s.home[client])
            if s.entry[e].role & PUBLISHES and s.slot[j].only + s.slot[j].both == 0:
                _open_topic(s, n, s.home[client], 1)
            _count(s, n, j, s.entry[e].role, 1)


@compiled
def local_theta(storage_capacity: float, compute_capacity: float, storage_load: float, compute_load: float) -> float:
    """Return ``θ_l = min(A_l/a_l, B_l/v_l, 1)`` of one server.

    Parameters
    ----------
    storage_capacity, compute_capacity
        ``A_l`` and ``B_l``.
    storage_load, compute_load
        ``a_l`` and ``v_l``.

    Returns
    -------
    float
        ``θ_l``.
    """
    theta = 1.0
    if storage_load > storage_capacity:
        theta = storage_capacity / storage_load
    if compute_load > compute_capacity:
        theta = min(theta, compute_capacity / compute_load)
    return float(theta)


@compiled
def server_cost(detour: float, theta: float, sent: float, spread: float) -> float:
    """Return ``2·dC·F_l·(1-θ_l) + θ_l·Q_l`` of one server.

    Parameters
    ----------
    detour
        ``2·dC``.
    theta, sent, spread
        ``θ_l``, ``F_l`` and ``Q_l``.

    Returns
    -------
    float
        The part of the objective that belongs to the server.
    """
    return detour * sent * (1.0 - theta) + theta * spread


@compiled
def delay_to_server(s: StateArrays, client: int, l: int) -> float:
    """Return ``dH`` of a client and a server.

    Parameters
    ----------
    s
        The arrays of the state.
    client
        The client.
    l
        The server.

    Returns
    -------
    float
        The delay in ms.
    """
    if s.client_delay.shape[0] > 0:
        return float(s.client_delay[client, l])
    return euclidean_delay(s.client[client].x - s.server[l].x, s.client[client].y - s.server[l].y, s.delay_per_km)
