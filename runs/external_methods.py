"""Methods of other people: functions in a file, in a module or registered by a package, called like our own."""

import dataclasses
import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import operator
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relocbench.instances.errors import InputError, reason
from relocbench.instances.evaluation import checked_home
from relocbench.instances.instance import Instance
from relocbench.instances.solution import Solution
from relocbench.runs.methods import Method, Solve

# The entry-point group in which a package registers methods: name = "package.module:function".
ENTRY_POINTS = "relocbench.methods"


@dataclass(frozen=True)
class ExternalMethod(Method):
    """A function ``f(instance, *, seed, time_limit, <parameters>)`` that returns homes or a Solution.

    ``where`` is ``module:function``, or ``file.py:function`` with the absolute path of the file.
    """

    @property
    def is_external(self) -> bool:
        """Whether the method belongs to other people's code."""
        return True

    def load(self) -> Solve:
        """Import the function.

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
            return _load(self.where, _modification_time(self.where))
        except InputError as error:
            raise InputError(f"method {self.name}", error.problem) from error


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
        return _checked(ExternalMethod(f"{place}:{function}", "", "nothing", f"{place}:{function}"))
    path = Path(place).expanduser().resolve()
    if not path.is_file():
        raise InputError(f"method {place}:{function}", "expected a Python file, the file does not exist")
    return _checked(ExternalMethod(f"{_short(path, place)}:{function}", "", "nothing", f"{path}:{function}"))


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
    return _checked(ExternalMethod(f"{_short(path, path.name)}:{name}", "", "nothing", where))


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
        return _checked(ExternalMethod(point.name, point.value, "nothing", point.value))
    return None


def _short(path: Path, otherwise: str) -> str:
    """Return a path relative to the current folder, if it lies below it."""
    folder = Path.cwd()
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else otherwise


def _checked(method: Method) -> Method:
    """Return the method if it can be imported and called."""
    try:
        inspect.signature(method.load()).bind(None, seed=0, time_limit=1.0)
    except TypeError as error:
        form = "f(instance, *, seed, time_limit) -> homes"
        raise InputError(f"method {method.name}", f"expected {form}, got another signature ({error})") from error
    return method


def _modification_time(where: str) -> int:
    place = Path(where.rpartition(":")[0])
    return place.stat().st_mtime_ns if place.suffix == ".py" and place.is_file() else 0


@functools.cache
def _load(where: str, modification_time: int) -> Solve:
    """Import ``place:function``; the second argument makes the cache import a changed file again."""
    place, _, name = where.rpartition(":")
    try:
        module = _import_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
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
    return _returning_solution(function)


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

    vars(solve)["__signature__"] = _annotated_signature(function)
    return solve


def _annotated_signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function; a parameter without a usable annotation gets the type of its default."""
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, SyntaxError):  # an annotation that cannot be evaluated
        signature = inspect.signature(function)
    parameters = []
    for parameter in signature.parameters.values():
        kind = type(parameter.default)
        if parameter.annotation is parameter.empty or isinstance(parameter.annotation, str):
            parameter = parameter.replace(annotation=kind if kind in (bool, int, float) else str)
        parameters.append(parameter)
    return signature.replace(parameters=parameters)
