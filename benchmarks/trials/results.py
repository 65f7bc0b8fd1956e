"""The results of trials: verdicts, the journal of finished trials, reproducers and the table of counts."""

import json
import shlex
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

# right: the answer is right, or wrong input is refused as it must be.
# open: a run ended at its limit, and what it reported is right.
# refused: a method refused the instance with a reason.
# claimed, claimed wrong: a method claims an optimum that its tolerances do not support; the claim is true or false.
# wrong: a false answer, a false bound, or another promise that does not hold.
# crashed: an error that is no refusal, or a dead process.
# hung: it did not end within its limits.
Verdict = Literal["right", "open", "refused", "claimed", "claimed wrong", "wrong", "crashed", "hung"]
VERDICTS: tuple[Verdict, ...] = ("right", "open", "refused", "claimed", "claimed wrong", "wrong", "crashed", "hung")
# The campaign fails if there is any of these.
FAILURES: tuple[Verdict, ...] = ("wrong", "crashed", "hung")


@dataclass(frozen=True)
class Result:
    """The result of one trial.

    Attributes
    ----------
    part, kind
        The part of the campaign, and what was tried: a row of the table.
    key
        The name of the trial within its part. The same seed and key repeat it.
    verdict
        What was found.
    note
        One line that describes a failure or a refusal.
    files
        The content of files that reproduce it, by name.
    command
        A command that shows the failure without the campaign, run in the folder of these files; empty if there is none.
    """

    part: str
    kind: str
    key: str
    verdict: Verdict
    note: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    command: str = ""

    @property
    def failed(self) -> bool:
        """Whether the campaign fails because of it."""
        return self.verdict in FAILURES


@dataclass(frozen=True)
class Plan:
    """What a campaign does.

    Attributes
    ----------
    seed
        The seed of all trials.
    quick
        Whether this is the quick form.
    count
        The number of trials of a part; None for its default.
    jobs
        The number of trials at the same time.
    only
        The keys of the only trials to run; empty for all.
    stop
        Set when the campaign is interrupted.
    """

    seed: int = 0
    quick: bool = False
    count: int | None = None
    jobs: int = 1
    only: frozenset[str] = frozenset()
    stop: threading.Event = field(default_factory=threading.Event)

    def number(self, quick: int, long: int) -> int:
        """Return the number of trials of a part.

        Parameters
        ----------
        quick, long
            The defaults of the two forms.

        Returns
        -------
        int
            The number.
        """
        return self.count if self.count is not None else quick if self.quick else long

    def wants(self, key: str) -> bool:
        """Return whether a trial belongs to the campaign.

        Parameters
        ----------
        key
            Its name.

        Returns
        -------
        bool
            Whether it is to be run.
        """
        return not self.only or key in self.only


class Journal:
    """The folder of a campaign: one line for each finished trial, and a folder for each failure.

    Parameters
    ----------
    folder
        The folder. Finished trials of an earlier campaign with the same seed are kept.
    seed
        The seed of the campaign.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / f"results-{seed}.jsonl"
        self._found = {(one.part, one.key): one for one in self._stored()}

    def finished(self, part: str) -> list[Result]:
        """Return the results of a part.

        Parameters
        ----------
        part
            The part.

        Returns
        -------
        list of Result
            Its finished trials.
        """
        return [one for one in self._found.values() if one.part == part]

    def add(self, result: Result) -> None:
        """Write a result, and the files that reproduce it if it is a failure.

        Parameters
        ----------
        result
            The result.
        """
        self._found[result.part, result.key] = result
        line = {name: getattr(result, name) for name in ("part", "kind", "key", "verdict", "note", "command")}
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if result.failed or result.verdict == "claimed wrong":
            self._write_reproducer(result)

    def summary(self) -> dict[str, Any]:
        """Return the counts of all finished trials.

        Returns
        -------
        dict
            The content of the summary file.
        """
        counts: dict[str, dict[str, dict[str, int]]] = {}
        for one in self._found.values():
            row = counts.setdefault(one.part, {}).setdefault(one.kind, dict.fromkeys(("tried", *VERDICTS), 0))
            row["tried"] += 1
            row[one.verdict] += 1
        failures = [one for one in self._found.values() if one.failed]
        return {
            "seed": self.seed,
            "tried": len(self._found),
            "failed": len(failures),
            "verdicts": dict(Counter(one.verdict for one in self._found.values())),
            "counts": counts,
            "failures": [
                {"part": one.part, "kind": one.kind, "key": one.key, "verdict": one.verdict, "note": one.note}
                for one in failures
            ],
        }

    def write_summary(self) -> Path:
        """Write the summary file.

        Returns
        -------
        Path
            Its path.
        """
        path = self.folder / "summary.json"
        path.write_text(json.dumps(self.summary(), indent=1) + "\n", encoding="utf-8")
        return path

    def _stored(self) -> Iterator[Result]:
        if not self._file.exists():
            return
        with self._file.open(encoding="utf-8") as lines:
            for line in lines:
                try:
                    yield Result(**json.loads(line))
                except ValueError:
                    continue  # the last line of a campaign that was killed; its trial is repeated

    def _write_reproducer(self, result: Result) -> None:
        name = "".join(letter if letter.isalnum() else "-" for letter in f"{result.part}-{result.key}")
        folder = self.folder / "reproducers" / name[:150]
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in result.files.items():
            (folder / file).write_bytes(content)
        again = ["python", "benchmarks/campaign.py", "--seed", str(self.seed), "--part", result.part]
        lines = [f"{result.kind}: {result.verdict}: {result.note}"]
        lines.append(shlex.join([*again, "--only", result.key, "--out", "again"]))
        lines += [result.command] if result.command else []
        (folder / "README.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def print_counts(summary: Mapping[str, Any]) -> None:
    """Print the table of counts and the first failures.

    Parameters
    ----------
    summary
        The result of :func:`Journal.summary`.
    """
    columns = ("part", "kind", "tried", *VERDICTS)
    rows = [
        (part, kind, *(str(row[name] or "") for name in columns[2:]))
        for part, kinds in summary["counts"].items()
        for kind, row in kinds.items()
    ]
    totals: Counter[str] = Counter()
    for kinds in summary["counts"].values():
        for row in kinds.values():
            totals.update(row)
    rows.append(("all", "", *(str(totals[name] or "") for name in columns[2:])))
    widths = [max(len(row[index]) for row in [columns, *rows]) for index in range(len(columns))]
    for row in [columns, *rows]:
        text = [
            cell.ljust(width) if index < 2 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(text).rstrip())
    for failure in summary["failures"][:20]:
        print(f"{failure['part']} {failure['key']}: {failure['verdict']}: {failure['note']}")
    if len(summary["failures"]) > 20:
        print(f"... and {len(summary['failures']) - 20} further failures, in summary.json")
    sys.stdout.flush()
