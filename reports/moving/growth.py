"""How the time of a method grows with the number of clients."""

import math
from dataclasses import dataclass

from relocbench.reports.moving.rows import TimeRow
from relocbench.reports.moving.summary import Summary

# The numbers of clients for which the page says how long a run takes.
CLIENTS = (1_000, 10_000, 100_000, 1_000_000)


@dataclass(frozen=True)
class Growth:
    """How the time of a method grows with the number of clients.

    Attributes
    ----------
    rows
        The measured times, by increasing number of clients.
    exponent
        Between the two largest sizes, but at least 1: no method here reads its input in less than linear time. None if
        only one size was measured.
    """

    rows: tuple[TimeRow, ...]
    exponent: float | None

    def seconds(self, clients: int) -> tuple[float, bool] | None:
        """Return the time for a number of clients.

        Parameters
        ----------
        clients
            The number of clients.

        Returns
        -------
        tuple or None
            The seconds, and whether they are measured, at about this size. Larger sizes are extrapolated with the
            exponent; None if that is not possible.
        """
        for row in self.rows:
            if abs(math.log(row.clients / clients)) < math.log(1.25):
                return row.seconds, True
        last = self.rows[-1]
        if self.exponent is None or clients < last.clients:
            return None
        return last.seconds * (clients / last.clients) ** self.exponent, False


def growth(summary: Summary, method: str) -> Growth | None:
    """Return the measured times of a method.

    Parameters
    ----------
    summary
        The results.
    method
        The selector.

    Returns
    -------
    Growth or None
        The times; None if none were measured.
    """
    rows = sorted((row for row in summary.results.times if row.method == method), key=lambda row: row.clients)
    if not rows:
        return None
    exponent = None
    # Sizes that are nearly alike can give the same number of clients.
    smaller = [row for row in rows if row.clients < rows[-1].clients]
    if smaller and min(smaller[-1].seconds, rows[-1].seconds) > 0:
        less, more = smaller[-1], rows[-1]
        exponent = max(1.0, math.log(more.seconds / less.seconds) / math.log(more.clients / less.clients))
    return Growth(tuple(rows), exponent)
