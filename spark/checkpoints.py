"""Steps of a pipeline in a folder: each a dataset that is whole, with a note of how it was made, or not there."""

import contextlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relocbench.instances.errors import InputError, reason, shown
from relocbench.instances.files.atomic_write import written_whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NOTE = "made.json"


def write_step(frame: "DataFrame", folder: Path) -> None:
    """Write a dataset beside its place and put it there when it is whole."""
    beside = folder.with_name(f".{folder.name}.part")
    frame.write.mode("overwrite").parquet(os.path.abspath(beside))
    if folder.exists():
        shutil.rmtree(folder)
    beside.rename(folder)


def once(folder: Path, asked: Mapping[str, Any], make: Callable[[], Mapping[str, Any]]) -> tuple[dict[str, Any], bool]:
    """Return the note of a step that is there, or make it; and whether it was there.

    Parameters
    ----------
    folder
        Of the step.
    asked
        What the step is made from: a folder that was made from something else is refused.
    make
        Writes the datasets and returns what is to be noted besides.
    """
    asked = json.loads(json.dumps(asked))
    note = folder / NOTE
    if note.exists():
        found = read_note(folder)
        if (before := found.get("asked")) != asked:
            others = before if isinstance(before, dict) else {}
            names = sorted(name for name in {*asked, *others} if asked.get(name) != others.get(name))
            was = ", ".join(f"{name} {shown(others.get(name))}" for name in names)
            raise InputError(str(folder), f"was made with {was}: choose another folder, or remove this one")
        return found, True
    folder.mkdir(parents=True, exist_ok=True)
    made = {"asked": asked, **make()}
    with written_whole(note) as temporary:
        temporary.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    return made, False


@contextlib.contextmanager
def input_errors() -> Iterator[None]:
    """Let wrong input that a task has met be the same error here, without what Spark says around it."""
    from pyspark.errors import PythonException

    try:
        yield
    except PythonException as error:
        found = re.search(r"^relocbench\.instances\.errors\.InputError: (.*)$", str(error), re.MULTILINE)
        if found is None:
            raise
        raise InputError("", found[1]) from error


def read_note(folder: Path) -> dict[str, Any]:
    """Return the note of a step that is whole."""
    try:
        found = json.loads((folder / NOTE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(str(folder / NOTE), f"cannot be read ({reason(error)})") from error
    if not isinstance(found, dict):
        raise InputError(str(folder / NOTE), f"expected an object, got {shown(found)}")
    return found
