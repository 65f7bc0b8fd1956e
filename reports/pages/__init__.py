"""Pages: one self-contained HTML file a report, light or dark as the reader's machine is, for phones and for print.

How a report makes one::

    from relocbench.reports.pages.figures import banded_line, figure, points
    from relocbench.reports.pages.page import Page
    from relocbench.reports.pages.method_style import colour_of, name_of
    from relocbench.reports.pages.tables import Cell, Column, Table

    page = Page("How far from optimal?", lead="RELOC is **46 %** above what is proved.")
    page.section("Gaps", "What the numbers below are, in a sentence or two.")
    page.figure(plot, "What to see in it: the line of `reloc` falls from left to right.")
    page.table(Table([Column("method"), Column("mean gap", ".2%")], [[Cell.of_method("reloc"), 0.46]], "What it is."))
    page.note("Something small.")
    page.warning("Something that must not be overlooked.")
    page.provenance("relocbench study --out study", {"library": "version 95"})
    page.write(Path("study/report.html"))

- Texts are plain text with two marks, ``**strong**`` and ```code```; everything else is escaped (``texts.marked``).
- ``figures.figure(x=..., y=...)`` is a plotly figure with our layout and no colours of its own besides the data's: the
  page paints axes and text for light, dark and print. Colours of methods come from ``looks.colour_of`` alone.
- ``figures.points(hover, command)`` are the arguments that give each point of a trace a text for hovering and a command
  that reproduces it; a click (or a tap) shows the command in a line below the plot, with a button that copies it.
- ``Page.numbers`` shows a few large numbers, ``Page.listing`` a list, ``Page.html`` markup of your own; a long table
  goes behind a line with ``page.table(table, folded="All 64 lines")``.
- ``Page.panels([(title, plot), ...], caption, legend)`` sets plots side by side, one below the other on a phone, with
  one legend for all.
- Tables sort by clicking a heading: by the number in the cell, not its text; empty cells stay last.
- ``Page.write`` writes whole or not at all, and needs the extra ``reports`` (plotly, jinja2); where it is missing,
  ``needs.require`` says in one line what to install. Call it before a long computation, not after.
- ``tests/reports/browser.py`` opens a page in a real Chromium: console errors, plots drawn, clicks, screenshots.
"""
