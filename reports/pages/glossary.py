"""The glossary that every page ends with: the symbols of the model, the methods, the regimes, gap and excess.

Pages are read without a network, so the glossary is part of each page. ``docs/glossary.md`` explains the same terms in
more detail.
"""

from dataclasses import dataclass

from markupsafe import Markup

from relocbench.reports.pages.markup import marked

ANCHOR = "glossary"


@dataclass(frozen=True)
class Term:
    """One entry of the glossary.

    Attributes
    ----------
    name
        The term as pages write it.
    meaning
        One or two sentences, with the marks of :func:`reports.pages.markup.marked`.
    """

    name: str
    meaning: str


TERMS = (
    Term("home", "The server that a client is assigned to. An assignment gives every client one home."),
    Term(
        "ΣD",
        "The objective of an assignment: the sum of the delays of all publications, in ms. One publication is one "
        "topic and one of its publishers.",
    ),
    Term("Y", "The mean delay of a publication, in ms: `ΣD` divided by the number of publications. `Y = Y1 + Y2`."),
    Term("Y1", "The part of `Y` between clients and their homes."),
    Term("Y2", "The part of `Y` between servers and to the cloud."),
    Term(
        "θ",
        "The share of the messages that a server processes itself. A server whose storage or compute capacity is "
        "exceeded has `θ < 1` and sends the share `1 - θ` to the cloud.",
    ),
    Term("RA", "The paper's random method: every client gets a random server (`random`)."),
    Term("NS", "The paper's nearest-server method: every client gets its nearest server (`nearest`)."),
    Term(
        "OTOS",
        "The paper's method that chooses one server for each topic, then moves clients away from overloaded servers "
        "(`otos`).",
    ),
    Term(
        "RELOC",
        "The paper's heuristic: it clusters the servers, places related clients together, then moves clients away from "
        "overloaded servers (`reloc`).",
    ),
    Term(
        "K",
        "The number of clusters of RELOC; `k=auto` chooses it. With as many clusters as servers, RELOC is the same as "
        "NS.",
    ),
    Term(
        "annealing",
        "Simulated annealing, a method of this project (`anneal`): it proposes random moves of clients, and `moves` is "
        "the number of proposals.",
    ),
    Term("σ", "The spread of the members of a topic around the centre of the topic, in km (`sigma`)."),
    Term("p", "The size of a topic's spool per member (`spool_per_member`): large spools need more storage."),
    Term(
        "family",
        "A recipe for instances. `paper` has the size of the paper's evaluation: 64 topics, about 390 clients, 16 "
        "servers. `small` and `tiny` are small enough for exact methods and have three regimes of capacities.",
    ),
    Term("loose", "A regime of capacities: no assignment overloads a server."),
    Term("scarce", "A regime: the nearest servers are overloaded, but some assignment overloads no server."),
    Term("overloaded", "A regime: every assignment overloads some server."),
    Term(
        "lower bound",
        "A proved number that the objective of no assignment is below. It is certified if a certificate proves it.",
    ),
    Term("gap", "`(objective - bound) / objective`: how far a lower bound is below an objective."),
    Term(
        "excess",
        "`objective / reference - 1`: how far an objective is above a reference, which is the proven optimum or, where "
        "none is known, a certified bound.",
    ),
)


def glossary() -> Markup:
    """Return the glossary as HTML, with the anchor that the top of each page links to.

    Returns
    -------
    Markup
        One section.
    """
    entry = Markup("<div><dt>{}</dt><dd>{}</dd></div>")
    entries = Markup().join(entry.format(term.name, marked(term.meaning)) for term in TERMS)
    return Markup('<section id="{}"><h2>Glossary</h2><dl class="glossary">{}</dl></section>').format(ANCHOR, entries)
