"""Run a campaign of adversarial trials whose answers are known exactly, and count what was right and what was not.

python benchmarks/campaign.py [--seed 0] [--quick] [--part solves --part certificates ...] [--count N] [--jobs 2]

The parts are: solves (exact methods against enumeration in rational numbers), certificates (tampered proofs against
the verifier), files (damaged files against the readers), hostile (methods that attack the workbench), and kills
(signals at random moments). Finished trials in --out are not repeated. The exit code is 1 if anything is wrong.
"""

import argparse
import importlib
import sys
import time
from pathlib import Path

from benchmarks.trials.results import FAILURES, Journal, Plan, print_counts

PARTS = ("solves", "certificates", "files", "hostile", "kills")


def main(arguments: list[str] | None = None) -> int:
    plan, parts, out, jobs_text = read_options(arguments)
    journal = Journal(out, plan.seed)
    interrupted = False
    for part in parts:
        begin = time.perf_counter()
        finished = {} if plan.only else {one.key: one for one in journal.finished(part)}
        done, failed = 0, 0
        trials = importlib.import_module(f"benchmarks.trials.{part}").run(plan, frozenset(finished))
        try:
            for result in trials:
                journal.add(result)
                done += 1
                failed += result.verdict in FAILURES
                _show(f"{part}: {done} trials, {failed} failed, {time.perf_counter() - begin:.0f} s")
        except KeyboardInterrupt:
            plan.stop.set()
            trials.close()
            interrupted = True
        _show("")
        seconds = time.perf_counter() - begin
        kept = f", {len(finished)} were finished before" if finished else ""
        print(f"{part}: {done} trials in {seconds:.0f} s{jobs_text}{kept}", flush=True)
        if interrupted:
            break
    summary = journal.summary()
    print_counts(summary)
    print(f"summary: {journal.write_summary()}")
    if summary["failed"]:
        print(f"reproducers: {journal.folder / 'reproducers'}")
    if interrupted:
        print(f"interrupted; the same command continues from {out}", file=sys.stderr)
        return 130
    return 1 if summary["failed"] else 0


def read_options(arguments: list[str] | None) -> tuple[Plan, list[str], Path, str]:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="the seed of all trials")
    parser.add_argument("--quick", action="store_true", help="the form that is part of the tests")
    parser.add_argument("--part", action="append", choices=PARTS, help="a part; repeatable; default: all parts")
    parser.add_argument("--count", type=int, help="the number of trials of each part")
    parser.add_argument("--jobs", type=int, default=2, help="the number of trials at the same time")
    parser.add_argument(
        "--only", action="append", default=[], metavar="KEY", help="repeat this trial; needs one --part"
    )
    parser.add_argument("--out", type=Path, default=Path("campaign"), help="the folder for results and reproducers")
    given = parser.parse_args(arguments)
    parts = [part for part in PARTS if part in (given.part or PARTS)]
    if given.only and len(parts) != 1:
        parser.error("--only needs exactly one --part")
    if given.jobs < 1 or (given.count is not None and given.count < 1):
        parser.error("--jobs and --count must be at least 1")
    plan = Plan(given.seed, given.quick, given.count, given.jobs, frozenset(given.only))
    return plan, parts, given.out, f" with {given.jobs} at the same time" if given.jobs > 1 else ""


def _show(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
