"""Executes the notebook docs/tour.ipynb. ``python -m tests.tour`` writes it again with its present outputs."""

import base64
import os
import tempfile
from pathlib import Path

from relocbench.reports.pages.chromium import take_screenshot

TOUR = Path(__file__).parents[1] / "docs" / "tour.ipynb"
# Figures are stored as data, from which the notebook draws them. With plotly itself the file would have megabytes.
RENDERER = "plotly_mimetype"
FIGURE = "application/vnd.plotly.v1+json"
# Seconds that a cell may take, most of them for compiling.
TIME_LIMIT = 600
# The width of a picture in pixels.
WIDTH = 900


def read_tour():
    """Return the notebook as it is stored."""
    import nbformat

    return nbformat.read(TOUR, as_version=4)


def executed_tour(folder):
    """Execute all cells in a folder, and return the notebook with the new outputs."""
    from nbclient import NotebookClient

    notebook = read_tour()
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=TIME_LIMIT, resources=resources, record_timing=False)
    client.execute(env=os.environ | {"PLOTLY_RENDERER": RENDERER})
    # The version of Python is not part of the tour.
    notebook.metadata.pop("language_info", None)
    return notebook


def add_pictures(notebook, folder):
    """Add a picture to each figure, for readers whose program does not draw figures of plotly, such as a web page."""
    import plotly.graph_objects as go

    page, picture = Path(folder, "figure.html"), Path(folder, "figure.png")
    for output in (output for cell in notebook.cells for output in cell.get("outputs", ())):
        if FIGURE in output.get("data", {}):
            content = output.data[FIGURE]
            figure = go.Figure(data=content["data"], layout=content["layout"])
            figure.write_html(page, include_plotlyjs=True, config={"staticPlot": True})
            take_screenshot(page, picture, WIDTH, figure.layout.height + 16, scale=1)
            output.data["image/png"] = base64.b64encode(picture.read_bytes()).decode()


if __name__ == "__main__":
    import nbformat

    with tempfile.TemporaryDirectory() as temporary:
        tour = executed_tour(temporary)
        add_pictures(tour, temporary)
    nbformat.write(tour, TOUR)
