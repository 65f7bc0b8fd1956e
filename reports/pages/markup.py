"""Plain text with two marks, converted to HTML."""

import re

from markupsafe import Markup, escape

# On a wide screen a text with more characters than this is set in two columns: long lines are hard to read.
LONG = 450


def marked(text: str) -> Markup:
    """Convert text to HTML.

    Parameters
    ----------
    text
        Plain text in which ``**strong**`` and ```code``` are marks. Everything else is escaped.

    Returns
    -------
    Markup
        The HTML.
    """
    parts = re.split(r"`([^`]*)`", text)
    html = Markup()
    for number, part in enumerate(parts):
        if number % 2:
            html += Markup("<code>{}</code>").format(part)
        else:
            html += Markup(re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", str(escape(part))))
    return html


def plain(text: str) -> str:
    """Remove the marks from text, for a terminal.

    Parameters
    ----------
    text
        Text with the marks of :func:`marked`.

    Returns
    -------
    str
        The text without marks.
    """
    return text.replace("**", "").replace("`", "")


def long_text(text: str) -> Markup:
    """Return the HTML attribute of an element whose text is long.

    Parameters
    ----------
    text
        The text of the element.

    Returns
    -------
    Markup
        The attribute; empty for a short text.
    """
    return Markup(' class="long"') if len(text) > LONG else Markup()
