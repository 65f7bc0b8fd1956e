"""Methods of other people: functions in a file, in a module or registered by a package, called like our own.

Their code is imported in worker processes only. What this process needs to know of a function, its arguments, is asked
from a worker process and checked.
"""

import dataclasses
import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import operator
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from relocbench.instances.errors import InputError, reason
from relocbench.instances.evaluation import checked_home
from relocbench.instances.instance import Instance
from relocbench.instances.settings import UNIONS
from relocbench.instances.solution import Solution
from relocbench.runs.isolation.import_guard import CalledDuringImportError
from relocbench.runs.isolation.supervisor import Worker
from relocbench.runs.methods import RESERVED_ARGUMENTS, Method, Solve

# The entry-point group in which a package registers methods: name = "package.module:function".
ENTRY_POINTS = "relocbench.methods"


# The types of parameters that a selector can set, by the names under which they are sent between processes.
TYPES = {"bool": bool, "int": int, "float": float, "str": str}
# How a function of other people must be callable.
FORM = "f(instance, *, seed, time_limit) -> homes"


@dataclass(frozen=True)
class ExternalMethod(Method):
    """A function ``f(instance, *, seed, time_limit, <parameters>)`` that returns homes or a Solution.

    ``where`` is ``module:function``, or ``file.py:function`` with the absolute path of the file.

    Attributes
    ----------
    arguments
        The arguments of the function by their names.
    """

    arguments: Mapping[str, inspect.Parameter] = dataclasses.field(default_factory=dict)

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
            If the function cannot be imported.
        """
        try:
            return _returning_solution(load_function(self.where))
        except InputError as error:
            raise InputError(f"method {self.name}", error.problem) from error

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
        A function at the top level of a module, so that another process can import it.

    Returns
    -------
    Method
        The method. It has the name that the command would give it, so that both find the same baseline.

    Raises
    ------
    InputError
        If another process could not import the function, or it cannot be called as a method.
    """
    name, module = getattr(function, "__qualname__", "<unnamed>"), getattr(function, "__module__", "") or ""
    if "<" in name:
        problem = f"expected a function at the top level of a module, which another process can import; got {name}"
        raise InputError("method", problem)
    path = Path(inspect.getfile(function)).resolve()
    importable = module != "__main__" and importlib.util.find_spec(module) is not None
    where = f"{module if importable else path}:{name}"
    method = f"{_short(path, path.name)}:{name}"
    try:
        return ExternalMethod(method, "", "nothing", where, arguments=_arguments(_described(function)))
    except InputError as error:
        raise InputError(f"method {method}", error.problem) from error


def registered_method(name: str) -> Method | None:
    """Return the method that an installed package has registered under a name.

    Parameters
    ----------
    name
        The name of the entry point in the group ``relocbench.methods``.

    Returns
    -------
    Method or None
        The method; None if no package has registered one of that name.

    Raises
    ------
    InputError
        If the registered function cannot be imported or called as a method.
    """
    for point in importlib.metadata.entry_points(group=ENTRY_POINTS, name=name):
        return _asked(point.name, point.value, summary=point.value)
    return None


def _short(path: Path, otherwise: str) -> str:
    """Return a path relative to the current folder, if it lies below it."""
    folder = Path.cwd()
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else otherwise


def _asked(name: str, where: str, summary: str = "") -> Method:
    """Return a method after a worker process has imported its function and described the arguments."""
    try:
        described = _signature(where, _modification_time(where), tuple(sys.path))
        return ExternalMethod(name, summary, "nothing", where, arguments=_arguments(described))
    except InputError as error:
        raise InputError(f"method {name}", error.problem) from error


@functools.cache
def _signature(where: str, modification_time: int, path: tuple[str, ...]) -> list[Any]:
    """Ask a worker process for the arguments; a changed file or another module path makes the cache ask again."""
    # The code may delete its log, also together with the folder.
    with tempfile.TemporaryDirectory(prefix="relocbench-", ignore_cleanup_errors=True) as folder, Worker() as worker:
        return worker.signature(where, str(Path(folder, "import.log")))


def describe_function(where: str) -> list[list[Any]]:
    """Import a function and describe its arguments. Only worker processes do this.

    Parameters
    ----------
    where
        ``module:function`` or ``file.py:function``.

    Returns
    -------
    list
        For each argument its name, the name of its type and its default, as values that JSON can express.

    Raises
    ------
    InputError
        If the function cannot be imported or cannot be called as a method.
    """
    return _described(load_function(where))


