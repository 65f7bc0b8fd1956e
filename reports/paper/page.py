"""The page of the paper's evaluation: every figure, the tested claims, and the origin of the data."""

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from relocbench.heuristics.clusters import make_clusters
from relocbench.heuristics.reloc import STEPS, Algorithm
from relocbench.instances.errors import plural
from relocbench.instances.evaluation import evaluate
from relocbench.instances.gap import excess, gap
from relocbench.instances.instance import Instance
from relocbench.instances.library.library import Library
from relocbench.reports.pages.page import Page
from relocbench.reports.pages.tables import Cell, Column, Table, Value
from relocbench.reports.paper.agreement import Agreement
from relocbench.reports.paper.claim_sections import add_agreement, add_maps, add_tests, add_verdicts, default_verdicts
from relocbench.reports.paper.claims import FAILS, HOLDS, IN_PART
from relocbench.reports.paper.curves import METHODS, SYMBOLS, cluster_curves, curves
from relocbench.reports.paper.evaluation import ANNEAL, BOUND, TIGHTNESS_SHARE, Evaluation
from relocbench.reports.paper.maps import home_map, load_panel, size_histogram, topic_map
from relocbench.reports.paper.measures import BEST, Measures
from relocbench.reports.paper.planner import PAPER, SIZE, STUDIES, TIGHTNESS, Setup
from relocbench.reports.paper.readings import DEFAULT_CLUSTERS, as_reading, otos, reloc, short_name
from relocbench.reports.paper.tightness import DRAWN, Point, tightness_curves, tightness_studies, window
from relocbench.reports.statistics import FEWEST_FOR_INTERVAL
from relocbench.runs.certify import certify
from relocbench.runs.solve import solve


def write_page(found: Evaluation, setup: Setup, command: str, path: Path) -> Agreement:
    """Write the page of the paper's evaluation.

    Parameters
    ----------
    found
        The results.
    setup
        The setup of the evaluation.
    command
        The command that makes the page.
    path
        The file to write.

    Returns
    -------
    Agreement
        The verdicts on the claims.
    """
    agreement = Agreement(found.groups, found.clusters, found.readings)
    page = Page("The paper's evaluation, repeated", _lead(found.measures, agreement), kind="paper")
    page.describe(
        instances=len({row.hash for measures in found.groups.values() for row in measures.rows}),
        methods=list(dict.fromkeys(row.method for row in found.measures.rows)),
    )
    if found.problems:
        page.warning(f"Left out: {plural(len(found.problems), 'failed run')}. The first: {found.problems[0]}")
    _sigma(page, found, setup)
    add_verdicts(page, agreement, setup.seeds)
    _tightness(page, found, setup)
    _spools(page, found, setup)
    _clusters(page, found, setup)
    add_maps(page, agreement)
    add_agreement(page, agreement)
    add_tests(page, agreement, found.readings)
    _numbers(page, found)
    _distributions(page, found)
    _steps(page, found)
    _methods(page, found)
    _assignment(page, found)
    facts: dict[str, object] = {
        "seeds": ", ".join(map(str, found.measures.seeds)),
        "instances": f"{len(found.cases)} of the paper's own families, of which {found.from_library} have their bound "
        f"and best homes from the library, version {Library().version}",
        "time to certify": f"{setup.time_limit:g} s for each of the others, {TIGHTNESS_SHARE * setup.time_limit:g} s "
        "for each instance of the study over tightness",
        "readings": len(found.readings),
        "data": "assignments.parquet beside this page has one row per assignment; the folder runs has the runs",
    }
    for name in ("social", "sites", "people"):
        if (file := getattr(setup, name)) is not None:
            facts[name] = file.name
    page.provenance(command, facts)
    page.write(path)
    return agreement


