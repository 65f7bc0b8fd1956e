"""RELOC as it is read here, and as it could be read as well (docs/reading.md)."""

# What is set, and what that means in words; the first is the reading of all plots.
READINGS = {
    "": "our reading",
    "relation=exact": "relations by shared topics, no factorisation",
    "relation=nmf": "relations by non-negative factorisation",
    "cooperation=topic": "cooperation moves all publishers of the topic",
    "revisit=true": "a client met again is placed anew",
}
DEFAULT_CLUSTERS = 4
CLUSTERS = (1, 2, 4, 8, 16)


def reloc(reading: str = "", k: int = DEFAULT_CLUSTERS) -> str:
    """Return the selector of RELOC under a reading, with a number of clusters."""
    settings = sorted(filter(None, [reading, f"k={k}" if k != DEFAULT_CLUSTERS else ""]))
    return f"reloc[{','.join(settings)}]" if settings else "reloc"
