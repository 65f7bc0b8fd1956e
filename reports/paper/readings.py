"""The readings of Algorithm 1 that the evaluation compares (docs/reading.md)."""

import itertools
from collections.abc import Iterator
from dataclasses import asdict, replace

from relocbench.heuristics.readings import DEFAULT_READING, READINGS, Order, Reading, ReadingName, named_reading
from relocbench.heuristics.reloc import Step
from relocbench.runs.selectors import parse_selector

# The settings of the default reading.
DEFAULT = f"reading={DEFAULT_READING}"
DEFAULT_CLUSTERS = 4
# The values of K in the third study.
CLUSTERS = (1, 2, 4, 8, 16)


def reloc(reading: str = "", k: int = DEFAULT_CLUSTERS) -> str:
    """Return the selector of RELOC in a reading.

    Parameters
    ----------
    reading
        The settings of the reading, such as ``reading=prose,ties=placed``; empty for the default reading.
    k
        The number of clusters.

    Returns
    -------
    str
        The selector, in the form in which a run store has it.
    """
    chosen = [setting for setting in reading.split(",") if setting != DEFAULT]
    settings = sorted(filter(None, [*chosen, f"k={k}" if k != DEFAULT_CLUSTERS else ""]))
    return f"reloc[{','.join(settings)}]" if settings else "reloc"


def short_name(reading: str) -> str:
    """Return the settings of a reading as they are shown to readers.

    Parameters
    ----------
    reading
        As for :func:`reloc`.

    Returns
    -------
    str
        The settings without the word ``reading``.
    """
    return reading.removeprefix("reading=")


def otos(reading: str = "") -> str:
    """Return the selector of OTOS in a reading: the paper gives OTOS the cooperation step of RELOC.

    Parameters
    ----------
    reading
        As for :func:`reloc`.

    Returns
    -------
    str
        The selector.
    """
    cooperation = as_reading(reading).cooperation
    return "otos" if cooperation == READINGS[DEFAULT_READING].cooperation else f"otos[cooperation={cooperation}]"


def after(step: Step, reading: str = "") -> str:
    """Return the name of RELOC's homes after one of its steps.

    Parameters
    ----------
    step
        The last step that was run.
    reading
        As for :func:`reloc`.

    Returns
    -------
    str
        The name. After the last step it is the selector of RELOC itself.
    """
    return reloc(reading) if step == "cooperation" else f"{reloc(reading)} after {step}"


def as_reading(settings: str) -> Reading:
    """Return the reading that settings of ``reloc`` describe.

    Parameters
    ----------
    settings
        As for :func:`reloc`.

    Returns
    -------
    Reading
        The reading.
    """
    given = dict(parse_selector(f"reloc[{settings}]").settings)
    return named_reading(given.pop("reading", DEFAULT_READING), **given)


def settings_of(reading: Reading) -> str:
    """Return the shortest settings of ``reloc`` that describe a reading.

    Parameters
    ----------
    reading
        The reading.

    Returns
    -------
    str
        The name of a reading, and what differs from it.
    """

    def changes(name: ReadingName) -> dict[str, object]:
        named = asdict(READINGS[name])
        return {field: value for field, value in asdict(reading).items() if value != named[field]}

    nearest = min(READINGS, key=lambda name: len(changes(name)))
    texts = {field: str(value).lower() for field, value in changes(nearest).items()}
    return ",".join([f"reading={nearest}", *(f"{field}={text}" for field, text in sorted(texts.items()))])


def main_readings() -> list[str]:
    """Return the readings of every evaluation: the named ones, and those with one of the choices that matter most.

    Returns
    -------
    list of str
        The settings of each reading.
    """
    base, prose = READINGS["pseudocode"], READINGS["prose"]
    others = [
        replace(prose, relation="svd"),
        replace(prose, ties="placed"),
        replace(base, relation="exact"),
        replace(base, relation="nmf"),
        replace(base, cooperation="topic"),
        replace(base, revisit=True),
    ]
    return _settings([*READINGS.values(), *others])


def all_readings() -> list[str]:
    """Return the readings of the whole grid.

    Returns
    -------
    list of str
        The settings of each reading: all combinations of the relation, the cooperation, the second visits and the rule
        for ties, and every other choice alone, starting from each named reading.
    """
    return _settings([*map(as_reading, main_readings()), *_combinations(), *_single_changes()])


def _combinations() -> Iterator[Reading]:
    for relation, cooperation, revisit, ties in itertools.product(
        ("svd", "exact"), ("client", "topic"), (False, True), ("index", "nearest", "placed", "loaded")
    ):
        yield named_reading("pseudocode", relation=relation, cooperation=cooperation, revisit=revisit, ties=ties)


def _single_changes() -> Iterator[Reading]:
    orders: tuple[Order, ...] = ("large", "small", "random")
    for base in (READINGS["pseudocode"], READINGS["prose"]):
        yield replace(base, ties="random")
        yield replace(base, initial="least-used")
        yield from (replace(base, topic_order=order) for order in orders)
        yield from (replace(base, client_order=order) for order in orders)
        yield replace(base, relation="nmf")
        if base.relation == "svd":
            # The full rank gives the homes of relation=exact.
            yield from (replace(base, rank=32), replace(base, factorised="incidence"), replace(base, diagonal=False))


def _settings(readings: list[Reading]) -> list[str]:
    return list(dict.fromkeys(map(settings_of, readings)))
