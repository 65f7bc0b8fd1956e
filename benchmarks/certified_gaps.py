"""Measure certified gaps, how often an optimum is proved, the size of the proof and the time to verify it.

python benchmarks/certified_gaps.py [STUDY [SECONDS [SEEDS [DIRECTORY]]]]

STUDY is sigma or spool (the studies of the paper), small (scarce and overloaded instances of up to 60 clients), or all,
the default. A pattern selects rows: 'spool:p = [34]', 'small:overloaded*'. The other defaults are 60 seconds and 4
seeds. The certificates are kept if a directory is given.
"""

import os
import statistics
import sys
import tempfile
import time
from fnmatch import fnmatchcase
from pathlib import Path

from relocbench.formulations.certificates.certificate import write_certificate
from relocbench.formulations.certificates.verification import verify
from relocbench.instances.generators.families import FAMILIES, SIGMAS, Cell
from relocbench.instances.instance import Instance
from relocbench.runs.certify import certify
from relocbench.runs.solve import warm_up

SPOOLS = (1, 2, 3, 4, 5, 6)
SMALL = ((26, 6), (30, 6), (39, 9), (50, 9), (60, 6))


def cells(study: str) -> dict[str, Cell]:
    """Return the cells of a study by their names in the table."""
    if study == "sigma":
        return {f"σ = {sigma:g}": FAMILIES["paper"].cells({"sigma": sigma})[0] for sigma in SIGMAS}
    if study == "spool":
        return {f"p = {p}": FAMILIES["paper-spooler"].cells({"spool_per_member": p})[0] for p in SPOOLS}
    return {
        f"{regime}, M = {clients}, L = {servers}": FAMILIES["small"].cells(
            {"regime": regime, "clients": clients, "servers": servers}
        )[0]
        for regime in ("scarce", "overloaded")
        for clients, servers in SMALL
    }


def measure(instance: Instance, seconds: float, path: Path) -> tuple[float, bool, float, float, float]:
    """Certify an instance, and verify its certificate once more from the file.

    Parameters
    ----------
    instance
        The instance.
    seconds
        The time limit.
    path
        Where the certificate is written.

    Returns
    -------
    tuple
        The gap in percent, whether the homes are optimal, the seconds of ``certify``, the size of the certificate in
        kB, and the processor seconds of the verifier.
    """
    begin = time.perf_counter()
    found = certify(instance, seed=0, time_limit=seconds)
    took = time.perf_counter() - begin
    write_certificate(found.certificate, path)
    begin = time.process_time()
    verdict = verify(instance, path, time_limit=float("inf"))
    check = time.process_time() - begin
    if verdict.gap is None:
        raise ArithmeticError(f"{path}: {verdict.reason}")
    return 100 * float(verdict.gap), verdict.status == "optimal", took, path.stat().st_size / 1000, check


def main(study: str, seconds: float, seeds: int, directory: Path) -> None:
    """Print a row for each cell of a study.

    Parameters
    ----------
    study
        Its name, and behind a colon a pattern for the names of the cells, if not all of them are wanted.
    seconds
        The time limit of each instance.
    seeds
        The number of instances of a cell.
    directory
        Where the certificates are written.
    """
    study, _, pattern = study.partition(":")
    directory.mkdir(parents=True, exist_ok=True)
    warm_up("bound")
    print("| instances | mean gap | worst gap | optimal | seconds | proof, kB | check, s |")
    print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
    every = []
    for name, cell in cells(study).items():
        if not fnmatchcase(name, pattern or "*"):
            continue
        rows = []
        for seed in range(seeds):
            instance = cell.build(seed)
            rows.append(measure(instance, seconds, directory / f"{instance.name}.json"))
            load = os.getloadavg()[0]
            print(f"{instance.name}: {rows[-1][0]:.4f} % in {rows[-1][2]:.1f} s, load {load:.1f}", file=sys.stderr)
        gaps, optimal, took, size, check = zip(*rows, strict=True)
        every += gaps
        print(
            f"| {name} | {statistics.mean(gaps):.3f} % | {max(gaps):.3f} % | {sum(optimal)} of {seeds} "
            f"| {statistics.mean(took):.0f} | {statistics.mean(size):.0f} | {statistics.mean(check):.2f} |",
            flush=True,
        )
    print(f"| all | {statistics.mean(every):.3f} % | {max(every):.3f} % | | | | |")


if __name__ == "__main__":
    given = sys.argv[1:]
    studies = ["sigma", "spool", "small"] if not given or given[0] == "all" else given[:1]
    with tempfile.TemporaryDirectory() as scratch:
        for each in studies:
            main(
                each,
                float(given[1]) if len(given) > 1 else 60.0,
                int(given[2]) if len(given) > 2 else 4,
                Path(given[3] if len(given) > 3 else scratch),
            )
