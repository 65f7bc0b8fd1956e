"""The baseline: a committed file with the costs of methods by instance and seed, and with their times if wanted."""

import gzip
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relocbench.instances.errors import InputError
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.files.json_fields import Fields, read_object

FORMAT = "relocbench-baseline/2"
# The format before has entries of the library and costs alone. It is read, too.
FORMATS = ("relocbench-baseline/1", FORMAT)
CONDITIONS = ("method", "seeds", "time_limit", "folder", "pattern", "library", "made", "reference_seconds")
TIMES_FIELDS = ("seconds", "integrals", "horizon", "reference")
LINE_FIELDS = ("name", "file", "instance", "costs", "bound", "optimal", *TIMES_FIELDS, "home")
# The largest size of a file in bytes. Ten methods on the library have less than 1 MiB.
LARGEST = 256 << 20
# The baseline of the methods of this project.
SHIPPED = Path(__file__).parent / "baseline.json"
# The default file for other methods, in the current folder.
USUAL = Path("relocbench-baseline.json")


@dataclass(frozen=True)
class Times:
    """The processor times of a method on one instance.

    Attributes
    ----------
    seconds
        Processor seconds, one for each seed of the record.
    integrals
        Primal integrals up to the horizon, one for each seed (:mod:`reports.gate.primal_integral`); empty if the
        method reports no progress.
    horizon
        Where the integrals end, in processor seconds.
    reference
        The cost that the gap of the incumbent is measured to.
    """

    seconds: tuple[float, ...]
    integrals: tuple[float, ...]
    horizon: float
    reference: float


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
    file
        The file in the folder of the record; empty for an entry of the library.
    bound, optimal
        For an instance of a folder: a lower bound on ``ΣD`` if one is known, and whether it is the optimum.
    times
        The times; None if they were not wanted.
    """

    instance: str
    costs: tuple[float, ...]
    home: tuple[int, ...]
    file: str = ""
    bound: float | None = None
    optimal: bool = False
    times: Times | None = None


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
        The pattern of the names of the instances in the library or the folder.
    library
        The version of the library; 0 for a folder.
    made
        The versions of the packages that made the costs.
    lines
        The costs by the name of the instance.
    folder
        The folder of the instances, relative to the file of the baseline; empty for the library.
    reference_seconds
        The processor time of each computation of :mod:`reports.gate.machine_speed` during the runs; empty if no times
        were wanted.
    """

    method: str
    seeds: tuple[int, ...]
    time_limit: float
    pattern: str
    library: int
    made: Mapping[str, str]
    lines: Mapping[str, Line]
    folder: str = ""
    reference_seconds: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_timed(self) -> bool:
        """Whether the record has times."""
        return bool(self.reference_seconds)

    def folder_beside(self, path: Path) -> Path:
        """Return the folder of the instances.

        Parameters
        ----------
        path
            The file of the baseline.

        Returns
        -------
        Path
            The folder.
        """
        return path.parent / self.folder


def relative_folder(folder: Path, path: Path) -> str:
    """Return how a baseline names a folder of instances, so that both can be moved together.

    Parameters
    ----------
    folder
        The folder.
    path
        The file of the baseline.

    Returns
    -------
    str
        The relative path with slashes.
    """
    return Path(os.path.relpath(folder.resolve(), path.parent.resolve())).as_posix()


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
        whole = read_object(path, FORMATS, ("format", "methods"), LARGEST)
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
    head: dict[str, Any] = {"method": record.method, "seeds": record.seeds, "time_limit": record.time_limit}
    head |= {"folder": record.folder} if record.folder else {}
    head["pattern"] = record.pattern
    head |= {} if record.folder else {"library": record.library}
    head["made"] = dict(record.made)
    if record.is_timed:
        head["reference_seconds"] = dict(record.reference_seconds)
    lines = ",\n   ".join(_line_text(name, line) for name, line in record.lines.items())
    return f' {json.dumps(head, ensure_ascii=False)[:-1]}, "instances": [\n   {lines}]}}'


