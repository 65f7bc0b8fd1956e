"""Text and tables in LaTeX, for papers."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

# Characters with a meaning in LaTeX, and those that its default fonts do not have.
CHARACTERS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "−": "$-$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "±": r"$\pm$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "≠": r"$\neq$",
    "→": r"$\to$",
    "∞": r"$\infty$",
    "µ": r"$\mu$",
    "\u00a0": "~",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "γ": r"$\gamma$",
    "θ": r"$\theta$",
    "λ": r"$\lambda$",
    "μ": r"$\mu$",
    "ν": r"$\nu$",
    "σ": r"$\sigma$",
    "φ": r"$\varphi$",
    "Δ": r"$\Delta$",
    "Σ": r"$\Sigma$",
}
# A table with more columns than this is set in a smaller size.
MANY = 6
SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")


def escaped(text: str) -> str:
    """Return plain text as LaTeX.

    Parameters
    ----------
    text
        The text.

    Returns
    -------
    str
        The text with all special characters escaped; Greek letters and signs become mathematics.
    """
    parts = re.split("([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)", text)
    plain = ["".join(CHARACTERS.get(letter, letter) for letter in part) for part in parts[::2]]
    powers = [f"$^{{{part.translate(SUPERSCRIPTS)}}}$" for part in parts[1::2]]
    return "".join(itertools.chain(*itertools.zip_longest(plain, powers, fillvalue="")))


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes
    ----------
    text
        The text as LaTeX.
    value
        The number or text for programs.
    """

    text: str
    value: str


def booktabs(
    headings: Sequence[str], numeric: Sequence[bool], rows: Sequence[Sequence[Cell]], caption: str, label: str
) -> str:
    r"""Return a table for LaTeX's package ``booktabs``.

    Parameters
    ----------
    headings
        The headings of the columns, as LaTeX.
    numeric
        Whether each column has numbers, which are aligned right.
    rows
        The cells.
    caption, label
        The caption, as LaTeX, and the label for references.

    Returns
    -------
    str
        A ``table`` environment. A preamble needs only ``\usepackage{booktabs}``.
    """
    lines = [
        "% needs \\usepackage{booktabs}",
        "\\begin{table}",
        "  \\centering",
        *(["  \\footnotesize"] if len(headings) > MANY else []),
        f"  \\caption{{{caption}}}",
        f"  \\label{{{label}}}",
        f"  \\begin{{tabular}}{{{''.join('r' if one else 'l' for one in numeric)}}}",
        "    \\toprule",
        f"    {' & '.join(headings)} \\\\",
        "    \\midrule",
        *(f"    {' & '.join(cell.text for cell in row)} \\\\" for row in rows),
        "    \\bottomrule",
        "  \\end{tabular}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def label_of(text: str) -> str:
    """Return a text as a part of a file name and of a label: letters, digits and hyphens.

    Parameters
    ----------
    text
        The text, such as a heading.

    Returns
    -------
    str
        The name; at most 48 characters.
    """
    greek = {"σ": "sigma", "θ": "theta", "Σ": "sum"}
    words = re.sub(r"[^a-z0-9]+", "-", "".join(greek.get(letter, letter) for letter in text).lower())
    return words.strip("-")[:48].strip("-") or "part"
