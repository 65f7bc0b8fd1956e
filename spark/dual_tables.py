"""The dual of a bound at full scale as a dataset, and its division into blocks.

The dataset has one row for each topic: its members with their homes and active servers, the messages along all pairs of
members, and the shares of the publishers in the price of its storage, if capacities have prices. In a field with roles
it has the roles of the members, too. A message, share or role is stored once, so two blocks cannot see different ones;
the block with the home of a member checks its role.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from relocbench.formulations.certificates.block_bound import DualBlock
from relocbench.formulations.certificates.integer_problem import WEIGHT_BITS
from relocbench.instances.errors import InputError
from relocbench.instances.files.edge_list import BOTH
from relocbench.instances.instance import PUBLISHES, SUBSCRIBES
from relocbench.instances.kernels.ragged import FloatArray, IntArray, offsets
from relocbench.instances.role_weights import receiver_counts, senders_by_receivers
from relocbench.spark.blocks import BLOCK_SCHEMA, pack, unpack
from relocbench.spark.membership_roles import (
    ROLE_SCHEMA,
    MembershipRoles,
    role_columns,
    roles_of,
    with_role,
    without_role,
)
from relocbench.spark.placement import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Int64Array = npt.NDArray[np.int64]
CLIENT_COLUMNS = ["client", "x", "y", "home", "topics", "sizes"]
DUAL_COLUMNS = ["topic", "member", "member_home", "labels", "messages", "shares"]
DUAL_SCHEMA = (
    "topic bigint, member array<bigint>, member_home array<int>, labels array<int>, messages array<bigint>, "
    "shares array<bigint>"
)
# A row is either a client of the block or a topic that it needs.
_CLIENT_FIELDS = "client bigint, x double, y double, home int, topics array<bigint>, sizes array<int>"
# The roles of the members of a topic, in a field with roles.
_MEMBER_ROLES = "member_role"


def dual_schema(roles: bool) -> str:
    """Return the schema of a dual.

    Parameters
    ----------
    roles
        Whether members have roles.

    Returns
    -------
    str
        ``DUAL_SCHEMA``, with roles also with their column.
    """
    return f"{DUAL_SCHEMA}, {_MEMBER_ROLES} array<tinyint>" if roles else DUAL_SCHEMA


def _dual_columns(roles: bool) -> list[str]:
    return [*DUAL_COLUMNS, _MEMBER_ROLES] if roles else DUAL_COLUMNS


def first_dual(
    clients: "DataFrame", labels: "DataFrame", field: Field, count: int, priced: bool = False
) -> "DataFrame":
    """Create the dual whose messages and shares are all 0.

    Parameters
    ----------
    clients
        The dataset of :func:`spark.placement.place_field`.
    labels
        Columns ``client``, ``home`` and ``labels``: the active servers of each client.
    field
        Servers and sizes.
    count
        The number of active servers of each client.
    priced
        Whether topics have shares.

    Returns
    -------
    pyspark.sql.DataFrame
        Rows of :func:`dual_schema`.
    """
    columns = ["topic", "size", *role_columns(field.roles)]
    joined = clients.select("client", *columns).join(labels, "client").select("client", "home", "labels", *columns)
    return (
        joined.mapInArrow(_labels_by_topic(field.n_blocks, count), BLOCK_SCHEMA)
        .groupBy("block")
        .applyInArrow(_silent_topics(count, priced, field.roles), dual_schema(field.roles))
    )


def block_rows(
    clients: "DataFrame", homes: "DataFrame", dual: "DataFrame", field: Field, region: IntArray
) -> "DataFrame":
    """Group clients by the region of their home, together with the topics that they need.

    Parameters
    ----------
    clients
        The dataset of :func:`spark.placement.place_field`.
    homes
        Columns ``client`` and ``home``.
    dual
        Rows of :func:`dual_schema`.
    field
        Whether members have roles.
    region
        The region of each server.

    Returns
    -------
    pyspark.sql.DataFrame
        Rows of clients and rows of topics, each with a column ``region``.
    """
    roles = role_columns(field.roles)
    placed = clients.join(homes.select("client", "home"), "client")
    placed = placed.selectExpr("client", "x", "y", "home", "topic AS topics", "size AS sizes", *roles)
    fields = f"{_CLIENT_FIELDS}, {ROLE_SCHEMA}" if roles else _CLIENT_FIELDS
    own = placed.mapInArrow(_add_region(region, [*CLIENT_COLUMNS, *roles]), f"region int, {fields}")
    if "shares" not in dual.columns:  # a dual of the first version has none
        dual = dual.selectExpr("*", "CAST(array() AS array<bigint>) AS shares")
    topics = dual.select(*_dual_columns(field.roles)).mapInArrow(
        _copy_to_regions(region), f"region int, {dual_schema(field.roles)}"
    )
    return own.unionByName(topics, allowMissingColumns=True)


def read_block(
    table: pa.Table, field: Field, count: int, *, add: bool = False
) -> tuple[DualBlock, IntArray, Int64Array, pa.Table]:
    """Read the rows of one block and check that they fit together.

    Parameters
    ----------
    table
        The rows of one region, as :func:`block_rows` makes them.
    field
        Servers and delays.
    count
        The number of active servers of each client.
    add
        Whether a topic may have several rows, whose messages and shares are added, as between two rounds. In a
        certificate each topic has one row.

    Returns
    -------
    block
        The block.
    home
        The homes of the own clients.
    start
        The pairs of the ``i``-th topic are ``start[i]..start[i+1]-1``.
    topics
        The rows of the topics, sorted by their ids.

    Raises
    ------
    InputError
        If topics or roles differ from those of the own clients, or a client has different labels in different topics.
    """
    columns = [*CLIENT_COLUMNS, *role_columns(field.roles)]
    own = table.filter(table["client"].is_valid()).select(columns).sort_by("client").combine_chunks()
    rows = table.filter(table["topic"].is_valid()).select(_dual_columns(field.roles)).sort_by("topic").combine_chunks()
    if add:
        rows = _added(rows)
    servers = len(field.server_x)
    ids, home = _numbers(own, "client"), _numbers(own, "home").astype(np.int32)
    topic = _numbers(rows, "topic")
    _require(bool((np.diff(topic) > 0).all()), "has a topic twice")
    size, member = _sizes(rows, "member"), _flat(rows, "member")
    pairs = size * (size - 1) // 2
    _require(np.array_equal(_sizes(rows, "member_home"), size), "has topics with a wrong number of homes")
    _require(np.array_equal(_sizes(rows, "labels"), size * count), "has topics with a wrong number of labels")
    _require(np.array_equal(_sizes(rows, "messages"), pairs * count), "has topics with a wrong number of messages")
    entry_topic = np.repeat(np.arange(len(topic)), size)
    role = np.full(len(member), BOTH)
    if field.roles:
        _require(np.array_equal(_sizes(rows, _MEMBER_ROLES), size), "has topics with a wrong number of roles")
        role = _flat(rows, _MEMBER_ROLES)
    publishes, subscribes = (role & PUBLISHES) > 0, (role & SUBSCRIBES) > 0
    publishers, subscribers = (np.bincount(entry_topic[kept], minlength=len(topic)) for kept in (publishes, subscribes))
    shares = _flat(rows, "shares")
    if len(shares):
        _require(np.array_equal(_sizes(rows, "shares"), publishers * count), "has topics with a wrong number of shares")
    else:
        shares = np.zeros(int(publishers.sum()) * count, np.int64)
    rising = (np.diff(member) > 0) | (np.diff(entry_topic) > 0)
    _require(bool(rising.all()), "has topics whose members do not ascend")
    labels = _flat(rows, "labels").reshape(-1, count)
    fit = (np.diff(labels, axis=1) > 0).all() and (labels >= 0).all() and (labels < servers).all()
    _require(bool(fit), f"has labels that are not {count} ascending servers")

    # The own clients come first, then the others.
    others = np.setdiff1d(member, ids)
    nodes = np.concatenate([ids, others])
    order = np.argsort(nodes, kind="stable")
    node = order[np.searchsorted(nodes, member, sorter=order)]
    node_labels = np.zeros((len(nodes), count), np.int64)
    node_labels[node] = labels
    _require(np.array_equal(node_labels[node], labels), "has different labels for one client")
    sizes = _flat(own, "sizes")
    owner = np.repeat(np.arange(len(ids)), _sizes(own, "topics"))
    roles = roles_of(own, sizes)
    wanted = np.stack([owner, _flat(own, "topics"), sizes, *roles])
    mine = node < len(ids)
    my_topic = entry_topic[mine]
    found = np.stack(
        [node[mine], topic[my_topic], size[my_topic], role[mine], publishers[my_topic], subscribers[my_topic]]
    )
    same = wanted.shape == found.shape and np.array_equal(_sorted(wanted), _sorted(found))
    _require(same, "has other topics or roles than the clients")

    first, second = _pairs(size)
    pair_topic = np.repeat(np.arange(len(topic)), pairs)
    receivers = receiver_counts(role, subscribers[entry_topic])
    x, y = _numbers(own, "x"), _numbers(own, "y")
    block = DualBlock(
        own=len(ids),
        distance=_delays(x[:, None] - field.server_x[None, :], y[:, None] - field.server_y[None, :], field),
        publications=np.bincount(owner[receiver_counts(roles.role, roles.subscribers) > 0], minlength=len(ids)),
        received=_received(owner, roles, sizes, len(ids)),
        server_delay=server_delays(field),
        cloud_delay=field.cloud_delay,
        labels=node_labels,
        first=node[first],
        second=node[second],
        receivers=np.column_stack([receivers[first] * subscribes[second], receivers[second] * subscribes[first]]),
        topic=pair_topic,
        messages=_flat(rows, "messages").reshape(-1, count),
        spool=field.spool_per_member * size.astype(np.float64),
        member=node[publishes],
        member_topic=entry_topic[publishes],
        shares=shares.reshape(-1, count),
    )
    return block, home, offsets(pairs), rows


def _received(owner: Int64Array, roles: MembershipRoles, size: Int64Array, clients: int) -> Int64Array:
    """Return the parts of publications that each client receives, in units of ``2^-WEIGHT_BITS`` and rounded down."""
    only, others = senders_by_receivers(roles.role, size, roles.publishers, roles.subscribers)
    parts = (only << WEIGHT_BITS) // np.maximum(roles.subscribers, 1)
    parts += (others << WEIGHT_BITS) // np.maximum(roles.subscribers - 1, 1)
    received = np.zeros(clients, np.int64)
    np.add.at(received, owner, parts)
    return received


def server_delays(field: Field) -> FloatArray:
    """Return the delays between servers.

    Parameters
    ----------
    field
        The servers.

    Returns
    -------
    array
        ``dS`` (``L×L``).
    """
    return _delays(
        field.server_x[:, None] - field.server_x[None, :], field.server_y[:, None] - field.server_y[None, :], field
    )


def _delays(dx: FloatArray, dy: FloatArray, field: Field) -> FloatArray:
    return np.asarray(field.delay_per_km * np.sqrt(dx * dx + dy * dy), np.float64)


def _added(rows: pa.Table) -> pa.Table:
    """Add the messages and the shares of rows of the same topic."""
    _, first, which = np.unique(_numbers(rows, "topic"), return_index=True, return_inverse=True)
    kept = rows.take(pa.array(first))
    for name in ("messages", "shares"):
        size = _sizes(rows, name)
        start = offsets(size[first])
        _require(np.array_equal(size, size[first][which]), f"has rows of one topic with different numbers of {name}")
        place = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size) + np.repeat(start[which], size)
        total = np.zeros(int(start[-1]), np.int64)
        np.add.at(total, place, _flat(rows, name))
        kept = with_numbers(kept, name, np.diff(start), total)
    return kept


def with_numbers(rows: pa.Table, name: str, sizes: Int64Array, values: Int64Array) -> pa.Table:
    """Return rows of topics with other messages or shares.

    Parameters
    ----------
    rows
        The rows.
    name
        ``messages`` or ``shares``.
    sizes, values
        The numbers of all rows, as for :func:`lists`.

    Returns
    -------
    pyarrow.Table
        The rows.
    """
    return rows.set_column(rows.schema.get_field_index(name), name, lists(sizes, values))


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise InputError("", f"the dual {problem}; remove it and compute it again")


def _numbers(table: pa.Table, name: str) -> npt.NDArray[Any]:
    return np.array(table[name].to_numpy())


def _flat(table: pa.Table, name: str) -> Int64Array:
    numbers = table[name].combine_chunks().flatten()
    # One missing number would make floats of all numbers of the block, which lose the last digits of large ones.
    _require(not numbers.null_count, f"has missing numbers in {name}")
    return np.array(numbers.to_numpy(zero_copy_only=False)).astype(np.int64)


def _sizes(table: pa.Table, name: str) -> Int64Array:
    lists_of_rows = table[name].combine_chunks()
    _require(not lists_of_rows.null_count, f"has topics without {name}")
    return np.array(lists_of_rows.value_lengths().to_numpy(zero_copy_only=False)).astype(np.int64)


def _sorted(columns: Int64Array) -> Int64Array:
    return columns[:, np.lexsort(columns[::-1])]


def _pairs(size: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the pairs of entries within each group, in lexicographic order."""
    end = np.repeat(np.cumsum(size), size)
    entry = np.arange(int(size.sum()))
    later = end - entry - 1
    first = np.repeat(entry, later)
    place = np.arange(len(first)) - np.repeat(np.cumsum(later) - later, later)
    return first, first + 1 + place


