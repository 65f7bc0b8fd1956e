"""The page of the assignments of an instance: a table that compares them, and one map for each."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import use
from relocbench.instances.files.file_name import safe_file_name
from relocbench.instances.gap import excess
from relocbench.instances.instance import Instance
from relocbench.reports.map.assignments import Assignment, KnownBound
from relocbench.reports.map.figure import MOST_CLIENTS, draw_map
from relocbench.reports.pages.page import Page, kind_of
from relocbench.reports.pages.tables import Column, Table, Value

SCRIPT = Path(__file__).parent / "links.js"
# How the page states that it is a page of maps.
KIND = "map"
# Maps are side by side where each has at least this many pixels.
LEAST_WIDTH = 400


def page_of(instance: Instance, assignments: Sequence[Assignment], known: KnownBound | None, command: str) -> Page:
    """Return the page of an instance.

    Parameters
    ----------
    instance
        The instance.
    assignments
        The assignments to show; at least one.
    known
        The highest proved lower bound, if there is one.
    command
        The command that makes the page.

    Returns
    -------
    Page
        The page.
    """
    title = instance.name or f"Instance {instance.hash[:12]}"
    page = Page(title, _lead(instance, assignments, known), kind=KIND)
    page.describe(instances=1, methods=[one.label for one in assignments])
    page.panels(
        [(_heading(one), draw_map(one, loads=True)) for one in assignments], _caption(instance), least=LEAST_WIDTH
    )
    page.table(_table(assignments, known))
    page.script(SCRIPT.read_text(encoding="utf-8"))
    page.provenance(command, {"instance": instance.hash})
    return page


def default_path(instance: Instance) -> Path:
    """Return the file in the current folder that the page of an instance is written to by default.

    Parameters
    ----------
    instance
        The instance.

    Returns
    -------
    Path
        The file, which does not exist or is a page of maps.

    Raises
    ------
    InputError
        If there is another file of that name, which must not be overwritten without being named.
    """
    path = Path(safe_file_name(instance.name or instance.hash[:12], ".html"))
    if path.exists() and (not path.is_file() or kind_of(path) != KIND):
        raise InputError(str(path), "exists and is not a page of `relocbench show`; name the file to write with --out")
    return path


def _lead(instance: Instance, assignments: Sequence[Assignment], known: KnownBound | None) -> str:
    best = min(assignments, key=lambda one: one.cost.objective)
    sizes = f"{instance.n_clients} clients, {instance.n_servers} servers, {instance.n_topics} topics."
    found = f"The mean delay of a publication is **{best.cost.y:.4f} ms** with `{best.label}`"
    if len(assignments) > 1:
        worst = max(assignments, key=lambda one: one.cost.objective)
        found += f" and {worst.cost.y:.4f} ms with `{worst.label}`"
    if known is None:
        return f"{sizes} {found}. No lower bound is known for this instance."
    least = f"{known.bound / max(instance.n_publications, 1):.4f} ms"
    proved = f"The proven optimum is {least}" if known.optimal else f"The certified lower bound is {least}"
    return f"{sizes} {found}. {proved} ({known.source})."


def _table(assignments: Sequence[Assignment], known: KnownBound | None) -> Table:
    columns = [
        Column("homes"),
        Column("Y, ms", ".4f", "mean delay of a publication"),
        Column("Y1", ".4f", "the part of Y between clients and homes"),
        Column("Y2", ".4f", "the part of Y between servers and to the cloud"),
        Column(
            "excess", ".2%", "objective / reference - 1; the reference is the proven optimum or the certified bound"
        ),
        Column("least θ", ".3f", "the smallest θ of a server"),
        Column("θ < 1", "d", "number of overloaded servers"),
        Column("storage", ".0%", "largest share of a storage capacity in use"),
        Column("compute", ".0%", "largest share of a compute capacity in use"),
        Column("km", ".2f", "mean distance from a client to its home"),
        Column("differ", "d", "clients whose home differs from that in the first row"),
    ]
    rows: list[list[Value]] = []
    for one in assignments:
        instance, cost = one.instance, one.cost
        rows.append(
            [
                one.label,
                cost.y,
                cost.y1,
                cost.y2,
                None if known is None else excess(cost.objective, known.bound),
                float(cost.theta.min()),
                int(np.count_nonzero(cost.theta < 1)),
                float(use(cost.storage_load, instance.storage_capacity).max()),
                float(use(cost.compute_load, instance.compute_capacity).max()),
                one.distance,
                int(np.count_nonzero(one.home != assignments[0].home)),
            ]
        )
    reference = "No lower bound is known, so there is no excess."
    if known is not None:
        kind = "proven optimum" if known.optimal else "certified bound"
        reference = f"`excess`: `ΣD / reference - 1`, where the reference is the {kind} ({known.source})."
    return Table(
        columns,
        rows,
        f"{reference} `θ < 1`: the number of servers that send a share to the cloud. `storage`, `compute`: the largest "
        "share of a capacity in use. `differ`: the number of clients whose home differs from that in the first row.",
    )


def _heading(assignment: Assignment) -> str:
    over = int(np.count_nonzero(assignment.cost.theta < 1))
    servers = "no server overloaded" if not over else f"{over} server{'s' if over > 1 else ''} overloaded"
    return f"{assignment.label}: Y = {assignment.cost.y:.4f} ms, {servers}"


def _caption(instance: Instance) -> str:
    links = (
        "When the pointer is over a client, red lines show the homes of all clients that share a topic with it."
        if instance.n_clients <= MOST_CLIENTS
        else f"{MOST_CLIENTS} of {instance.n_clients} clients are drawn; the loads are those of all clients."
    )
    return (
        "Squares are servers, with their numbers. Clients have the colour of their home, and a line leads to it. The "
        "bars below a map are the storage and compute loads of the servers, as shares of their capacities. A server "
        "over a capacity is overloaded: its square has a red frame, and it sends the share 1 - θ of its messages to "
        f"the cloud. {links}"
    )
