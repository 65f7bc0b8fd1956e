"""A page: what is added to it, and the one file it becomes."""

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from relocbench.instances.files.atomic_write import written_whole
from relocbench.reports.pages.markup import marked, plain
from relocbench.reports.pages.method_style import Look
from relocbench.reports.pages.tables import Table
from relocbench.runs.environment import information

if TYPE_CHECKING:
    import plotly.graph_objects as go

FOLDER = Path(__file__).parent
# What is told line by line of the machine; the rest of what is known about it are packages.
MACHINE = ("relocbench", "python", "platform", "processor", "cores", "memory_mib")


class Page:
    """A report in the making; parts come in the order they are added.

    Parameters
    ----------
    title
        What the page is about.
    lead
        What it found, in a sentence or two; a blank line begins a new paragraph.
    """

    def __init__(self, title: str, lead: str = "") -> None:
        self.title = title
        self.lead = lead
        self._parts: list[Markup] = []
        self._figures: dict[str, str] = {}
        self._contents: list[tuple[str, str]] = []
        self._provenance = Markup()
        self._scripts: list[str] = []

    def section(self, heading: str, text: str = "") -> None:
        """Begin a section, perhaps with a paragraph."""
        anchor = f"section-{len(self._contents) + 1}"
        self._contents.append((anchor, plain(heading)))
        self._parts.append(Markup('<h2 id="{}">{}</h2>').format(anchor, marked(heading)))
        if text:
            self.text(text)

    def subsection(self, heading: str, text: str = "") -> None:
        """Begin a part of a section."""
        self._parts.append(Markup("<h3>{}</h3>").format(marked(heading)))
        if text:
            self.text(text)

    def text(self, text: str) -> None:
        """Add a paragraph."""
        self._parts.append(Markup("<p>{}</p>").format(marked(text)))

    def note(self, text: str) -> None:
        """Add a paragraph in small print."""
        self._parts.append(Markup('<p class="soft">{}</p>').format(marked(text)))

    def warning(self, text: str) -> None:
        """Add a paragraph that must not be overlooked."""
        self._parts.append(Markup('<p class="warning" role="alert">{}</p>').format(marked(text)))

    def listing(self, items: list[str]) -> None:
        """Add a list."""
        lines = Markup().join(Markup("<li>{}</li>").format(marked(item)) for item in items)
        self._parts.append(Markup("<ul>{}</ul>").format(lines))

    def numbers(self, told: Mapping[str, str]) -> None:
        """Add a few numbers, large, each with what it is: ``{"mean gap of RELOC": "46 %"}``."""
        tiles = Markup().join(
            Markup("<div><strong>{}</strong><span>{}</span></div>").format(number, marked(what))
            for what, number in told.items()
        )
        self._parts.append(Markup('<div class="numbers">{}</div>').format(tiles))

    def table(self, table: Table, folded: str = "") -> None:
        """Add a table; a long one may be folded behind a line that says what it is, and opens for print."""
        html = table.html()
        if folded:
            html = Markup("<details><summary>{}</summary>{}</details>").format(marked(folded), html)
        self._parts.append(html)

    def figure(self, plot: "go.Figure", caption: str) -> None:
        """Add a plot and the sentence that says what to see in it."""
        self._parts.append(Markup('<figure class="plot">{}{}</figure>').format(self._canvas(plot), _told(caption)))

    def panels(
        self, plots: Sequence[tuple[str, "go.Figure"]], caption: str, legend: Sequence[tuple[str, Look]] = ()
    ) -> None:
        """Add plots that belong together, side by side as far as there is room, with one legend for all."""
        lines = Markup().join(
            Markup('<span><i style="border-top:3px {} {}"></i>{}</span>').format(
                "solid" if look.dash == "solid" else "dotted" if look.dash == "dot" else "dashed", look.colour, name
            )
            for name, look in legend
        )
        panels = Markup().join(
            Markup("<div><h4>{}</h4>{}</div>").format(marked(title), self._canvas(plot)) for title, plot in plots
        )
        self._parts.append(
            Markup('<figure class="plot">{}<div class="panels">{}</div>{}</figure>').format(
                Markup('<p class="legend">{}</p>').format(lines) if legend else "", panels, _told(caption)
            )
        )

    def _canvas(self, plot: "go.Figure") -> Markup:
        """Keep a plot and return the place where it will be drawn."""
        name = f"figure-{len(self._figures) + 1}"
        self._figures[name] = plot.to_json()
        canvas = Markup('<div id="{}" class="canvas" style="min-height:{}px"></div>')
        return canvas.format(name, plot.layout.height or 380)

    def html(self, markup: Markup) -> None:
        """Add HTML of your own; it must be self-contained, and safe."""
        self._parts.append(markup)

    def script(self, text: str) -> None:
        """Add JavaScript of your own; the event ``drawn`` of the window says that the plots are there."""
        self._scripts.append(text)

    def provenance(self, command: str, facts: Mapping[str, object] | None = None) -> None:
        """Say at the bottom how the page was made: the command, when, further facts, versions and machine."""
        about = information(java=False)
        packages = {name: version for name, version in about.items() if name not in MACHINE}
        told: dict[str, object] = {
            "command": command,
            "made": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC",
            **(facts or {}),
            **{name.replace("_", " "): value for name, value in about.items() if name not in packages},
            "packages": ", ".join(f"{name} {version}" for name, version in packages.items() if version is not None),
        }
        lines = Markup().join(
            Markup("<dt>{}</dt><dd>{}</dd>").format(name, "none" if value is None else value)
            for name, value in told.items()
        )
        self._provenance = Markup('<h2>How it was made</h2><dl class="facts">{}</dl>').format(lines)

    def render(self) -> str:
        """Return the page as one text, everything it needs inside."""
        import jinja2

        environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
        template = environment.from_string((FOLDER / "page.html").read_text(encoding="utf-8"))
        return template.render(
            title=self.title,
            lead=[marked(part) for part in self.lead.split("\n\n") if part],
            contents=self._contents if len(self._contents) > 3 else [],
            body=Markup("\n").join(self._parts),
            provenance=self._provenance,
            style=Markup((FOLDER / "page.css").read_text(encoding="utf-8")),
            # Ours is the last, so that nobody misses its event.
            scripts=[Markup(text) for text in (*self._scripts, (FOLDER / "page.js").read_text(encoding="utf-8"))],
            plotly=Markup(plotly_script()) if self._figures else "",
            # A script ends at the first </script>, wherever it stands.
            figures={name: Markup(told.replace("</", "<\\/")) for name, told in self._figures.items()},
        )

    def write(self, path: str | Path) -> Path:
        """Write the page, whole or not at all, and return where it is."""
        with written_whole(path) as temporary:
            temporary.write_text(self.render(), encoding="utf-8")
        return Path(path)


def _told(caption: str) -> Markup:
    """Return what stands below a plot: a line for the command that a click names, and the caption."""
    return Markup(
        '<p class="command" hidden><code></code><button type="button">copy</button></p><figcaption>{}</figcaption>'
    ).format(marked(caption))


def plotly_script() -> str:
    """Return plotly.js, whole."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
