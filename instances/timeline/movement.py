"""Movement of clients in a square field: the models of mobility that the literature uses most.

A model draws all random numbers from named streams. The path of a client depends on the seed and the parameters, but
not on how often its position is asked for (for ``gauss-markov``: up to steps of ``STEP`` seconds).
"""

import math
from collections.abc import Callable
from typing import Literal, Protocol, get_args

import numpy as np

from relocbench.instances.generators.paper_generator import scatter_around, to_millimetres
from relocbench.instances.kernels.ragged import FloatArray, Ragged

MovementName = Literal["static", "waypoint", "gauss-markov", "commuters"]
MOVEMENTS: tuple[MovementName, ...] = get_args(MovementName)
# Seconds of a step of Gauss-Markov movement.
STEP = 10.0
# The mean length of a vector of two standard normal numbers.
MEAN_LENGTH = math.sqrt(math.pi / 2)
# A function that returns the random stream for a purpose.
StreamOf = Callable[[str], np.random.Generator]


class Movement(Protocol):
    """A model of movement."""

    def at(self, seconds: float) -> FloatArray:
        """Return the positions at a time, which is never before that of the last call.

        Parameters
        ----------
        seconds
            Time since the beginning.

        Returns
        -------
        array of shape (clients, 2)
            The positions in km, rounded to the millimetre.
        """


class Static:
    """Clients that stay where they are.

    Parameters
    ----------
    start
        The positions in km.
    """

    def __init__(self, start: FloatArray) -> None:
        self._at = start

    def at(self, seconds: float) -> FloatArray:
        """Return the positions, which never change.

        Parameters
        ----------
        seconds
            Time since the beginning.

        Returns
        -------
        array of shape (clients, 2)
            The positions in km.
        """
        return self._at