def _lead(measures: Measures, agreement: Agreement) -> str:
    words = [verdict.word for verdict in default_verdicts(agreement).values()]
    values = measures.values("sigma")
    parts = []
    for x in sorted({values[0], values[-1]}):
        own, best = measures.mean("sigma", x, reloc(), "y"), measures.mean("sigma", x, BEST, "y")
        if own is not None and best is not None and (above := excess(own.mean, best.mean)) is not None:
            parts.append(f"**{above:.0%}** at σ = {x:g} km")
    holds, fails, in_part = (words.count(word) for word in (HOLDS, FAILS, IN_PART))
    count = (
        f"Of {len(words)} claims, {holds} hold under the default reading, {in_part} hold in part, and {fails} do not "
        "hold; most depend on the reading of Algorithm 1 or on the sizes of the topics."
    )
    if len(measures.seeds) < FEWEST_FOR_INTERVAL:
        count = f"Testing the {len(words)} claims needs at least {FEWEST_FOR_INTERVAL} seeds."
    return (
        "The methods of the paper run on instances that follow its description. The plots add what the paper could not "
        "show: the best known homes and a certified lower bound. The mean delay of RELOC is above that of the best "
        f"known homes by {' and '.join(parts)}. {count}"
    )


def _distributions(page: Page, found: Evaluation) -> None:
    page.section("Positions of clients", "Five topics, σ = 1 km. Lines join the members of a topic.")
    panels = []
    for title, most in (("Clients in up to four topics", 4), ("Disjoint topics", 1)):
        instance = found.plans.one("paper", sigma=1.0, topics=5, max_topics_per_client=most)
        panels.append((f"{title}: {instance.n_clients} clients", topic_map(instance)))
    page.panels(
        panels,
        "Left: a client in several topics (with a ring) is near the centre of its first topic, so lines of its other "
        "topics cross the field. Right: topics have no common clients. Squares are servers.",
    )


def _steps(page: Page, found: Evaluation) -> None:
    instance = found.plans.one("preliminary", storage=7.0, compute=20.0)
    algorithm = Algorithm(instance, as_reading(""))
    clusters = make_clusters(instance, DEFAULT_CLUSTERS, 0)
    panels = []
    for step in STEPS:
        home = algorithm.home(clusters, step)
        panels.append((f"{step.capitalize()}: Y = {evaluate(instance, home).y:.2f} ms", load_panel(instance, home)))
    panels.append(_optimum(instance))
    page.section(
        "RELOC step by step",
        "The paper's first example: one topic of seven members, A = 7, B = 20. Each panel shows the homes after a run "
        "without the later steps.",
    )
    page.panels(
        panels,
        "A line joins each client to its home. Bars are the storage and compute loads of servers, the red line is the "
        "capacity. A server with a red frame delegates to the cloud (θ < 1). The relation step gathers the clients of "
        "a cluster on one server; the cooperation step moves clients away again if that server is overloaded. The last "
        "panel shows a proven optimum, or the best known homes with their bound.",
        least=280,
    )


def _methods(page: Page, found: Evaluation) -> None:
    instance = found.plans.one("preliminary", storage=10.0, compute=50.0)
    panels = []
    for method in ("random", "nearest", otos(), reloc(), ANNEAL):
        result = solve(instance, method)
        panels.append(
            (f"{METHODS[method]}: Y = {result.evaluation.y:.2f} ms", load_panel(instance, result.solution.home))
        )
    panels.append(_optimum(instance))
    page.section("The methods side by side", "The paper's second example: the same topic with A = 10, B = 50.")
    page.panels(
        panels,
        "Shorter lines mean a smaller Y1. Fewer servers with the topic mean less storage and less delay between "
        "servers. NS minimises the first, OTOS the second, and RELOC the second within each of its clusters.",
    )


def _optimum(instance: Instance) -> tuple[str, object]:
    certified = certify(instance, seed=0, time_limit=10.0)
    publications = max(instance.n_publications, 1)
    solution = certified.solution
    objective = evaluate(instance, solution.home).objective
    name = "Optimum" if solution.status == "optimal" else f"Best known (bound {solution.bound / publications:.2f})"
    return f"{name}: Y = {objective / publications:.2f} ms", load_panel(instance, np.asarray(solution.home, np.int32))


