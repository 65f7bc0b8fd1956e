"""Schedules in files: homes for every epoch of a timeline."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from relocbench.formulations.certificates.certificate import checked_made
from relocbench.formulations.certificates.timeline_certificate import FORMAT as CERTIFICATE_FORMAT
from relocbench.formulations.certificates.timeline_certificate import KNOWN as CERTIFICATE_FIELDS
from relocbench.instances.errors import InputError, shown
from relocbench.instances.evaluation import checked_home
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.files.json_fields import read_object
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.timeline.timeline import Timeline
from relocbench.runs.timeline.replay_rows import read_rows

FORMAT = "relocbench-schedule/1"
KNOWN = ("format", "timeline", "homes", "made")


def check_schedule_path(path: str | Path) -> None:
    """Check that a file name is one for a schedule.

    Parameters
    ----------
    path
        The file name.

    Raises
    ------
    InputError
        If the name does not end in ``.json``.
    """
    if not Path(path).name.endswith(".json"):
        raise InputError(str(path), "expected a name ending in .json for a schedule")


def write_schedule(
    timeline: Timeline,
    homes: Iterable[npt.ArrayLike],
    path: str | Path,
    made: Mapping[str, str | int | float] | None = None,
) -> None:
    """Write a schedule as JSON, with one line per epoch.

    Parameters
    ----------
    timeline
        The timeline.
    homes
        For each epoch one server for each client that is present.
    path
        The file (``.json``).
    made
        How the schedule was made.

    Raises
    ------
    InputError
        If the name has another ending.
    """
    check_schedule_path(path)
    rows = ",\n  ".join(json.dumps(np.asarray(home).tolist()) for home in homes)
    head = f'"format": "{FORMAT}",\n "timeline": "{timeline.hash}",\n "made": {json.dumps(dict(made or {}))}'
    with written_whole(path) as temporary:
        temporary.write_text(f'{{{head},\n "homes": [\n  {rows}]}}\n', encoding="utf-8")


def read_schedule(path: str | Path, timeline: Timeline) -> tuple[IntArray, ...]:
    """Read the homes of every epoch.

    Parameters
    ----------
    path
        A schedule or a certificate of the timeline (``.json``, ``.json.gz``), or the result of a replay (``.parquet``).
    timeline
        The timeline.

    Returns
    -------
    tuple of array
        The homes of each epoch.

    Raises
    ------
    InputError
        If the file cannot be read, or has no schedule of this timeline.
    """
    path = Path(path)
    try:
        if path.suffix == ".parquet":
            return checked_schedule(timeline, [row.home for row in read_rows(path)])
        fields = read_object(path, (FORMAT, CERTIFICATE_FORMAT), {*KNOWN, *CERTIFICATE_FIELDS})
        if fields.text("timeline") != timeline.hash:
            wanted = f"expected the hash {timeline.hash[:16]}… of the timeline given"
            raise InputError("timeline", f"{wanted}, got {shown(fields.text('timeline'), 18)}")
        if "made" in fields:
            checked_made(fields.value("made"))
        return checked_schedule(timeline, fields.entries("homes"))
    except InputError as error:
        raise error if error.field.startswith(str(path)) else error.inside(str(path)) from error


def checked_schedule(timeline: Timeline, homes: Iterable[npt.ArrayLike]) -> tuple[IntArray, ...]:
    """Check the homes of every epoch.

    Parameters
    ----------
    timeline
        The timeline.
    homes
        For each epoch one server for each client that is present.

    Returns
    -------
    tuple of array
        The homes.

    Raises
    ------
    InputError
        If there are not as many homes as epochs, or some are not an assignment of their epoch.
    """
    given = list(homes)
    if len(given) != timeline.n_epochs:
        raise InputError("homes", f"expected homes for {timeline.n_epochs} epochs, got {len(given)}")
    checked = []
    for epoch, home in zip(timeline.epochs(), given, strict=True):
        try:
            checked.append(checked_home(epoch.instance, home))
        except InputError as error:
            raise error.inside(f"homes[{epoch.number}]") from error
    return tuple(checked)
