"""The library of certified instances.

A library is a folder with an index and, for each entry of the index, an instance and its certificate.
"""

import fnmatch
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from relocbench.instances.errors import InputError, did_you_mean, shown
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.files.file_lock import locked
from relocbench.instances.files.file_name import LONGEST, safe_file_name
from relocbench.instances.files.homes_file import read_homes
from relocbench.instances.files.instance_json import read_json
from relocbench.instances.files.json_fields import Fields, read_object
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.notebook_card import card, percent

FORMAT = "relocbench-library/1"
FOLDER = Path(__file__).parent
# The largest size of an index in bytes; an entry has about 1,000.
LARGEST_INDEX = 64 << 20
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Claim:
    """A lower bound that a method claims without a certificate.

    Attributes
    ----------
    bound
        The claimed lower bound on ``ΣD``.
    by
        The method.
    """

    bound: float
    by: str


@dataclass(frozen=True)
class Entry:
    """One entry of the index.

    Attributes
    ----------
    name
        Name of the entry and of its instance.
    instance
        Content hash of the instance.
    clients, servers, topics
        Sizes of the instance.
    objective, exact_objective
        ``ΣD`` of the best known homes, as a float and as a fraction ``p/q``.
    bound, exact_bound
        The lower bound that the certificate proves, or the one in ``bound_from`` if that is higher, as a float and as a
        fraction; the float is rounded down.
    gap
        ``(objective - bound) / objective``; None if the objective is 0 and the bound is not.
    status
        ``optimal`` or ``feasible``, as homes and bound prove.
    homes_by, bound_by
        The methods that produced the homes and the bound.
    bound_from
        The easier entry (:func:`relocbench.instances.easier.is_easier`) whose certificate proves the bound; None if it
        is the entry's own certificate.
    claimed
        A higher lower bound without a certificate; None if there is none.
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
    bound_from: str | None = None
    claimed: Claim | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the entry as an object of the index file.

        Returns
        -------
        dict
            The fields by name, without ``bound_from`` and ``claimed`` if they are None.
        """
        content = asdict(self)
        return {name: value for name, value in content.items() if value is not None or name not in OPTIONAL}


ENTRY_FIELDS = tuple(field.name for field in fields(Entry))
# The fields that are left out of the index if they are None.
OPTIONAL = ("bound_from", "claimed")


