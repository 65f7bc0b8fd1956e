"""What it costs to change an assignment, in the unit of delays."""

import math
from dataclasses import dataclass, fields

from relocbench.instances.errors import InputError, shown

LARGEST_PRICE = 1e12
# With a shorter publication period, the cost of a schedule could exceed the largest float.
LEAST_PERIOD = 1e-12


@dataclass(frozen=True, kw_only=True)
class Prices:
    """The prices of a timeline. docs/moving.md gives the reasons for the defaults.

    Attributes
    ----------
    handover
        Cost of one handover, that is, of a client that gets another home, in ms of delay.
    spool
        Cost of one message of spool that is copied to a server, in ms of delay.
    publication_period
        Seconds between two publications of a publisher to the same topic. An epoch of ``s`` seconds has
        ``s / publication_period`` rounds of publications, and each round costs ``ΣD``.

    Raises
    ------
    InputError
        If a price is below 0 or above 10¹², or the period is below 10⁻¹² or above 10¹².

    Examples
    --------
    >>> import relocbench
    >>> relocbench.Prices(handover=10)
    Prices(handover=10.0, spool=1.0, publication_period=1.0)
    """

    handover: float = 50.0
    spool: float = 1.0
    publication_period: float = 1.0

    def __post_init__(self) -> None:
        for spec in fields(self):
            value = getattr(self, spec.name)
            number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
            least = LEAST_PERIOD if spec.name == "publication_period" else 0.0
            if not number or not least <= value <= LARGEST_PRICE:
                wanted = f"a number from {least:g} to {LARGEST_PRICE:g}"
                raise InputError(f"prices.{spec.name}", f"expected {wanted}, got {shown(value)}")
            object.__setattr__(self, spec.name, float(value))
