"""A folder with the results of replays: one Parquet file each, and parts of those that are not finished."""

import contextlib
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from relocbench.instances.errors import InputError
from relocbench.instances.files.atomic_write import written_whole
from relocbench.runs.environment import information
from relocbench.runs.timeline.replay_rows import SCHEMA, EpochRow, read_rows, rows_table

FORMAT = "relocbench-replay/1"
METADATA_KEY = b"relocbench-replay"
# A part is written after this many homes in its rows, or seconds, whichever comes first.
HOMES_PER_PART = 1 << 20
SECONDS_PER_PART = 10.0


@dataclass(frozen=True, kw_only=True)
class ReplayKey:
    """What identifies a replay.

    Attributes
    ----------
    timeline
        Hash of the timeline, which covers the prices.
    policy, method, seed, time_limit
        As for :func:`runs.timeline.replay.replay`.
    stale
        ``false``, ``true``, or seconds.
    code
        The versions of the policy's and the method's code.
    """

    timeline: str
    policy: str
    method: str
    seed: int
    time_limit: float
    stale: str | float
    code: str

    @property
    def digest(self) -> str:
        """The name of the file. A replay with new code replaces an earlier one."""
        values = {name: value for name, value in asdict(self).items() if name != "code"}
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:32]


class ReplayStore:
    """A folder with replays.

    Parameters
    ----------
    folder
        The folder; it is created by the first write.

    Raises
    ------
    InputError
        If the path is a file.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if folder.exists() and not folder.is_dir():
            raise InputError(str(folder), "expected a folder for replays, got a file")

    def path(self, key: ReplayKey) -> Path:
        """Return the file of a replay.

        Parameters
        ----------
        key
            The replay.

        Returns
        -------
        Path
            The file, which exists if the replay is finished.
        """
        return self._folder / f"{key.digest}.parquet"

    def _parts(self, key: ReplayKey) -> Path:
        return self._folder / f"{key.digest}.parts"

    def finished_rows(self, key: ReplayKey) -> Iterator[EpochRow]:
        """Read the rows of a replay that exist already, finished or not.

        Parameters
        ----------
        key
            The replay.

        Yields
        ------
        EpochRow
            The rows from the first epoch on, without gaps. A part that cannot be read, or that other code has written,
            and everything after it counts as missing.
        """
        if self.path(key).exists() and _header(self.path(key)).get("code") == key.code:
            yield from read_rows(self.path(key))
            return
        expected = 0
        for part in self._usable_parts(key):
            try:
                rows = list(read_rows(part))
            except InputError:
                return
            if [row.epoch for row in rows] != list(range(expected, expected + len(rows))):
                return
            yield from rows
            expected += len(rows)

    def _usable_parts(self, key: ReplayKey) -> list[Path]:
        parts = sorted(self._parts(key).glob("*.parquet"))
        return [part for part in parts if _header(part).get("code") == key.code]

    @contextlib.contextmanager
    def writer(self, key: ReplayKey, first: int) -> Iterator[Callable[[EpochRow, bool], None]]:
        """Write rows in parts, so that a replay that is interrupted can continue.

        Parameters
        ----------
        key
            The replay.
        first
            The first epoch that is written.

        Yields
        ------
        function
            It takes a row, and whether the replay could continue after it.
        """
        for part in self._parts(key).glob("*.parquet"):
            if first == 0 or part.name >= _part_name(first) or _header(part).get("code") != key.code:
                part.unlink(missing_ok=True)
        rows: list[EpochRow] = []
        settled = homes = 0
        written_at = time.monotonic()

        def flush(count: int) -> None:
            nonlocal written_at, homes
            written_at, homes = time.monotonic(), 0
            if not count:
                return
            metadata = {METADATA_KEY: json.dumps({"format": FORMAT, **asdict(key)})}
            with written_whole(self._parts(key) / _part_name(rows[0].epoch)) as temporary:
                table = rows_table(rows[:count]).replace_schema_metadata(metadata)
                pq.write_table(table, temporary, compression="zstd")
            del rows[:count]

        def write(row: EpochRow, is_settled: bool) -> None:
            nonlocal settled, homes
            rows.append(row)
            homes += len(row.home)
            if is_settled:
                settled = len(rows)
            if settled and (homes >= HOMES_PER_PART or time.monotonic() - written_at >= SECONDS_PER_PART):
                flush(settled)
                settled = 0

        completed = False
        try:
            yield write
            completed = True
        finally:
            # At the end of the timeline, homes that are still pending do not matter any more.
            flush(len(rows) if completed else settled)

    def finish(self, key: ReplayKey, totals: Mapping[str, Any]) -> None:
        """Join the parts of a replay to its file.

        Parameters
        ----------
        key
            The replay.
        totals
            The numbers of the whole replay, which become metadata of the file.
        """
        parts = self._usable_parts(key)
        header = {"format": FORMAT, **asdict(key), "totals": dict(totals), "versions": information(java=False)}
        schema = SCHEMA.with_metadata({METADATA_KEY: json.dumps(header)})
        with (
            written_whole(self.path(key)) as temporary,
            pq.ParquetWriter(temporary, schema, compression="zstd") as file,
        ):
            for part in parts:
                file.write_table(pq.read_table(part, columns=SCHEMA.names).cast(schema))
        shutil.rmtree(self._parts(key), ignore_errors=True)


def _part_name(first: int) -> str:
    """Return the name of the part that begins with an epoch. The order of names is that of the epochs."""
    return f"{first:012d}.parquet"


def _header(path: Path) -> dict[str, Any]:
    """Return the metadata of a file; empty if it has none, or cannot be read."""
    try:
        raw = (pq.read_schema(path).metadata or {}).get(METADATA_KEY)
        found = json.loads(raw) if raw is not None else {}
    except (pa.ArrowException, OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
