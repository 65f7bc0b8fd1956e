"""The form in which notebooks show our objects: a compact card with numbers and, below them, a table.

The card has no colours of its own and loads nothing, so it can be read in light and in dark notebooks and without a
network.
"""

from collections.abc import Mapping, Sequence
from html import escape

ABSENT = "–"
# A card shows at most this many rows of a table, and says how many there are.
MOST_ROWS = 20
# The style sheets of notebooks align cells right and draw stripes, so that everything is set here.
_TABLE = "margin:.3em 0;border:none;border-collapse:collapse"
_CELL = "padding:.1em .9em .1em 0;background:transparent;border:none;vertical-align:top"
_HEADING = "font-weight:normal;opacity:.7;white-space:nowrap"


def card(
    title: str,
    values: Mapping[str, object],
    columns: Sequence[str] = (),
    rows: Sequence[Sequence[object]] = (),
    texts: int = 1,
) -> str:
    """Return a card as HTML.

    Parameters
    ----------
    title
        The heading.
    values
        Numbers and texts by their names; those that are None are left out.
    columns, rows
        The headings and the rows of a table below the values, if there is one. A cell that is None shows a dash.
    texts
        The number of columns at the left that contain texts. The others contain numbers, which are aligned right.

    Returns
    -------
    str
        The HTML. All texts are escaped.
    """
    parts = [f"<div><strong>{escape(title)}</strong>"]
    known = {name: value for name, value in values.items() if value is not None}
    if known:
        lines = "".join(f"<tr>{_cell('th', name)}{_cell('td', value)}</tr>" for name, value in known.items())
        parts.append(f'<table style="{_TABLE}"><tbody>{lines}</tbody></table>')
    if columns:
        head = "".join(_cell("th", name, right=at >= texts) for at, name in enumerate(columns))
        body = "".join(
            f"<tr>{''.join(_cell('td', value, right=at >= texts) for at, value in enumerate(row))}</tr>"
            for row in rows[:MOST_ROWS]
        )
        line = "border-bottom:1px solid rgba(128,128,128,.4)"
        heading = f'<thead style="{line}"><tr>{head}</tr></thead>'
        parts.append(f'<table style="{_TABLE}">{heading}<tbody>{body}</tbody></table>')
        if len(rows) > MOST_ROWS:
            parts.append(f"<div>{MOST_ROWS} of {len(rows)} rows</div>")
    return "".join([*parts, "</div>"])


def percent(share: float | None) -> str | None:
    """Return a gap or an excess as text.

    Parameters
    ----------
    share
        The share, at least 0; None if it is not known.

    Returns
    -------
    str or None
        The share in percent with three digits; ``0%`` below 10⁻⁶, where a solution counts as optimal; None if it is not
        known.
    """
    if share is None:
        return None
    return "0%" if share < 1e-6 else f"{share:.0%}" if share >= 1 else f"{100 * share:.3g}%"


def _cell(tag: str, value: object, *, right: bool = False) -> str:
    style = f"{_CELL};text-align:{'right' if right else 'left'}" + (f";{_HEADING}" if tag == "th" else "")
    return f'<{tag} style="{style}">{escape(ABSENT if value is None else str(value))}</{tag}>'
