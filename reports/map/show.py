"""Maps of assignments for notebooks and programs: one plotly figure with the maps side by side."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import checked_home
from relocbench.instances.instance import Instance
from relocbench.instances.solution import Solution
from relocbench.reports.map.assignments import Assignment, from_file, from_method, gather
from relocbench.reports.pages.method_style import name_of
from relocbench.reports.pages.requirements import require
from relocbench.runs.certify import Certified
from relocbench.runs.solve import Result

if TYPE_CHECKING:
    import plotly.graph_objects as go

# What can be shown: homes, an object that has homes, a file with homes, or a method that finds them.
Shown = npt.ArrayLike | Result | Certified | Solution | Path | str | Callable[..., Any]

# The height in pixels of one map, of two side by side, and of more.
HEIGHTS = (760, 640, 540)


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
    >>> [title.text for title in figure.layout.annotations]
    ['<b>NS</b>: Y = 2.9495 ms', '<b>homes 2</b>: Y = 7.9693 ms']
    """
    require()
    if homes:
        assignments = [_assignment(instance, one, at, seed, time_limit) for at, one in enumerate(homes, start=1)]
    else:
        assignments, _ = gather(instance, [], [], seed, time_limit)
    return _side_by_side(assignments)


def _assignment(instance: Instance, homes: Shown, number: int, seed: int, time_limit: float) -> Assignment:
    if isinstance(homes, Path):
        return from_file(homes, instance)[0]
    if isinstance(homes, str) or callable(homes):
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
    from markupsafe import Markup
    from plotly.subplots import make_subplots

    from relocbench.reports.map.figure import LINKS, draw_map

    titles = [f"<b>{Markup.escape(one.label)}</b>: Y = {one.cost.y:.4f} ms" for one in assignments]
    height = HEIGHTS[min(len(assignments), len(HEIGHTS)) - 1]
    whole = make_subplots(
        rows=2,
        cols=len(assignments),
        row_heights=[0.8, 0.2],
        subplot_titles=titles,
        horizontal_spacing=0.05,
        vertical_spacing=0.13,
    )
    for column, assignment in enumerate(assignments, start=1):
        single = draw_map(assignment, height=height, loads=True)
        for trace in single.data:
            # The links of a client need the script of a page.
            if trace.name != LINKS:
                # One legend for all maps: a click on a name hides the traces of that name in each of them.
                trace.update(legendgroup=trace.name, showlegend=column == 1 and trace.showlegend)
                whole.add_trace(trace, row=2 if trace.yaxis == "y2" else 1, col=column)
        own = {"domain", "anchor", "scaleanchor"}
        for row, number in enumerate(("", "2"), start=1):
            for axis, update in (("xaxis", whole.update_xaxes), ("yaxis", whole.update_yaxes)):
                settings = single.layout[axis + number].to_plotly_json()
                update({name: value for name, value in settings.items() if name not in own}, row=row, col=column)
        whole.update_yaxes(scaleanchor="x" if column == 1 else f"x{column}", row=1, col=column)
    whole.update_layout(
        template="none",
        height=height,
        margin={"l": 50, "r": 12, "t": 40, "b": 90},
        hovermode="closest",
        barmode="group",
        bargap=0.25,
        legend={"orientation": "h", "x": 0, "y": -0.15, "yanchor": "top"},
    )
    return whole
