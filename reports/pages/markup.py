"""Plain text with two marks, converted to HTML."""

import re

from markupsafe import Markup, escape


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
