"""Measure how certified gaps, time and memory grow with the number of clients.

python benchmarks/certified_scale.py [CLIENTS SERVERS SECONDS]

The default sizes are 1,000, 10,000 and 100,000 clients.
"""

import math
import resource
import sys
import tempfile
import time
from pathlib import Path

from relocbench.formulations.certificates.certificate import write_certificate
from relocbench.formulations.certificates.verification import verify
from relocbench.instances.generators.families import FAMILIES
from relocbench.runs.certify import certify
from relocbench.runs.solve import warm_up

SIZES = ((1_000, 25, 60.0), (10_000, 100, 600.0), (100_000, 100, 2400.0))
# Clients per topic in the paper's family; it is below the mean topic size, because clients are in several topics.
CLIENTS_PER_TOPIC = 6.0


def main(clients: int, servers: int, seconds: float) -> None:
    topics = round(clients / CLIENTS_PER_TOPIC)
    # The capacity per topic is that of the paper.
    factor = (topics / 64) / (servers / 16)
    settings = {
        "sigma": 10.0,
        "topics": topics,
        "servers": servers,
        "storage": 640 * factor,
        "compute": 3200 * factor,
    }
    instance = FAMILIES["paper"].cells(settings)[0].build(0)
    last_printed = [0.0]

    def progress(now: float, cost: float, bound: float) -> None:
        if now > last_printed[0] + seconds / 20:
            last_printed[0] = now
            print(f"  {now:7.1f} s: {cost:.2f} and {bound:.2f}, gap {(cost - bound) / cost:.3%}", file=sys.stderr)

    begin = time.perf_counter()
    found = certify(instance, time_limit=seconds, on_progress=progress)
    took = time.perf_counter() - begin
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "certificate.json"
        write_certificate(found.certificate, path)
        size = path.stat().st_size
        begin = time.perf_counter()
        gap = verify(instance, path, time_limit=math.inf, memory_limit=math.inf).gap
        check = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"| {instance.n_clients} | {servers} | {float(gap or 0):.3%} | {took:.0f} | {peak:.2f} "
        f"| {size / 1e6:.1f} | {check:.0f} |",
        flush=True,
    )


if __name__ == "__main__":
    warm_up("bound")
    given = sys.argv[1:]
    sizes = ((int(given[0]), int(given[1]), float(given[2])),) if given else SIZES
    print("| clients | servers | gap | seconds | peak GiB | proof, MB | check, s |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for size in sizes:
        main(*size)