class Library:
    """A library in a folder.

    Parameters
    ----------
    folder
        The folder; by default that of the library in this package. A folder without an index is an empty library.

    Examples
    --------
    >>> import relocbench
    >>> library = relocbench.Library()
    >>> len(library.names("paper-*"))
    25
    >>> library.read("paper-s10-3")
    <Instance paper-s10-3: 380 clients, 16 servers, 64 topics>
    """

    def __init__(self, folder: str | Path = FOLDER) -> None:
        self.folder = Path(folder)

    def __repr__(self) -> str:
        entries = f"{len(self.entries)} {'entry' if len(self.entries) == 1 else 'entries'}"
        proved = sum(entry.status == "optimal" for entry in self.entries.values())
        return f"<Library version {self.version}: {entries}, {proved} with a proven optimum>"

    def _repr_html_(self) -> str:
        entries = self.entries.values()
        values = {
            "entries": len(entries),
            "proven optima": sum(entry.status == "optimal" for entry in entries),
            "version": self.version,
        }
        columns = ("name", "clients", "servers", "topics", "ΣD", "gap", "status")
        rows = [
            (
                *(entry.name, entry.clients, entry.servers, entry.topics),
                *(f"{entry.objective:.8g}", percent(entry.gap), entry.status),
            )
            for entry in entries
        ]
        return card("Library of certified instances", values, columns, rows)

    def names(self, pattern: str = "*") -> list[str]:
        """Return the names of all entries that match a pattern.

        Parameters
        ----------
        pattern
            A pattern such as ``small-*``.

        Returns
        -------
        list of str
            The names in the order of the index.

        Raises
        ------
        InputError
            If the index cannot be read.

        Examples
        --------
        >>> import relocbench
        >>> relocbench.Library().names("tiny-*-plain-*")
        ['tiny-loose-plain-0', 'tiny-scarce-plain-0', 'tiny-overloaded-plain-0']
        """
        return [name for name in self.entries if fnmatch.fnmatchcase(name, pattern)]

    def entry(self, name: str) -> Entry:
        """Return one entry.

        Parameters
        ----------
        name
            Name of the entry.

        Returns
        -------
        Entry
            The entry.

        Raises
        ------
        InputError
            If the library has no entry of that name.

        Examples
        --------
        >>> import relocbench
        >>> entry = relocbench.Library().entry("tiny-scarce-plain-0")
        >>> entry.status, entry.clients, round(entry.objective, 4)
        ('optimal', 4, 7.7532)
        """
        if name not in self.entries:
            hint = did_you_mean(self.entries, name) or "; `relocbench library list` names them"
            raise InputError(f"library:{name}", f"expected an entry of the library{hint}")
        return self.entries[name]

    def read(self, name: str) -> Instance:
        """Read the instance of an entry.

        Parameters
        ----------
        name
            Name of the entry.

        Returns
        -------
        Instance
            The instance.

        Raises
        ------
        InputError
            If there is no such entry, or its file is not valid or has another hash than the index states.

        Examples
        --------
        >>> import relocbench
        >>> relocbench.Library().read("tiny-scarce-plain-0")
        <Instance tiny-scarce-plain-0: 4 clients, 4 servers, 2 topics>
        """
        entry = self.entry(name)
        path = self.instance_path(entry.name)
        instance = read_json(path)
        if instance.hash != entry.instance:
            raise InputError(str(path), f"expected the instance with the hash {entry.instance[:16]}… of the index")
        return instance

    def best_home(self, name: str) -> IntArray:
        """Return the best known homes of an entry, which are part of its certificate.

        Parameters
        ----------
        name
            Name of the entry.

        Returns
        -------
        array
            One server per client.

        Raises
        ------
        InputError
            If there is no such entry or its files are not valid.

        Examples
        --------
        >>> import relocbench
        >>> relocbench.Library().best_home("tiny-scarce-plain-0").tolist()
        [1, 3, 3, 1]
        """
        return read_homes(self.certificate_path(self.entry(name).name), self.read(name))

    def instance_path(self, name: str) -> Path:
        """Return the path of the instance of an entry.

        Parameters
        ----------
        name
            Name of the entry.

        Returns
        -------
        Path
            The path, whether or not the file exists.

        Examples
        --------
        >>> import relocbench
        >>> relocbench.Library().instance_path("tiny-scarce-plain-0").name
        'tiny-scarce-plain-0.json.gz'
        """
        return self.folder / f"{checked_name(name)}.json.gz"

    def certificate_path(self, name: str) -> Path:
        """Return the path of the certificate of an entry.

        Parameters
        ----------
        name
            Name of the entry.

        Returns
        -------
        Path
            The path, whether or not the file exists.

        Examples
        --------
        >>> import relocbench
        >>> relocbench.Library().certificate_path("tiny-scarce-plain-0").name
        'tiny-scarce-plain-0.certificate.json.gz'
        """
        return self.folder / f"{checked_name(name)}.certificate.json.gz"

    @property
    def index_path(self) -> Path:
        """Path of the index."""
        return self.folder / "index.json"

    @property
    def version(self) -> int:
        """Number of changes to the library so far."""
        return self._index[0]

    @property
    def entries(self) -> Mapping[str, Entry]:
        """All entries by name."""
        return self._index[1]

    def put(self, entry: Entry) -> None:
        """Add an entry to the index, or replace the entry of that name, and increase the version by 1.

        Parameters
        ----------
        entry
            The entry.

        Raises
        ------
        InputError
            If the index cannot be read or written.
        """
        self.change(lambda entries: [entry])

    def change(self, decide: Callable[[Mapping[str, Entry]], Sequence[Entry]]) -> None:
        """Change the library while no other process can change it, and increase the version by 1.

        Parameters
        ----------
        decide
            Gets the entries as they are now, writes the files of one entry, and returns all entries that are new or
            changed for the index. If it raises an exception, the index stays as it is.

        Raises
        ------
        InputError
            If the index cannot be read or written.
        """
        with locked(self.index_path):
            self.reread()
            entries = {**self.entries, **{entry.name: entry for entry in decide(self.entries)}}
            lines = ",\n  ".join(json.dumps(one.to_json(), ensure_ascii=False) for one in entries.values())
            text = f'{{"format": "{FORMAT}", "version": {self.version + 1}, "entries": [\n  {lines}]}}\n'
            with written_whole(self.index_path) as temporary:
                temporary.write_text(text, encoding="utf-8")
            self.reread()

    def reread(self) -> None:
        """Let the next access read the index again, because another process may have changed it."""
        self.__dict__.pop("_index", None)

    def check_writable(self) -> None:
        """Check that the library can be changed, before the work for a change is done.

        Raises
        ------
        InputError
            If the folder does not exist or cannot be written.
        """
        _ = self.entries
        with locked(self.index_path):
            pass

    @cached_property
    def _index(self) -> tuple[int, dict[str, Entry]]:
        if self.folder.is_dir() and not self.index_path.exists():
            return 0, {}
        try:
            index = read_object(self.index_path, FORMAT, ("format", "version", "entries"), LARGEST_INDEX)
            listed = [_read_entry(content, f"entries[{i}]") for i, content in enumerate(index.entries("entries"))]
            entries = {entry.name: entry for entry in listed}
            if len(entries) < len(listed):
                raise InputError("entries", "expected each name once")
            return index.integer("version"), entries
        except InputError as error:
            raise error.inside(str(self.index_path)) from error


def read_named(text: str) -> Iterator[Instance]:
    """Read the instances that ``library:NAME`` or ``library:PATTERN`` selects, one after the other.

    Parameters
    ----------
    text
        A name or a pattern after the prefix ``library:``.

    Yields
    ------
    Instance
        The instances in the order of the index.

    Raises
    ------
    InputError
        If the library has no such entry or a file is not valid.
    """
    library = Library()
    name = text.removeprefix("library:")
    for found in library.names(name) or [library.entry(name).name]:
        yield library.read(found)


def checked_name(name: str) -> str:
    """Return a name after checking that it can be used in file names and patterns.

    Parameters
    ----------
    name
        The name of an entry.

    Returns
    -------
    str
        The same name.

    Raises
    ------
    InputError
        If it has other characters than lower-case letters, digits and single hyphens between them, or is too long.
    """
    if not NAME.fullmatch(name):
        raise InputError("name", f"expected lower-case letters and digits, joined by hyphens, got {shown(name)}")
    if safe_file_name(name) != name:
        raise InputError(
            "name", f"expected a name that files can have, of at most {LONGEST} letters, got {shown(name)}"
        )
    return name


def _read_entry(content: object, label: str) -> Entry:
    row = Fields(content, label, ENTRY_FIELDS)
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
        bound_from=row.text("bound_from") if "bound_from" in row else None,
        claimed=claimed,
    )
