"""Roles of the members of topics: those of an edge list, and what they mean for the clients of a field.

A role is PUBLISHES, SUBSCRIBES or both (``|``), as in :class:`instances.instance.Instance`. Without roles every member
publishes and subscribes, and no dataset has a column for it.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from relocbench.instances.files.edge_list import BOTH
from relocbench.instances.instance import PUBLISHES, SUBSCRIBES
from relocbench.instances.kernels.id_hash import IdArray
from relocbench.instances.kernels.ragged import IntArray, OffsetArray, Ragged, offsets

# Further columns of the dataset of clients: for each topic of the client its role, and the numbers of publishers and of
# subscribers of the topic.
ROLE_COLUMNS = ("role", "publishers", "subscribers")
ROLE_SCHEMA = "role array<tinyint>, publishers array<int>, subscribers array<int>"
# A role has this many bits.
ROLE_BITS = 2


class MembershipRoles(NamedTuple):
    """Roles of memberships.

    Attributes
    ----------
    role
        The role of the client in the topic.
    publishers, subscribers
        ``|P|`` and ``|S|`` of the topic.
    """

    role: npt.NDArray[np.int64]
    publishers: npt.NDArray[np.int64]
    subscribers: npt.NDArray[np.int64]


def role_columns(roles: bool) -> list[str]:
    """Return the columns with roles of the dataset of clients.

    Parameters
    ----------
    roles
        Whether the field has roles.

    Returns
    -------
    list of str
        Their names; none without roles.
    """
    return list(ROLE_COLUMNS) if roles else []


def roles_of(rows: pa.RecordBatch | pa.Table, size: npt.NDArray[np.int64]) -> MembershipRoles:
    """Return the roles of the memberships of some clients.

    Parameters
    ----------
    rows
        Rows of the dataset of clients.
    size
        The number of members of the topic of each membership.

    Returns
    -------
    MembershipRoles
        The roles. In a dataset without roles every member publishes and subscribes.
    """
    if "role" not in rows.schema.names:
        return MembershipRoles(np.full(len(size), BOTH), size, size)
    return MembershipRoles(*(_flat(rows.column(name)) for name in ROLE_COLUMNS))


def _flat(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return np.asarray(whole.flatten().to_numpy(zero_copy_only=False)).astype(np.int64)


def with_role(number: npt.NDArray[np.integer[Any]], role: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Code a number, such as a home, and a role as one number, so that a shuffle has no column for roles.

    Parameters
    ----------
    number, role
        The numbers and the roles.

    Returns
    -------
    array
        The codes. They are ordered by number first.
    """
    return number.astype(np.int64) << ROLE_BITS | role


def without_role(code: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Decode what :func:`with_role` has coded.

    Parameters
    ----------
    code
        The codes.

    Returns
    -------
    tuple of two arrays
        The numbers and the roles.
    """
    return code >> ROLE_BITS, code & ((1 << ROLE_BITS) - 1)


def lists_by_role(
    topic: npt.NDArray[np.integer[Any]], client: IntArray, role: npt.NDArray[np.int64], topics: int
) -> tuple[Ragged, Ragged]:
    """Return the publishers and the subscribers of each topic.

    Parameters
    ----------
    topic, client, role
        The memberships, sorted by topic, which is a number from 0.
    topics
        The number of topics.

    Returns
    -------
    publishers, subscribers
        The clients of each topic in the given order.
    """

    def clients_with(part: int) -> Ragged:
        kept = (role & part) > 0
        return Ragged(offsets(np.bincount(topic[kept], minlength=topics)), client[kept])

    return clients_with(PUBLISHES), clients_with(SUBSCRIBES)


def distinct_memberships(follower: IdArray, followee: IdArray, role: IdArray) -> tuple[IdArray, IdArray, IdArray]:
    """Return the memberships of the topics of an edge list with roles.

    Parameters
    ----------
    follower, followee, role
        The edges. Roles of repeated edges are joined. An edge from a follower to itself has its own role.

    Returns
    -------
    topic, member, role
        The memberships in the order of :func:`member_order`, one topic for each follower with a followee. A follower
        without a role of its own publishes and subscribes.
    """
    followers = np.unique(follower[follower != followee])
    # A role of 0 makes every follower a member without changing a role that it has.
    topic = np.concatenate([follower, followers])
    member = np.concatenate([followee, followers])
    order = np.lexsort((member, topic))
    topic, member = topic[order], member[order]
    roles = np.concatenate([role, np.zeros(len(followers), np.int64)])[order]
    first = np.flatnonzero(np.append(True, (topic[1:] != topic[:-1]) | (member[1:] != member[:-1]))[: len(topic)])
    roles = np.bitwise_or.reduceat(roles, first) if len(first) else roles
    topic, member = topic[first], member[first]
    roles[roles == 0] = BOTH
    kept = np.isin(topic, followers)
    topic, member, roles = topic[kept], member[kept], roles[kept]
    order = member_order(topic, member, roles)
    return topic[order], member[order], roles[order]


def member_order(topic: IdArray, member: IdArray, role: IdArray | None = None) -> OffsetArray:
    """Return the order of members: by topic, publishers first, of these the follower first, and then by id.

    An :class:`instances.instance.Instance` has the members of a topic in this order, too.

    Parameters
    ----------
    topic, member
        The memberships. The id of a topic is that of its follower.
    role
        The role of each member; None if all publish and subscribe.

    Returns
    -------
    array
        Positions of the memberships.
    """
    keys = (
        (member, member != topic, topic) if role is None else (member, member != topic, (role & PUBLISHES) == 0, topic)
    )
    return np.asarray(np.lexsort(keys), np.int64)
