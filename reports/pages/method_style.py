"""What methods are called and how they are drawn, the same on every page."""

import hashlib
import re
from dataclasses import dataclass

# Of middle lightness, so that they show on light and on dark ground; told apart by readers who see few colours.
COLOURS = {
    "random": "#9a7b5f",
    "nearest": "#3b8bd0",
    "otos": "#e08e1b",
    "reloc": "#d9455f",
    "anneal": "#2f9e77",
    "bound": "#8c62c7",
    "branch-price": "#7d9a2b",
    "enumerate": "#7f8790",
    "milp-basic": "#7aa2d6",
    "milp-strong": "#2f6db3",
    "pyomo-direct": "#c2913d",
    "pyomo-gdp": "#a9712b",
    "cpsat": "#c95f9b",
    "cfn": "#3aa7a3",
}
NAMES = {"random": "RA", "nearest": "NS", "otos": "OTOS", "reloc": "RELOC", "anneal": "annealing"}
# The optimum, a bound, a capacity: what is drawn against.
REFERENCE = "#7f8790"
GOOD, BAD = "#2f9e77", "#d9455f"
# For methods that users bring; and for variants of one method, so that they are not drawn alike.
OTHERS = ("#6a7fdb", "#b5653c", "#5f9e3a", "#b04fb5", "#2b9fbf", "#b89b1c")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "x", "cross")


@dataclass(frozen=True)
class Look:
    """How a method is drawn: colour, dash of its line, symbol of its points."""

    colour: str
    dash: str = "solid"
    symbol: str = "circle"


def name_of(selector: str) -> str:
    """Return what a method is called on pages: ``RELOC [k=auto]``; ``annealing [moves=2e6]``."""
    method, bracket, settings = selector.partition("[")
    settings = re.sub(r"=(\d*?)(0{4,})(?=[,\]])", lambda found: f"={found[1]}e{len(found[2])}", settings)
    return NAMES.get(method, method) + (f" [{settings}" if bracket else "")


def colour_of(selector: str) -> str:
    """Return the colour of a method; its variants share it."""
    method = selector.partition("[")[0]
    if method in COLOURS:
        return COLOURS[method]
    return OTHERS[int(hashlib.sha256(method.encode()).hexdigest(), 16) % len(OTHERS)]


def looks(selectors: list[str]) -> dict[str, Look]:
    """Return how each of several methods is drawn: by colour, and variants of one method by dash and symbol."""
    seen: dict[str, int] = {}
    drawn = {}
    for selector in dict.fromkeys(selectors):
        method = selector.partition("[")[0]
        number = seen[method] = seen.get(method, -1) + 1
        drawn[selector] = Look(colour_of(selector), DASHES[number % len(DASHES)], SYMBOLS[number % len(SYMBOLS)])
    return drawn


def faded(colour: str, opacity: float) -> str:
    """Return a colour of the form ``#rrggbb`` that lets some of the ground through."""
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"
