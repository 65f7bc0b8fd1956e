"""The page: every figure of the paper's evaluation, the claims, and where it all came from."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from relocbench.heuristics.reloc import snapshots
from relocbench.instances.evaluation import evaluate
from relocbench.instances.instance import Instance
from relocbench.instances.library.library import Library
from relocbench.reports.pages.page import Page
from relocbench.reports.pages.tables import Cell, Column, Table, Value
from relocbench.reports.paper.claims import FAILS, HOLDS, IN_PART, Claim, claims
from relocbench.reports.paper.curves import METHODS, SYMBOLS, cluster_curves, curves, legend, spreads
from relocbench.reports.paper.evaluation import ANNEAL, BASELINES, BOUND, STUDIES, Evaluation, Setup
from relocbench.reports.paper.maps import home_map, load_panel, size_histogram, topic_map
from relocbench.reports.paper.measures import BEST, Measures
from relocbench.reports.paper.readings import DEFAULT_CLUSTERS, READINGS, reloc
from relocbench.reports.statistics import FEWEST_FOR_INTERVAL
from relocbench.runs.certify import certify
from relocbench.runs.solve import solve

TONES = {HOLDS: "good", FAILS: "bad"}


def write_page(found: Evaluation, setup: Setup, command: str, path: Path) -> list[Claim]:
    """Write the page and return the claims as they were judged."""
    judged = claims(found.measures, found.clusters)
    page = Page("The paper's evaluation, redone", _lead(found.measures, judged))
    if found.problems:
        page.warning(f"{len(found.problems)} runs failed and are missing below; the first: {found.problems[0]}")
    _claims(page, judged, len(found.measures.seeds))
    _distributions(page, found)
    _steps(page, found)
    _methods(page, found)
    _assignment(page, found)
    _studies(page, found, setup)
    _tests(page, judged)
    _numbers(page, found.measures)
    facts: dict[str, object] = {
        "seeds": ", ".join(map(str, found.measures.seeds)),
        "instances": f"{len(found.cases)}, of which {found.from_library} have bound and homes from the library, "
        f"version {Library().version}",
        "time to certify": f"{setup.time_limit:g} s for each of the others",
        "data": "assignments.parquet beside this page; runs in the folder runs",
    }
    for what in ("social", "sites", "people"):
        if (file := getattr(setup, what)) is not None:
            facts[what] = file.name
    page.provenance(command, facts)
    page.write(path)
    return judged


def _lead(measures: Measures, judged: Sequence[Claim]) -> str:
    words = [claim.verdict.word for claim in judged]
    values = measures.values("sigma")
    told = []
    for x in sorted({values[0], values[-1]}):
        mine, best = measures.mean("sigma", x, reloc(), "y"), measures.mean("sigma", x, BEST, "y")
        if mine is not None and best is not None:
            told.append(f"**{mine[0] / best[0] - 1:.0%}** at σ = {x:g} km")
    holds, fails, in_part = (words.count(word) for word in (HOLDS, FAILS, IN_PART))
    count = f"Of {len(words)} claims {holds} hold, {fails} do not, {in_part} do in part."
    if len(measures.seeds) < FEWEST_FOR_INTERVAL:
        count = f"{len(words)} claims wait for {FEWEST_FOR_INTERVAL} seeds or more."
    return (
        "The same methods on instances made as the paper says, beside the line it could not draw: the best homes "
        f"known, with a verified bound below them. RELOC's mean delay is above theirs by {' and '.join(told)}. {count}"
    )


def _claims(page: Page, judged: Sequence[Claim], seeds: int) -> None:
    page.section(
        "What the paper says, and what we see",
        "Sentences of the paper's evaluation, in our words, each put to a test on our data.",
    )
    rows: list[list[Value]] = []
    for number, claim in enumerate(judged, start=1):
        rows.append(
            [
                number,
                Cell(f"**{claim.verdict.word}**", claim.verdict.word, tone=TONES.get(claim.verdict.word)),
                Cell(claim.says, tone="wrapped"),
                Cell(_other_readings(claim), tone="wrapped"),
            ]
        )
    columns = [Column("#", "d"), Column("verdict"), Column("claim"), Column("under other readings of Algorithm 1")]
    page.table(
        Table(
            columns,
            rows,
            f"Verdicts on {seeds} seeds, by 95 % intervals that are not corrected for their number. "
            "Where another reading of RELOC decides otherwise, it is named: "
            + "; ".join(f"`{reading}`: {meaning}" for reading, meaning in READINGS.items() if reading)
            + ".",
        )
    )


def _tests(page: Page, judged: Sequence[Claim]) -> None:
    page.section("How the claims were tested")
    page.listing(
        [
            f"**{number}. {claim.says}** {claim.test} **{_sentence(claim.verdict.word)}** "
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
        page.subsection("Where the reading of Algorithm 1 decides")
        told = Table(columns, rows, "The claims whose verdict is another under another reading.")
        page.table(told, folded=f"All readings, {len(rows)} lines")


def _sentence(text: str) -> str:
    """Begin with a capital, unless with a symbol such as σ, and end with a full stop."""
    symbol = len(text.partition(" ")[0]) == 1
    return f"{text if symbol else text[:1].upper() + text[1:]}."


def _other_readings(claim: Claim) -> str:
    if not claim.others:
        return "not asked: no other reading, or not about RELOC"
    words = {reading: verdict.word for reading, verdict in claim.others.items()}
    other = [f"`{reading}`: {word}" for reading, word in words.items() if word != claim.verdict.word]
    return "; ".join(other) or "the same under all"


def _distributions(page: Page, found: Evaluation) -> None:
    page.section("Where clients are", "Five topics, σ = 1 km; members of a topic are joined by lines.")
    panels = []
    for title, most in (("Clients in up to four topics", 4), ("Disjoint topics", 1)):
        instance = found.plans.one("paper", sigma=1.0, topics=5, max_topics_per_client=most)
        panels.append((f"{title}: {instance.n_clients} clients", topic_map(instance)))
    page.panels(
        panels,
        "Left, a client in several topics (with a ring) lives around the centre of the first, and lines of the others "
        "reach across the field. Right, every topic keeps to itself. Squares are servers.",
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
        "The paper's first example: one topic of seven members, A = 7, B = 20. Each step is the whole loop with the "
        "later steps left out.",
    )
    page.panels(
        panels,
        "Each client is joined to its home. Bars are what servers are asked to hold and to process, the red line what "
        "they can; a server with a red frame delegates to the cloud (θ < 1). Relation gathers the clients of a "
        "cluster on one server, cooperation spreads them again where that is too much. The last panel is a proved "
        "optimum, or the best homes known with their bound.",
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
        "The shorter the lines, the smaller Y1; the fewer servers hold the topic, the less storage and the less delay "
        "between them. NS goes for the first, OTOS for the second, RELOC for the second within each of its clusters.",
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
        "The performance evaluation's instances",
        f"{instance.n_topics} topics, {instance.n_clients} clients, {instance.n_servers} servers; σ = {least:g} km.",
    )
    page.panels(
        [("Clients and topics", topic_map(instance)), ("Homes by RELOC", home_map(instance, home))],
        "Left: topics are islands with bridges, the clients in several of them. Right: RELOC with "
        f"K = {DEFAULT_CLUSTERS} keeps clients within a cluster of servers, though not with the nearest.",
    )
    sizes = [np.asarray(one.members.sizes) for one in replicates]
    per_client = max(int(np.diff(one.topics.start).max()) for one in replicates)
    page.figure(
        size_histogram(sizes),
        "Bars that fall from left to right are a field of many small topics and few large ones. "
        f"What the paper's complexity formula takes: |T| = {instance.n_topics}, largest topic "
        f"{max(int(one.max()) for one in sizes)}, most topics of a client {per_client}, M′ = 100 "
        "(the paper's own: 64, 21, 4, 100).",
    )


def _studies(page: Page, found: Evaluation, setup: Setup) -> None:
    measures = found.measures

    def command(study: str, x: float, method: str) -> str | None:
        return _command(setup, study, x, method)

    bands = (
        f"Bands are 95 % bootstrap intervals of the mean over {len(measures.seeds)} seeds."
        if len(measures.seeds) >= FEWEST_FOR_INTERVAL
        else f"Means of {len(measures.seeds)} seeds: bands from so few say little."
    )
    page.section("Against σ, the spread of a topic's members", _certainty(measures, "sigma"))
    page.panels(
        curves(measures, "sigma", command),
        "Where the wide grey line and the dotted one meet, the optimum is known; above it is what methods lose. "
        f"{bands} "
        "A mean storage below the capacity does not say that no server is above; the mean compute load is the same "
        "whatever the homes, so the fullest server is drawn. A click on a point names the command that runs it again.",
        legend(),
    )
    page.section("Against p, the size of spools", _certainty(measures, "spool"))
    page.panels(
        curves(measures, "spool", command),
        "The more a topic takes, the fewer servers can hold it: look where a line leaves the storage that there is, "
        "and what its Y does from there on. A bound at a smaller p holds at a larger one, too, and is drawn where "
        f"it is higher. {bands}",
        legend(),
    )
    page.section(
        "Against K, RELOC's number of clusters",
        "On the instances of the first study: K is a setting of RELOC, not of the instance. "
        "With as many clusters as servers RELOC is NS.",
    )
    page.panels(
        cluster_curves(measures, found.clusters, command),
        "Lines are RELOC; diamonds to the right of them are what annealing (SA) and the best homes known reach on the "
        f"same instances: from a line's lowest Y down to its diamonds is what no choice of K wins. {bands}",
        spreads(measures),
    )


def _command(setup: Setup, study: str, x: float, method: str) -> str | None:
    """Return what runs a point again; with real people or places there is no such command."""
    if setup.social is not None or setup.sites is not None:
        return None
    family, varied = STUDIES[study]
    words = ["relocbench", "bench", "--family", family, "--set", f"{varied}={x:g}"]
    for name, value in setup.parameters.items():
        words += ["--set", f"{name}={value}"]
    words += ["--seeds", f"0-{setup.seeds - 1}", "--method", BOUND if method == BEST else method]
    return shlex.join([*words, *(["--time-limit", f"{setup.time_limit:g}"] if method == BEST else [])])


def _certainty(measures: Measures, study: str) -> str:
    """Say of which instances the optimum is known, and how close the bound is elsewhere."""
    parts = []
    for x in measures.values(study):
        best = measures.of(study, x, BEST)
        proved = sum(row.proved for row in best)
        gaps = [1 - row.bound / row.y for row in best if row.bound is not None and not row.proved and row.y > 0]
        rest = f"gap {np.mean(gaps):.2%} elsewhere" if gaps else ""
        parts.append(f"{SYMBOLS[study]} = {x:g}: {proved} of {len(best)}{', ' + rest if rest else ''}")
    return (
        "How certain the best homes known are, as optima proved and the mean gap to the certified bound where not: "
        f"{'; '.join(parts)}."
    )


def _numbers(page: Page, measures: Measures) -> None:
    page.section("The numbers")
    several = {reloc(reading): f"RELOC, {meaning}" for reading, meaning in READINGS.items() if reading}
    for study in STUDIES:
        values = measures.values(study)
        rows = []
        for method, name in {**METHODS, **several}.items():
            means = [measures.mean(study, x, method, "y") for x in values]
            cell = Cell(name) if method == BEST else Cell(name, swatch=Cell.of_method(method).swatch)
            rows.append([cell, *(None if mean is None else mean[0] for mean in means)])
        bounds = [measures.mean(study, x, BEST, "bound") for x in values]
        rows.append([Cell("certified bound"), *(None if mean is None else mean[0] for mean in bounds)])
        columns = [Column("method"), *(Column(f"{SYMBOLS[study]} = {x:g}", ".3f") for x in values)]
        page.table(Table(columns, rows, "Y in ms, mean over the seeds."))
