"""The cost of a schedule: the delay of every epoch, and what it costs to get from the homes of one epoch to the next.

In the symbols of docs/moving.md, an epoch ``t`` of ``s_t`` seconds with homes ``h_t`` costs

    ``s_t / T · ΣD_t(h_t)  +  handover price · H_t  +  spool price · S_t``.

``T`` is the publication period. ``H_t`` is the number of clients that are present in this epoch and the one before and
have another home now. ``S_t`` is the sum of ``u_n`` over all pairs of a topic ``n`` and a server ``l`` such that ``n``
is open on ``l`` now and was open before, but not on ``l``. A client that arrives is no handover, and a topic that was
not open anywhere copies nothing, because nothing exists yet.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import checked_home, evaluate
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.notebook_card import card
from relocbench.instances.timeline.epoch import Epoch
from relocbench.instances.timeline.prices import Prices
from relocbench.instances.timeline.timeline import Timeline

SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class ScheduleCost:
    """The cost of homes over time: of one epoch, or of several.

    Costs are in ms of delay, summed over all publications. The last five fields are reported, but they are not a part
    of the cost.

    Attributes
    ----------
    seconds
        The time that is counted.
    delay_cost
        ``Σ s/T·ΣD``.
    handover_cost, spool_cost
        The cost of relocation: handovers and spools, each times its price.
    handovers
        Clients that changed their home.
    spool_moved
        Messages of spool that were copied.
    client_seconds
        Seconds that clients were present, summed over all clients.
    publications
        Publications that were made.
    overloaded_seconds
        The time during which some server had ``θ < 1``.

    Examples
    --------
    >>> import relocbench
    >>> timeline = relocbench.generate_timeline(seed=1, n_epochs=3, topics=8)
    >>> cost = relocbench.replay(timeline, "always", "nearest").cost
    >>> cost.total == cost.delay_cost + cost.handover_cost + cost.spool_cost
    True
    """

    seconds: float = 0.0
    delay_cost: float = 0.0
    handover_cost: float = 0.0
    spool_cost: float = 0.0
    handovers: int = 0
    spool_moved: float = 0.0
    client_seconds: float = 0.0
    publications: float = 0.0
    overloaded_seconds: float = 0.0

    def __add__(self, other: "ScheduleCost") -> "ScheduleCost":
        return ScheduleCost(
            **{spec.name: getattr(self, spec.name) + getattr(other, spec.name) for spec in fields(self)}
        )

    def __repr__(self) -> str:
        parts = f"delay {self.delay_cost:.8g} + handover {self.handover_cost:.8g} + spool {self.spool_cost:.8g}"
        return f"<ScheduleCost {self.total:.8g} over {self.seconds:g} s: {parts}>"

    def _repr_html_(self) -> str:
        return card("ScheduleCost", {name: f"{value:.8g}" for name, value in self.values().items()})

    @property
    def total(self) -> float:
        """The cost of the schedule, in ms."""
        return self.delay_cost + self.handover_cost + self.spool_cost

    @property
    def y(self) -> float:
        """Mean delay of a publication in ms, without relocation; 0 if there was none."""
        return self.delay_cost / self.publications if self.publications else 0.0

    @property
    def handovers_per_client_hour(self) -> float:
        """Handovers for each hour that a client was present."""
        return self.handovers * SECONDS_PER_HOUR / self.client_seconds if self.client_seconds else 0.0

    @property
    def overloaded_share(self) -> float:
        """Share of the time during which some server had ``θ < 1``."""
        return self.overloaded_seconds / self.seconds if self.seconds else 0.0

    def values(self) -> dict[str, float]:
        """Return all numbers by name.

        Returns
        -------
        dict
            The fields and the derived quantities.

        Examples
        --------
        >>> import relocbench
        >>> timeline = relocbench.generate_timeline(seed=1, n_epochs=3, topics=8)
        >>> relocbench.replay(timeline, "always", "nearest").cost.values()["seconds"]
        180.0
        """
        derived = ("total", "y", "handovers_per_client_hour", "overloaded_share")
        return {name: getattr(self, name) for name in (*derived, *(spec.name for spec in fields(self)))}


class CostMeter:
    """Computes the cost of a schedule while it is made. It remembers the homes of one epoch only.

    Parameters
    ----------
    prices
        The prices of the timeline.
    """

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self.total = ScheduleCost()
        self._before: tuple[Epoch, IntArray] | None = None

    def add(self, epoch: Epoch, home: npt.ArrayLike, seconds: float | None = None) -> ScheduleCost:
        """Add the next epoch, or the next part of it, with its homes.

        Parameters
        ----------
        epoch
            The epoch; the same one as before if its homes change within it.
        home
            One server for each client that is present.
        seconds
            How long these homes are in force; by default the whole epoch.

        Returns
        -------
        ScheduleCost
            The cost of this epoch or part, with the relocation at its beginning.

        Raises
        ------
        InputError
            If ``home`` is not an assignment of the epoch.
        """
        homes = checked_home(epoch.instance, home)
        seconds = epoch.length if seconds is None else seconds
        now = evaluate(epoch.instance, homes)
        rounds = seconds / self.prices.publication_period
        handovers, spool = 0, 0.0
        if self._before is not None:
            handovers, spool = relocation(*self._before, epoch, homes)
        self._before = epoch, homes
        cost = ScheduleCost(
            seconds=seconds,
            delay_cost=now.objective * rounds,
            handover_cost=self.prices.handover * handovers,
            spool_cost=self.prices.spool * spool,
            handovers=handovers,
            spool_moved=spool,
            client_seconds=epoch.instance.n_clients * seconds,
            publications=now.n_publications * rounds,
            overloaded_seconds=seconds if bool((now.theta < 1).any()) else 0.0,
        )
        self.total += cost
        return cost

    def resume(self, epoch: Epoch, home: IntArray, total: ScheduleCost) -> None:
        """Continue a schedule after an epoch that has been counted already.

        Parameters
        ----------
        epoch, home
            The last epoch that was counted, and its last homes.
        total
            The cost so far.
        """
        self._before, self.total = (epoch, home), total


def schedule_cost(timeline: Timeline, homes: Iterable[npt.ArrayLike]) -> ScheduleCost:
    """Compute the cost of a schedule.

    Parameters
    ----------
    timeline
        The problem.
    homes
        For each epoch one server for each client that is present.

    Returns
    -------
    ScheduleCost
        The cost and its parts.

    Raises
    ------
    InputError
        If there are not as many homes as epochs, or some are not an assignment of their epoch.

    Examples
    --------
    >>> import relocbench
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> timeline = relocbench.Timeline.static(instance, n_epochs=2, length=1)
    >>> relocbench.schedule_cost(timeline, [[0, 0, 1, 1], [0, 0, 1, 2]]).handovers
    1
    """
    meter = CostMeter(timeline.prices)
    given = iter(homes)
    for epoch in timeline.epochs():
        try:
            home = next(given)
        except StopIteration:
            problem = f"expected homes for {timeline.n_epochs} epochs, got {epoch.number}"
            raise InputError("homes", problem) from None
        try:
            meter.add(epoch, home)
        except InputError as error:
            raise error.inside(f"homes[{epoch.number}]") from error
    if next(given, None) is not None:
        raise InputError("homes", f"expected homes for {timeline.n_epochs} epochs, got more")
    return meter.total


def carried_homes(before: Epoch, home: IntArray, epoch: Epoch) -> IntArray:
    """Return the homes that the clients of an epoch had in another one.

    Parameters
    ----------
    before, home
        The earlier epoch and its homes.
    epoch
        The later epoch.

    Returns
    -------
    array
        For each client of the later epoch its earlier home; -1 if it was not there.
    """
    if epoch.clients is before.clients or np.array_equal(epoch.clients, before.clients):
        return home.copy()
    carried = np.full(epoch.instance.n_clients, -1, np.int32)
    _, earlier, later = np.intersect1d(before.clients, epoch.clients, assume_unique=True, return_indices=True)
    carried[later] = home[earlier]
    return carried


def relocation(before: Epoch, home_before: IntArray, epoch: Epoch, home: IntArray) -> tuple[int, float]:
    """Return what changes between the homes of two epochs.

    Parameters
    ----------
    before, home_before
        An epoch and its homes.
    epoch, home
        The next epoch, or the same one, and its homes.

    Returns
    -------
    handovers
        The number of clients that are present in both and have another home.
    spool
        Messages of spool that are copied, with the spools of the later epoch.
    """
    carried = carried_homes(before, home_before, epoch)
    handovers = int(np.count_nonzero((carried >= 0) & (carried != home)))
    servers = epoch.instance.n_servers
    open_before = open_topics(before, home_before)
    open_now = open_topics(epoch, home)
    new = open_now[~np.isin(open_now, open_before, assume_unique=True)]
    new = new[np.isin(new // servers, open_before // servers)]
    order = np.argsort(epoch.topics)
    position = order[np.searchsorted(epoch.topics, new // servers, sorter=order)]
    return handovers, float(epoch.instance.spool[position].sum())


def open_topics(epoch: Epoch, home: IntArray) -> npt.NDArray[np.int64]:
    """Return where topics are open.

    Parameters
    ----------
    epoch, home
        An epoch and its homes.

    Returns
    -------
    array
        ``n·L + l`` for every topic with number ``n`` that is open on server ``l``, ascending.
    """
    publishers = epoch.instance.publishers
    topic = epoch.topics[publishers.owner()].astype(np.int64)
    return np.unique(topic * epoch.instance.n_servers + home[publishers.item])
