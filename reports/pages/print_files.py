"""The tables and figures of a page as files for a paper: LaTeX and CSV, SVG and PDF.

They are read from the page itself, so they show the same as the page, for every kind of report. Tables become
``table-01-….tex`` (package booktabs) and ``.csv``; the CSV file has the exact numbers behind the rounded ones. Figures
become ``figure-01-….svg`` and ``.pdf``. ``all.tex`` shows all of them with their captions. Figures need Chromium.
"""

import csv
import html
import io
import re
import tempfile
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from relocbench.instances.errors import InputError
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.files.file_name import safe_file_name
from relocbench.reports.pages.chromium import find_chromium, html_after_scripts, print_pdf
from relocbench.reports.pages.latex import Cell, booktabs, escaped, label_of
from relocbench.reports.pages.page import plotly_script

# The width of a figure, in pixels of the page; a figure without a height of its own is this high.
WIDTH, HEIGHT = 680, 400
# Sentences of captions about what a reader of the page can click.
CLICKS = r"(?:^|(?<=[.:] ))[^.]*\b[Cc]lick\b[^.]*\.(?: |$)"
HEADINGS = ("h2", "h3", "h4")
# What LaTeX does with the marks inside a text.
MARKS = {"strong": "\\textbf{", "code": "\\texttt{"}


@dataclass
class _Text:
    """A text of the page: plain, and as LaTeX."""

    plain: str = ""
    latex: str = ""


@dataclass
class _Table:
    heading: str
    headings: list[_Text] = field(default_factory=list)
    numeric: list[bool] = field(default_factory=list)
    rows: list[list[Cell]] = field(default_factory=list)
    caption: _Text = field(default_factory=_Text)


@dataclass
class _Figure:
    heading: str
    canvas: str
    caption: _Text = field(default_factory=_Text)


