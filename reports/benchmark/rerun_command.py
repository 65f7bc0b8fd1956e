"""The command that does a run again."""

import json
import shlex
from typing import Any

from relocbench.instances.errors import InputError
from relocbench.instances.generators.families import family
from relocbench.reports.benchmark.assessment import Judged
from relocbench.runs.isolation.supervisor import GIB


def command_of(run: Judged) -> str | None:
    """Return the command for one run; None where the row does not say where its instance is to be had."""
    row = run.row
    place = ["library:" + run.library] if run.library is not None else _family(json.loads(row.parameters), row.instance)
    if place is None:
        return None
    limits = ["--time-limit", f"{row.time_limit:g}", "--memory-limit", f"{row.memory_limit / GIB:g}"]
    return shlex.join(["relocbench", "bench", *place, "--method", row.selector, "--seed", str(row.seed), *limits])


def _family(parameters: dict[str, Any], name: str) -> list[str] | None:
    """Return the options that build an instance anew; None if its parameters do not name one cell of a family."""
    made = dict(parameters)
    chosen, seed = made.pop("family", None), made.pop("seed", None)
    try:
        cells = family(str(chosen)).cells(made)
    except InputError:
        return None
    if len(cells) != 1 or not isinstance(seed, int) or cells[0].name(seed) != name:
        return None
    needed = cells[0].varied | cells[0].extra
    settings = [part for key, value in needed.items() for part in ("--set", f"{key}={value}")]
    return ["--family", str(chosen), "--seeds", str(seed), *settings]
