"""Plain text with two marks, as HTML."""

import re

from markupsafe import Markup, escape


def marked(text: str) -> Markup:
    """Return text as HTML: ``**strong**`` and ```code``` are marks, anything else stands for itself."""
    parts = re.split(r"`([^`]*)`", text)
    html = Markup()
    for number, part in enumerate(parts):
        if number % 2:
            html += Markup("<code>{}</code>").format(part)
        else:
            html += Markup(re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", str(escape(part))))
    return html


def plain(text: str) -> str:
    """Return text without its marks, where there can be none."""
    return text.replace("**", "").replace("`", "")
