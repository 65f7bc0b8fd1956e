"""The page kit: each report becomes one self-contained HTML file, readable on a phone, in dark mode and in print.

How to add a report
-------------------
A new report is one new file in ``relocbench/commands`` and one line in ``relocbench/cli.py``. The file holds a function
``run`` that computes something, fills a :class:`reports.pages.page.Page` and writes it. A complete example,
``relocbench/commands/sizes.py``::

    from pathlib import Path
    from typing import Annotated

    import typer


    def run(
        instances: Annotated[list[Path], typer.Argument(help="Instance files, or library:PATTERN.")],
        out: Annotated[Path, typer.Option(help="The page to write.")] = Path("sizes.html"),
    ) -> None:
        "Report how large instances are."
        from relocbench.reports.pages.requirements import require

        require()  # before a long computation: it raises an error if plotly or jinja2 is not installed
        from relocbench.instances.instance_source import read_all
        from relocbench.reports.pages.page import Page
        from relocbench.reports.pages.tables import Column, Table
        from relocbench.terminal import command_line

        found = read_all(instances)
        page = Page("Instance sizes", lead=f"**{len(found)}** instances were read.")
        columns = [Column("instance"), Column("clients", "d"), Column("servers", "d")]
        rows = [[instance.name, instance.n_clients, instance.n_servers] for instance in found]
        page.table(Table(columns, rows, "One row per instance."))
        page.provenance(command_line())
        print(f"page: {page.write(out)}")

In ``relocbench/cli.py``, add ``"sizes"`` to the tuple ``COMMANDS``. The command is then ``relocbench sizes``. Imports
stand inside ``run`` so that ``relocbench --help`` stays fast. A larger report keeps its code in a folder of its own
below ``reports``, as the other reports do.

What a page can hold
--------------------
- ``page.section``, ``subsection``, ``text``, ``note``, ``warning`` and ``listing`` add text. A text is plain text with
  two marks, ``**strong**`` and ```code```. Everything else is escaped (:func:`reports.pages.markup.marked`).
- ``page.numbers`` shows a few large numbers.
- ``page.table`` adds a table that readers sort by clicking a heading: by the number in a cell, not by its text. Empty
  cells stay last. ``page.table(table, folded="All 64 rows")`` hides a long table behind one line.
- ``page.figure(plot, caption)`` adds a plotly figure. Make the figure with :func:`reports.pages.figures.figure`; the
  page sets the colours of axes and text for light, dark and print. The colour of a method always comes from
  :func:`reports.pages.method_style.colour_of`.
- ``page.panels([(title, plot), ...], caption)`` places plots side by side with one legend.
- Every figure gets a legend of buttons that hide a method in all figures of the page, a switch for each axis that spans
  more than a decade, and a button that downloads its data as CSV. :mod:`reports.pages.figures` says how a figure can
  add to the data, and has axes for counts, for shares and for logarithms with a label for 0.
- ``figures.points(hover, command)`` gives each point of a trace a hover text and the command that reproduces it. A
  click on the point shows the command below the plot, with a button that copies it.
- ``page.html`` and ``page.script`` add HTML and JavaScript that the report provides.
- ``page.provenance`` lists the command, the versions and the machine at the end of the page.
- Every page ends with the same glossary (:mod:`reports.pages.glossary`) and links to it at the top.
- ``page.write`` writes the file completely or not at all. It needs the extra ``reports`` (plotly, jinja2).

``tests/reports/browser.py`` opens a page in Chromium and checks console errors, plots, clicks and screenshots.
``assert_readable`` checks that no text of a page is cut off, at the widths of a screen and of a phone.
"""