class _Parts(HTMLParser):
    """The tables and figures of a page that :class:`reports.pages.page.Page` wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[_Table] = []
        self.figures: list[_Figure] = []
        self.plots: dict[str, str] = {}
        self._headings: dict[str, str] = {}
        self._text = _Text()
        self._value: str | None = None
        self._open: list[_Table | _Figure] = []
        self._plot: str | None = None
        self._row: list[Cell] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        classes = (given.get("class") or "").split()
        if tag in (*HEADINGS, "th", "td", "figcaption"):
            self._text = _Text()
        if tag in MARKS:
            self._text.latex += MARKS[tag]
        elif tag == "figure":
            self._open = []
        elif tag == "table":
            self._add(_Table(" ".join(self._headings.values())))
        elif tag == "div" and "canvas" in classes:
            self._add(_Figure(" ".join(self._headings.values()), given.get("id") or ""))
        elif tag == "tr":
            self._row = []
        elif tag == "th" and self.tables:
            self.tables[-1].numeric.append("number" in classes)
        elif tag == "td":
            self._value = given.get("data-value")
        elif tag == "script" and given.get("data-figure"):
            self._plot = given["data-figure"]

    def handle_endtag(self, tag: str) -> None:
        if tag in MARKS:
            self._text.latex += "}"
        elif tag in HEADINGS:
            self._headings = {above: text for above, text in self._headings.items() if above < tag}
            self._headings[tag] = self._ended().plain
        elif tag == "th" and self.tables:
            self.tables[-1].headings.append(self._ended())
        elif tag == "td":
            text = self._ended()
            self._row.append(Cell(text.latex, _value(text.plain, self._value)))
        elif tag == "tr" and self._row:
            self.tables[-1].rows.append(self._row)
        elif tag == "figcaption":
            caption = self._ended()
            caption.latex = re.sub(CLICKS, "", caption.latex).strip()
            for part in self._open:
                part.caption = caption
        elif tag == "script":
            self._plot = None

    def handle_data(self, data: str) -> None:
        if self._plot is not None:
            self.plots[self._plot] = data
        else:
            self._text.plain += data
            self._text.latex += escaped(data)

    def _ended(self) -> _Text:
        """Return the text of the element that ends."""
        text, self._text = self._text, _Text()
        return text

    def _add(self, part: _Table | _Figure) -> None:
        if isinstance(part, _Table):
            self.tables.append(part)
        else:
            self.figures.append(part)
        self._open.append(part)


def write_print_files(page: Path, folder: Path) -> list[Path]:
    """Write every table of a page as LaTeX and CSV, and every figure as SVG and PDF.

    Parameters
    ----------
    page
        The page.
    folder
        The folder for the files. Files of the same names are replaced.

    Returns
    -------
    list of Path
        The files. Without Chromium there are no figures among them.

    Raises
    ------
    InputError
        If the page cannot be read, or Chromium fails.
    """
    parts = _Parts()
    try:
        parts.feed(page.read_text(encoding="utf-8"))
    except (OSError, UnicodeError) as error:
        raise InputError(str(page), f"expected a page of relocbench ({error})") from error
    files, inputs = [], []
    for number, table in enumerate(parts.tables, start=1):
        stem = f"table-{number:02d}-{label_of(table.heading)}"
        files.append(_write(folder / safe_file_name(stem, ".tex"), _latex(table, stem)))
        files.append(_write(folder / safe_file_name(stem, ".csv"), _csv(table)))
        inputs.append(f"\\input{{{stem}}}\n")
    if find_chromium() is not None and parts.figures:
        drawn = _draw(parts.plots)
        for number, one in enumerate(parts.figures, start=1):
            stem = f"figure-{number:02d}-{label_of(one.heading)}"
            files.append(_write(folder / safe_file_name(stem, ".svg"), drawn[one.canvas]))
            files.append(_pdf(drawn[one.canvas], folder / safe_file_name(stem, ".pdf")))
            inputs.append(
                f"\\begin{{figure}}\n  \\centering\n  \\includegraphics[width=\\linewidth]{{{stem}}}\n"
                f"  \\caption{{{one.caption.latex}}}\n  \\label{{{stem}}}\n\\end{{figure}}\n\\clearpage\n"
            )
    preamble = "\\documentclass{article}\n\\usepackage{booktabs,graphicx}\n\\usepackage[margin=2cm]{geometry}\n"
    body = "\n".join(inputs)
    files.append(_write(folder / "all.tex", f"{preamble}\\begin{{document}}\n{body}\\end{{document}}\n"))
    return files


def _value(text: str, key: str | None) -> str:
    """Return the value of a cell for programs: the exact number if the cell shows a rounded one, else its text."""
    if key is None or not re.fullmatch(r"[+-]?[\d.,]+(e[+-]?\d+)?%?", text):
        return text
    return key.removesuffix(".0")


def _write(path: Path, text: str) -> Path:
    with written_whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def _latex(table: _Table, label: str) -> str:
    return booktabs([one.latex for one in table.headings], table.numeric, table.rows, table.caption.latex, label)


def _csv(table: _Table) -> str:
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow([one.plain for one in table.headings])
    writer.writerows([cell.value for cell in row] for row in table.rows)
    return lines.getvalue()


def _draw(plots: dict[str, str]) -> dict[str, str]:
    """Return each plot as SVG: Chromium runs plotly, as on the page."""
    sources = "".join(
        f'<script type="application/json" data-figure="{name}">{text}</script>' for name, text in plots.items()
    )
    script = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")
    draw = script.replace("WIDTH", str(WIDTH)).replace("HEIGHT", str(HEIGHT))
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch) / "figures.html"
        page.write_text(
            f'<!doctype html><meta charset="utf-8"><body><script>{plotly_script()}</script>{sources}'
            f"<script>{draw}</script></body>",
            encoding="utf-8",
        )
        done = html_after_scripts(page)
    found = dict(re.findall(r'<pre data-drawn="([^"]+)">(.*?)</pre>', done, re.DOTALL))
    if missing := plots.keys() - found.keys():
        raise InputError("figures", f"Chromium did not draw {', '.join(sorted(missing))}")
    return {name: html.unescape(text) for name, text in found.items()}


def _pdf(svg: str, path: Path) -> Path:
    """Print a plot on paper of its own size."""
    size = re.search(r'width="([\d.]+)" height="([\d.]+)"', svg)
    if size is None:
        raise InputError(str(path), "expected a drawing with a width and a height")
    width, height = size.groups()
    with tempfile.TemporaryDirectory() as scratch, written_whole(path) as temporary:
        page = Path(scratch) / "figure.html"
        page.write_text(
            f'<!doctype html><meta charset="utf-8"><style>@page {{ size: {width}px {height}px; margin: 0 }} '
            f"body {{ margin: 0 }} svg {{ display: block }}</style>{svg}",
            encoding="utf-8",
        )
        return print_pdf(page, temporary) and path
