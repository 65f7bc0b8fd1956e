"""Steps of a pipeline, each in a folder of its own: a complete dataset and a record of its inputs, or nothing."""

import contextlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from relocbench.instances.errors import InputError, reason, shown
from relocbench.spark.locations import (
    Location,
    for_reading,
    for_spark,
    make_folders,
    remove_if_empty,
    write_text,
    written_folder,
)
from relocbench.spark.spark_errors import message_of_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Name of the record. It is written last, so that a folder with a record holds a complete step.
RECORD_FILE = "made.json"
# Key of the record under which the inputs of the step are stored.
INPUTS_KEY = "asked"


def write_dataset(frame: "DataFrame", folder: Location) -> None:
    """Write a Parquet dataset to a temporary folder and rename that folder when it is complete.

    Parameters
    ----------
    frame
        The rows to write.
    folder
        The final folder. An existing one is replaced.
    """
    with written_folder(folder) as temporary:
        frame.write.parquet(for_spark(temporary))


def read_dataset(spark: "SparkSession", folder: Location) -> "DataFrame":
    """Open a Parquet dataset.

    Parameters
    ----------
    spark
        The session.
    folder
        The folder or file of the dataset.

    Returns
    -------
    pyspark.sql.DataFrame
        The dataset.

    Raises
    ------
    InputError
        If there is no such dataset.
    """
    from pyspark.errors import AnalysisException

    try:
        return spark.read.parquet(for_reading(for_spark(folder)))
    except AnalysisException as error:
        raise InputError(str(folder), "expected a Parquet dataset, found none") from error


def run_once(
    folder: Location,
    inputs: Mapping[str, Any],
    compute: Callable[[], Mapping[str, Any]],
    implied: Mapping[str, Any] | None = None,
    earlier_form: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Any], bool]:
    """Run a step unless its folder holds the result already.

    Parameters
    ----------
    folder
        The folder of the step.
    inputs
        Everything that determines the result. It must be serialisable as JSON. Paths do not belong to it: a folder that
        has been moved holds the same result.
    compute
        Writes the datasets of the step and returns further entries for its record.
    implied
        The values of inputs that the records of earlier versions lack.
    earlier_form
        The same inputs in the form that the records of earlier versions have.

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
    inputs, earlier_form = json.loads(json.dumps([inputs, earlier_form]))
    path = folder / RECORD_FILE
    if path.exists():
        record = read_record(folder)
        earlier = record.get(INPUTS_KEY)
        missing = {name: value for name, value in (implied or {}).items() if name in inputs}
        others = missing | earlier if isinstance(earlier, dict) else {}
        if others not in (inputs, earlier_form):
            raise InputError(
                str(folder),
                f"was written with {_differences(others, inputs)}: choose another folder, or remove this one",
            )
        return record, True
    make_folders(folder)
    try:
        record = {INPUTS_KEY: inputs, **compute()}
        write_text(path, json.dumps(record, indent=1) + "\n")
    except BaseException:
        remove_if_empty(folder)
        raise
    return record, False


def _differences(others: Mapping[str, Any], inputs: Mapping[str, Any]) -> str:
    """Return the names of the inputs that differ, with the values that the folder was written with."""
    earlier, now = _flat(others), _flat(inputs)
    names = sorted(name for name in {*earlier, *now} if earlier.get(name) != now.get(name))
    return ", ".join(f"{name} {shown(earlier.get(name))}" for name in names)


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested values under names such as ``parameters.sigma``."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def read_record(folder: Location, step: str = "", entries: Collection[str] = ()) -> dict[str, Any]:
    """Read the record of a completed step.

    Parameters
    ----------
    folder
        The folder of the step.
    step
        The command that must have written the folder, for error messages.
    entries
        Names that the record of that command has. A folder of another step lacks one.

    Returns
    -------
    dict
        The record that :func:`run_once` wrote.

    Raises
    ------
    InputError
        If there is no record, the file is not a JSON object, or it lacks one of ``entries``.
    """
    path = folder / RECORD_FILE
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        advice = f": expected a folder that `relocbench {step}` wrote" if step else ""
        raise InputError(str(path), f"cannot be read ({reason(error)}){advice}") from error
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(str(path), f"cannot be read ({reason(error)})") from error
    if not isinstance(record, dict):
        raise InputError(str(path), f"expected an object, got {shown(record)}")
    if lacking := [name for name in entries if name not in record]:
        raise InputError(
            str(folder), f"expected a folder that `relocbench {step}` wrote; {RECORD_FILE} has no entry {lacking[0]!r}"
        )
    return record


@contextlib.contextmanager
def unwrap_input_errors() -> Iterator[None]:
    """Raise an :class:`InputError` of a Spark task, or an error of reading or writing, as one of this process.

    Spark reports an exception of a task as text, between lines of its own. Only the message of the task is kept.

    Yields
    ------
    None

    Raises
    ------
    InputError
        If a task raised one, or a file could not be read or written.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        message = message_of_spark(str(error))
        if message is None:
            raise
        raise InputError("", message) from error
