"""The file format of solutions: an assignment, its instance and method, and the claimed objective and bound.

:mod:`relocbench.instances.files.homes_file` reads it.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from relocbench.instances.errors import InputError
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.kernels.ragged import IntArray

FORMAT = "relocbench-solution/1"
KNOWN = ("format", "instance", "method", "seed", "status", "home", "objective", "bound")
STATUSES = ("optimal", "claimed", "feasible", "time_limit", "memory_limit", "error")


@dataclass(frozen=True, eq=False)
class StoredSolution:
    """The content of a solution file, or of another file with homes, which may state less.

    Attributes
    ----------
    instance
        Content hash of the instance.
    method, seed
        The method and its seed; an empty text if the file does not name the method.
    status
        One of ``optimal claimed feasible time_limit memory_limit error``.
    home
        One server per client.
    objective
        The claimed ``ΣD``; None if the file states none. Readers compute it again and do not rely on it.
    bound
        The claimed lower bound on ``ΣD``; None if the method proves none.
    """

    instance: str
    method: str
    seed: int
    status: str
    home: IntArray
    objective: float | None
    bound: float | None

    @property
    def origin(self) -> str:
        """The method and its seed in words; empty if the file does not name the method."""
        return f"{self.method}, seed {self.seed}" if self.method else ""


def check_solution_path(path: str | Path) -> None:
    """Check that a path can be used for a solution.

    Parameters
    ----------
    path
        The path.

    Raises
    ------
    InputError
        If the name does not end in ``.json``.
    """
    if Path(path).suffix != ".json":
        raise InputError(str(path), "expected a name ending in .json for a solution")


def write_solution(solution: StoredSolution, path: str | Path) -> None:
    """Write a solution as JSON.

    Parameters
    ----------
    solution
        The solution.
    path
        A file whose name ends in ``.json``.

    Raises
    ------
    InputError
        If the name has another ending or the file cannot be written.
    """
    check_solution_path(path)
    content = {
        "format": FORMAT,
        "instance": solution.instance,
        "method": solution.method,
        "seed": solution.seed,
        "status": solution.status,
        "home": np.asarray(solution.home).tolist(),
        "objective": solution.objective,
        "bound": solution.bound,
    }
    with written_whole(path) as temporary:
        temporary.write_text(json.dumps(content) + "\n", encoding="utf-8")
