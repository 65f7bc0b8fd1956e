"""The page of a study at full scale."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relocbench.reports.full_scale.plots import (
    cluster_plot,
    delay_bars,
    number,
    result_names,
    skew_plot,
    stage_plot,
    use_plot,
)
from relocbench.reports.full_scale.tables import Result, Study
from relocbench.reports.pages.method_style import colour_of, name_of
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
        "Seconds of each stage. Annealing and `certify` have a time limit of their own.",
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
    sentences = [f"The least mean delay has **{name_of(best.label)}** with Y = **{best.y:.4g} ms**."]
    nearest = _least(study, "nearest")
    reloc = _least(study, "reloc")
    if nearest is not None and reloc is not None:
        ratio = reloc.objective / nearest.objective - 1
        relation = f"{abs(ratio):.1%} {'above' if ratio > 0 else 'below'} NS"
        worst = max((one for one in study.results if one.method == "reloc"), key=lambda one: one.objective)
        sentences.append(
            f"The best RELOC is {name_of(reloc.label)} with K = {reloc.k}: Y = {reloc.y:.4g} ms, {relation} "
            f"({nearest.y:.4g} ms)."
        )
        if worst.objective > reloc.objective:
            sentences.append(
                f"The worst is {name_of(worst.label)} with K = {worst.k}: Y = {worst.y:.4g} ms, "
                f"{worst.objective / nearest.objective - 1:+.1%} against NS."
            )
    if study.bound is not None:
        sentences.append(
            f"No assignment has a Y below **{study.bound / study.publications:.4g} ms**, by a verified certificate; "
            f"the gap of the best is {number(best.gap, '.2%')}."
        )
    overloaded = max(one.overloaded for one in study.shown)
    few = min(one.overloaded for one in study.shown)
    sentences.append(
        "No method overloads a server, so capacities do not bind."
        if not overloaded
        else f"Methods overload {few} to {overloaded} of {len(study.field.server_x)} servers."
    )
    return " ".join(sentences)


def _least(study: Study, method: str) -> Result | None:
    return next((one for one in study.results if one.method == method), None)


def _results_table(study: Study) -> Table:
    columns = [
        Column("method"),
        Column("seed", "d"),
        Column("K", "d"),
        Column("Y, ms", ".4f"),
        Column("Y1", ".4f"),
        Column("Y2", ".4f"),
        Column("gap", ".2%", "(ΣD - bound) / ΣD"),
        Column("excess", ".2%", "ΣD / ΣD of the best result - 1"),
        Column("overloaded", "d", "servers with θ < 1"),
        Column("least θ", ".3f"),
        Column("storage", ".1%", "largest storage load / capacity of a server"),
        Column("compute", ".1%", "largest compute load / capacity of a server"),
        Column("seconds", ".1f", "homes and evaluation, without field and factors"),
        Column("CPU s", ".1f", "the same in processor time"),
        Column("MiB", ".0f", "largest memory of all processes together"),
    ]
    names = result_names(study.results)
    rows: list[list[Value]] = [
        [
            Cell(names[one.folder], swatch=colour_of(one.label)),
            one.seed,
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
            one.used("seconds"),
            one.used("cpu_seconds"),
            one.used("memory_mib"),
        ]
        for one in study.results
    ]
    return Table(columns, rows, "All results. A row of `k=auto` repeats the result that it chose.")


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
    return {
        "field seed": study.inputs["seed"],
        "σ": f"{parameters['sigma']:g} km",
        "p": parameters["spool_per_member"],
        "dC": f"{parameters['cloud_delay']:g} ms",
        "γ": f"{parameters['delay_per_km']:g} ms/km",
    }
