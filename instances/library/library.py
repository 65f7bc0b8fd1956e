"""A folder of certified instances, by name: an index, and for each entry the instance and its certificate."""

import difflib
import fnmatch
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from relocbench.instances.errors import InputError, shown
from relocbench.instances.evaluation import checked_home
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.files.instance_json import read_json
from relocbench.instances.files.json_fields import Fields, read_object
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray

FORMAT = "relocbench-library/1"
CERTIFICATE_FIELDS = ("format", "instance", "home", "claim", "bits", "made", "proof")
FOLDER = Path(__file__).parent
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Claim:
    """A bound that a method claims and no certificate proves."""

    bound: float
    by: str


@dataclass(frozen=True)
class Entry:
    """One line of the index.

    Attributes
    ----------
    name
        What the entry and its instance are called.
    instance
        Content hash of the instance.
    clients, servers, topics
        Its sizes.
    objective, exact_objective
        ``ΣD`` of the best homes known, as a float and as ``p/q``.
    bound, exact_bound
        What no assignment is below, by the certificate; the float is not above the rational.
    gap
        ``(objective - bound) / objective``; None where the objective is 0 and the bound is not.
    status
        ``optimal`` or ``feasible``, by the certificate.
    homes_by, bound_by
        How each was obtained.
    claimed
        A higher bound that has no certificate; None if there is none.
    """

    name: str
    instance: str
    clients: int
    servers: int
    topics: int
    objective: float
    exact_objective: str
    bound: float
    exact_bound: str
    gap: float | None
    status: str
    homes_by: str
    bound_by: str
    claimed: Claim | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the line as it is written."""
        line = asdict(self)
        if self.claimed is None:
            del line["claimed"]
        return line


ENTRY_FIELDS = tuple(field.name for field in fields(Entry))


class Library:
    """A library in a folder.

    Parameters
    ----------
    folder
        Where it is; the one that comes with this package, if not given. A folder without an index is an empty library.
    """

    def __init__(self, folder: str | Path = FOLDER) -> None:
        self.folder = Path(folder)

    def names(self, pattern: str = "*") -> list[str]:
        """Return the names of all entries, or of those that match a pattern such as ``small-*``."""
        return [name for name in self.entries if fnmatch.fnmatchcase(name, pattern)]

    def entry(self, name: str) -> Entry:
        """Return the line of one entry."""
        if name not in self.entries:
            close = difflib.get_close_matches(name, self.entries, n=3)
            hint = f"; close to it: {', '.join(close)}" if close else "; `relocbench library list` names them"
            raise InputError(f"library:{name}", f"expected an entry of the library{hint}")
        return self.entries[name]

    def read(self, name: str) -> Instance:
        """Read the instance of an entry."""
        entry = self.entry(name)
        path = self.instance_path(entry.name)
        instance = read_json(path)
        if instance.hash != entry.instance:
            raise InputError(str(path), f"expected the instance with the hash {entry.instance[:16]}… of the index")
        return instance

    def best_home(self, name: str) -> IntArray:
        """Return the best homes known of an entry."""
        path = self.certificate_path(self.entry(name).name)
        try:
            home = read_object(path, "relocbench-certificate/1", CERTIFICATE_FIELDS).integers("home")
            return checked_home(self.read(name), home)
        except InputError as error:
            raise error.inside(str(path)) from error

    def instance_path(self, name: str) -> Path:
        """Return where the instance of an entry is."""
        return self.folder / f"{checked_name(name)}.json.gz"

    def certificate_path(self, name: str) -> Path:
        """Return where the certificate of an entry is."""
        return self.folder / f"{checked_name(name)}.certificate.json.gz"

    @property
    def index_path(self) -> Path:
        """Where the index is."""
        return self.folder / "index.json"

    @property
    def version(self) -> int:
        """How often the library has been changed."""
        return self._index[0]

    @property
    def entries(self) -> Mapping[str, Entry]:
        """All lines, by name."""
        return self._index[1]

    def put(self, entry: Entry) -> None:
        """Write the line of a new entry, or another one for an old; the version goes up."""
        entries = {**self.entries, entry.name: entry}
        lines = ",\n  ".join(json.dumps(line.to_json(), ensure_ascii=False) for line in entries.values())
        text = f'{{"format": "{FORMAT}", "version": {self.version + 1}, "entries": [\n  {lines}]}}\n'
        with written_whole(self.index_path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        del self._index  # to be read again

    @cached_property
    def _index(self) -> tuple[int, dict[str, Entry]]:
        if self.folder.is_dir() and not self.index_path.exists():
            return 0, {}
        try:
            index = read_object(self.index_path, FORMAT, ("format", "version", "entries"))
            lines = [_read_entry(line, f"entries[{i}]") for i, line in enumerate(index.entries("entries"))]
            entries = {entry.name: entry for entry in lines}
            if len(entries) < len(lines):
                raise InputError("entries", "expected each name once")
            return index.integer("version"), entries
        except InputError as error:
            raise error.inside(str(self.index_path)) from error


def read_named(text: str) -> Iterator[Instance]:
    """Read what ``library:NAME`` or ``library:PATTERN`` stands for, one instance after the other."""
    shelf = Library()
    name = text.removeprefix("library:")
    for found in shelf.names(name) or [shelf.entry(name).name]:
        yield shelf.read(found)


def checked_name(name: str) -> str:
    """Return a name that an entry may have: it is part of a file name, and of patterns."""
    if not NAME.fullmatch(name):
        raise InputError("name", f"expected lower-case letters and digits, joined by hyphens, got {shown(name)}")
    return name


def _read_entry(line: object, label: str) -> Entry:
    row = Fields(line, label, ENTRY_FIELDS)
    claimed = None
    if "claimed" in row:
        claim = Fields(row.value("claimed"), row.label("claimed"), ("bound", "by"))
        claimed = Claim(claim.number("bound"), claim.text("by"))
    return Entry(
        name=checked_name(row.text("name")),
        instance=row.text("instance"),
        clients=row.integer("clients"),
        servers=row.integer("servers"),
        topics=row.integer("topics"),
        objective=row.number("objective"),
        exact_objective=row.text("exact_objective"),
        bound=row.number("bound"),
        exact_bound=row.text("exact_bound"),
        gap=row.number("gap") if "gap" in row else None,
        status=row.text("status"),
        homes_by=row.text("homes_by"),
        bound_by=row.text("bound_by"),
        claimed=claimed,
    )
