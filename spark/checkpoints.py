"""Steps of a pipeline, each in a folder of its own: a complete dataset and a record of its inputs, or nothing."""

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relocbench.instances.errors import InputError, reason, shown
from relocbench.instances.files.atomic_write import folder_written_whole, written_whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Name of the record. It is written last, so that a folder with a record holds a complete step.
RECORD_FILE = "made.json"
# Key of the record under which the inputs of the step are stored.
INPUTS_KEY = "asked"


def write_dataset(frame: "DataFrame", folder: Path) -> None:
    """Write a Parquet dataset to a temporary folder and rename that folder when it is complete.

    Parameters
    ----------
    frame
        The rows to write.
    folder
        The final folder. An existing one is replaced.
    """
    with folder_written_whole(folder) as temporary:
        frame.write.parquet(str(temporary))


def run_once(
    folder: Path,
    inputs: Mapping[str, Any],
    compute: Callable[[], Mapping[str, Any]],
    implied: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Any], bool]:
    """Run a step unless its folder holds the result already.

    Parameters
    ----------
    folder
        The folder of the step.
    inputs
        Everything that determines the result. It must be serialisable as JSON.
    compute
        Writes the datasets of the step and returns further entries for its record.
    implied
        The values of inputs that the records of earlier versions lack.

    Returns
    -------
    record
        The record of the step: its inputs and the entries that ``compute`` returned.
    existed
        Whether the step had been completed by an earlier call.

    Raises
    ------
    InputError
        If the folder holds a result of other inputs.
    """
    inputs = json.loads(json.dumps(inputs))
    path = folder / RECORD_FILE
    if path.exists():
        record = read_record(folder)
        earlier = record.get(INPUTS_KEY)
        missing = {name: value for name, value in (implied or {}).items() if name in inputs}
        others = missing | earlier if isinstance(earlier, dict) else {}
        if others != inputs:
            names = sorted(name for name in {*inputs, *others} if inputs.get(name) != others.get(name))
            differences = ", ".join(f"{name} {shown(others.get(name))}" for name in names)
            raise InputError(str(folder), f"was written with {differences}: choose another folder, or remove this one")
        return record, True
    folder.mkdir(parents=True, exist_ok=True)
    record = {INPUTS_KEY: inputs, **compute()}
    with written_whole(path) as temporary:
        temporary.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return record, False


def read_record(folder: Path) -> dict[str, Any]:
    """Read the record of a completed step.

    Parameters
    ----------
    folder
        The folder of the step.

    Returns
    -------
    dict
        The record that :func:`run_once` wrote.

    Raises
    ------
    InputError
        If there is no record, or the file is not a JSON object.
    """
    path = folder / RECORD_FILE
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(str(path), f"cannot be read ({reason(error)})") from error
    if not isinstance(record, dict):
        raise InputError(str(path), f"expected an object, got {shown(record)}")
    return record


@contextlib.contextmanager
def unwrap_input_errors() -> Iterator[None]:
    """Raise an :class:`InputError` of a Spark task as an :class:`InputError` of this process.

    Spark reports an exception of a task as text, between lines of its own. Only the message of the task is kept.

    Yields
    ------
    None

    Raises
    ------
    InputError
        If a task raised one.
    """
    from pyspark.errors import PythonException

    try:
        yield
    except PythonException as error:
        match = re.search(rf"^{re.escape(InputError.__module__)}\.InputError: (.*)$", str(error), re.MULTILINE)
        if match is None:
            raise
        raise InputError("", match[1]) from error