def _described(function: Callable[..., Any]) -> list[list[Any]]:
    arguments = _annotated_arguments(function)
    return [[name, _type_name(spec.annotation), _plain(spec.default)] for name, spec in arguments.items()]


def _type_name(kind: Any) -> Any:
    """Return a type as a name, a Literal as a list of its values, or a union as a list of the others."""
    if get_origin(kind) in UNIONS:
        return {"any of": [_type_name(part) for part in get_args(kind)]}
    if get_origin(kind) is Literal:
        return {"one of": [str(value) for value in get_args(kind)]}
    return kind.__name__ if kind in TYPES.values() else "str"


def _plain(default: Any) -> Any:
    return default if default is None or type(default) in TYPES.values() else None


def _arguments(described: list[Any]) -> dict[str, inspect.Parameter]:
    """Return arguments from their description, which another process sent and which may contain anything."""
    try:
        return {
            name: inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=_plain(default), annotation=_type(kind)
            )
            for name, kind, default in described
        }
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
        raise InputError("method", "cannot be imported (the process sent an invalid description)") from error


def _type(name: Any) -> Any:
    if isinstance(name, str):
        return TYPES[name]
    [(kind, parts)] = name.items()
    if kind == "any of":
        return Union[tuple(_type(part) for part in parts)]  # noqa: UP007
    return Literal[tuple(map(str, parts))]


def _modification_time(where: str) -> int:
    place = Path(where.rpartition(":")[0])
    return place.stat().st_mtime_ns if place.suffix == ".py" and place.is_file() else 0


def load_function(where: str) -> Callable[..., Any]:
    """Import a function. Only worker processes do this.

    Parameters
    ----------
    where
        ``module:function`` or ``file.py:function``.

    Returns
    -------
    Callable
        The function.

    Raises
    ------
    InputError
        If there is no such function.
    """
    return _load(where, _modification_time(where))


@functools.cache
def _load(where: str, modification_time: int) -> Callable[..., Any]:
    """Import ``place:function``; the second argument makes the cache import a changed file again."""
    place, _, name = where.rpartition(":")
    try:
        module = _import_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except CalledDuringImportError:
        raise
    except (Exception, SystemExit) as error:  # importing other people's code can raise anything
        text = reason(error) if isinstance(error, Exception) else str(error)
        raise InputError("method", f"cannot be imported ({type(error).__name__}: {text})") from error
    try:
        function = operator.attrgetter(name)(module)
    except AttributeError as error:
        problem = f"expected a function {name} in {Path(place).name}, it has none of that name"
        raise InputError("method", problem) from error
    if not callable(function):
        raise InputError("method", f"expected a function, {name} is not callable")
    return function  # type: ignore[no-any-return]


def _import_file(path: Path) -> Any:
    # The hash of the path keeps apart two files of the same name in different folders.
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} is not a Python file")
    if str(path.parent) not in sys.path:
        # The file may import its neighbours. At the end of the list the folder cannot hide installed modules.
        sys.path.append(str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _returning_solution(function: Callable[..., Any]) -> Solve:
    """Return a function that returns a Solution with checked homes, also where ``function`` returns a list or array."""

    @functools.wraps(function)
    def solve(instance: Instance, **arguments: Any) -> Solution:
        answer = function(instance, **arguments)
        if isinstance(answer, Solution):
            return dataclasses.replace(answer, home=checked_home(instance, answer.home))
        return Solution(checked_home(instance, answer))

    return solve


def _annotated_arguments(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the named arguments of a function; one without a usable annotation gets the type of its default."""
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, SyntaxError):  # an annotation that cannot be evaluated
        signature = inspect.signature(function)
    try:
        signature.bind(None, seed=0, time_limit=1.0)
    except TypeError as error:
        raise InputError("method", f"expected {FORM}, got another signature ({error})") from error
    arguments = {}
    for name, spec in signature.parameters.items():
        if spec.kind in (spec.VAR_POSITIONAL, spec.VAR_KEYWORD):
            continue
        kind = type(spec.default)
        if spec.annotation is spec.empty or isinstance(spec.annotation, str):
            spec = spec.replace(annotation=kind if kind in (bool, int, float) else str)
        arguments[name] = spec
    return arguments
