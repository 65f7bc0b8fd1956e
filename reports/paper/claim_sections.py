"""The sections of the page about the claims: the verdicts, where each claim holds, and which readings agree."""

from collections.abc import Sequence

import numpy as np

from relocbench.heuristics.readings import DEFAULT_READING
from relocbench.instances.errors import plural
from relocbench.reports.pages.page import Page
from relocbench.reports.pages.tables import Cell, Column, Table, Value
from relocbench.reports.paper.agreement import EQUAL, STATEMENTS, Agreement
from relocbench.reports.paper.claims import CLAIMS, FAILS, HOLDS, Verdict
from relocbench.reports.paper.planner import PAPER
from relocbench.reports.paper.readings import DEFAULT, main_readings, short_name
from relocbench.reports.paper.verdict_maps import agreement_map, claim_map, where

TONES = {HOLDS: "good", FAILS: "bad"}


def default_verdicts(agreement: Agreement) -> dict[str, Verdict]:
    """Return the verdicts under the default reading, on the instances of the paper's own families.

    Parameters
    ----------
    agreement
        All verdicts.

    Returns
    -------
    dict
        The verdict on each claim.
    """
    return agreement.verdicts[PAPER, DEFAULT]


def add_verdicts(page: Page, agreement: Agreement, seeds: int) -> None:
    """Add the table of all claims with their verdicts.

    Parameters
    ----------
    page
        The page.
    agreement
        The verdicts.
    seeds
        The number of seeds.
    """
    page.section(
        "Claims of the paper and verdicts",
        "The claims of the paper's evaluation, in our words, each tested on our data. The paper leaves open how large "
        "its topics are and how parts of Algorithm 1 are meant. So a claim may hold for some readings and sizes only.",
    )
    rows: list[list[Value]] = [
        [
            number,
            Cell(CLAIMS[key].statement, tone="wrapped"),
            Cell(f"**{verdict.word}**", verdict.word, tone=TONES.get(verdict.word)),
            Cell(where(agreement, key), tone="wrapped"),
        ]
        for number, (key, verdict) in enumerate(default_verdicts(agreement).items(), start=1)
    ]
    columns = [
        Column("#", "d"),
        Column("claim"),
        Column("default reading, family paper"),
        Column("holds for"),
    ]
    page.table(
        Table(
            columns,
            rows,
            f"Verdicts with {plural(seeds, 'seed')}, from 95 % intervals without a correction for the number of tests. "
            f"The third column is about the default reading, `{DEFAULT_READING}`, on the families `paper` and "
            "`paper-spooler`; the last about all readings that were run and the least topic sizes of "
            "`paper-tightness`. The maps below show every combination.",
        )
    )


def add_maps(page: Page, agreement: Agreement) -> None:
    """Add a small map for each claim: readings, sizes, and the values that the claim is about.

    Parameters
    ----------
    page
        The page.
    agreement
        The verdicts.
    """
    page.section(
        "Where each claim holds",
        "One row per reading of Algorithm 1, the default in bold; one column per group of instances: the paper's own "
        "families, and `paper-tightness` with topics of at least 2 to 12 members. One square per value of σ or p that "
        "the claim is about.",
    )
    for number, (key, claim) in enumerate(CLAIMS.items(), start=1):
        page.subsection(f"{number}. {claim.statement}", where(agreement, key))
        main = [reading for reading in main_readings() if reading in agreement.readings]
        page.table(claim_map(agreement, key, main))
        if len(agreement.readings) > len(main) and claim.depends_on_reading:
            table = claim_map(agreement, key, agreement.readings)
            page.table(table, folded=f"All {len(agreement.readings)} readings")