def _labels_by_topic(n_blocks: int, count: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` that packs members with their homes, roles and labels by topic."""

    def regroup(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            degree = batch.column("topic").value_lengths().to_numpy(zero_copy_only=False)
            owner = np.repeat(np.arange(batch.num_rows), degree)
            labels = batch.column("labels").flatten().to_numpy(zero_copy_only=False).reshape(-1, count)
            size = batch.column("size").flatten().to_numpy(zero_copy_only=False).astype(np.int64)
            client, home = (batch.column(name).to_numpy(zero_copy_only=False)[owner] for name in ("client", "home"))
            columns = [client.astype(np.int64), with_role(home, roles_of(batch, size).role)]
            columns += [labels[owner, k].astype(np.int64) for k in range(count)]
            yield pack(n_blocks, batch.column("topic").flatten().to_numpy(zero_copy_only=False), *columns)

    return regroup


def _silent_topics(count: int, priced: bool, roles: bool) -> Callable[[pa.Table], pa.Table]:
    """Return a function for ``applyInArrow`` that makes the topics of a block, with messages and shares of 0."""

    def make(table: pa.Table) -> pa.Table:
        entries = unpack(table["payload"], 3 + count)
        entries = entries[:, np.lexsort((entries[1], entries[0]))]
        topic, index, size = np.unique(entries[0], return_inverse=True, return_counts=True)
        home, role = without_role(entries[2])
        pairs = size * (size - 1) // 2
        paying = np.bincount(index[(role & PUBLISHES) > 0], minlength=len(topic)) * priced
        labels = np.ascontiguousarray(entries[3:].T).ravel()
        columns = {
            "topic": topic,
            "member": lists(size, entries[1]),
            "member_home": lists(size, home.astype(np.int32)),
            "labels": lists(size * count, labels.astype(np.int32)),
            "messages": lists(pairs * count, np.zeros(int(pairs.sum()) * count, np.int64)),
            "shares": lists(paying * count, np.zeros(int(paying.sum()) * count, np.int64)),
        }
        return pa.table(columns | ({_MEMBER_ROLES: lists(size, role.astype(np.int8))} if roles else {}))

    return make


def lists(sizes: Int64Array, values: npt.NDArray[np.integer]) -> pa.ListArray:
    """Return a column of lists.

    Parameters
    ----------
    sizes
        The length of each list.
    values
        The entries of all lists, one list after the other.

    Returns
    -------
    pyarrow.ListArray
        The column.
    """
    return pa.ListArray.from_arrays(pa.array(offsets(sizes).astype(np.int32)), pa.array(values))


def _servers(homes: pa.Array, region: IntArray) -> npt.NDArray[Any]:
    """Return homes as numbers, if all of them are servers."""
    home = homes.to_numpy(zero_copy_only=False)
    # Missing homes are floats that are no numbers.
    if not ((home >= 0) & (home < len(region))).all():
        raise InputError("", f"there are homes that are not servers from 0 to {len(region) - 1}")
    return np.asarray(home)


def _add_region(region: IntArray, names: list[str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` that adds the region of each client."""

    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            number = region[_servers(batch.column("home"), region)].astype(np.int32)
            yield pa.record_batch([pa.array(number), *(batch.column(name) for name in names)], names=["region", *names])

    return add


def _copy_to_regions(region: IntArray) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` that copies each topic to every region with a member of it."""
    n_regions = int(region.max()) + 1

    def copy(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            homes = batch.column("member_home")
            _require(not homes.null_count, "has topics without homes")
            row = np.repeat(np.arange(batch.num_rows), homes.value_lengths().to_numpy(zero_copy_only=False))
            pair = np.unique(row * n_regions + region[_servers(homes.flatten(), region)])
            copied = batch.take(pa.array(pair // n_regions))
            number = pa.array((pair % n_regions).astype(np.int32))
            yield pa.record_batch([number, *copied.columns], names=["region", *copied.schema.names])

    return copy
