"""Run the full-scale studies of real graphs that docs/scale.md reports, and print their results side by side.

python benchmarks/spark_graphs.py FOLDER [OUT]

FOLDER holds soc-Epinions1.txt.gz, soc-Slashdot0902.txt.gz, github-musae-edges.csv.gz and facebook_combined.txt.gz
(SNAP); a graph that is missing is skipped. OUT gets the studies, by default the present folder. What is there already
is not computed again. The studies of Slashdot and GitHub have no method with a time limit.
"""

import shlex
import subprocess
import sys
from pathlib import Path

from relocbench.reports.full_scale.plots import short_name
from relocbench.reports.full_scale.tables import Study, read_study, variant

# For each edge list the commands, as docs/scale.md shows them.
STUDIES = {
    "soc-Epinions1.txt.gz": (
        "spark arrange soc-Epinions1.txt.gz --out epinions-topics",
        "spark study epinions-topics --servers 64 --methods 'nearest,otos,random,anneal,reloc,"
        "reloc[reading=pseudocode,relation=exact],reloc[k=8,reading=pseudocode]' --time-limit 120 --bound-time 300 "
        "--out epinions",
        "spark study epinions-topics --servers 64 --load 1.1 --methods nearest,otos,anneal,reloc --time-limit 120 "
        "--bound-time 150 --out epinions-load",
    ),
    "soc-Slashdot0902.txt.gz": (
        "spark arrange soc-Slashdot0902.txt.gz --out slashdot-topics",
        "spark study slashdot-topics --servers 100 --k 10 --methods 'nearest,otos,reloc,"
        "reloc[reading=pseudocode,relation=exact],reloc[reading=pseudocode]' --out slashdot",
        "spark study slashdot-topics --servers 100 --k 10 --load 1.1 --methods 'nearest,otos,reloc,"
        "reloc[reading=pseudocode,relation=exact],reloc[reading=pseudocode]' --out slashdot-load",
    ),
    "github-musae-edges.csv.gz": (
        "spark arrange github-musae-edges.csv.gz --undirected --out github-topics",
        "spark study github-topics --servers 256 --k 16 --methods 'nearest,otos,reloc,"
        "reloc[reading=pseudocode,relation=exact],reloc[reading=pseudocode]' --out github",
        "spark study github-topics --servers 256 --k 16 --load 1.1 --methods 'nearest,otos,reloc,"
        "reloc[reading=pseudocode,relation=exact],reloc[reading=pseudocode]' --out github-load",
    ),
    "facebook_combined.txt.gz": (
        "spark arrange facebook_combined.txt.gz --undirected --out facebook-topics",
        "spark study facebook-topics --servers 16 --methods nearest,otos,anneal,reloc --time-limit 30 --bound-time 60 "
        "--out facebook",
        "spark study facebook-topics --servers 16 --load 1.1 --methods nearest,otos,anneal,reloc --time-limit 30 "
        "--bound-time 60 --out facebook-load",
    ),
}


def main() -> None:
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    graphs, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2] if len(sys.argv) > 2 else ".").resolve()
    studies: list[Study] = []
    for graph, commands in STUDIES.items():
        if not (graphs / graph).exists():
            print(f"skipped, because it is missing: {graphs / graph}", file=sys.stderr)
            continue
        for command in commands:
            words = [str(graphs / graph) if word == graph else word for word in shlex.split(command)]
            subprocess.run([sys.executable, "-m", "relocbench", *words], cwd=out, check=True)
        studies += [read_study(out / shlex.split(command)[-1]) for command in commands[1:]]
    if studies:
        print_table(studies)


def print_table(studies: list[Study]) -> None:
    """Print ``Y`` of all results, one column for each study, with the bound in the last row."""
    rows: dict[str, dict[str, float]] = {}
    for study in studies:
        for one in study.results:
            if not one.chosen:
                name = short_name(variant(one.label)) + (f", K = {one.k}" if one.k else "")
                rows.setdefault(name, {})[study.name] = one.y
        if study.bound is not None:
            rows.setdefault("lower bound", {})[study.name] = study.bound / study.publications
    print("| Y, ms | " + " | ".join(study.name for study in studies) + " |")
    print("|---|" + "--:|" * len(studies))
    for name, values in rows.items():
        cells = (f"{values[study.name]:.4f}" if study.name in values else "" for study in studies)
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
