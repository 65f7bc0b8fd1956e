"""The interface between a family of instances and the generator that builds them.

A generator is a frozen dataclass of parameters that inherits from :class:`Generator` and implements
:meth:`Generator.build`. A new generator needs one new module with such a class and one entry in
:data:`instances.generators.families.FAMILIES`.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from relocbench.instances.files.follower_graph import FollowerGraph
from relocbench.instances.files.places import Places
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.random_streams import stream


@dataclass(frozen=True)
class Streams:
    """The random streams of one instance.

    Attributes
    ----------
    family
        Name of the family.
    cell
        The parameters of the cell that affect positions, as canonical JSON.
    seed
        Seed of the instance.
    """

    family: str
    cell: str
    seed: int

    def of_cell(self, purpose: str) -> np.random.Generator:
        """Return a random stream that differs between the cells of a family.

        Cells that differ only in parameters without effect on positions share the stream.

        Parameters
        ----------
        purpose
            Name of the stream. Streams of different names are independent.

        Returns
        -------
        numpy.random.Generator
            The stream, at its beginning.
        """
        return stream(self.family, purpose, self.cell, self.seed)

    def of_family(self, purpose: str) -> np.random.Generator:
        """Return a random stream that is the same in all cells of a family.

        Parameters
        ----------
        purpose
            Name of the stream. Streams of different names are independent.

        Returns
        -------
        numpy.random.Generator
            The stream, at its beginning.
        """
        return stream(self.family, purpose, self.seed)


class Generator(ABC):
    """The parameters of a generator and the rule that builds an instance from them.

    A subclass is a frozen dataclass with keyword-only fields. Each field has a default and the type ``bool``, ``int``,
    ``float``, ``str`` or a ``Literal``. A subclass checks its values in ``__post_init__`` and raises
    :class:`instances.errors.InputError` for a wrong one.

    Attributes
    ----------
    accepts_graph
        Whether :meth:`build` can take the topics from a given follower graph.
    accepts_places
        Whether :meth:`build` can use given places for servers and clients.
    cells_share_draws
        Whether :meth:`build` uses :meth:`Streams.of_family`, or the cells may share :meth:`Streams.of_cell`. Then the
        instances of one seed are not independent of each other, and statistics treat them as one sample.
    """

    accepts_graph: ClassVar[bool] = False
    accepts_places: ClassVar[bool] = False
    cells_share_draws: ClassVar[bool] = True

    @property
    def without_effect_on_positions(self) -> Collection[str]:
        """Names of the parameters that affect no position, such as capacities and delays.

        Cells of a family that differ only in these draw the same positions, so that they can be compared seed by seed.
        """
        return ()

    @abstractmethod
    def build(self, streams: Streams, graph: FollowerGraph | None = None, places: Places | None = None) -> Instance:
        """Build one instance.

        The result must depend only on the parameters, the random streams, the graph and the places.

        Parameters
        ----------
        streams
            The source of all random numbers.
        graph
            Follower graph for the topics; always None unless ``accepts_graph``.
        places
            Places of servers and clients; always None unless ``accepts_places``.

        Returns
        -------
        Instance
            The instance. The family sets its name and adds family and seed to its parameters; parameters that are left
            empty become all fields of the generator.
        """
