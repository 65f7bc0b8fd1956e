"""Assignments of an instance as a page: a table to compare them by, and a map each."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from relocbench.instances.evaluation import use
from relocbench.instances.instance import Instance
from relocbench.reports.map.assignments import Assignment, Known
from relocbench.reports.map.figure import MOST_CLIENTS, draw_map
from relocbench.reports.pages.page import Page
from relocbench.reports.pages.tables import Column, Table, Value
from relocbench.runs.outcome import above

SCRIPT = Path(__file__).parent / "links.js"


def page_of(instance: Instance, assignments: Sequence[Assignment], known: Known | None, command: str) -> Page:
    """Return the page."""
    page = Page(instance.name or f"Instance {instance.hash[:12]}", _lead(instance, assignments, known))
    page.table(_table(assignments, known))
    for assignment in assignments:
        page.section(assignment.label)
        page.figure(draw_map(assignment), _caption(assignment))
    page.script(SCRIPT.read_text(encoding="utf-8"))
    page.provenance(command, {"instance": instance.hash})
    return page


def _lead(instance: Instance, assignments: Sequence[Assignment], known: Known | None) -> str:
    best = min(assignments, key=lambda one: one.cost.objective)
    sizes = f"{instance.n_clients} clients, {instance.n_servers} servers, {instance.n_topics} topics."
    found = f"A publication takes **{best.cost.y:.4f} ms** on average with `{best.label}`"
    if len(assignments) > 1:
        worst = max(assignments, key=lambda one: one.cost.objective)
        found += f", {worst.cost.y:.4f} ms with `{worst.label}`"
    if known is None:
        return f"{sizes} {found}; how much less is possible is not known here."
    least = f"{known.bound / max(instance.n_publications, 1):.4f} ms"
    proved = "is the proven optimum" if known.optimal else "is a certified bound: no homes take less"
    return f"{sizes} {found}; {least} {proved} ({known.whom})."


def _table(assignments: Sequence[Assignment], known: Known | None) -> Table:
    columns = [
        Column("homes"),
        Column("Y, ms", ".4f", "mean delay of a publication"),
        Column("Y1", ".4f", "its part between clients and homes"),
        Column("Y2", ".4f", "its part between servers and to the cloud"),
        Column("gap", ".2%", "what the homes cost above the certified bound"),
        Column("least θ", ".3f"),
        Column("θ < 1", "d", "how many servers"),
        Column("storage", ".0%", "the fullest server"),
        Column("compute", ".0%", "the busiest server"),
        Column("km", ".2f", "mean distance to the home"),
        Column("differ", "d", "clients with another home than in the first line"),
    ]
    rows: list[list[Value]] = []
    for one in assignments:
        at, cost = one.instance, one.cost
        rows.append(
            [
                one.label,
                cost.y,
                cost.y1,
                cost.y2,
                None if known is None else above(cost.objective, known.bound),
                float(cost.theta.min()),
                int(np.count_nonzero(cost.theta < 1)),
                float(use(cost.storage_load, at.storage_capacity).max()),
                float(use(cost.compute_load, at.compute_capacity).max()),
                one.distance,
                int(np.count_nonzero(one.home != assignments[0].home)),
            ]
        )
    bound = "No bound is known, so there is no gap."
    if known is not None:
        what = "proven optimum" if known.optimal else "certified bound, which the optimum may be above"
        bound = f"The gap is how much more the homes cost than the {what} ({known.whom})."
    return Table(
        columns,
        rows,
        f"{bound} `θ < 1`: servers that send a share to the cloud; `storage`, `compute`: of the "
        "server that uses most; `differ`: clients with another home than in the first line.",
    )


def _caption(assignment: Assignment) -> str:
    cost, instance = assignment.cost, assignment.instance
    over = int(np.count_nonzero(cost.theta < 1))
    loads = (
        f"{over} of {instance.n_servers} servers are asked for more than they have (red on top of their bars) and send "
        "a share 1 - θ to the cloud"
        if over
        else "no server is asked for more than it has"
    )
    shown = (
        "Over a client, red lines show the homes of all who share a topic with it."
        if instance.n_clients <= MOST_CLIENTS
        else f"{MOST_CLIENTS} of {instance.n_clients} clients are drawn; loads are of all."
    )
    return (
        f"Y = {cost.y:.4f} ms. Clients have the colour of their home; the two bars of a server are its storage and its "
        f"compute, the frame is what it has: {loads}. {shown}"
    )
