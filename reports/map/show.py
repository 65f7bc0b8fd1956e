"""Maps of assignments for notebooks and programs: one plotly figure with the maps side by side."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import checked_home
from relocbench.instances.files.homes_file import HOMES_ENDINGS
from relocbench.instances.instance import Instance, require_instance
from relocbench.instances.solution import Solution
from relocbench.reports.map.assignments import Assignment, from_file, from_method, gather
from relocbench.reports.pages.method_style import name_of
from relocbench.reports.pages.requirements import require
from relocbench.runs.certify import Certified
from relocbench.runs.methods import Selector
from relocbench.runs.selectors import MethodLike
from relocbench.runs.solve import Result

if TYPE_CHECKING:
    import plotly.graph_objects as go

# What can be shown: homes, an object that has homes, a file with homes, or a method that finds them.
Shown = npt.ArrayLike | Result | Certified | Solution | Path | MethodLike

# The height in pixels of one map, of two side by side, and of more.
HEIGHTS = (760, 640, 540)
# The space between two maps, as a share of the width.
SPACE = 0.07


def show(instance: Instance, *homes: Shown, seed: int = 0, time_limit: float = 10.0) -> "go.Figure":
    """Draw the homes of an instance's clients on a map, with the loads of its servers.

    Parameters
    ----------
    instance
        The problem.
    *homes
        What to show, side by side: a list or array with one server per client, a result of ``solve``, a result of
        ``certify``, a solution, the path of a file with homes (a ``Path``), or a method as a selector or a function,
        which is run. Without any, the best homes of the library are shown, or else the nearest servers.
    seed, time_limit
        For methods.

    Returns
    -------
    plotly.graph_objects.Figure
        The maps. Notebooks draw it; ``figure.write_html("map.html")`` writes it to a file.

    Raises
    ------
    InputError
        If homes are not an assignment of the instance or belong to another one, a method or a file cannot be used, or
        plotly is not installed.

    Examples
    --------
    >>> import relocbench
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> figure = relocbench.show(instance, "nearest", [0, 0, 1, 1])
    >>> [title.text for title in figure.layout.annotations[-2:]]
    ['<b>NS</b>: Y = 2.9495 ms', '<b>homes 2</b>: Y = 7.9693 ms']
    """
    require()
    require_instance(instance)
    if homes:
        assignments = [_assignment(instance, one, at, seed, time_limit) for at, one in enumerate(homes, start=1)]
    else:
        assignments, _ = gather(instance, [], [], seed, time_limit)
    return _side_by_side(assignments)


def _assignment(instance: Instance, homes: Shown, number: int, seed: int, time_limit: float) -> Assignment:
    if isinstance(homes, Path) or (isinstance(homes, str) and homes.lower().endswith(HOMES_ENDINGS)):
        return from_file(Path(homes), instance)[0]
    if isinstance(homes, str | Selector) or callable(homes):
        return from_method(homes, instance, seed, time_limit)
    label = f"homes {number}"
    if isinstance(homes, Result):
        _check_same(instance, homes.instance.hash, number)
        label = f"{name_of(str(homes.selector))}, seed {homes.seed}"
    elif isinstance(homes, Certified):
        _check_same(instance, homes.certificate.instance, number)
        label = "certified optimum" if homes.status == "optimal" else "certified homes"
    plain = homes.home if isinstance(homes, Result | Certified | Solution) else homes
    return Assignment(instance, label, checked_home(instance, plain))


def _check_same(instance: Instance, other: str, number: int) -> None:
    if other != instance.hash:
        wanted = f"expected homes of the instance given ({instance.hash[:16]}…)"
        raise InputError(f"homes {number}", f"{wanted}, got those of {other[:16]}…")


def _side_by_side(assignments: list[Assignment]) -> "go.Figure":
    import plotly.graph_objects as go
    from markupsafe import Markup

    from relocbench.reports.map.figure import LINKS, draw_map

    height = HEIGHTS[min(len(assignments), len(HEIGHTS)) - 1]
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {}
    notes: list[dict[str, Any]] = []
    titles: list[dict[str, Any]] = []
    width = (1 - SPACE * (len(assignments) - 1)) / len(assignments)
    for number, assignment in enumerate(assignments):
        single = draw_map(assignment, height=height, loads=True).to_plotly_json()
        axes = [name for name in single["layout"] if name.startswith(("xaxis", "yaxis"))]
        column = _Column(number * len(axes) // 2, number * (width + SPACE), width)
        # One legend for all maps: a click on a name hides the traces of that name in each of them. The links of a
        # client need the script of a page.
        traces += [
            column.moved(trace, "xaxis", "yaxis")
            | {"legendgroup": trace["name"], "showlegend": not number and trace.get("showlegend", True)}
            for trace in single["data"]
            if trace["name"] != LINKS
        ]
        notes += [column.moved(note, "xref", "yref") for note in single["layout"].pop("annotations", ())]
        title = f"<b>{Markup.escape(assignment.label)}</b>: Y = {assignment.cost.y:.4f} ms"
        at = {"xref": "paper", "x": column.left + width / 2, "yref": "paper", "y": 1.0}
        style = {"showarrow": False, "font": {"size": 15}, "xanchor": "center", "yanchor": "bottom"}
        titles.append({"text": title, **at, **style})
        layout |= {name: value for name, value in single["layout"].items() if name not in (*axes, "meta")}
        layout |= {column.axis(name): column.placed(name, single["layout"][name]) for name in axes}
    figure = go.Figure(data=traces, layout=layout | {"annotations": notes + titles})
    return figure.update_layout(
        margin={"l": 56, "r": 12, "t": 40, "b": 80}, legend={"x": 0, "y": -0.14, "yanchor": "top"}
    )


@dataclass(frozen=True)
class _Column:
    """The place of one map in the figure: how far the numbers of its axes move, its left edge and its width."""

    by: int
    left: float
    width: float

    def axis(self, name: str) -> str:
        """Return the new name of an axis: of ``xaxis2`` in a layout, or of ``x2`` in a trace."""
        word = name.rstrip("0123456789")
        number = int(name[len(word) :] or 1) + self.by
        return word if number == 1 else f"{word}{number}"

    def moved(self, part: dict[str, Any], *references: str) -> dict[str, Any]:
        """Return a trace or an annotation with new references to axes; without a reference it is at the first axis."""
        return part | {name: self.axis(part.get(name, name[0])) for name in references}

    def placed(self, name: str, axis: dict[str, Any]) -> dict[str, Any]:
        """Return an axis in its new place."""
        other = "y" if name[0] == "x" else "x"
        known = {"anchor": other} | axis
        moved: dict[str, Any] = {key: self.axis(known[key]) for key in ("anchor", "scaleanchor") if key in known}
        if name[0] == "x":
            moved["domain"] = [self.left + self.width * edge for edge in axis.get("domain", (0, 1))]
        return axis | moved
