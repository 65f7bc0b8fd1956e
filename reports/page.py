"""The study as one self-contained HTML file, with its data beside it."""

import dataclasses
import datetime
import html
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from instances.writing import written_whole
from relocbench.information import information
from reports.claims import claims
from reports.study import (
    FEWEST_FOR_INTERVAL,
    PLOTTED,
    REFERENCE,
    StudyRow,
    columns,
    mean_interval,
    sigmas_of,
    table_rows,
    values_of,
)

COLOURS = ("#d1495b", "#2a6f97", "#3a8f5c", "#b8860b", "#7d5ba6")

STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --paper: #fdfdfb; --line: #d9dcd6; --soft: #6b7280; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --paper: #16191d; --line: #363c43; --soft: #9aa3ad; } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
       max-width: 62rem; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .5rem; }
p.lead { font-size: 1.1rem; } .soft, figcaption { color: var(--soft); font-size: .9rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; width: 100%;
font-variant-numeric: tabular-nums; }
th, td { padding: .4rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } figure { margin: 1rem 0; } svg { width: 100%; height: auto; }
svg text { fill: var(--ink); font: 13px system-ui, sans-serif; } .grid { stroke: var(--line); }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; font-size: .85rem;
           color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; } .claims dd { margin: 0 0 .9rem; } .claims dt { font-style: italic; }
"""


def write_page(rows: list[StudyRow], folder: Path) -> Path:
    """Write ``report.html`` and ``rows.parquet`` into a folder and return the page's path."""
    with written_whole(folder / "rows.parquet") as temporary:
        pq.write_table(pa.Table.from_pylist([dataclasses.asdict(row) for row in rows]), temporary)
    page = folder / "report.html"
    with written_whole(page) as temporary:
        temporary.write_text(_page(rows), encoding="utf-8")
    return page


def _page(rows: list[StudyRow]) -> str:
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns(rows))
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>" for line in table_rows(rows)
    )
    judged = "".join(
        f"<dt>{html.escape(claim.says)}</dt><dd><strong>{html.escape(claim.verdict)}</strong><br>"
        f'<span class="soft">{html.escape(claim.numbers)}</span></dd>'
        for claim in claims(rows)
    )
    facts = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(str(value))}</dd>" for name, value in information().items()
    )
    seeds = len({row.seed for row in rows})
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Topic allocation at the paper's size</title><style>{STYLE}</style></head><body>
<h1>Topic allocation at the paper's size</h1>
<p class="lead">{_finding(rows)}</p>
<h2>Mean delay of a publication</h2>
<figure>{_chart(rows)}
<figcaption>Y against the spread of a topic's members; bands are 95 % bootstrap intervals of the mean over the seeds
({seeds} here; fewer than {FEWEST_FOR_INTERVAL} say little). Annealing is no bound: how far a method's line lies above
it is the least that could be saved.</figcaption>
</figure>
<h2>The numbers</h2>
<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>
<p class="soft">Y in ms, mean over {seeds} seeds and 95 % interval (from {FEWEST_FOR_INTERVAL} seeds on). The lines
below the first five are RELOC under other readings of the paper (docs/reading.md) and with other numbers of clusters;
its default is K = 4.</p>
<h2>What the paper says, and what we see</h2>
<dl class="claims">{judged}</dl>
<h2>How it was made</h2>
<dl class="facts"><dt>command</dt><dd>relocbench study --seeds {seeds}</dd><dt>made</dt>
<dd>{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC</dd><dt>data</dt><dd>rows.parquet beside this page</dd>
{facts}</dl>
</body></html>
"""


def _finding(rows: list[StudyRow]) -> str:
    """Say in one sentence what the page shows."""

    def excess(sigma: float) -> float:
        pairs = zip(values_of(rows, "reloc", sigma), values_of(rows, REFERENCE, sigma), strict=True)
        return mean_interval([mine / best - 1 for mine, best in pairs])[0]

    low, high = sigmas_of(rows)[0], sigmas_of(rows)[-1]
    seconds = mean_interval([row.seconds for row in rows if row.method == REFERENCE])[0]
    return (
        f"RELOC's mean delay is {excess(low):.0%} above what {seconds:.1f} s of annealing find when topics are local "
        f"(σ = {low:g} km), and {excess(high):.0%} above it when they are spread out (σ = {high:g} km)."
    )


def _chart(rows: list[StudyRow]) -> str:
    """Draw mean Y against σ, with bands."""
    width, height, left, right, top, bottom = 760, 360, 48, 150, 12, 40
    sigmas = sigmas_of(rows)
    ceiling = max(row.y for row in rows if row.method in PLOTTED) * 1.05
    reach = max(sigmas[-1], 1.0)

    def x(sigma: float) -> float:
        return left + (width - left - right) * sigma / reach

    def y(value: float) -> float:
        return top + (height - top - bottom) * (1 - value / ceiling)

    parts: list[str] = []
    labels: list[tuple[float, str, str]] = []
    for tick in range(int(ceiling) + 1):
        parts.append(f'<line class="grid" x1="{left}" x2="{width - right}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        parts.append(f'<text x="{left - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick}</text>')
    parts += [
        f'<text x="{x(sigma):.1f}" y="{height - bottom + 20}" text-anchor="middle">{sigma:g}</text>' for sigma in sigmas
    ]
    parts.append(f'<text x="{(left + width - right) / 2}" y="{height - 4}" text-anchor="middle">σ, km</text>')
    parts.append(f'<text x="{left}" y="{top + 2}">Y, ms</text>')
    for method, colour in zip(PLOTTED, COLOURS, strict=True):
        points = [(sigma, *mean_interval(values_of(rows, method, sigma))) for sigma in sigmas]
        upper = [f"{x(sigma):.1f},{y(high):.1f}" for sigma, _, _, high in points]
        lower = [f"{x(sigma):.1f},{y(low):.1f}" for sigma, _, low, _ in reversed(points)]
        line = " ".join(f"{x(sigma):.1f},{y(mean):.1f}" for sigma, mean, _, _ in points)
        parts.append(f'<polygon points="{" ".join(upper + lower)}" fill="{colour}" opacity=".18"/>')
        parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts += [
            f'<circle cx="{x(sigma):.1f}" cy="{y(mean):.1f}" r="3.5" fill="{colour}"><title>{html.escape(method)}, '
            f"σ = {sigma:g}: {mean:.3f} [{low:.3f}, {high:.3f}]</title></circle>"
            for sigma, mean, low, high in points
        ]
        labels.append((y(points[-1][1]), method, colour))
    lowest = -math.inf
    for wanted, method, colour in sorted(labels):
        lowest = max(wanted, lowest + 15)  # one line below the other, however close the curves end
        parts.append(
            f'<text x="{width - right + 10}" y="{lowest + 4:.1f}" style="fill:{colour}">{html.escape(method)}</text>'
        )
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="Y against σ">{"".join(parts)}</svg>'