def _line_text(name: str, line: Line) -> str:
    fields: dict[str, Any] = {"name": name}
    fields |= {"file": line.file} if line.file else {}
    fields |= {"instance": line.instance, "costs": line.costs}
    if line.bound is not None:
        fields |= {"bound": line.bound, "optimal": line.optimal}
    if line.times is not None:
        fields["seconds"] = line.times.seconds
        fields |= {"integrals": line.times.integrals} if line.times.integrals else {}
        fields |= {"horizon": line.times.horizon, "reference": line.times.reference}
    home = json.dumps(line.home, separators=(",", ":"))
    return f'{json.dumps(fields, ensure_ascii=False)[:-1]}, "home": {home}}}'


def _read_record(value: object, label: str) -> Record:
    row = Fields(value, label, (*CONDITIONS, "instances"))
    seeds = tuple(row.integers("seeds").tolist())
    if not seeds or len(set(seeds)) < len(seeds):
        raise InputError(row.label("seeds"), "expected at least one seed, each once")
    made = _object(row, "made")
    folder = row.text("folder") if "folder" in row else ""
    speeds = _object(row, "reference_seconds") if "reference_seconds" in row else None
    reference_seconds = {} if speeds is None else {name: speeds.number(name) for name in row.value("reference_seconds")}
    if any(seconds <= 0 for seconds in reference_seconds.values()):
        raise InputError(row.label("reference_seconds"), "expected times above 0")
    lines: dict[str, Line] = {}
    for i, entry in enumerate(row.entries("instances")):
        fields = Fields(entry, f"{row.label('instances')}[{i}]", LINE_FIELDS)
        name = fields.text("name")
        if name in lines:
            raise InputError(fields.label("name"), f"{name} is given twice")
        lines[name] = _read_line(fields, len(seeds), in_folder=bool(folder), timed=bool(reference_seconds))
    if not lines:
        raise InputError(row.label("instances"), "expected at least one")
    return Record(
        method=row.text("method"),
        seeds=seeds,
        time_limit=row.number("time_limit"),
        pattern=row.text("pattern"),
        library=0 if folder else row.integer("library"),
        made={name: made.text(name) for name in row.value("made")},
        lines=lines,
        folder=folder,
        reference_seconds=reference_seconds,
    )


def _object(row: Fields, name: str) -> Fields:
    """Return a field that is an object with any names."""
    value = row.value(name)
    return Fields(value, row.label(name), value if isinstance(value, dict) else ())


def _read_line(fields: Fields, count: int, *, in_folder: bool, timed: bool) -> Line:
    times = None
    if timed:
        seconds = _amounts(fields, "seconds", count, "time")
        integrals = _amounts(fields, "integrals", count, "integral") if "integrals" in fields else ()
        times = Times(seconds, integrals, fields.number("horizon"), fields.number("reference"))
    optimal = fields.value("optimal") if "optimal" in fields else False
    if not isinstance(optimal, bool):
        raise InputError(fields.label("optimal"), "expected true or false")
    return Line(
        instance=fields.text("instance"),
        costs=_amounts(fields, "costs", count, "cost"),
        home=tuple(fields.integers("home").tolist()),
        file=fields.text("file") if in_folder else "",
        bound=fields.number("bound") if "bound" in fields else None,
        optimal=optimal,
        times=times,
    )


def _amounts(fields: Fields, name: str, count: int, what: str) -> tuple[float, ...]:
    """Return numbers of at least 0, one for each seed."""
    found = tuple(fields.numbers(name).tolist())
    if len(found) != count:
        raise InputError(fields.label(name), f"expected {count} {what}s, one for each seed, got {len(found)}")
    if min(found) < 0:
        raise InputError(fields.label(name), f"expected no {what} below 0, got {min(found)!r}")
    return found
