"""Assignments of an instance as a picture: the maps of the page side by side."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from relocbench.instances.files.atomic_write import written_whole
from relocbench.reports.map.assignments import Assignment
from relocbench.reports.map.figure import draw_map
from relocbench.reports.pages.chromium import photograph
from relocbench.reports.pages.page import plotly_script

# Pixels of one map.
WIDTH, HEIGHT = 640, 700
PAGE = """<!doctype html><html><head><meta charset="utf-8"><style>
body {{ margin: 0; background: #ffffff; width: {width}px; }}
body {{ display: grid; grid-template-columns: repeat({columns}, {each}px); }}
</style></head><body>{places}<script>{plotly}</script><script>
const places = document.body.children;
[{maps}].forEach((map, at) => Plotly.newPlot(places[at], map.data, map.layout, {{ staticPlot: true }}));
</script></body></html>"""


def write_picture(assignments: Sequence[Assignment], path: Path) -> Path:
    """Write a PNG and return where it is."""
    count = len(assignments)
    columns = 2 if count == 4 else min(count, 3)
    rows = -(-count // columns)
    content = PAGE.format(
        width=columns * WIDTH,
        columns=columns,
        each=WIDTH,
        places="<div></div>" * count,
        plotly=plotly_script(),
        maps=",".join(map(_map, assignments)),
    )
    with tempfile.TemporaryDirectory() as folder, written_whole(path) as temporary:
        page = Path(folder) / "maps.html"
        page.write_text(content, encoding="utf-8")
        # It goes by the ending of the name, which a file that is not yet whole does not have.
        taken = photograph(page, Path(folder) / "maps.png", columns * WIDTH, rows * HEIGHT)
        temporary.write_bytes(taken.read_bytes())
    return path


def _map(assignment: Assignment) -> str:
    """Return one map as JSON, with what the page would tell around it."""
    plot = draw_map(assignment, height=HEIGHT)
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