def add_agreement(page: Page, agreement: Agreement) -> None:
    """Add the plausible sizes and the agreement of each reading.

    Parameters
    ----------
    page
        The page.
    agreement
        The verdicts.
    """
    text = _no_plausible_size(agreement) if agreement.chosen is None else _plausible(agreement)
    page.section("Readings that agree with the paper", text)
    page.subsection("What the paper says about loads")
    # For each size, the number of readings under which each statement is true.
    counts = [
        np.sum([agreement.statements(size, reading) for reading in agreement.readings], axis=0)
        for size in agreement.sizes
    ]
    rows: list[list[Value]] = [
        [Cell(statement.text, tone="wrapped"), *(int(found[number]) for found in counts)]
        for number, statement in enumerate(STATEMENTS)
    ]
    columns = [Column("statement"), *(Column(f"size ≥ {size}", "d") for size in agreement.sizes)]
    page.table(
        Table(
            columns,
            rows,
            f"The number of readings, of {len(agreement.readings)}, under which each statement is true.",
        )
    )
    page.subsection("Agreement of each reading")
    page.figure(
        agreement_map(agreement, agreement.readings),
        "The mean share of the claims that are true; a claim that is true at some of its values counts with their "
        "share. A star marks the plausible sizes. Readings are ordered by their mean over these, the best on top; the "
        "default reading is in bold.",
    )


def _plausible(agreement: Agreement) -> str:
    best = max(agreement.readings, key=lambda reading: agreement.score(reading) or 0.0)
    texts = [
        "A least topic size is plausible if, under at least one reading, everything that the paper says about loads is "
        f"true. Of the sizes {', '.join(agreement.sizes)} these are: {', '.join(agreement.plausible)}. The agreement "
        "of a reading is the mean share of the claims that are true, over the plausible sizes.",
        f"The largest, {agreement.score(best):.0%}, is that of `{short_name(best)}`.",
    ]
    if agreement.chosen is not None and agreement.chosen != best:
        texts.append(
            f"Differences up to {EQUAL:.0%} are within the noise of ten seeds. Among equals, the reading with the "
            f"fewest departures from the paper is `{short_name(agreement.chosen)}`, with "
            f"{agreement.score(agreement.chosen):.0%}."
        )
    if agreement.chosen != DEFAULT:
        texts.append(f"The default reading, `{DEFAULT_READING}`, has {agreement.score(DEFAULT):.0%}.")
    return " ".join(texts)


def _no_plausible_size(agreement: Agreement) -> str:
    return (
        "A least topic size is plausible if, under at least one reading, everything that the paper says about loads is "
        f"true. None of the sizes {', '.join(agreement.sizes)} is, with these seeds and parameters."
    )


def add_tests(page: Page, agreement: Agreement, readings: Sequence[str]) -> None:
    """Add how each claim was tested, with the numbers of every reading.

    Parameters
    ----------
    page
        The page.
    agreement
        The verdicts.
    readings
        The readings whose numbers are shown.
    """
    page.section("How the claims were tested")
    found = list(enumerate(default_verdicts(agreement).items(), start=1))
    page.listing(
        [
            f"**{number}. {CLAIMS[key].statement}** {CLAIMS[key].test} **{_sentence(verdict.word)}** "
            f"{_sentence(verdict.numbers)}"
            for number, (key, verdict) in found
        ]
    )
    rows: list[list[Value]] = []
    for number, (key, _) in found:
        for reading in readings if CLAIMS[key].depends_on_reading else ():
            verdict = agreement.verdicts[PAPER, reading][key]
            name = Cell(f"`{short_name(reading)}`")
            rows.append([number, name, verdict.word, Cell(verdict.numbers, tone="wrapped")])
    columns = [Column("#", "d"), Column("reading"), Column("verdict"), Column("numbers")]
    page.subsection("The numbers of each reading")
    table = Table(columns, rows, "The claims about RELOC on the instances of the paper's own families.")
    page.table(table, folded=f"All readings ({plural(len(rows), 'row')})")


def _sentence(text: str) -> str:
    """Return text as a sentence: with a capital, unless it starts with a symbol such as σ, and a full stop."""
    symbol = len(text.partition(" ")[0]) == 1
    return f"{text if symbol else text[:1].upper() + text[1:]}."
