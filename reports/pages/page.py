"""A page: the parts that a report adds to it, and the one file that it is written to."""

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from relocbench.instances.errors import InputError, reason
from relocbench.instances.files.atomic_write import written_whole
from relocbench.reports.pages.glossary import glossary
from relocbench.reports.pages.markup import long_text, marked, plain
from relocbench.reports.pages.tables import Table
from relocbench.runs.environment import information

if TYPE_CHECKING:
    import plotly.graph_objects as go

FOLDER = Path(__file__).parent
# These facts about the machine get one line each. The other entries of ``information`` are versions of packages.
MACHINE = ("relocbench", "python", "platform", "processor", "cores", "memory_mib")
# With at most this many sections, links to the sections are not needed.
MOST_SECTIONS_WITHOUT_LINKS = 3


class Page:
    """A report under construction. Its parts appear in the order in which they are added.

    Parameters
    ----------
    title
        The subject of the page.
    lead
        The main result in a sentence or two. A blank line starts a new paragraph.
    kind
        The kind of report, as :func:`kind_of` reads it from the file.
    """

    def __init__(self, title: str, lead: str = "", *, kind: str = "report") -> None:
        self.title = title
        self.lead = lead
        self.kind = kind
        self._parts: list[Markup] = []
        self._figures: dict[str, str] = {}
        self._contents: list[tuple[str, str]] = []
        self._provenance = Markup()
        self._about: dict[str, object] = {}
        self._scripts: list[str] = []

    def section(self, heading: str, text: str = "") -> None:
        """Start a section.

        Parameters
        ----------
        heading
            The heading; the links at the top of the page contain it.
        text
            The first paragraph, if any.
        """
        anchor = f"section-{len(self._contents) + 1}"
        self._contents.append((anchor, plain(heading)))
        self._parts.append(Markup('<h2 id="{}">{}</h2>').format(anchor, marked(heading)))
        if text:
            self.text(text)

    def subsection(self, heading: str, text: str = "") -> None:
        """Start a subsection.

        Parameters
        ----------
        heading, text
            As for :meth:`section`; there is no link to a subsection.
        """
        self._parts.append(Markup("<h3>{}</h3>").format(marked(heading)))
        if text:
            self.text(text)

    def text(self, text: str) -> None:
        """Add a paragraph.

        Parameters
        ----------
        text
            The paragraph, with the marks of :func:`reports.pages.markup.marked`.
        """
        self._parts.append(Markup("<p{}>{}</p>").format(long_text(text), marked(text)))

    def note(self, text: str) -> None:
        """Add a paragraph in small print.

        Parameters
        ----------
        text
            The paragraph.
        """
        self._parts.append(Markup('<p class="soft">{}</p>').format(marked(text)))

    def warning(self, text: str) -> None:
        """Add a highlighted paragraph.

        Parameters
        ----------
        text
            The warning.
        """
        self._parts.append(Markup('<p class="warning" role="alert">{}</p>').format(marked(text)))

    def listing(self, items: list[str]) -> None:
        """Add a bullet list.

        Parameters
        ----------
        items
            One text per bullet.
        """
        lines = Markup().join(Markup("<li>{}</li>").format(marked(item)) for item in items)
        self._parts.append(Markup("<ul{}>{}</ul>").format(long_text(" ".join(items)), lines))

    def numbers(self, values: Mapping[str, str]) -> None:
        """Add a few large numbers.

        Parameters
        ----------
        values
            The number for each description, such as ``{"mean excess of RELOC": "46 %"}``.
        """
        tiles = Markup().join(
            Markup("<div><strong>{}</strong><span>{}</span></div>").format(number, marked(description))
            for description, number in values.items()
        )
        self._parts.append(Markup('<div class="numbers">{}</div>').format(tiles))

    def table(self, table: Table, folded: str = "") -> None:
        """Add a table.

        Parameters
        ----------
        table
            The table.
        folded
            If given, the table is hidden behind this line until a reader opens it or prints the page.
        """
        html = table.html()
        if folded:
            html = Markup("<details><summary>{}</summary>{}</details>").format(marked(folded), html)
        self._parts.append(html)

    def figure(self, plot: "go.Figure", caption: str) -> None:
        """Add a plot.

        Parameters
        ----------
        plot
            The plot; see :func:`reports.pages.figures.figure`.
        caption
            What the plot shows and how to read it.
        """
        self._parts.append(_figure(self._canvas(plot), caption))

    def panels(self, plots: Sequence[tuple[str, "go.Figure"]], caption: str, *, least: int = 340) -> None:
        """Add several plots side by side, as far as the width of the window allows, with one legend.

        Parameters
        ----------
        plots
            A title and a plot for each panel.
        caption
            What the plots show and how to read them.
        least
            The least width of a panel in pixels; where less is left, panels are placed below each other.
        """
        panels = Markup().join(
            Markup("<div><h4>{}</h4>{}</div>").format(marked(title), self._canvas(plot)) for title, plot in plots
        )
        inside = Markup('<div class="panels" style="--least:{}px">{}</div>').format(least, panels)
        self._parts.append(_figure(inside, caption))

    def _canvas(self, plot: "go.Figure") -> Markup:
        """Store a plot and return the element in which the script of the page draws it."""
        name = f"figure-{len(self._figures) + 1}"
        self._figures[name] = plot.to_json()
        canvas = Markup('<div id="{}" class="canvas" style="min-height:{}px"></div>')
        return canvas.format(name, plot.layout.height or 380)

    def html(self, markup: Markup) -> None:
        """Add HTML.

        Parameters
        ----------
        markup
            The HTML. It must be safe and must not load anything from elsewhere.
        """
        self._parts.append(markup)

    def script(self, text: str) -> None:
        """Add JavaScript.

        Parameters
        ----------
        text
            The script. The window gets the event ``drawn`` when all plots are drawn.
        """
        self._scripts.append(text)

    def describe(self, *, instances: int, methods: Sequence[str]) -> None:
        """State what the report is about, for an index of reports.

        Parameters
        ----------
        instances
            The number of instances.
        methods
            The selectors of the methods.
        """
        self._about |= {"instances": instances, "methods": list(methods)}

    def provenance(
        self, command: str, facts: Mapping[str, object] | None = None, about: Mapping[str, object] | None = None
    ) -> None:
        """State at the end of the page how it was made: command, date, further facts, versions and machine.

        Parameters
        ----------
        command
            The command that makes the page.
        facts
            Further facts by name.
        about
            The versions and the machine of the results, named as in :func:`runs.environment.information`; by default
            those of this moment.
        """
        about = about or information(java=False)
        made = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC"
        self._about["made"] = made
        packages = {name: version for name, version in about.items() if name not in MACHINE}
        entries: dict[str, object] = {
            "command": command,
            "made": made,
            **(facts or {}),
            **{name.replace("_", " "): value for name, value in about.items() if name not in packages},
            "packages": ", ".join(f"{name} {version}" for name, version in packages.items() if version is not None),
        }
        lines = Markup().join(
            Markup("<dt>{}</dt><dd>{}</dd>").format(name, "none" if value is None else value)
            for name, value in entries.items()
        )
        self._provenance = Markup('<h2>How it was made</h2><dl class="facts">{}</dl>').format(lines)

    def render(self) -> str:
        """Return the page as HTML, with styles, scripts and data inside.

        Returns
        -------
        str
            The HTML.
        """
        import jinja2

        environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
        template = environment.from_string(_file("page.html"))
        return template.render(
            title=self.title,
            kind=self.kind,
            about=json.dumps(self._about | {"result": plain(self.lead.partition("\n\n")[0])}),
            lead=[marked(part) for part in self.lead.split("\n\n") if part],
            contents=self._contents if len(self._contents) > MOST_SECTIONS_WITHOUT_LINKS else [],
            body=Markup("\n").join(self._parts),
            glossary=glossary(),
            provenance=self._provenance,
            style=Markup(_file("page.css")),
            # plots.js comes last, because it fires the event that the other scripts listen to.
            scripts=[Markup(text) for text in (_file("page.js"), *self._scripts, _file("plots.js"))],
            plotly=Markup(plotly_script()) if self._figures else "",
            # HTML ends a script at the first </script>, even inside a string.
            figures={name: Markup(text.replace("</", "<\\/")) for name, text in self._figures.items()},
        )

    def write(self, path: str | Path) -> Path:
        """Write the page, completely or not at all.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        Path
            The file.
        """
        with written_whole(path) as temporary:
            temporary.write_text(self.render(), encoding="utf-8")
        return Path(path)


def _file(name: str) -> str:
    """Return the text of a file of the kit."""
    return (FOLDER / name).read_text(encoding="utf-8")


def _figure(plots: Markup, caption: str) -> Markup:
    """Return a figure: the place of legend and switches, the plots, the line for a point's command, the caption."""
    return Markup(
        '<figure class="plot"><div class="tools"></div>{}'
        '<p class="command" hidden><code></code><button type="button">copy</button></p>'
        "<figcaption{}>{}</figcaption></figure>"
    ).format(plots, long_text(caption), marked(caption))


def kind_of(path: Path) -> str | None:
    """Return the kind of a report in a file.

    Parameters
    ----------
    path
        A file.

    Returns
    -------
    str or None
        The kind that the page states in its head; None if the file is not a page of this project.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            head = file.read(1024)
    except OSError as error:
        raise InputError(str(path), f"cannot be read ({reason(error)})") from error
    found = re.search(rb'<meta name="generator" content="relocbench ([^"]*)">', head)
    return found[1].decode(errors="replace") if found else None


def plotly_script() -> str:
    """Return the complete source of plotly.js.

    Returns
    -------
    str
        The script.
    """
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
