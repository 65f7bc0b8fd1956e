"""Where each claim of the paper holds: a small map of readings and topic sizes for each claim, and one sentence."""

from collections.abc import Sequence

import plotly.graph_objects as go

from relocbench.heuristics.readings import DEFAULT_READING
from relocbench.instances.errors import plural
from relocbench.reports.pages.figures import figure
from relocbench.reports.pages.tables import ABSENT, Cell, Column, Table, Value
from relocbench.reports.paper.agreement import Agreement
from relocbench.reports.paper.claims import CLAIMS, FAILS, HOLDS, UNKNOWN
from relocbench.reports.paper.planner import PAPER
from relocbench.reports.paper.readings import DEFAULT, short_name

TRUE, FALSE = "■", "□"
# A sentence names at most this many sets of readings.
MOST_SETS = 3


def where(agreement: Agreement, key: str) -> str:
    """Say in one sentence where a claim holds.

    Parameters
    ----------
    agreement
        The verdicts.
    key
        The key of the claim.

    Returns
    -------
    str
        The sentence.
    """
    groups = agreement.groups
    words = {reading: [agreement.verdicts[group, reading][key] for group in groups] for reading in agreement.readings}
    everything = [verdict for verdicts in words.values() for verdict in verdicts]
    if all(verdict.word == UNKNOWN for verdict in everything):
        return "There are too few seeds to tell."
    tested = [verdict for verdict in everything if verdict.share is not None]
    if not tested:
        return "There is no value on which it could be tested."
    if not CLAIMS[key].depends_on_reading:
        words = {"": next(iter(words.values()))}
    held: dict[tuple[str, ...], list[str]] = {}
    for reading, verdicts in words.items():
        found = tuple(group for group, verdict in zip(groups, verdicts, strict=True) if verdict.word == HOLDS)
        held.setdefault(found, []).append(reading)
    if list(held) == [()]:
        return _nowhere(agreement, key)
    # The default reading comes first, then what most readings have in common.
    ranked = sorted(filter(None, held), key=lambda found: (DEFAULT not in held[found], -len(held[found])))
    texts = [
        f"{_readings(held[found], agreement.readings)} {_groups(found, groups)}".strip() for found in ranked[:MOST_SETS]
    ]
    hidden = sum(len(held[found]) for found in ranked[MOST_SETS:])
    rest = f"; on some instances under {plural(hidden, 'other reading')}" if hidden else ""
    never = held.get((), [])
    none = f"; nowhere under {_named(never)}" if never else ""
    return f"Holds {'; '.join(texts)}{rest}{none}."


def _nowhere(agreement: Agreement, key: str) -> str:
    shares = {
        (reading, group): verdict.share
        for reading in agreement.readings
        for group in agreement.groups
        if (verdict := agreement.verdicts[group, reading][key]).share is not None
    }
    reading, group = max(shares, key=lambda place: shares[place] or 0.0)
    most = agreement.verdicts[group, reading][key]
    if most.word == FAILS:
        return "Does not hold under any reading, on any instances."
    good = [value for value, true in most.points.items() if true]
    return (
        "Does not hold completely under any reading. It comes closest under "
        f"{_named([reading])} {_groups((group,), agreement.groups)}: true at {', '.join(good)}."
    )


def _readings(readings: Sequence[str], everyone: Sequence[str]) -> str:
    if readings == [""]:
        return ""
    return "under every reading" if len(readings) == len(everyone) else f"under {_named(readings)}"


def _named(readings: Sequence[str]) -> str:
    if len(readings) > MOST_SETS:
        return f"{plural(len(readings), 'reading')}, among them {_named(readings[: MOST_SETS - 1])}"
    texts = [f"`{short_name(reading)}`" for reading in readings]
    return " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))


def _groups(found: Sequence[str], groups: Sequence[str]) -> str:
    if len(groups) == 1:
        return ""
    if len(found) == len(groups):
        return "on all instances"
    runs: list[list[str]] = []
    for size in found:
        if runs and PAPER not in runs[-1] and groups.index(size) == groups.index(runs[-1][-1]) + 1:
            runs[-1].append(size)
        else:
            runs.append([size])
    texts = [run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs if run != [PAPER]]
    parts = [f"on `{PAPER}`"] if PAPER in found else []
    parts += [f"at a least size of {' and '.join(texts)}"] if texts else []
    return " and ".join(parts)


def claim_map(agreement: Agreement, key: str, readings: Sequence[str]) -> Table:
    """Return the map of a claim: one row per reading, one column per group of instances, one square per value.

    Parameters
    ----------
    agreement
        The verdicts.
    key
        The key of the claim.
    readings
        The readings to show.

    Returns
    -------
    Table
        The map.
    """
    values = list(
        dict.fromkeys(
            value for group in agreement.groups for value in agreement.verdicts[group, readings[0]][key].points
        )
    )
    shown = readings if CLAIMS[key].depends_on_reading else readings[:1]
    rows: list[list[Value]] = []
    for reading in shown:
        name = short_name(reading)
        text = f"**{name}**" if name == DEFAULT_READING else f"`{name}`"
        cells: list[Value] = [Cell(text if CLAIMS[key].depends_on_reading else "every reading")]
        for group in agreement.groups:
            verdict = agreement.verdicts[group, reading][key]
            squares = "".join(
                ABSENT if value not in verdict.points else TRUE if verdict.points[value] else FALSE for value in values
            )
            share = verdict.share
            tone = None if share is None else "good" if share == 1 else "bad" if share == 0 else None
            cells.append(Cell(squares or ABSENT, -1.0 if share is None else share, tone=tone))
        rows.append(cells)
    columns = [Column("reading"), *(Column(_group_name(group)) for group in agreement.groups)]
    order = ", ".join(values) or "none"
    return Table(columns, rows, f"{TRUE} true, {FALSE} not true, {ABSENT} not tested; from left to right: {order}.")


def _group_name(group: str) -> str:
    return group if group == PAPER else f"size ≥ {group}"


def agreement_map(agreement: Agreement, readings: Sequence[str]) -> go.Figure:
    """Draw how far each reading agrees with the paper at each size.

    Parameters
    ----------
    agreement
        The verdicts.
    readings
        The readings to show.

    Returns
    -------
    go.Figure
        A heat map with one row per reading, the best one on top.
    """
    ranked = sorted(readings, key=lambda reading: (agreement.score(reading) or 0.0, reading))
    shares = [[agreement.share(group, reading) for group in agreement.groups] for reading in ranked]
    plot = figure(x="group of instances", y="", height=120 + 26 * len(ranked), showlegend=False)
    plausible = agreement.plausible
    names = [f"{_group_name(group)}{' ★' if group in plausible else ''}" for group in agreement.groups]
    labels = [f"<b>{name}</b>" if name == DEFAULT_READING else name for name in map(short_name, ranked)]
    plot.add_trace(
        go.Heatmap(
            z=shares,
            x=names,
            y=labels,
            text=[["" if share is None else f"{share:.0%}" for share in row] for row in shares],
            texttemplate="%{text}",
            colorscale=[[0, "#f2f0e6"], [1, "#1f8296"]],
            zmin=0.3,
            zmax=1.0,
            showscale=False,
            hovertemplate="%{y}, %{x}: %{text} of the claims<extra></extra>",
        )
    )
    return plot.update_layout(xaxis={"type": "category"}, yaxis={"type": "category"})
