"""Tables that a reader can sort."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from relocbench.reports.pages.markup import marked
from relocbench.reports.pages.method_style import colour_of, name_of

ABSENT = "–"


@dataclass(frozen=True)
class Column:
    """A heading, how its numbers are written (``.2%``, ``.3g``; texts if not given), and what it means on hovering."""

    name: str
    form: str | None = None
    hint: str = ""


@dataclass(frozen=True)
class Cell:
    """What a cell shows, where that is more than a value.

    Attributes
    ----------
    text
        What is read, with the marks of :func:`reports.pages.markup.marked`.
    value
        What is sorted by; the text, if not given.
    swatch
        A colour to put before the text.
    href
        Where the text leads.
    tone
        ``good``, ``bad`` or ``soft``.
    """

    text: str
    value: float | str | None = None
    swatch: str | None = None
    href: str | None = None
    tone: str | None = None

    @classmethod
    def of_method(cls, selector: str) -> "Cell":
        """Return a method's name with its colour."""
        return cls(name_of(selector), swatch=colour_of(selector))


Value = Cell | str | float | int | None


class Table:
    """Columns, rows and a sentence.

    Parameters
    ----------
    columns
        Headings; those with a form are set flush right.
    rows
        One value a column: a number, a text, a :class:`Cell`, or None where there is nothing.
    caption
        What the table says, with its units.
    """

    def __init__(self, columns: Sequence[Column], rows: Sequence[Sequence[Value]], caption: str) -> None:
        for row in rows:
            if len(row) != len(columns):
                raise ValueError(f"expected {len(columns)} cells in a row, got {len(row)}")
        self.columns, self.rows, self.caption = columns, rows, caption

    def html(self) -> Markup:
        """Return the table as HTML."""
        head = Markup().join(
            Markup('<th scope="col"{}{}><button type="button">{}</button></th>').format(
                Markup(' class="number"') if column.form is not None else "",
                Markup(' title="{}"').format(column.hint) if column.hint else "",
                column.name,
            )
            for column in self.columns
        )
        body = Markup("\n").join(
            Markup("<tr>{}</tr>").format(Markup().join(map(_cell, row, self.columns))) for row in self.rows
        )
        return Markup(
            '<figure class="table"><div class="wide"><table class="sortable"><thead><tr>{}</tr></thead>\n'
            "<tbody>{}</tbody></table></div><figcaption>{}</figcaption></figure>"
        ).format(head, body, marked(self.caption))


def _cell(value: Value, column: Column) -> Markup:
    cell = value if isinstance(value, Cell) else Cell(_written(value, column), value)
    text = marked(cell.text)
    if cell.href is not None:
        text = Markup('<a href="{}">{}</a>').format(cell.href, text)
    if cell.swatch is not None:
        text = Markup('<span class="swatch" style="background:{}"></span>').format(cell.swatch) + text
    classes = " ".join(filter(None, ["number" if column.form is not None else None, cell.tone]))
    return Markup("<td{}{}>{}</td>").format(
        Markup(' class="{}"').format(classes) if classes else "", _sorted_by(cell, column), text
    )


def _sorted_by(cell: Cell, column: Column) -> Markup:
    """Return the attribute that sorting looks at: nothing for an absent number, the text itself for texts."""
    value = cell.value
    if isinstance(value, str):
        return Markup(' data-value="{}"').format(value)
    if value is None or math.isnan(value):
        return Markup(' data-value=""') if column.form is not None or cell.text == ABSENT else Markup()
    return Markup(' data-value="{}"').format(repr(float(value)))


def _written(value: str | float | int | None, column: Column) -> str:
    if isinstance(value, str):
        return value
    if value is None or math.isnan(value):
        return ABSENT
    return format(value, column.form or "")
