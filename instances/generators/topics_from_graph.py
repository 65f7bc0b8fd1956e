"""Topics from a follower graph: a topic consists of one follower and its followees."""

import numpy as np
import numpy.typing as npt

from relocbench.instances.errors import InputError
from relocbench.instances.files.follower_graph import FollowerGraph
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import OffsetArray, Ragged


def topics_from_graph(
    graph: FollowerGraph,
    rng: np.random.Generator,
    *,
    topics: int,
    min_size: int,
    max_size: int,
    max_topics_per_client: int,
) -> Ragged:
    """Group the edges by follower and choose topics among these rows at random.

    The members of a topic are the follower, then its followees by ascending id. A client that is already in
    ``max_topics_per_client`` topics is left out of later rows. Clients are numbered in the order of their first
    appearance in the topics, so the result does not depend on the order of the edges.

    Parameters
    ----------
    graph
        The follower graph.
    rng
        Random stream for the order of the rows.
    topics
        Number of topics to choose.
    min_size, max_size
        Least and largest number of members. Rows of another size are skipped, and so are rows that keep fewer than
        ``min_size`` members after clients were left out.
    max_topics_per_client
        Largest number of topics of a client.

    Returns
    -------
    Ragged
        For each topic its clients.

    Raises
    ------
    InputError
        If the graph does not have enough rows that qualify.
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
    """Take rows in the given order until there are enough, without users that have reached their number of topics."""
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
