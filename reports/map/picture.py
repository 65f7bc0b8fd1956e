"""The assignments of an instance as a picture: the maps side by side."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from relocbench.instances.files.atomic_write import written_whole
from relocbench.reports.map.assignments import Assignment
from relocbench.reports.map.figure import draw_map
from relocbench.reports.pages.chromium import take_screenshot
from relocbench.reports.pages.page import plotly_script

# The size of one map in pixels.
WIDTH = 640
HEIGHT = 820
PAGE = """<!doctype html><html><head><meta charset="utf-8"><style>
body {{ margin: 0; background: #ffffff; width: {width}px; }}
body {{ display: grid; grid-template-columns: repeat({columns}, {map_width}px); }}
</style></head><body>{elements}<script>{plotly}</script><script>
const elements = document.body.children;
[{maps}].forEach((map, at) => Plotly.newPlot(elements[at], map.data, map.layout, {{ staticPlot: true }}));
</script></body></html>"""


def write_picture(assignments: Sequence[Assignment], path: Path) -> Path:
    """Write the maps of assignments as a PNG file.

    Parameters
    ----------
    assignments
        The assignments.
    path
        The file to write.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        If Chromium is not installed or writes no picture.
    """
    count = len(assignments)
    columns = 2 if count == 4 else min(count, 3)
    rows = -(-count // columns)
    content = PAGE.format(
        width=columns * WIDTH,
        columns=columns,
        map_width=WIDTH,
        elements="<div></div>" * count,
        plotly=plotly_script(),
        maps=",".join(map(_map, assignments)),
    )
    with tempfile.TemporaryDirectory() as folder, written_whole(path) as temporary:
        page = Path(folder) / "maps.html"
        page.write_text(content, encoding="utf-8")
        # Chromium chooses the format by the suffix of the file name, and the temporary file has another suffix.
        picture = take_screenshot(page, Path(folder) / "maps.png", columns * WIDTH, rows * HEIGHT)
        temporary.write_bytes(picture.read_bytes())
    return path


def _map(assignment: Assignment) -> str:
    """Return one map as JSON, with a title."""
    plot = draw_map(assignment, height=HEIGHT, loads=True)
    title = f"<b>{Markup.escape(assignment.label)}</b>: Y = {assignment.cost.y:.4f} ms"
    plot.update_layout(
        width=WIDTH,
        title={"text": title, "x": 0.03, "y": 0.985, "yanchor": "top", "font": {"size": 19}},
        margin={"l": 50, "r": 12, "t": 100, "b": 44},
        legend={"y": 1.01, "font": {"size": 11}},
        font={"family": "system-ui, sans-serif", "size": 13, "color": "#1b2127"},
        paper_bgcolor="#ffffff",
        plot_bgcolor="#ffffff",
        meta=None,
    )
    plot.update_xaxes(gridcolor="#e3e5e0")
    plot.update_yaxes(gridcolor="#e3e5e0")
    return str(plot.to_json()).replace("</", "<\\/")