def _assignment(page: Page, found: Evaluation) -> None:
    cases = [case for case in found.cases if case.study == "sigma"]
    least = min(case.x for case in cases)
    replicates = [case.instance for case in cases if case.x == least]
    instance = replicates[0]
    home = solve(instance, reloc()).solution.home
    page.section(
        "Instances of the performance evaluation",
        f"{instance.n_topics} topics, {instance.n_clients} clients, {instance.n_servers} servers; σ = {least:g} km.",
    )
    page.panels(
        [("Clients and topics", topic_map(instance)), ("Homes by RELOC", home_map(instance, home))],
        "Left: clients in several topics connect the topics. Right: RELOC with "
        f"K = {DEFAULT_CLUSTERS} keeps clients within a cluster of servers, but not at the nearest server.",
    )
    sizes = [np.asarray(one.members.sizes) for one in replicates]
    per_client = max(int(np.diff(one.topics.start).max()) for one in replicates)
    page.figure(
        size_histogram(sizes),
        "There are many small topics and few large ones. The values for the paper's complexity formula are: "
        f"|T| = {instance.n_topics}, largest topic {max(int(one.max()) for one in sizes)}, most topics of a client "
        f"{per_client}, M′ = 100 (in the paper: 64, 21, 4, 100).",
    )


def _bands(measures: Measures) -> str:
    if len(measures.seeds) >= FEWEST_FOR_INTERVAL:
        return f"Bands are 95 % bootstrap intervals of the mean over {len(measures.seeds)} seeds."
    return f"Means of {len(measures.seeds)} seeds; with so few seeds, the bands mean little."


def _sigma(page: Page, found: Evaluation, setup: Setup) -> None:
    measures = found.measures
    page.section("Against σ, the spread of a topic's members", _certainty(measures, "sigma"))
    page.panels(
        curves(measures, "sigma", partial(_command, setup)),
        "Where the wide grey line (best known homes) meets the dotted line (certified bound), the optimum is known. "
        f"{_bands(measures)} "
        "Single servers can exceed their storage capacity even if the mean does not. The mean compute load is the same "
        "for all assignments, so the fullest server is shown. A click on a point shows the command that repeats it.",
    )


def _spools(page: Page, found: Evaluation, setup: Setup) -> None:
    measures = found.measures
    page.section("Against p, the size of spools", _certainty(measures, "spool"))
    page.panels(
        curves(measures, "spool", partial(_command, setup)),
        "The larger the spools, the fewer topics fit on a server. Where the storage of a method exceeds the capacity, "
        "its Y grows faster. A bound at a smaller p also holds at a larger p and is used there if it is higher. "
        f"{_bands(measures)}",
    )


def _tightness(page: Page, found: Evaluation, setup: Setup) -> None:
    studies = tightness_studies(found.groups, found.measures.values("sigma"))
    if not studies:
        return
    sizes = [group for group in found.groups if group != PAPER]
    page.section(
        "Against tightness, the storage that is needed",
        f"The paper states the size of the largest topic only. So the least size is varied here: {', '.join(sizes)} "
        "members, with everything else as in the first study. Larger topics need more storage. "
        f"{_windows(studies)}",
    )
    command = partial(_tightness_command, setup)
    page.panels(
        tightness_curves(studies, command, used=False),
        "The mean excess over the certified bound. The wide grey line is the gap: the excess of the best known homes, "
        "which is how much of every other line may be due to a weak bound. In the shaded window, RELOC is the fastest "
        f"of the four methods. RA is above the plot where it is not seen. {_bands(found.measures)}",
    )
    page.panels(
        tightness_curves(studies, command, used=True),
        "The same against the storage that RELOC uses.",
    )
    page.table(_centres(studies))


def _windows(studies: Mapping[float, Sequence[Point]]) -> str:
    texts = []
    for x, study in studies.items():
        chosen = window(study)
        if chosen:
            least, most = chosen[0], chosen[-1]
            texts.append(
                f"σ = {x:g}: least size {least.size} to {most.size}, where storing each topic once needs "
                f"{least.once:.0%} to {most.once:.0%} of the capacity, and RELOC uses {least.used:.0%} to "
                f"{most.used:.0%}"
            )
        else:
            texts.append(f"σ = {x:g}: nowhere")
    return f"RELOC is the fastest of the four at {'; '.join(texts)}."


