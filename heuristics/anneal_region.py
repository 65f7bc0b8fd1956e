"""Annealing of one region of servers with fixed surroundings, for instances that are annealed in parts.

The servers are divided into regions. The clients of a region are those whose homes are in it, and they move among its
servers only, so the loads of these servers change in this region alone (:mod:`instances.region_state`). Regions can be
annealed in parallel. What they ignore then is the delay between two clients of different regions that share a topic and
both move. So the caller divides the servers in another way in each round, evaluates all homes after it, and continues
with the loads and prices that result.

The rounds together are one cooling: each round begins at the temperature at which the one before it ended.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from relocbench.heuristics.anneal import PARAMS
from relocbench.heuristics.anneal_kernel import Journal, Neighbourhood, anneal_batch, nearest_servers, sample_changes
from relocbench.heuristics.anneal_prices import FirstPrices, Prices
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray
from relocbench.instances.kernels.random_numbers import Words
from relocbench.instances.kernels.random_streams import stream
from relocbench.instances.region_state import RegionState, Surroundings

# A client's list of likely servers has up to this many servers of its topics, and this many copies of each of its
# nearest servers. The other servers of the region follow once.
TOPIC_SERVERS = 8
NEAR_COPIES = 2


@dataclass(frozen=True)
class Cooling:
    """The part of a cooling that one round runs.

    Attributes
    ----------
    proposals
        The number of proposals of the whole cooling for each client.
    heat
        The initial temperature, as a share of the typical change of the delays.
    begin, end
        The part of the cooling that is done before and after the round, from 0 to 1.
    extra_capacity
        The share by which capacities are larger at the start of the cooling.
    """

    proposals: int
    heat: float
    begin: float
    end: float
    extra_capacity: float = 0.2


def divide_regions(server_x: FloatArray, server_y: FloatArray, regions: int, seed: int, number: int) -> IntArray:
    """Divide the servers into regions of neighbouring servers, in another way for each round.

    The servers are cut in two by a line, and each part again, until there are enough regions. The direction of the
    first line is random, and so is the part of the servers on each side of the first two lines.

    Parameters
    ----------
    server_x, server_y
        The positions of the servers.
    regions
        The number of regions, at most half the number of servers.
    seed
        The seed.
    number
        The number of the round.

    Returns
    -------
    array
        The region of each server.
    """
    random = stream("regions", seed, number)
    region = np.zeros(len(server_x), np.int32)
    angle = random.uniform(0.0, np.pi)
    parts = [(np.arange(len(server_x)), regions, 0)]
    done = 0
    while parts:
        servers, count, depth = parts.pop()
        if count == 1:
            region[servers] = done
            done += 1
            continue
        turned = angle + depth * np.pi / 2
        along = server_x[servers] * np.cos(turned) + server_y[servers] * np.sin(turned)
        order = servers[np.argsort(along, kind="stable")]
        less = count // 2
        share = less / count + (random.uniform(-0.15, 0.15) if depth < 2 else 0.0)
        # Each side keeps two servers or more for each of its regions.
        middle = int(np.clip(round(share * len(order)), 2 * less, len(order) - 2 * (count - less)))
        parts += [(order[:middle], less, depth + 1), (order[middle:], count - less, depth + 1)]
    return region


def anneal_region(
    instance: Instance,
    home: IntArray,
    around: Surroundings,
    cooling: Cooling,
    random: Words,
    prices: FirstPrices | None,
) -> tuple[IntArray, FirstPrices]:
    """Run one round on a region.

    Parameters
    ----------
    instance
        The region: all servers, its clients, and their topics with the members in the region only.
    home
        The homes at the start, all of them own servers.
    around
        The rest of the instance.
    cooling
        The part of the cooling.
    random
        The state of the random number generator, which is advanced.
    prices
        The prices of storage and compute loads at each server after the round before; None in the first one.

    Returns
    -------
    home, prices
        The homes and the prices at the end.
    """
    state = RegionState(instance, home, around)
    near = _likely_servers(instance, state, around)
    clients = instance.n_clients
    neighbourhood = Neighbourhood(
        instance.members.start, instance.members.item, np.arange(clients, dtype=np.int32), near,
        np.full(clients, near.shape[1], np.int32), 0, 1024, 0,
    )  # fmt: skip
    change = np.abs(sample_changes(state.arrays, neighbourhood, random, PARAMS.sampled_changes, None))
    typical = float(np.median(change[change > 0])) if change.any() else 1.0
    charged = Prices(
        instance,
        typical,
        cooling.extra_capacity,
        np.zeros(instance.n_servers, np.bool_),
        prices,
        min(1.0, cooling.begin / PARAMS.priced_part),
    )
    journal = Journal(
        np.empty(PARAMS.journal + 2 * clients, np.int32), np.empty(PARAMS.journal + 2 * clients, np.int32)
    )
    length = max(1, round(cooling.proposals * clients * (cooling.end - cooling.begin)))
    batch = min(PARAMS.largest_batch, max(PARAMS.smallest_batch, length // 20))
    hot, ratio, done = cooling.heat * typical, PARAMS.final_heat / cooling.heat, 0
    unused = np.empty(clients, np.int32)

    def temperature(proposals: int) -> float:
        return float(hot * ratio ** (cooling.begin + (cooling.end - cooling.begin) * proposals / length))

    while done < length:
        progress = cooling.begin + (cooling.end - cooling.begin) * done / length
        if progress < PARAMS.priced_part:
            charged.impose(state, progress / PARAMS.priced_part)
        else:
            state.restore_capacities()
        steps = min(batch, length - done)
        # Without an incumbent to compare with, the kernel records none.
        _, _, made = anneal_batch(
            state.arrays, neighbourhood, journal, random, steps, temperature(done), temperature(done + steps),
            -np.inf, state.objective, unused, None,
        )  # fmt: skip
        state.refresh()
        done += made
    return state.home, charged.values


def _likely_servers(instance: Instance, state: RegionState, around: Surroundings) -> IntArray:
    """Return the servers that are proposed to each client: near ones, servers of its topics, and all of the region."""
    own = around.own
    near = own[
        nearest_servers(
            instance.client_x, instance.client_y, instance.server_x[own], instance.server_y[own],
            np.empty((0, 0)), min(PARAMS.near_servers, len(own)),
        )
    ]  # fmt: skip
    return np.ascontiguousarray(
        np.hstack(
            [
                np.repeat(near, NEAR_COPIES, axis=1),
                _topic_servers(instance, state.home, near),
                np.broadcast_to(own, (instance.n_clients, len(own))),
            ]
        ).astype(np.int32)
    )


def _topic_servers(instance: Instance, home: IntArray, near: IntArray) -> npt.NDArray[np.int32]:
    """Return homes of clients with which each client shares a topic, spread over its topics."""
    topics, members = instance.topics, instance.members
    clients = np.arange(instance.n_clients)
    degree = np.maximum(topics.sizes, 1)
    chosen = np.empty((instance.n_clients, TOPIC_SERVERS), np.int32)
    known = topics.sizes > 0
    for i in range(TOPIC_SERVERS):
        chosen[:, i] = near[:, i % near.shape[1]]
        topic = topics.item[topics.start[:-1][known] + i % degree[known]]
        # Members at different places of the topic, so that the list has several servers of it.
        place = (clients[known] + (i // degree[known] + 1) * 7919) % members.sizes[topic]
        chosen[known, i] = home[members.item[members.start[topic] + place]]
    return chosen
