"""Methods of other people: functions in a file, in a module or registered by a package, called like our own.

Their code is imported in worker processes only. What this process needs to know of a function, its arguments, what it
proves and the version of its code, is asked from a worker process and checked. A function that exists only in this
process, such as one in a cell of a notebook, is sent to the worker process by value.
"""

import dataclasses
import importlib.metadata
import inspect
import operator
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relocbench.instances.errors import InputError
from relocbench.runs.external_function import (
    Description,
    checked_description,
    code_at,
    description_of,
    is_importable,
    load_function,
    modification_times,
    pickled_function,
    returning_solution,
    unpickled_function,
)
from relocbench.runs.isolation.supervisor import Worker
from relocbench.runs.method_code import BY_VALUE, function_code
from relocbench.runs.methods import RESERVED_ARGUMENTS, Method, Proves, Solve

# The entry-point groups in which a package registers methods, name = "package.module:function", and what those of each
# group prove. None: what the function itself says.
ENTRY_POINTS: dict[str, Proves | None] = {"relocbench.methods": None, "relocbench.exact_methods": "optimality"}


@dataclass(frozen=True)
class ExternalMethod(Method):
    """A function ``f(instance, *, seed, time_limit, <parameters>)`` that returns homes or a Solution.

    ``where`` is ``module:function``, or ``file.py:function`` with the absolute path of the file, or ``by value``.

    Attributes
    ----------
    arguments
        The arguments of the function by their names.
    code
        The version of the function, from :mod:`runs.method_code`.
    pickled
        The function itself, if it is sent by value; otherwise empty.
    """

    arguments: Mapping[str, inspect.Parameter] = dataclasses.field(default_factory=dict)
    code: str = ""
    pickled: bytes = b""

    @property
    def is_external(self) -> bool:
        """Whether the method belongs to other people's code."""
        return True

    def load(self) -> Solve:
        """Import the function. Only worker processes do this.

        Returns
        -------
        Solve
            A function that returns a Solution, also where the original returns homes.

        Raises
        ------
        InputError
            If the function cannot be imported, or if it has changed since the method was resolved.
        """
        try:
            if self.pickled:
                return returning_solution(unpickled_function(self.pickled))
            function = load_function(self.where)
            if (found := code_at(self.where)) != self.code:
                raise InputError("method", f"has changed since the command began ({found}, it was {self.code})")
            return returning_solution(function)
        except InputError as error:
            raise InputError(f"method {self.name}", error.problem) from error

    def version(self) -> str:
        """Return the version of the function.

        Returns
        -------
        str
            As in :mod:`runs.method_code`.
        """
        return self.code

    def takes(self, argument: str) -> bool:
        """Return whether the function has an argument, without importing it.

        Parameters
        ----------
        argument
            The name of the argument.

        Returns
        -------
        bool
            Whether the function has it.
        """
        return argument in self.arguments

    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Return the parameters that a selector may set, without importing the function.

        Returns
        -------
        Mapping
            For each name the parameter with its type and its default.
        """
        return {name: spec for name, spec in self.arguments.items() if name not in RESERVED_ARGUMENTS}


def method_at(place: str, function: str) -> Method:
    """Return the method that a place and the name of a function name.

    Parameters
    ----------
    place
        The path of a Python file, or the full name of a module.
    function
        The name of the function in it.

    Returns
    -------
    Method
        The method, which can be imported and called.

    Raises
    ------
    InputError
        If there is no such function, or it cannot be called as a method.
    """
    if not place.endswith(".py"):
        if (folder := str(Path.cwd())) not in sys.path:
            sys.path.append(folder)  # a package under development need not be installed
        return _asked(f"{place}:{function}", f"{place}:{function}")
    path = Path(place).expanduser().resolve()
    if not path.is_file():
        raise InputError(f"method {place}:{function}", "expected a Python file, the file does not exist")
    return _asked(f"{_short(path, place)}:{function}", f"{path}:{function}")


def method_of_function(function: Callable[..., Any]) -> Method:
    """Return the method that a function is.

    Parameters
    ----------
    function
        The function. One that another process can import is imported there. All others, such as a function in a
        notebook or in the script that runs now, are sent by value, together with what they use.

    Returns
    -------
    Method
        The method. It has the name that the command would give it, so that both find the same baseline.

    Raises
    ------
    InputError
        If the function cannot be called as a method, or uses something that cannot be sent to another process.
    """
    definition = function if hasattr(function, "__qualname__") else type(function)  # an object with __call__
    qualified, module = definition.__qualname__, getattr(definition, "__module__", "") or ""
    short = qualified.replace("<locals>.", "").replace("<lambda>", "lambda")
    path = _source_file(definition)
    name = f"{_short(path, path.name) if path is not None else 'notebook'}:{short}"
    try:
        about = description_of(function)
        if path is not None and module != "__main__" and is_importable(module) and _is_at(function, module, qualified):
            where, pickled = f"{module}:{qualified}", b""
            code = code_at(where)
        else:
            where, pickled = BY_VALUE, pickled_function(function)
            code = function_code(function, name)
        return ExternalMethod(name, "", about.proves, where, arguments=about.arguments, code=code, pickled=pickled)
    except InputError as error:
        raise InputError(f"method {name}", error.problem) from error


def registered_method(name: str) -> Method | None:
    """Return the method that an installed package has registered under a name.

    Parameters
    ----------
    name
        The name of the entry point, in one of the groups of ``ENTRY_POINTS``.

    Returns
    -------
    Method or None
        The method; None if no package has registered one of that name.

    Raises
    ------
    InputError
        If the registered function cannot be imported or called as a method.
    """
    for group, proves in ENTRY_POINTS.items():
        for point in importlib.metadata.entry_points(group=group, name=name):
            return _asked(point.name, point.value, summary=point.value, proves=proves)
    return None


def registered_names() -> list[str]:
    """Return the names of all methods that installed packages have registered.

    Returns
    -------
    list of str
        The names, sorted.
    """
    return sorted({point.name for group in ENTRY_POINTS for point in importlib.metadata.entry_points(group=group)})


def _short(path: Path, otherwise: str) -> str:
    """Return a path relative to the current folder, if it lies below it."""
    folder = Path.cwd()
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else otherwise


def _is_at(function: Callable[..., Any], module: str, name: str) -> bool:
    """Return whether a module has a function under a name, and not what it was before a decorator wrapped it."""
    try:
        return operator.attrgetter(name)(sys.modules[module]) is function
    except (AttributeError, KeyError):
        return False


def _source_file(definition: Callable[..., Any]) -> Path | None:
    """Return the file of a function or class; None for one that was typed into a notebook or a console."""
    try:
        path = Path(inspect.getfile(inspect.unwrap(definition))).resolve()
    except (TypeError, OSError):  # without a file, for example a class of a notebook
        return None
    # A notebook's cell has a name such as a file's. Only its module tells that there is none.
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    typed = getattr(definition, "__module__", "") == "__main__" and (main is None or Path(main).resolve() != path)
    return None if typed or not path.is_file() else path


# What worker processes have told about functions, by place and module path.
_told: dict[tuple[str, tuple[str, ...]], Description] = {}


def _asked(name: str, where: str, summary: str = "", proves: Proves | None = None) -> Method:
    """Return a method after a worker process has imported its function and described it."""
    try:
        key = (where, tuple(sys.path))
        about = _told.get(key)
        if about is None or about.files != modification_times(about.files):
            # The code may delete its log, also together with the folder.
            folder = tempfile.TemporaryDirectory(prefix="relocbench-", ignore_cleanup_errors=True)
            with folder as temporary, Worker() as worker:
                about = checked_description(worker.describe(where, str(Path(temporary, "import.log"))))
            _told[key] = about
        said = proves or about.proves
        return ExternalMethod(name, summary, said, where, arguments=about.arguments, code=about.code)
    except InputError as error:
        raise InputError(f"method {name}", error.problem) from error