def _centres(studies: Mapping[float, Sequence[Point]]) -> Table:
    rows: list[list[Value]] = []
    for x, study in studies.items():
        chosen = window(study)
        if chosen:
            centre = chosen[(len(chosen) - 1) // 2]
            over = [centre.excess.get(method) for method in DRAWN]
            rows.append([x, centre.size, centre.once, centre.used, *(one.mean if one else None for one in over)])
    columns = [
        Column("σ, km", "g"),
        Column("least size", "s"),
        Column("stored once", ".0%"),
        Column("RELOC uses", ".0%"),
    ]
    columns += [Column(name, ".0%") for name in DRAWN.values()]
    return Table(columns, rows, "The mean excess over the certified bound at the centre of each window.")


def _clusters(page: Page, found: Evaluation, setup: Setup) -> None:
    measures = found.measures
    page.section(
        "Against K, RELOC's number of clusters",
        "The instances are those of the first study, because K is a setting of RELOC and not of the instance. "
        "With as many clusters as servers, RELOC is NS.",
    )
    page.panels(
        cluster_curves(measures, found.clusters, partial(_command, setup)),
        "Lines are RELOC. The points to their right are annealing (SA) and the best known homes on the same "
        "instances. The distance from the lowest point of a line to these points remains for every K. "
        f"{_bands(measures)}",
    )


def _command(setup: Setup, study: str, x: float, method: str) -> str | None:
    """Return the command that repeats a point; there is none for instances from files with real data."""
    if setup.social is not None or setup.sites is not None:
        return None
    family, varied = STUDIES[study]
    words = ["relocbench", "bench", "--family", family, "--set", f"{varied}={x:g}"]
    for name, value in setup.parameters.items():
        words += ["--set", f"{name}={value}"]
    words += ["--seeds", f"0-{setup.seeds - 1}", "--method", BOUND if method == BEST else method]
    return shlex.join([*words, *(["--time-limit", f"{setup.time_limit:g}"] if method == BEST else [])])


def _tightness_command(setup: Setup, size: str, sigma: float, method: str) -> str | None:
    """Return the command that repeats a point of the study over tightness."""
    if setup.social is not None or setup.sites is not None:
        return None
    words = ["relocbench", "bench", "--family", TIGHTNESS, "--set", f"{SIZE}={size}", "--set", f"sigma={sigma:g}"]
    for name, value in setup.parameters.items():
        words += ["--set", f"{name}={value}"] if name != "sigma" else []
    words += ["--seeds", f"0-{setup.seeds - 1}", "--method", BOUND if method == BEST else method]
    limit = ["--time-limit", f"{TIGHTNESS_SHARE * setup.time_limit:g}"]
    return shlex.join([*words, *(limit if method == BEST else [])])


def _certainty(measures: Measures, study: str) -> str:
    """Return how many optima are proved at each value, and the mean gap of the other instances."""
    parts = []
    for x in measures.values(study):
        best = measures.of(study, x, BEST)
        proved = sum(row.proved for row in best)
        unproved = [row for row in best if row.bound is not None and not row.proved and row.y > 0]
        gaps = [value for row in unproved if (value := gap(row.y, row.bound)) is not None]
        rest = f", mean gap of the others {np.mean(gaps):.2%}" if gaps else ""
        parts.append(f"{SYMBOLS[study]} = {x:g}: {proved} of {len(best)}{rest}")
    return f"The number of instances with a proven optimum: {'; '.join(parts)}."


def _numbers(page: Page, found: Evaluation) -> None:
    page.section("The numbers")
    measures = found.measures
    others = [reading for reading in found.readings if reloc(reading) not in METHODS]
    named = {reloc(reading): f"RELOC, {short_name(reading)}" for reading in others}
    kinds = {other: f"OTOS, {other.removeprefix('otos')}" for other in map(otos, others) if other not in METHODS}
    for study in STUDIES:
        values = measures.values(study)
        rows = []
        for method, name in {**METHODS, **kinds, **named}.items():
            means = [measures.mean(study, x, method, "y") for x in values]
            cell = Cell(name) if method == BEST else Cell(name, swatch=Cell.of_method(method).swatch)
            rows.append([cell, *(None if mean is None else mean.mean for mean in means)])
        bounds = [measures.mean(study, x, BEST, "bound") for x in values]
        rows.append([Cell("certified bound"), *(None if mean is None else mean.mean for mean in bounds)])
        columns = [Column("method"), *(Column(f"{SYMBOLS[study]} = {x:g}", ".3f") for x in values)]
        page.table(Table(columns, rows, "Mean Y over the seeds, in ms."))
