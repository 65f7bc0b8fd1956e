"""The study as one self-contained HTML file, with its data beside it."""

import dataclasses
import datetime
import html
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from instances.writing import written_whole
from relocbench.information import information
from reports.study import REFERENCE, StudyRow, columns, mean_interval, methods_of, sigmas_of, table_rows

COLOURS = ("#d1495b", "#2a6f97", "#3a8f5c", "#b8860b", "#7d5ba6", "#5c6770")

STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --paper: #fdfdfb; --line: #d9dcd6; --soft: #6b7280; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --paper: #16191d; --line: #363c43; --soft: #9aa3ad; } }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
       max-width: 54rem; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .5rem; }
p.lead { font-size: 1.1rem; } .soft, figcaption { color: var(--soft); font-size: .9rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: .4rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } figure { margin: 1rem 0; } svg { width: 100%; height: auto; }
svg text { fill: var(--ink); font: 13px system-ui, sans-serif; } .grid { stroke: var(--line); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; font-size: .85rem; color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
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
<figcaption>Y against the spread of a topic's members; bands are 95 % bootstrap intervals of the mean over {seeds}
seeds. Where the line of a method lies above <em>{REFERENCE}</em>, at least that much delay is avoidable.</figcaption>
</figure>
<h2>The numbers</h2>
<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>
<p class="soft">Y in ms, mean and 95 % interval. <em>{REFERENCE}</em> is an assignment found while looking for one that
overloads no server: an upper bound on the optimum, not the optimum. <em>scarce</em> counts the instances that are
proved scarce: the nearest servers overload, some assignment does not.</p>
<h2>How it was made</h2>
<dl><dt>command</dt><dd>relocbench study --seeds {seeds}</dd><dt>made</dt>
<dd>{datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC</dd><dt>data</dt><dd>rows.parquet beside this page</dd>
{facts}</dl>
</body></html>
"""


def _finding(rows: list[StudyRow]) -> str:
    """Say in one sentence what the page shows."""
    parts = []
    for sigma in sigmas_of(rows):
        fits = {row.instance: row.y for row in rows if row.sigma == sigma and row.method == REFERENCE}
        excess = [row.y / fits[row.instance] - 1 for row in rows if row.method == "nearest" and row.instance in fits]
        if excess:
            parts.append((sigma, sum(excess) / len(excess)))
    if not parts:
        return "No assignment that fits the capacities was found."
    low, high = parts[0], parts[-1]
    return (
        f"Sending every client to its nearest server costs at least {low[1]:.0%} more delay than necessary when topics "
        f"are local (σ = {low[0]:g} km), and at least {high[1]:.0%} more when they are spread out (σ = {high[0]:g} km)."
    )


def _chart(rows: list[StudyRow]) -> str:
    """Draw mean Y against σ, with bands."""
    width, height, left, right, top, bottom = 760, 360, 48, 120, 12, 40
    sigmas = sigmas_of(rows)
    ceiling = max(row.y for row in rows) * 1.05
    reach = max(sigmas[-1], 1.0)

    def x(sigma: float) -> float:
        return left + (width - left - right) * sigma / reach

    def y(value: float) -> float:
        return top + (height - top - bottom) * (1 - value / ceiling)

    parts = []
    for tick in range(int(ceiling) + 1):
        parts.append(f'<line class="grid" x1="{left}" x2="{width - right}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        parts.append(f'<text x="{left - 8}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick}</text>')
    parts += [
        f'<text x="{x(sigma):.1f}" y="{height - bottom + 20}" text-anchor="middle">{sigma:g}</text>' for sigma in sigmas
    ]
    parts.append(f'<text x="{(left + width - right) / 2}" y="{height - 4}" text-anchor="middle">σ, km</text>')
    parts.append(f'<text x="{left}" y="{top + 2}">Y, ms</text>')
    for method, colour in zip(methods_of(rows), COLOURS, strict=False):
        points = []
        for sigma in sigmas:
            values = [row.y for row in rows if row.sigma == sigma and row.method == method]
            if values:
                points.append((sigma, *mean_interval(values)))
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
        end = points[-1]
        parts.append(
            f'<text x="{x(end[0]) + 10:.1f}" y="{y(end[1]) + 4:.1f}" style="fill:{colour}">{html.escape(method)}</text>'
        )
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="Y against σ">{"".join(parts)}</svg>'
