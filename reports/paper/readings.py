"""The readings of RELOC that the evaluation compares (docs/reading.md)."""

# The setting of each reading, with its meaning. The first is the default, which all plots use.
READINGS = {
    "": "our reading",
    "relation=exact": "relations by shared topics, no factorisation",
    "relation=nmf": "relations by non-negative factorisation",
    "cooperation=topic": "cooperation moves all publishers of the topic",
    "revisit=true": "a client that appears again is placed again",
    "reading=prose": "the reading closest to the paper's prose (exact, topic and revisit together)",
}
DEFAULT_CLUSTERS = 4
# The values of K in the third study.
CLUSTERS = (1, 2, 4, 8, 16)


def reloc(reading: str = "", k: int = DEFAULT_CLUSTERS) -> str:
    """Return the selector of RELOC.

    Parameters
    ----------
    reading
        The setting of the reading.
    k
        The number of clusters.

    Returns
    -------
    str
        The selector.
    """
    settings = sorted(filter(None, [reading, f"k={k}" if k != DEFAULT_CLUSTERS else ""]))
    return f"reloc[{','.join(settings)}]" if settings else "reloc"
