"""Tables that readers can sort."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from relocbench.reports.pages.markup import long_text, marked
from relocbench.reports.pages.method_style import colour_of, name_of

ABSENT = "–"


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name
        The heading.
    form
        The format of its numbers (``.2%``, ``.3g``); None for a column of texts.
    hint
        An explanation, shown when the pointer is over the heading.
    """

    name: str
    form: str | None = None
    hint: str = ""


@dataclass(frozen=True)
class Cell:
    """A cell that needs more than a value.

    Attributes
    ----------
    text
        The text, with the marks of :func:`reports.pages.markup.marked`.
    value
        The sort key; the text if not given.
    swatch
        A colour that is shown before the text.
    href
        The target of a link around the text.
    tone
        A class of the style sheet: ``good``, ``bad``, ``soft`` or ``wrapped``.
    bar
        The length of a bar before the text, from 0 to 1.
    """

    text: str
    value: float | str | None = None
    swatch: str | None = None
    href: str | None = None
    tone: str | None = None
    bar: float | None = None

    @classmethod
    def of_method(cls, selector: str) -> "Cell":
        """Return the cell of a method: its name with its colour.

        Parameters
        ----------
        selector
            The selector of the method.

        Returns
        -------
        Cell
            The cell.
        """
        return cls(name_of(selector), swatch=colour_of(selector))


Value = Cell | str | float | int | None


class Table:
    """A table that readers can sort.

    Parameters
    ----------
    columns
        The columns. Those with a format are aligned right.
    rows
        One value per column: a number, a text, a :class:`Cell`, or None for an empty cell.
    caption
        What the table shows, with units.

    Raises
    ------
    ValueError
        If a row has another number of cells than there are columns.
    """

    def __init__(self, columns: Sequence[Column], rows: Sequence[Sequence[Value]], caption: str) -> None:
        for row in rows:
            if len(row) != len(columns):
                raise ValueError(f"expected {len(columns)} cells in a row, got {len(row)}")
        self.columns, self.rows, self.caption = columns, rows, caption

    def html(self) -> Markup:
        """Return the table as HTML.

        Returns
        -------
        Markup
            The HTML.
        """
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
            '<figure class="table"><p class="hint" aria-hidden="true">Scroll the table sideways for all columns →</p>'
            '<div class="wide" role="region" aria-label="Table"><table class="sortable"><thead><tr>{}</tr></thead>\n'
            "<tbody>{}</tbody></table></div><figcaption{}>{}</figcaption></figure>"
        ).format(head, body, long_text(self.caption), marked(self.caption))


def _cell(value: Value, column: Column) -> Markup:
    cell = value if isinstance(value, Cell) else Cell(_formatted(value, column), value)
    text = marked(cell.text)
    if cell.href is not None:
        text = Markup('<a href="{}">{}</a>').format(cell.href, text)
    if cell.swatch is not None:
        text = Markup('<span class="swatch" style="background:{}"></span>').format(cell.swatch) + text
    if cell.bar is not None:
        text = Markup('<span class="bar" style="--share:{:.1%}" aria-hidden="true"></span>').format(cell.bar) + text
    classes = " ".join(filter(None, ["number" if column.form is not None else None, cell.tone]))
    return Markup("<td{}{}>{}</td>").format(
        Markup(' class="{}"').format(classes) if classes else "", _sort_key(cell, column), text
    )


def _sort_key(cell: Cell, column: Column) -> Markup:
    """Return the attribute that holds the sort key; it is empty for a missing number."""
    value = cell.value
    if isinstance(value, str):
        return Markup(' data-value="{}"').format(value)
    if value is None or math.isnan(value):
        return Markup(' data-value=""') if column.form is not None or cell.text == ABSENT else Markup()
    return Markup(' data-value="{}"').format(repr(float(value)))


def _formatted(value: str | float | int | None, column: Column) -> str:
    if isinstance(value, str):
        return value
    if value is None or math.isnan(value):
        return ABSENT
    return format(value, column.form or "")
