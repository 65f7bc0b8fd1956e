"""The page of the paper's evaluation: every figure, the tested claims, and the origin of the data."""

import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from relocbench.heuristics.reloc import snapshots
from relocbench.instances.evaluation import evaluate
from relocbench.instances.gap import excess, gap
from relocbench.instances.instance import Instance
from relocbench.instances.library.library import Library
from relocbench.reports.pages.page import Page
from relocbench.reports.pages.tables import Cell, Column, Table, Value
from relocbench.reports.paper.claims import FAILS, HOLDS, IN_PART, Claim, claims
from relocbench.reports.paper.curves import METHODS, SYMBOLS, cluster_curves, curves
from relocbench.reports.paper.evaluation import ANNEAL, BASELINES, BOUND, STUDIES, Evaluation, Setup
from relocbench.reports.paper.maps import home_map, load_panel, size_histogram, topic_map
from relocbench.reports.paper.measures import BEST, Measures
from relocbench.reports.paper.readings import DEFAULT_CLUSTERS, READINGS, reloc
from relocbench.reports.statistics import FEWEST_FOR_INTERVAL
from relocbench.runs.certify import certify
from relocbench.runs.solve import solve

TONES = {HOLDS: "good", FAILS: "bad"}


def write_page(found: Evaluation, setup: Setup, command: str, path: Path) -> list[Claim]:
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
    list of Claim
        The tested claims.
    """
    judged = claims(found.measures, found.clusters)
    page = Page("The paper's evaluation, repeated", _lead(found.measures, judged), kind="paper")
    page.describe(
        instances=len({row.hash for row in found.measures.rows}),
        methods=list(dict.fromkeys(row.method for row in found.measures.rows)),
    )
    if found.problems:
        page.warning(f"{len(found.problems)} runs failed and are left out below. The first: {found.problems[0]}")
    _sigma(page, found, setup)
    _claims(page, judged, len(found.measures.seeds))
    _spools(page, found, setup)
    _clusters(page, found, setup)
    _tests(page, judged)
    _numbers(page, found.measures)
    _distributions(page, found)
    _steps(page, found)
    _methods(page, found)
    _assignment(page, found)
    facts: dict[str, object] = {
        "seeds": ", ".join(map(str, found.measures.seeds)),
        "instances": f"{len(found.cases)}, of which {found.from_library} have their bound and best homes from the "
        f"library, version {Library().version}",
        "time to certify": f"{setup.time_limit:g} s for each of the others",
        "data": "assignments.parquet beside this page has one row per assignment; the folder runs has the runs",
    }
    for name in ("social", "sites", "people"):
        if (file := getattr(setup, name)) is not None:
            facts[name] = file.name
    page.provenance(command, facts)
    page.write(path)
    return judged


def _lead(measures: Measures, judged: Sequence[Claim]) -> str:
    words = [claim.verdict.word for claim in judged]
    values = measures.values("sigma")
    parts = []
    for x in sorted({values[0], values[-1]}):
        own, best = measures.mean("sigma", x, reloc(), "y"), measures.mean("sigma", x, BEST, "y")
        if own is not None and best is not None and (above := excess(own[0], best[0])) is not None:
            parts.append(f"**{above:.0%}** at σ = {x:g} km")
    holds, fails, in_part = (words.count(word) for word in (HOLDS, FAILS, IN_PART))
    count = f"Of {len(words)} claims, {holds} hold, {in_part} hold in part, and {fails} do not hold."
    if len(measures.seeds) < FEWEST_FOR_INTERVAL:
        count = f"Testing the {len(words)} claims needs at least {FEWEST_FOR_INTERVAL} seeds."
    return (
        "The methods of the paper run on instances that follow its description. The plots add what the paper could not "
        "show: the best known homes and a certified lower bound. The mean delay of RELOC is above that of the best "
        f"known homes by {' and '.join(parts)}. {count}"
    )


def _claims(page: Page, judged: Sequence[Claim], seeds: int) -> None:
    page.section(
        "Claims of the paper and verdicts",
        "The claims of the paper's evaluation, in our words, each tested on our data.",
    )
    rows: list[list[Value]] = []
    for number, claim in enumerate(judged, start=1):
        rows.append(
            [
                number,
                Cell(f"**{claim.verdict.word}**", claim.verdict.word, tone=TONES.get(claim.verdict.word)),
                Cell(claim.statement, tone="wrapped"),
                Cell(_other_readings(claim), tone="wrapped"),
            ]
        )
    columns = [Column("#", "d"), Column("verdict"), Column("claim"), Column("under other readings of Algorithm 1")]
    page.table(
        Table(
            columns,
            rows,
            f"Verdicts with {seeds} seeds, from 95 % intervals that are not corrected for the number of tests. "
            "The last column names the readings of RELOC that give another verdict: "
            + "; ".join(f"`{reading}`: {meaning}" for reading, meaning in READINGS.items() if reading)
            + ".",
        )
    )


def _tests(page: Page, judged: Sequence[Claim]) -> None:
    page.section("How the claims were tested")
    page.listing(
        [
            f"**{number}. {claim.statement}** {claim.test} **{_sentence(claim.verdict.word)}** "
            f"{_sentence(claim.verdict.numbers)}"
            for number, claim in enumerate(judged, start=1)
        ]
    )
    decided = [(number, claim) for number, claim in enumerate(judged, start=1) if claim.decided_by_reading]
    if decided:
        rows: list[list[Value]] = [
            [
                number,
                Cell(f"`{reading}`" if reading else "our reading"),
                verdict.word,
                Cell(verdict.numbers, tone="wrapped"),
            ]
            for number, claim in decided
            for reading, verdict in {"": claim.verdict, **claim.others}.items()
        ]
        columns = [Column("#", "d"), Column("reading"), Column("verdict"), Column("numbers")]
        page.subsection("Claims that depend on the reading of Algorithm 1")
        table = Table(columns, rows, "The claims whose verdict differs between readings.")
        page.table(table, folded=f"All readings ({len(rows)} rows)")


def _sentence(text: str) -> str:
    """Return text as a sentence: with a capital, unless it starts with a symbol such as σ, and a full stop."""
    symbol = len(text.partition(" ")[0]) == 1
    return f"{text if symbol else text[:1].upper() + text[1:]}."


def _other_readings(claim: Claim) -> str:
    if not claim.others:
        return "does not depend on the reading"
    words = {reading: verdict.word for reading, verdict in claim.others.items()}
    other = [f"`{reading}`: {word}" for reading, word in words.items() if word != claim.verdict.word]
    return "; ".join(other) or "the same verdict"


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
    panels = [
        (f"{shot.step.capitalize()}: Y = {shot.evaluation.y:.2f} ms", load_panel(instance, shot.home))
        for shot in snapshots(instance, seed=0)
    ]
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
    for method in (*BASELINES, reloc(), ANNEAL):
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


def _numbers(page: Page, measures: Measures) -> None:
    page.section("The numbers")
    readings = {reloc(reading): f"RELOC, {meaning}" for reading, meaning in READINGS.items() if reading}
    for study in STUDIES:
        values = measures.values(study)
        rows = []
        for method, name in {**METHODS, **readings}.items():
            means = [measures.mean(study, x, method, "y") for x in values]
            cell = Cell(name) if method == BEST else Cell(name, swatch=Cell.of_method(method).swatch)
            rows.append([cell, *(None if mean is None else mean[0] for mean in means)])
        bounds = [measures.mean(study, x, BEST, "bound") for x in values]
        rows.append([Cell("certified bound"), *(None if mean is None else mean[0] for mean in bounds)])
        columns = [Column("method"), *(Column(f"{SYMBOLS[study]} = {x:g}", ".3f") for x in values)]
        page.table(Table(columns, rows, "Mean Y over the seeds, in ms."))
