"""Readings of Algorithm 1: one choice for each point that the paper leaves open, and the readings that have a name.

docs/reading.md gives the reason for each choice. Nothing here is compiled, so that a command can import it at once.
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from relocbench.instances.errors import InputError

Relation = Literal["svd", "exact", "nmf"]
Factorised = Literal["Z", "incidence"]
Ties = Literal["index", "nearest", "placed", "loaded", "random"]
Initial = Literal["nearest", "least-used"]
Cooperation = Literal["client", "topic"]
Order = Literal["given", "large", "small", "random"]
Rank = int | Literal["full"]
ReadingName = Literal["pseudocode", "prose"]
# The value of a parameter that a named reading decides.
AsRead = Literal["reading"]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A reading of Algorithm 1. The defaults of the fields are those of the reading ``pseudocode``.

    Attributes
    ----------
    relation
        The score of a relation (line 19): from the ``svd`` or ``nmf`` of the client×topic incidence matrix ``G``, or
        ``exact``, the number of shared topics.
    rank
        The number of columns of the factorisation (line 19); ``full`` for all of them.
    factorised
        What the factorisation approximates: ``Z = G·Gᵀ``, or ``incidence``, which is ``G`` itself.
    diagonal
        Whether the diagonal of ``Z``, the number of topics of each client, is factorised with it.
    ties
        Who comes first among equally related clients (lines 22 to 31): the lowest ``index``, the ``nearest`` client,
        the client ``placed`` on the nearest server, the client on the most ``loaded`` server with room, or ``random``.
    initial
        The initial server (line 23): the ``nearest`` with ``θ = 1``, or the ``least-used``.
    cooperation
        What leaves an overloaded server (lines 36 to 42): the ``client``, or all publishers of the ``topic`` on it.
    revisit
        Whether a client gets a new home in each of its topics. Otherwise it keeps its first home.
    topic_order
        The order of line 20: as ``given``, ``large`` topics first, ``small`` topics first, or ``random``.
    client_order
        The order of line 21: as ``given``, clients with many topics first (``large``), clients with few topics first
        (``small``), or ``random``.
    """

    relation: Relation = "svd"
    rank: Rank = 16
    factorised: Factorised = "Z"
    diagonal: bool = True
    ties: Ties = "index"
    initial: Initial = "nearest"
    cooperation: Cooperation = "client"
    revisit: bool = False
    topic_order: Order = "given"
    client_order: Order = "given"

    def __post_init__(self) -> None:
        if self.rank != "full" and self.rank < 1:
            raise InputError("method reloc: rank", f"expected at least 1, or full, got {self.rank}")
        if self.factorised == "incidence" and self.relation == "exact":
            raise InputError("method reloc: factorised", "relation=exact factorises nothing: remove one of the two")
        if not self.diagonal and (self.relation != "svd" or self.factorised != "Z"):
            raise InputError("method reloc: diagonal", "false needs relation=svd and factorised=Z")


READINGS: dict[ReadingName, Reading] = {
    # The choices of the pseudo-code wherever it can be carried out.
    "pseudocode": Reading(),
    # The choices of the text around it: z counts shared topics, and all publishers of the topic are reassigned.
    "prose": Reading(relation="exact", cooperation="topic", revisit=True),
}
# The reading of ``reloc`` without a setting: the one that agrees best with the claims of the paper (docs/reading.md).
DEFAULT_READING: ReadingName = "prose"


def named_reading(name: ReadingName, **choices: Any) -> Reading:
    """Return a named reading with some choices changed.

    Parameters
    ----------
    name
        One of ``READINGS``.
    **choices
        Fields of :class:`Reading`. A field with the value ``reading`` or None is as the named reading has it.

    Returns
    -------
    Reading
        The reading.

    Raises
    ------
    InputError
        If the choices contradict each other.
    """
    changed = {field: choice for field, choice in choices.items() if choice not in ("reading", None)}
    return Reading(**(asdict(READINGS[name]) | changed))
