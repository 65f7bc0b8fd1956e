"""The file format of solutions: an assignment, its instance and method, and the claimed objective and bound."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from relocbench.instances.errors import InputError, shown
from relocbench.instances.evaluation import checked_home
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.files.json_fields import read_object
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray

FORMAT = "relocbench-solution/1"
KNOWN = ("format", "instance", "method", "seed", "status", "home", "objective", "bound")
# The largest size of a file in bytes: for all fields except the homes, and for the home of each client.
LARGEST_START = 1 << 20
LARGEST_HOME = 64
STATUSES = ("optimal", "claimed", "feasible", "time_limit", "memory_limit", "error")


@dataclass(frozen=True, eq=False)
class StoredSolution:
    """The content of a solution file.

    Attributes
    ----------
    instance
        Content hash of the instance.
    method, seed
        The method and its seed.
    status
        One of ``optimal claimed feasible time_limit memory_limit error``.
    home
        One server per client.
    objective
        The claimed ``ΣD``. Readers compute it again and do not rely on it.
    bound
        The claimed lower bound on ``ΣD``; None if the method proves none.
    """

    instance: str
    method: str
    seed: int
    status: str
    home: IntArray
    objective: float
    bound: float | None


def read_solution(path: str | Path, instance: Instance) -> StoredSolution:
    """Read a solution of an instance.

    Parameters
    ----------
    path
        The file.
    instance
        The instance that the solution must belong to.

    Returns
    -------
    StoredSolution
        The solution.

    Raises
    ------
    InputError
        If the file cannot be read, is not valid, or belongs to another instance.
    """
    path = Path(path)
    try:
        fields = read_object(path, FORMAT, KNOWN, LARGEST_START + LARGEST_HOME * instance.n_clients)
        made_for = fields.text("instance")
        if made_for != instance.hash:
            raise InputError(
                "instance", f"expected the hash {instance.hash[:16]}… of the instance given, got {shown(made_for, 18)}"
            )
        status = fields.text("status")
        if status not in STATUSES:
            raise InputError("status", f"expected one of {', '.join(STATUSES)}, got {shown(status)}")
        return StoredSolution(
            instance=made_for,
            method=fields.text("method"),
            seed=fields.integer("seed"),
            status=status,
            home=checked_home(instance, fields.integers("home")),
            objective=fields.number("objective"),
            bound=fields.number("bound") if "bound" in fields else None,
        )
    except InputError as error:
        raise error.inside(str(path)) from error


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
