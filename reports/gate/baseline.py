"""The baseline: a committed file with the costs of methods by instance and seed."""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relocbench.instances.errors import InputError
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.files.json_fields import Fields, read_object

FORMAT = "relocbench-baseline/1"
# The largest size of a file in bytes. Ten methods on the library have less than 1 MiB.
LARGEST = 256 << 20
# The baseline of the methods of this project.
SHIPPED = Path(__file__).parent / "baseline.json"
# The default file for other methods, in the current folder.
USUAL = Path("relocbench-baseline.json")


@dataclass(frozen=True)
class Line:
    """The costs of a method on one instance.

    Attributes
    ----------
    instance
        Content hash of the instance.
    costs
        ``ΣD``, one for each seed of the record.
    home
        The homes of the first seed. A smallest instance that shows a regression is compared with them.
    """

    instance: str
    costs: tuple[float, ...]
    home: tuple[int, ...]


@dataclass(frozen=True)
class Record:
    """The costs of a method, and the conditions under which they were measured.

    Attributes
    ----------
    method
        The selector, as text.
    seeds
        The seeds of the costs, in the same order.
    time_limit
        The time limit of each run in seconds.
    pattern
        The pattern of the names of the instances in the library.
    library
        The version of the library.
    made
        The versions of the packages that made the costs.
    lines
        The costs by the name of the instance.
    """

    method: str
    seeds: tuple[int, ...]
    time_limit: float
    pattern: str
    library: int
    made: Mapping[str, str]
    lines: Mapping[str, Line]


@dataclass(frozen=True)
class Baseline:
    """The content of a baseline file.

    Attributes
    ----------
    records
        The records by the selector of their method.
    """

    records: Mapping[str, Record]

    def record(self, method: str, path: Path) -> Record:
        """Return the record of a method.

        Parameters
        ----------
        method
            The selector.
        path
            The file of the baseline, for the error message.

        Returns
        -------
        Record
            The record.

        Raises
        ------
        InputError
            If the baseline has no record of the method.
        """
        if method not in self.records:
            known = ", ".join(self.records) or "none"
            problem = f"has no costs of {method}; --update-baseline adds them, --against accepts one of: {known}"
            raise InputError(str(path), problem)
        return self.records[method]


def read_baseline(path: Path) -> Baseline:
    """Read a baseline file.

    Parameters
    ----------
    path
        The file (``.json`` or ``.json.gz``).

    Returns
    -------
    Baseline
        The baseline.

    Raises
    ------
    InputError
        If the file cannot be read or a field is wrong.
    """
    try:
        whole = read_object(path, FORMAT, ("format", "methods"), LARGEST)
        records = [_read_record(value, f"methods[{i}]") for i, value in enumerate(whole.entries("methods"))]
        found = {record.method: record for record in records}
        if len(found) < len(records):
            raise InputError("methods", "expected each method once")
        return Baseline(found)
    except InputError as error:
        raise error.inside(str(path)) from error


def write_baseline(baseline: Baseline, path: Path) -> None:
    """Write a baseline with one line per instance, so that version control shows the changes by instance.

    Parameters
    ----------
    baseline
        The baseline.
    path
        The file, compressed if its name ends in ``.gz``.
    """
    parts = ",\n".join(map(_record_text, baseline.records.values()))
    content = f'{{"format": "{FORMAT}", "methods": [\n{parts}]}}\n'.encode()
    with written_whole(path) as temporary:
        temporary.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def _record_text(record: Record) -> str:
    head = {
        "method": record.method,
        "seeds": record.seeds,
        "time_limit": record.time_limit,
        "pattern": record.pattern,
        "library": record.library,
        "made": dict(record.made),
    }
    lines = ",\n   ".join(_line_text(name, line) for name, line in record.lines.items())
    return f' {json.dumps(head, ensure_ascii=False)[:-1]}, "instances": [\n   {lines}]}}'


def _line_text(name: str, line: Line) -> str:
    fields: dict[str, Any] = {"name": name, "instance": line.instance, "costs": line.costs}
    home = json.dumps(line.home, separators=(",", ":"))
    return f'{json.dumps(fields, ensure_ascii=False)[:-1]}, "home": {home}}}'


def _read_record(value: object, label: str) -> Record:
    row = Fields(value, label, ("method", "seeds", "time_limit", "pattern", "library", "made", "instances"))
    seeds = tuple(row.integers("seeds").tolist())
    if not seeds or len(set(seeds)) < len(seeds):
        raise InputError(row.label("seeds"), "expected at least one seed, each once")
    made = row.value("made")
    versions = Fields(made, row.label("made"), made if isinstance(made, dict) else ())
    lines: dict[str, Line] = {}
    for i, entry in enumerate(row.entries("instances")):
        line = Fields(entry, f"{row.label('instances')}[{i}]", ("name", "instance", "costs", "home"))
        name, costs = line.text("name"), tuple(line.numbers("costs").tolist())
        if len(costs) != len(seeds):
            raise InputError(line.label("costs"), f"expected {len(seeds)} costs, one for each seed, got {len(costs)}")
        if min(costs) < 0:
            raise InputError(line.label("costs"), f"expected no cost below 0, got {min(costs)!r}")
        if name in lines:
            raise InputError(line.label("name"), f"{name} is given twice")
        lines[name] = Line(line.text("instance"), costs, tuple(line.integers("home").tolist()))
    if not lines:
        raise InputError(row.label("instances"), "expected at least one")
    return Record(
        method=row.text("method"),
        seeds=seeds,
        time_limit=row.number("time_limit"),
        pattern=row.text("pattern"),
        library=row.integer("library"),
        made={name: versions.text(name) for name in made},
        lines=lines,
    )
