"""The command that repeats a run of a benchmark."""

import json
import shlex
from typing import Any

from relocbench.instances.errors import InputError
from relocbench.instances.generators.families import family
from relocbench.reports.benchmark.assessment import AssessedRun
from relocbench.runs.isolation.supervisor import GIB


def command_of(run: AssessedRun) -> str | None:
    """Return the command that repeats a run.

    Parameters
    ----------
    run
        The run.

    Returns
    -------
    str or None
        The command; None if its instance is neither in the library nor of a family.
    """
    row = run.row
    source = (
        ["library:" + run.library] if run.library is not None else _family(json.loads(row.parameters), row.instance)
    )
    if source is None:
        return None
    limits = ["--time-limit", f"{row.time_limit:g}", "--memory-limit", f"{row.memory_limit / GIB:g}"]
    return shlex.join(["relocbench", "bench", *source, "--method", row.selector, "--seed", str(row.seed), *limits])


def _family(parameters: dict[str, Any], name: str) -> list[str] | None:
    """Return the options that generate an instance; None if its parameters do not identify one cell of a family."""
    remaining = dict(parameters)
    chosen, seed = remaining.pop("family", None), remaining.pop("seed", None)
    try:
        cells = family(str(chosen)).cells(remaining)
    except InputError:
        return None
    if len(cells) != 1 or not isinstance(seed, int) or cells[0].name(seed) != name:
        return None
    needed = cells[0].varied | cells[0].extra
    settings = [part for key, value in needed.items() for part in ("--set", f"{key}={value}")]
    return ["--family", str(chosen), "--seeds", str(seed), *settings]
