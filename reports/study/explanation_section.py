"""The section of a study's page that says which features of an instance explain where a method loses."""

from collections.abc import Mapping, Sequence

from relocbench.instances.features import FEATURES
from relocbench.reports.pages.method_style import name_of
from relocbench.reports.pages.page import Page
from relocbench.reports.pages.tables import Cell, Column, Table, Value
from relocbench.reports.study.excess import Measurement
from relocbench.reports.study.explanation import FEWEST_BLOCKS, FEWEST_INSTANCES, Explanation, explanations

# The table names this many features of each method, and the rules of at most this many methods are shown open.
MOST_FEATURES = 3
# A forest that predicts less than this share of the variance explains nothing worth reading.
WEAK = 0.1


def add_explanations(
    page: Page, measurements: Sequence[Measurement], features: Mapping[str, Mapping[str, float]]
) -> None:
    """Add the section to a page.

    Parameters
    ----------
    page
        The page of a study.
    measurements
        The runs of the study.
    features
        The features of each instance, by hash; without any, there is no section.
    """
    if not features:
        return
    found = explanations(measurements, features)
    if not found:
        page.section("Where methods lose")
        page.note(
            f"Too few instances to explain the excess by features: this needs {FEWEST_INSTANCES} instances in "
            f"{FEWEST_BLOCKS} independent blocks. The features are in features.parquet."
        )
        return
    instances, blocks = found[0].instances, found[0].blocks
    page.section(
        "Where methods lose",
        "The excess of each method is predicted from the features of the instances. A forest is tested on blocks of "
        "instances that it has not seen: `predicted` is the share of the variance of the excess that it predicts "
        "there; 0 % or less means that the features say nothing. The importance of a feature is the loss of this share "
        f"if the values of the feature are exchanged between instances. **Caveat:** there are {instances} instances in "
        f"{blocks} independent blocks, and features that vary together divide their importance. "
        "So this describes these instances; it does not prove causes.",
    )
    page.table(_table(found))
    chosen = next((one for one in found if ":" in one.selector or one.selector == "reloc"), found[0])
    page.table(_rules(chosen))
    for one in found:
        if one is not chosen:
            page.table(_rules(one), folded=f"**The rules for {name_of(one.selector)}**")
    meanings: list[list[Value]] = [[Cell(f"`{name}`", name), meaning] for name, meaning in FEATURES.items()]
    columns = [Column("feature"), Column("meaning")]
    page.table(Table(columns, meanings, "The features of an instance."), folded="**What the features mean**")


def _table(found: Sequence[Explanation]) -> Table:
    columns = [
        Column("method"),
        Column("n", "d", "instances"),
        Column("predicted", ".0%", "share of the variance of the excess that is predicted for unseen blocks"),
    ]
    for rank in range(1, MOST_FEATURES + 1):
        columns += [Column(f"feature {rank}"), Column(f"importance {rank}", ".0%")]
    rows: list[list[Value]] = []
    for one in found:
        row: list[Value] = [Cell.of_method(one.selector), one.instances, one.predicted]
        shown = [(name, loss) for name, loss in one.importance.items() if loss > 0][:MOST_FEATURES]
        if one.predicted < WEAK:
            shown = []
        for name, loss in shown:
            row += [Cell(f"`{name}`", name), loss]
        row += [None] * (len(columns) - len(row))
        rows.append(row)
    return Table(
        columns,
        rows,
        "The features that matter most for each method. No feature is named where less than "
        f"{WEAK:.0%} of the variance is predicted.",
    )


def _rules(one: Explanation) -> Table:
    columns = [Column("instances"), Column("mean excess", ".1%"), Column("n", "d", "instances")]
    rows: list[list[Value]] = [[Cell(condition, tone="wrapped"), mean, number] for condition, mean, number in one.rules]
    return Table(
        columns, rows, f"A shallow tree for {name_of(one.selector)}: where its mean excess is small and large."
    )