class Waypoint:
    """Random waypoint: a client goes straight to a random point, pauses, and goes on to the next one.

    The points are drawn like the positions of the paper: Gaussian around the centre of the client's first topic. So
    the members of a topic stay as close to one another as ``σ`` says. With a large ``σ`` the points are uniform.

    Parameters
    ----------
    start, centre
        The positions at the beginning, and the centre of each client's points, in km.
    sigma
        Spread of the points, in km.
    side
        Side of the field, in km.
    speed
        Mean speed in km/h. The speed of each way is uniform from half to one and a half times of it.
    pause
        Mean seconds of a pause, which is uniform from 0 to twice of it.
    streams
        Returns the random streams.
    """

    def __init__(
        self,
        start: FloatArray,
        centre: FloatArray,
        *,
        sigma: float,
        side: float,
        speed: float,
        pause: float,
        streams: StreamOf,
    ) -> None:
        self._at, self._centre = start.copy(), centre
        self._sigma, self._side = sigma, side
        self._speed, self._pause = speed / 3600.0, pause
        self._streams = streams
        self._now = 0.0
        self._leg = np.zeros(len(start), np.int64)
        self._drawn: dict[int, tuple[FloatArray, FloatArray, FloatArray]] = {}
        self._target, self._pace, self._wait = (values.copy() for values in self._draw(0))
        self._resting = np.zeros(len(start))

    def _draw(self, leg: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return target, km per second and following pause of every client on its way with this number."""
        if leg not in self._drawn:
            rng = self._streams(f"way {leg}")
            low, high = np.zeros(2), np.full(2, self._side)
            target = scatter_around(self._centre, self._sigma, low, high, rng)
            count = len(target)
            pace = self._speed * (0.5 + rng.random(count))
            self._drawn[leg] = target, pace, 2 * self._pause * rng.random(count)
        return self._drawn[leg]

    def at(self, seconds: float) -> FloatArray:
        """Return the positions at a time, which is never before that of the last call.

        Parameters
        ----------
        seconds
            Time since the beginning.

        Returns
        -------
        array of shape (clients, 2)
            The positions in km.
        """
        left = np.full(len(self._at), seconds - self._now)
        self._now = seconds
        while (busy := np.flatnonzero(left > 0)).size:
            rest = np.minimum(self._resting[busy], left[busy])
            self._resting[busy] -= rest
            left[busy] -= rest
            way = self._target[busy] - self._at[busy]
            distance = np.hypot(way[:, 0], way[:, 1])
            needed = distance / self._pace[busy]
            arrives = needed <= left[busy]
            part = np.where(arrives, 1.0, left[busy] / np.where(needed > 0, needed, 1.0))
            # Without any distance to go, the time would never pass.
            left[busy] = np.where(distance == 0, 0.0, np.maximum(left[busy] - needed, 0.0))
            self._at[busy] += part[:, None] * way
            for client in busy[arrives]:
                self._next_way(int(client))
        first = int(self._leg.min())
        self._drawn = {leg: drawn for leg, drawn in self._drawn.items() if leg >= first}
        return to_millimetres(self._at)

    def _next_way(self, client: int) -> None:
        self._at[client], self._resting[client] = self._target[client], self._wait[client]
        self._leg[client] += 1
        target, pace, wait = self._draw(int(self._leg[client]))
        self._target[client], self._pace[client], self._wait[client] = target[client], pace[client], wait[client]


class GaussMarkov:
    """Gauss-Markov movement: the velocity changes a little at each step, and is reflected at the border of the field.

    Parameters
    ----------
    start
        The positions at the beginning, in km.
    side
        Side of the field, in km.
    speed
        Mean speed in km/h.
    memory
        Seconds after which the velocity has kept ``1/e`` of what it was.
    streams
        Returns the random streams.
    """

    def __init__(self, start: FloatArray, *, side: float, speed: float, memory: float, streams: StreamOf) -> None:
        self._at, self._side = start.copy(), side
        self._spread = speed / 3600.0 / MEAN_LENGTH
        self._memory = memory
        self._rng = streams("velocity")
        self._velocity = self._spread * self._rng.standard_normal(start.shape)
        self._steps = 0

    def at(self, seconds: float) -> FloatArray:
        """Return the positions at a time, which is never before that of the last call.

        Parameters
        ----------
        seconds
            Time since the beginning.

        Returns
        -------
        array of shape (clients, 2)
            The positions in km.
        """
        keep = math.exp(-STEP / self._memory)
        while (self._steps + 1) * STEP <= seconds:
            self._steps += 1
            self._at, self._velocity = self._moved(STEP)
            noise = self._rng.standard_normal(self._at.shape)
            self._velocity = keep * self._velocity + math.sqrt(1 - keep * keep) * self._spread * noise
        return to_millimetres(self._moved(seconds - self._steps * STEP)[0])

    def _moved(self, seconds: float) -> tuple[FloatArray, FloatArray]:
        """Return positions and velocities after a straight move, reflected at the border."""
        straight = self._at + seconds * self._velocity
        folded = straight % (2 * self._side)
        at = np.where(folded > self._side, 2 * self._side - folded, folded)
        crossed = np.floor(straight / self._side).astype(np.int64) % 2 != 0
        return at, np.where(crossed, -self._velocity, self._velocity)


class Commuters:
    """Commuters between two centres, on the diagonal of the field at one and three quarters.

    The members of every second topic live around the first centre and work around the second one, the others the other
    way round; a client belongs to its first topic. A client leaves home at a random time between a tenth and four
    tenths of the timeline, and leaves work between six and nine tenths.

    Parameters
    ----------
    topics
        The members of the topics.
    sigma
        Spread of homes and work places around the centres, in km.
    side
        Side of the field, in km.
    speed
        Speed in km/h.
    seconds
        Length of the timeline.
    streams
        Returns the random streams.
    """

    def __init__(
        self, topics: Ragged, *, sigma: float, side: float, speed: float, seconds: float, streams: StreamOf
    ) -> None:
        first_topic = np.empty(topics.item.max() + 1, np.int64)
        first_topic[topics.item[::-1]] = topics.owner()[::-1]
        centres = np.array([[0.25 * side] * 2, [0.75 * side] * 2])
        low, high = np.zeros(2), np.full(2, side)
        rng = streams("places")
        self._home = scatter_around(centres[first_topic % 2], sigma, low, high, rng)
        self._work = scatter_around(centres[1 - first_topic % 2], sigma, low, high, rng)
        self._leaves = seconds * (0.1 + 0.3 * rng.random(len(first_topic)))
        self._returns = seconds * (0.6 + 0.3 * rng.random(len(first_topic)))
        way = self._work - self._home
        self._needs = np.hypot(way[:, 0], way[:, 1]) * 3600.0 / speed

    def at(self, seconds: float) -> FloatArray:
        """Return the positions at a time.

        Parameters
        ----------
        seconds
            Time since the beginning.

        Returns
        -------
        array of shape (clients, 2)
            The positions in km.
        """
        needs = np.maximum(self._needs, 1e-9)
        # The part of the way to work that a client has gone, less the part of the way back.
        part = ((seconds - self._leaves) / needs).clip(0, 1) - ((seconds - self._returns) / needs).clip(0, 1)
        return to_millimetres(self._home + part.clip(0, 1)[:, None] * (self._work - self._home))
