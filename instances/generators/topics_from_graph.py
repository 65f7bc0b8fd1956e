"""Topics from a follower graph: each chosen follower and its followees."""

import numpy as np
import numpy.typing as npt

from relocbench.instances.errors import InputError
from relocbench.instances.files.follower_graph import FollowerGraph
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import OffsetArray, Ragged


def arrange(
    graph: FollowerGraph,
    rng: np.random.Generator,
    *,
    topics: int,
    min_size: int,
    max_size: int,
    max_topics_per_client: int,
) -> Ragged:
    """Group the edges by follower and take ``topics`` of the rows at random.

    A topic's members are the follower, then its followees by id. Rows whose size is out of range are passed over. A
    client that is in ``max_topics_per_client`` topics already is left out of later ones; a row that this leaves with
    fewer than ``min_size`` members is passed over too. Clients are numbered in the order in which the topics first name
    them, so the result does not depend on the order of the edges.

    Returns
    -------
    Ragged
        For each topic its clients.
    """
    row_id, start, member = graph.rows
    size = np.diff(start)
    usable = np.flatnonzero((size >= min_size) & (size <= max_size))
    order = usable[rng.permutation(len(usable))]
    users, user = np.unique(member, return_inverse=True)
    chosen_start, chosen = _choose(start, user, order, len(users), topics, min_size, max_topics_per_client)
    if len(chosen_start) - 1 < topics:
        raise InputError(
            "topics",
            f"expected at most {len(chosen_start) - 1}, got {topics}: the follower graph has {len(row_id)} followers, "
            f"{len(usable)} of them with {min_size} to {max_size} members",
        )
    _, first, number = np.unique(chosen, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return Ragged(chosen_start, rank[number].astype(np.int32))


@compiled
def _choose(
    start: OffsetArray,
    user: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
    users: int,
    topics: int,
    min_size: int,
    max_topics_per_client: int,
) -> tuple[OffsetArray, npt.NDArray[np.int64]]:
    """Take rows in the given order until there are enough, leaving out users that are in enough topics."""
    in_topics = np.zeros(users, np.int64)
    chosen_start = np.zeros(topics + 1, np.int64)
    chosen = np.empty(len(user), np.int64)
    count = 0
    for row in order:
        if count == topics:
            break
        end = chosen_start[count]
        for e in range(start[row], start[row + 1]):
            if in_topics[user[e]] < max_topics_per_client:
                chosen[end] = user[e]
                end += 1
        if end - chosen_start[count] >= min_size:
            for e in range(chosen_start[count], end):
                in_topics[chosen[e]] += 1
            count += 1
            chosen_start[count] = end
    return chosen_start[: count + 1], chosen[: chosen_start[count]]
