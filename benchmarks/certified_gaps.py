"""Measure certified gaps at the paper's size, and the time to verify a certificate.

python benchmarks/certified_gaps.py [SECONDS [SEEDS [DIRECTORY]]]

The default is 60 seconds and 10 seeds. The certificates are kept if a directory is given.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from relocbench.formulations.certificates.certificate import write_certificate
from relocbench.formulations.certificates.verification import verify
from relocbench.instances.generators.families import FAMILIES, SIGMAS
from relocbench.runs.certify import certify
from relocbench.runs.solve import warm_up

# The cells of the two studies of the paper: the family, the parameter, its symbol, and its values.
STUDIES = (("paper", "sigma", "σ", SIGMAS), ("paper-spooler", "spool_per_member", "p", (1, 2, 3, 4, 5, 6)))


def main(seconds: float, seeds: int, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    warm_up("bound")
    for name, parameter, symbol, values in STUDIES:
        print(f"| {symbol} | mean gap | worst gap | optimal | regions | proof, kB | check, s |")
        print("|---|---|---|---|---|---|---|", flush=True)
        every = []
        for value in values:
            gaps, optimal, regions, sizes, checks = [], 0, [], [], []
            for seed in range(seeds):
                instance = FAMILIES[name].cells({parameter: value})[0].build(seed)
                found = certify(instance, seed=0, time_limit=seconds)
                path = directory / f"{instance.name}.json"
                write_certificate(found.certificate, path)
                begin = time.process_time()
                verdict = verify(instance, path)
                checks.append(time.process_time() - begin)
                if verdict.gap is None:
                    raise ArithmeticError(f"{path}: {verdict.reason}")
                gaps.append(100 * float(verdict.gap))
                optimal += verdict.status == "optimal"
                regions.append(found.solution.facts["nodes"])
                sizes.append(path.stat().st_size / 1000)
                print(f"{instance.name}: {gaps[-1]:.4f} % in {found.solution.trace[-1][0]:.1f} s", file=sys.stderr)
            every += gaps
            print(
                f"| {value:g} | {statistics.mean(gaps):.3f} % | {max(gaps):.3f} % | {optimal} of {seeds} "
                f"| {statistics.mean(regions):.0f} | {statistics.mean(sizes):.0f} | {statistics.mean(checks):.2f} |",
                flush=True,
            )
        print(f"| all | {statistics.mean(every):.3f} % | {max(every):.3f} % | | | | |")


if __name__ == "__main__":
    given = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        main(
            float(given[0]) if given else 60.0,
            int(given[1]) if len(given) > 1 else 10,
            Path(given[2] if len(given) > 2 else scratch),
        )
