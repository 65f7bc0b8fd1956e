"""The page of a study at full scale."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relocbench.instances.gap import gap
from relocbench.reports.full_scale.plots import (
    cluster_plot,
    delay_bars,
    number,
    result_names,
    short_name,
    skew_plot,
    stage_plot,
    use_plot,
)
from relocbench.reports.full_scale.tables import ONE_MACHINE, SPARK, Result, Study, variant
from relocbench.reports.pages.method_style import colour_of
from relocbench.reports.pages.page import Page
from relocbench.reports.pages.tables import Cell, Column, Table, Value

KIND = "full scale"


def write_page(study: Study, command: str, path: Path) -> Path:
    """Write the page of a study.

    Parameters
    ----------
    study
        The results.
    command
        The command that makes the page.
    path
        The file to write.

    Returns
    -------
    Path
        The file.
    """
    field = study.field
    page = Page(f"{study.name} at full scale", lead(study), kind=KIND)
    page.describe(instances=1, methods=sorted({one.label for one in study.results}))
    page.numbers(
        {
            "clients": f"{field.clients:,}",
            "topics": f"{field.topics:,}",
            "memberships": f"{field.memberships:,}",
            "servers": f"{len(field.server_x):,}",
            "publications": f"{study.publications:,}",
        }
    )
    page.section("Mean delay of a publication")
    page.figure(
        delay_bars(study),
        "`Y = Y1 + Y2` of each method, the least at the top: light `Y1`, dark `Y2`. Where `k=auto` chose a number of "
        "clusters, only the chosen one is shown here."
        + (" No assignment is to the left of the dotted line." if study.bound is not None else ""),
    )
    page.table(_results_table(study), folded=f"All {len(study.results)} results as a table")
    if study.bounds:
        page.section("Lower bounds", _bounds_text(study))
        page.table(_bounds_table(study))
    if (plot := cluster_plot(study)) is not None:
        page.section("Readings and numbers of clusters")
        page.figure(
            plot,
            "RELOC by its number of clusters `K`, one line for each reading and seed. The other methods do not depend "
            "on `K`. Readings stand side by side; none of them is preferred here.",
        )
    page.section("Load of the servers", _capacity_text(study))
    page.panels(
        [("Storage", use_plot(study, "storage")), ("Compute", use_plot(study, "compute"))],
        "How many servers have at least a given load. A server above 100 % is overloaded: it sends the rest to the "
        "cloud. Empty servers are left out on the right.",
    )
    if (plot := skew_plot(study)) is not None:
        page.section("Sizes of the clusters")
        page.figure(
            plot,
            "The clients of each cluster of RELOC, relative to the mean of the clusters. Each cluster is one task, so "
            "the largest determines how long the homes take on many cores.",
        )
    page.section(
        "Time and memory",
        "Measured on the machine of the driver: this process, Java and the Python workers. On a cluster the work of "
        "other machines is missing. `factors` and `field` are computed once and shared by all results.",
    )
    page.panels(
        [("Wall-clock time", stage_plot(study, "seconds")), ("Processor time", stage_plot(study, "cpu_seconds"))],
        "Seconds of each stage. `anneal` and `certify`, which run on one machine, have a time limit of their own; "
        "`spark-anneal` and `spark-bound` have a number of rounds.",
        least=420,
    )
    page.figure(
        stage_plot(study, "memory_mib"),
        "The largest memory during each stage, summed over the processes. Memory that processes share counts for each "
        "of them, and Java keeps what it once had.",
    )
    page.provenance(command, _facts(study))
    return page.write(path)


def lead(study: Study) -> str:
    """State the main result: the best method, NS against RELOC, and the distance to the bound.

    Parameters
    ----------
    study
        The results.

    Returns
    -------
    str
        A few sentences.
    """
    best = study.results[0]
    sentences = [f"The least mean delay has **{short_name(best.label)}** with Y = **{best.y:.4g} ms**."]
    nearest = _least(study, "nearest")
    reloc = _least(study, "reloc")
    if nearest is not None and reloc is not None:
        few = [one for one in study.results if one.method == "reloc" and (one.k or 0) < len(study.field.server_x)]
        if _same(reloc, nearest) and reloc.k == len(study.field.server_x):
            sentences.append("With one cluster for each server, RELOC has the cost of NS.")
        elif reloc not in few:
            sentences.append(f"With one cluster for each server, RELOC has {_against(reloc, nearest)}.")
        if few:
            best_few, worst = few[0], few[-1]
            sentences.append(
                f"With fewer clusters the best RELOC is {_named(best_few)}, with "
                f"{_against(best_few, nearest)}"
                + (
                    f", and the worst is {_named(worst)}, with {_against(worst, nearest)}."
                    if worst is not best_few
                    else "."
                )
            )
    if study.bound is not None:
        sentences.append(
            f"No assignment has a Y below **{study.bound / study.publications:.4g} ms**, by a verified certificate "
            f"({_made_by(study.bounds[0].computed_on)}); the gap of the best is {number(best.gap, '.2%')}."
        )
    overloaded = max(one.overloaded for one in study.shown)
    least = min(one.overloaded for one in study.shown)
    sentences.append(
        "No method overloads a server, so capacities do not bind."
        if not overloaded
        else f"Methods overload {least} to {overloaded} of {len(study.field.server_x)} servers."
    )
    return " ".join(sentences)


def _named(one: Result) -> str:
    return f"{short_name(variant(one.label))}, K = {one.k}"


def _same(one: Result, other: Result) -> bool:
    return math.isclose(one.objective, other.objective, rel_tol=1e-9)


def _against(one: Result, nearest: Result) -> str:
    return f"Y = {one.y:.4g} ms ({one.objective / nearest.objective - 1:+.1%} against NS)"


def _least(study: Study, method: str) -> Result | None:
    return next((one for one in study.results if one.method == method), None)


def _made_by(computed_on: str) -> str:
    return {SPARK: "in blocks on Spark", ONE_MACHINE: "of the whole instance on one machine"}[computed_on]


def _bounds_text(study: Study) -> str:
    kinds = {one.computed_on for one in study.bounds}
    sentences = ["No assignment of this instance has a smaller mean delay."]
    if ONE_MACHINE in kinds:
        sentences.append("`certify` ran on one machine, with a time limit and its own search for homes.")
    if SPARK in kinds:
        sentences.append(
            "`spark-bound` ran on Spark, in blocks of clients, from homes of another result. It has multipliers of "
            "capacities if these homes use more than half of one."
        )
    return " ".join(sentences)


def _bounds_table(study: Study) -> Table:
    names = result_names(study.results)
    columns = [
        Column("bound"),
        Column("computed on"),
        Column("Y is at least, ms", ".4f"),
        Column("gap", ".2%", "(ΣD of the best result - bound) / ΣD of the best result"),
        Column("started from"),
        Column("processor time, s", ".0f"),
    ]
    best = study.results[0].objective
    rows: list[list[Value]] = [
        [
            Cell(short_name(one.label), swatch=colour_of(one.label)),
            one.computed_on,
            one.value / study.publications,
            gap(best, one.value),
            None if one.homes is None else names[one.homes],
            sum(stage["cpu_seconds"] for stage in one.stages.values()),
        ]
        for one in study.bounds
    ]
    return Table(columns, rows, "Each bound was verified in exact arithmetic after it had been computed.")


def _results_table(study: Study) -> Table:
    columns = [
        Column("method"),
        Column("computed on"),
        Column("K", "d"),
        Column("Y, ms", ".4f"),
        Column("Y1", ".4f"),
        Column("Y2", ".4f"),
        Column("gap", ".2%", "(ΣD - bound) / ΣD"),
        Column("excess", ".2%", "ΣD / ΣD of the best result - 1"),
        Column("θ < 1", "d", "overloaded servers"),
        Column("least θ", ".3f"),
        Column("storage", ".1%", "largest storage load / capacity of a server"),
        Column("compute", ".1%", "largest compute load / capacity of a server"),
    ]
    names = result_names(study.results)
    rows: list[list[Value]] = [
        [
            Cell(names[one.folder], swatch=colour_of(one.label)),
            one.computed_on,
            one.k,
            one.y,
            one.y1,
            one.y2,
            one.gap,
            one.excess,
            one.overloaded,
            float(one.theta.min()),
            float(one.storage_use.max()),
            float(one.compute_use.max()),
        ]
        for one in study.results
    ]
    return Table(
        columns,
        rows,
        "All results: delays in ms, and the largest storage and compute load of a server as a share of its capacity. A "
        "row of `k=auto` repeats the result that it chose.",
    )


def _capacity_text(study: Study) -> str:
    inputs, field = study.inputs, study.field
    if "capacity_file" in inputs:
        rule = "The capacities are those of a file"
    elif not inputs["proportional"]:
        rule = "Every server has the same given capacities"
    else:
        per = {"topics": "topics per server", "demand": "demand per server"}[inputs.get("capacities", "topics")]
        rule = f"The capacities are those of the paper in proportion to the {per}"
    scaled = f", scaled to a load of {inputs['load']:g}" if "load" in inputs else ""
    return (
        f"{rule}{scaled}: storage {_range(field.storage_capacity)} and compute {_range(field.compute_capacity)} for "
        "each server."
    )


def _range(capacity: Any) -> str:
    low, high = float(capacity.min()), float(capacity.max())
    return f"{low:,.6g}" if low == high else f"{low:,.6g} to {high:,.6g}"


def _facts(study: Study) -> Mapping[str, object]:
    parameters = study.inputs["parameters"]
    roles = {"publishers and subscribers": "of the edge list (--roles)"} if study.field.roles else {}
    return roles | {
        "field seed": study.inputs["seed"],
        "σ": f"{parameters['sigma']:g} km",
        "p": parameters["spool_per_member"],
        "dC": f"{parameters['cloud_delay']:g} ms",
        "γ": f"{parameters['delay_per_km']:g} ms/km",
    }
