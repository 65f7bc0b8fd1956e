"""The name, colour, dash and symbol of each method, the same on every page."""

import hashlib
import re
from dataclasses import dataclass

# The colours have medium lightness, so that they are visible on light and on dark backgrounds. Readers with colour
# vision deficiency can distinguish them.
COLOURS = {
    "random": "#9a7b5f",
    "nearest": "#3b8bd0",
    "otos": "#e08e1b",
    "reloc": "#d9455f",
    "adaptive": "#a548b8",
    "anneal": "#2f9e77",
    "spark-anneal": "#5cb85c",
    "bound": "#8c62c7",
    "spark-bound": "#8c62c7",
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
NAMES |= {"spark-anneal": "annealing in regions", "spark-bound": "bound in blocks"}
# The colour of reference lines and rows: an optimum, a bound, a capacity, the virtual best method.
REFERENCE = "#7f8790"
# The selector under which tables show the best method of each instance, which is no method that could be run.
VIRTUAL_BEST = "virtual best"
GOOD = "#2f9e77"
BAD = "#d9455f"
# The colours of methods that are not ours.
OTHERS = ("#6a7fdb", "#b5653c", "#5f9e3a", "#b04fb5", "#2b9fbf", "#b89b1c")
# Variants of one method share its colour and differ in dash and symbol.
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "x", "cross")


@dataclass(frozen=True)
class Style:
    """How plots draw a method.

    Attributes
    ----------
    colour
        The colour, as ``#rrggbb``.
    dash, symbol
        The dash of lines and the symbol of points, in plotly's names.
    """

    colour: str
    dash: str = "solid"
    symbol: str = "circle"


def name_of(selector: str) -> str:
    """Return the name of a method on pages.

    Parameters
    ----------
    selector
        The selector of the method, such as ``anneal[moves=2000000]``.

    Returns
    -------
    str
        The name, such as ``RELOC [k=auto]`` or ``annealing [moves=2e6]``.
    """
    method, bracket, settings = selector.partition("[")
    settings = re.sub(r"=(\d*?)(0{4,})(?=[,\]])", lambda found: f"={found[1]}e{len(found[2])}", settings)
    return NAMES.get(method, method) + (f" [{settings}" if bracket else "")


def colour_of(selector: str) -> str:
    """Return the colour of a method.

    Parameters
    ----------
    selector
        The selector of the method; its settings do not change the colour.

    Returns
    -------
    str
        The colour, as ``#rrggbb``.
    """
    method = selector.partition("[")[0]
    if method == VIRTUAL_BEST:
        return REFERENCE
    if method in COLOURS:
        return COLOURS[method]
    return OTHERS[int(hashlib.sha256(method.encode()).hexdigest(), 16) % len(OTHERS)]


def styles(selectors: list[str]) -> dict[str, Style]:
    """Return the style of each of several methods that share a plot.

    Parameters
    ----------
    selectors
        The selectors of the methods.

    Returns
    -------
    dict
        The style for each selector. Variants of one method have the same colour and different dashes and symbols.
    """
    seen: dict[str, int] = {}
    chosen = {}
    for selector in dict.fromkeys(selectors):
        method = selector.partition("[")[0]
        number = seen[method] = seen.get(method, -1) + 1
        chosen[selector] = Style(colour_of(selector), DASHES[number % len(DASHES)], SYMBOLS[number % len(SYMBOLS)])
    return chosen


def faded(colour: str, opacity: float) -> str:
    """Return a colour with an opacity.

    Parameters
    ----------
    colour
        The colour, as ``#rrggbb``.
    opacity
        From 0 (transparent) to 1.

    Returns
    -------
    str
        The colour, as ``rgba(...)``.
    """
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"
