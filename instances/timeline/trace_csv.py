"""Timelines from traces: CSV files in which each row says where a client was at some time.

The rows must be in the order of time. The file is read row by row, several times if necessary, so that the memory
depends on the number of clients only.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from relocbench.instances.errors import InputError, did_you_mean, plural, shown
from relocbench.instances.files.follower_graph import read_follower_graph
from relocbench.instances.generators.paper_generator import PaperParameters
from relocbench.instances.generators.topics_from_graph import topics_from_graph
from relocbench.instances.instance import Instance
from relocbench.instances.instance_tables import SERVER_IDS, capacity_of, topic_lists
from relocbench.instances.kernels.ragged import FloatArray, IntArray, Ragged
from relocbench.instances.kernels.random_streams import stream
from relocbench.instances.load import load_of, scaled_capacities
from relocbench.instances.tables import Table, read_table
from relocbench.instances.timeline.epoch import LARGEST_TIME, Epoch
from relocbench.instances.timeline.membership import Membership
from relocbench.instances.timeline.network import make_network
from relocbench.instances.timeline.prices import Prices
from relocbench.instances.timeline.timeline import Timeline
from relocbench.instances.timeline.trace_rows import CELL_COLUMNS, TraceRows

# A trace may have at most this many epochs: one for each millisecond of a day.
MOST_EPOCHS = 86_400_000


@dataclass(frozen=True, kw_only=True)
class TraceParameters:
    """How a trace becomes a timeline.

    Attributes
    ----------
    epoch_length
        Seconds of an epoch. The first one begins at the first row.
    stay
        Seconds for which a client stays present at its last position when the trace has no newer one.
    topics, min_topic_size, max_topic_size, max_topics_per_client
        With a follower graph: how many topics, and their sizes, as for the family ``paper``.
    n_servers
        How many of the server sites are used, drawn with ``seed``; 0 for all.
    seed
        Seed of all draws.
    storage, compute
        Capacities of every server, if the file has none; None if it has.
    load
        If given, all capacities are scaled so that in the epoch with the largest load, homes at the nearest servers
        need this multiple of the storage or compute of all servers, whichever is scarcer.
    spool_per_member
        ``p``: a topic without a spool has ``p`` for each member that is present.
    cloud_delay, delay_per_km
        ``dC`` in ms and ``γ`` in ms per km.
    """

    epoch_length: float = 60.0
    stay: float = 0.0
    topics: int = 64
    min_topic_size: int = 2
    max_topic_size: int = 21
    max_topics_per_client: int = 4
    n_servers: int = 0
    seed: int = 0
    storage: float | None = None
    compute: float | None = None
    load: float | None = None
    spool_per_member: float = 2.0
    cloud_delay: float = 5.0
    delay_per_km: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.epoch_length <= LARGEST_TIME:
            raise InputError("epoch_length", f"expected seconds above 0, got {shown(self.epoch_length)}")
        if not 0 <= self.stay <= LARGEST_TIME:
            raise InputError("stay", f"expected seconds from 0, got {shown(self.stay)}")
        if self.load is not None and not 0 < self.load < math.inf:
            raise InputError("load", f"expected a number above 0, got {shown(self.load)}")


def import_trace(
    trace: str | Path,
    *,
    servers: str | Path | None = None,
    sites: str | Path | None = None,
    members: str | Path | None = None,
    social: str | Path | None = None,
    prices: Prices | None = None,
    name: str = "",
    **parameters: Any,
) -> Timeline:
    r"""Make a timeline from a trace.

    Parameters
    ----------
    trace
        CSV file, possibly compressed, with the columns ``time`` (in seconds; or ``minute``, ``hour``), ``client``, and
        either ``x`` and ``y`` in km, ``latitude`` and ``longitude``, or ``cell``, which names a site. Its rows are in
        the order of time.
    servers
        CSV file with the servers, as for ``relocbench convert``; by default the sites.
    sites
        CSV file with the sites that the trace names: an id (``cell`` or ``id``), and positions.
    members
        CSV file with one row for each membership, as for ``relocbench convert``. Its clients must be in the trace;
        clients of the trace that are in no topic are left out.
    social
        Instead of members: an edge list from which topics are made. Its users become clients of the trace at random.
    prices, name
        As for :class:`instances.timeline.timeline.Timeline`.
    **parameters
        Fields of :class:`TraceParameters`, such as ``epoch_length``, ``load`` and ``seed``.

    Returns
    -------
    Timeline
        The timeline, whose epochs are read from the trace whenever they are needed. An epoch in which no member of a
        topic is present is left out.

    Raises
    ------
    InputError
        If a file cannot be read or has a wrong value; the message names the file, the line and the column.

    Examples
    --------
    >>> import pathlib, relocbench
    >>> _ = pathlib.Path("servers.csv").write_text("x,y,storage,compute\n0,0,9,9\n5,0,9,9\n")
    >>> _ = pathlib.Path("members.csv").write_text("topic,client\nnews,ann\nnews,bob\n")
    >>> _ = pathlib.Path("trace.csv").write_text("time,client,x,y\n0,ann,0,1\n0,bob,1,1\n60,ann,3,1\n")
    >>> relocbench.import_trace("trace.csv", servers="servers.csv", members="members.csv", epoch_length=60)
    <Timeline trace: 2 epochs, 2 servers>
    """
    known = [spec.name for spec in dataclasses.fields(TraceParameters)]
    for parameter in parameters:
        if parameter not in known:
            raise InputError(parameter, f"expected one of {', '.join(known)}{did_you_mean(known, parameter)}")
    chosen = TraceParameters(**parameters)
    if (members is None) == (social is None):
        raise InputError("members", "expected either a file of members or a follower graph")
    if servers is None and sites is None:
        raise InputError("servers", "expected a file of servers, or of sites that are servers too")
    site_table = None if sites is None else read_table(sites)
    server_table = site_table if servers is None else read_table(servers)
    assert server_table is not None
    reader = TraceRows(Path(trace), server_table, site_table)
    network, server_ids = _network(server_table, reader, chosen)
    ids = reader.client_ids()
    membership, topic_ids, clients = _membership(ids, members, social, chosen)
    numbers = {str(ids[client]): number for number, client in enumerate(clients)}
    epochs = _Epochs(reader, numbers, membership, chosen)
    n_epochs, largest_load = 0, 0.0
    for epoch in epochs.of(network):
        n_epochs += 1
        if chosen.load is not None:
            largest_load = max(largest_load, load_of(epoch.instance).largest)
    if not n_epochs:
        raise InputError(str(trace), "expected an epoch in which a member of a topic is present, found none")
    if chosen.load is not None:
        if not 0 < largest_load < math.inf:
            raise InputError("load", "cannot be set, because the servers have no capacity or no topic has a publisher")
        network = scaled_capacities(network, largest_load / chosen.load)
    made: dict[str, Any] = {"trace": Path(trace).name, **_file_names(servers, sites, members, social)}
    made |= {key: value for key, value in dataclasses.asdict(chosen).items() if value is not None}
    made |= {"client_ids": [ids[client] for client in clients], "topic_ids": topic_ids, "server_ids": server_ids}
    return Timeline(
        network,
        lambda: epochs.of(network),
        n_epochs,
        name=name or Path(trace).name.partition(".")[0],
        prices=prices,
        parameters=made,
    )


def _file_names(*paths: str | Path | None) -> dict[str, str]:
    names = ("servers", "sites", "members", "social")
    return {name: Path(path).name for name, path in zip(names, paths, strict=True) if path is not None}


def _network(servers: Table, trace: TraceRows, chosen: TraceParameters) -> tuple[Instance, list[Any]]:
    """Return the servers, all or some of them, and their ids."""
    capacities = {}
    for name in ("storage", "compute"):
        given = getattr(chosen, name)
        if given is None and chosen.load is not None and servers.find(name, f"{name}_capacity") is None:
            # With a load the scale of missing capacities does not matter, only the proportion of storage to compute.
            given = getattr(PaperParameters, name)
        capacities[name] = capacity_of(servers, name, given)
    used = np.arange(servers.count)
    if chosen.n_servers:
        if chosen.n_servers > servers.count:
            problem = (
                f"expected at most {servers.count}, the number of sites in {servers.label}, got {chosen.n_servers}"
            )
            raise InputError("n_servers", problem)
        used = np.sort(stream("trace", "servers", chosen.seed).permutation(servers.count)[: chosen.n_servers])
    network = make_network(
        cloud_delay=chosen.cloud_delay,
        delay_per_km=chosen.delay_per_km,
        server_x=trace.server_at[used, 0],
        server_y=trace.server_at[used, 1],
        storage_capacity=capacities["storage"][used],
        compute_capacity=capacities["compute"][used],
        server_server_delay=None,
    )
    ids = servers.ids(*SERVER_IDS, *CELL_COLUMNS) or list(range(servers.count))
    return network, [ids[site] for site in used]


def _membership(
    ids: list[str], members: str | Path | None, social: str | Path | None, chosen: TraceParameters
) -> tuple[Membership, list[Any], list[int]]:
    """Return the members of the topics, the ids of the topics, and the clients that are in a topic, by position."""
    if members is not None:
        table = read_table(members)
        topic_ids, lists = topic_lists(table, len(ids), ids, "the trace")
        publishers = [topic["publishers"] for topic in lists]
        subscribers = [topic["subscribers"] for topic in lists]
        spool = [math.nan if topic["spool"] is None else topic["spool"] for topic in lists]
        clients = sorted({client for topic in (*publishers, *subscribers) for client in topic})
    else:
        assert social is not None
        rng = stream("trace", "members", chosen.seed)
        topics = topics_from_graph(
            read_follower_graph(social),
            rng,
            topics=chosen.topics,
            min_size=chosen.min_topic_size,
            max_size=chosen.max_topic_size,
            max_topics_per_client=chosen.max_topics_per_client,
        )
        users = int(topics.item.max()) + 1
        if users > len(ids):
            problem = f"expected at most {plural(len(ids), 'member')}, the clients of the trace, got {users}"
            raise InputError("topics", f"{problem}; choose fewer topics than {chosen.topics}")
        who = rng.permutation(len(ids))
        publishers = subscribers = [[int(who[user]) for user in topic] for topic in topics]
        topic_ids, spool = list(range(len(topics))), [math.nan] * len(topics)
        clients = sorted(int(client) for client in who[:users])
    if not clients:
        raise InputError("members", "expected at least one membership, got none")
    number = {client: position for position, client in enumerate(clients)}

    def ragged(lists: list[list[int]]) -> Ragged:
        return Ragged.of([[number[client] for client in topic] for topic in lists])

    membership = Membership(
        len(clients), ragged(publishers), ragged(subscribers), np.array(spool, np.float64), chosen.spool_per_member
    )
    return membership, list(topic_ids or range(len(spool))), clients


class _Epochs:
    """The epochs of a trace."""

    def __init__(
        self, trace: TraceRows, numbers: Mapping[str, int], membership: Membership, chosen: TraceParameters
    ) -> None:
        self._trace, self._numbers, self._membership, self._chosen = trace, numbers, membership, chosen

    def of(self, network: Instance) -> Iterator[Epoch]:
        """Produce the epochs; those in which no topic has a member that is present are left out."""
        count = 0
        for start, clients, at in self._presences():
            epoch = self._membership.epoch(network, count, (start, self._chosen.epoch_length), clients, at)
            if epoch is not None:
                yield epoch
                count += 1

    def _presences(self) -> Iterator[tuple[float, IntArray, FloatArray]]:
        """Yield for each epoch its start, and the clients that are present with their last positions."""
        length, stay = self._chosen.epoch_length, self._chosen.stay
        at = np.zeros((self._membership.n_clients, 2))
        last_time = np.full(self._membership.n_clients, -np.inf)
        last_epoch = np.full(self._membership.n_clients, -1)
        begin, number = -math.inf, 0

        def presence() -> tuple[float, IntArray, FloatArray]:
            start = begin + number * length
            there = (last_epoch == number) | (last_time + stay > start)
            clients = np.flatnonzero(there).astype(np.int32)
            return start, clients, self._trace.in_km(at[clients])

        for _, time, client, position in self._trace.rows():
            begin = time if begin == -math.inf else begin
            current = math.floor((time - begin) / length)
            if current > MOST_EPOCHS:
                problem = f"expected at most {MOST_EPOCHS:,} epochs, got more; choose longer ones"
                raise InputError("epoch_length", problem)
            while number < current:
                yield presence()
                number += 1
                if not (last_time + stay > begin + number * length).any():
                    number = current  # nobody is there in between
            who = self._numbers.get(client)
            if who is not None:
                last_time[who], last_epoch[who], at[who] = time, number, position
        yield presence()
