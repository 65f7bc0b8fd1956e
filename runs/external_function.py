"""A function of other people: imported or unpickled in a worker process, described there, and checked here."""

import dataclasses
import functools
import hashlib
import importlib
import importlib.machinery
import importlib.util
import inspect
import operator
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, Literal, Union, cast, get_args, get_origin

import numpy as np
import numpy.typing as npt

from relocbench.instances.errors import InputError, did_you_mean, reason, shown
from relocbench.instances.evaluation import checked_home
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.imported_files import imported_files
from relocbench.instances.settings import UNIONS
from relocbench.instances.solution import Solution
from relocbench.runs.isolation.import_guard import CalledDuringImportError
from relocbench.runs.method_code import file_code
from relocbench.runs.methods import PROVES, Proves, Solve

# The types of parameters that a selector can set, by the names under which they are sent between processes.
TYPES = {"bool": bool, "int": int, "float": float, "str": str}
# How a function of other people must be callable.
FORM = "f(instance, *, seed, time_limit) -> homes"


@dataclass(frozen=True)
class Description:
    """What is known of a function without calling it.

    Attributes
    ----------
    arguments
        The arguments by their names.
    proves
        What it says that it proves.
    code
        The version of its code.
    files
        The source files on which the rest depends, with their modification times.
    """

    arguments: dict[str, inspect.Parameter]
    proves: Proves
    code: str = ""
    files: Mapping[str, int] = dataclasses.field(default_factory=dict)


def pickled_function(function: Callable[..., Any]) -> bytes:
    """Return a function together with everything that it uses, so that another process can call it.

    Parameters
    ----------
    function
        The function.

    Returns
    -------
    bytes
        What :func:`unpickled_function` takes. Installed modules that the function uses are named, not included.

    Raises
    ------
    InputError
        If the function uses something that cannot be sent, such as an open file.
    """
    import cloudpickle

    module = sys.modules.get(getattr(function, "__module__", "") or "")
    # cloudpickle only names what an imported module contains. That does not help if no other process can import it.
    included = module is not None and module.__name__ != "__main__" and not is_importable(module.__name__)
    try:
        if included:
            cloudpickle.register_pickle_by_value(module)
        pickled: bytes = cloudpickle.dumps(function)
    except Exception as error:  # pickling calls code of everything that the function uses
        problem = f"uses something that cannot be sent to another process ({type(error).__name__}: {reason(error)})"
        raise InputError("method", problem) from error
    finally:
        if included:
            cloudpickle.unregister_pickle_by_value(module)
    return pickled


def is_importable(module: str) -> bool:
    """Return whether another process can import a module.

    Parameters
    ----------
    module
        Its full name.

    Returns
    -------
    bool
        Whether it is on the path of modules.
    """
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


@functools.lru_cache(maxsize=8)
def unpickled_function(pickled: bytes) -> Callable[..., Any]:
    """Return a function that was sent by value. Only worker processes do this.

    Parameters
    ----------
    pickled
        From :func:`pickled_function`.

    Returns
    -------
    Callable
        The function.

    Raises
    ------
    InputError
        If a module that the function uses cannot be imported.
    """
    import cloudpickle

    try:
        function: Callable[..., Any] = cloudpickle.loads(pickled)
    except Exception as error:  # it imports the modules that the function uses
        raise InputError("method", f"cannot be imported ({type(error).__name__}: {reason(error)})") from error
    return function


def modification_times(files: Iterable[str]) -> dict[str, int]:
    """Return when files were last changed.

    Parameters
    ----------
    files
        Paths.

    Returns
    -------
    dict
        Nanoseconds by path, without files that do not exist.
    """
    return {file: Path(file).stat().st_mtime_ns for file in files if Path(file).is_file()}


def describe_function(where: str) -> dict[str, Any]:
    """Import a function and describe it. Only worker processes do this.

    Parameters
    ----------
    where
        ``module:function`` or ``file.py:function``.

    Returns
    -------
    dict
        ``arguments`` (for each its name, the name of its type and its default), ``proves``, ``code`` and ``files``, as
        values that JSON can express.

    Raises
    ------
    InputError
        If the function cannot be imported or cannot be called as a method.
    """
    function = load_function(where)
    file = _defining_file(where.rpartition(":")[0])
    files = () if file is None else map(str, imported_files(file))
    return _description(function) | {"code": code_at(where), "files": modification_times(files)}


def code_at(where: str) -> str:
    """Return the version of a function whose module has been imported.

    Parameters
    ----------
    where
        ``module:function`` or ``file.py:function``.

    Returns
    -------
    str
        As in :mod:`runs.method_code`.
    """
    place = where.rpartition(":")[0]
    file = _defining_file(place)
    return place if file is None else file_code(file, "" if place.endswith(".py") else place)


def _defining_file(place: str) -> Path | None:
    """Return the file that a place names; None for a module without a file."""
    origin = place if place.endswith(".py") else getattr(sys.modules.get(place), "__file__", None)
    return None if origin is None else Path(origin)


def description_of(function: Callable[..., Any]) -> Description:
    """Describe a function of this process.

    Parameters
    ----------
    function
        The function.

    Returns
    -------
    Description
        Its arguments and what it proves, without the version of its code.

    Raises
    ------
    InputError
        If it cannot be called as a method.
    """
    return checked_description(_description(function) | {"code": "", "files": {}})


def _description(function: Callable[..., Any]) -> dict[str, Any]:
    arguments = _annotated_arguments(function)
    return {
        "arguments": [[name, _type_name(spec.annotation), _plain(spec.default)] for name, spec in arguments.items()],
        "proves": _proves(function),
    }


def _proves(function: Callable[..., Any]) -> Proves:
    """Return what a function says that it proves: its attribute ``proves``, or a bound if it returns a Solution."""
    said = getattr(function, "proves", None)
    if said is not None:
        if said not in PROVES:
            raise InputError("method", f"proves: expected one of {', '.join(PROVES)}, got {shown(said)}")
        return cast(Proves, said)
    returned = getattr(function, "__annotations__", {}).get("return")
    name = returned if isinstance(returned, str) else getattr(returned, "__name__", "")
    return "bound" if name.rpartition(".")[2] == Solution.__name__ else "nothing"


def _type_name(kind: Any) -> Any:
    """Return a type as a name, a Literal as a list of its values, or a union as a list of the others."""
    if get_origin(kind) in UNIONS:
        return {"any of": [_type_name(part) for part in get_args(kind)]}
    if get_origin(kind) is Literal:
        return {"one of": [str(value) for value in get_args(kind)]}
    return kind.__name__ if kind in TYPES.values() else "str"


def _plain(default: Any) -> Any:
    return default if default is None or type(default) in TYPES.values() else None


def checked_description(described: dict[str, Any]) -> Description:
    """Return what is known of a function from its description, which another process sent and may contain anything.

    Parameters
    ----------
    described
        What :func:`describe_function` returns in the other process.

    Returns
    -------
    Description
        The same, with every field checked.

    Raises
    ------
    InputError
        If it is not such a description.
    """
    try:
        return Description(
            arguments={
                name: inspect.Parameter(
                    name, inspect.Parameter.KEYWORD_ONLY, default=_plain(default), annotation=_type(kind)
                )
                for name, kind, default in described["arguments"]
            },
            proves=PROVES[PROVES.index(described["proves"])],
            code=str(described["code"]),
            files={str(file): int(time) for file, time in described["files"].items()},
        )
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
    """Import a function. For a method only worker processes do this; a policy is imported where it runs.

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
        if "attempted relative import" in text:
            text += "; name the function as package.module:function"
        raise InputError("method", f"cannot be imported ({type(error).__name__}: {text})") from error
    try:
        function = operator.attrgetter(name)(module)
    except AttributeError as error:
        functions = [known for known, value in vars(module).items() if callable(value) and not known.startswith("_")]
        problem = f"expected a function {name} in {Path(place).name}, it has none of that name"
        problem += did_you_mean(functions, name)
        raise InputError("method", problem) from error
    if not callable(function):
        raise InputError("method", f"expected a function, {name} is not callable")
    return function  # type: ignore[no-any-return]


class _UncachedLoader(importlib.machinery.SourceFileLoader):
    """Compiles a file each time. Python's cache takes a file for unchanged if its size and the second are the same."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def _import_file(path: Path) -> Any:
    # The hash of the path keeps apart two files of the same name in different folders.
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_UncachedLoader(name, str(path)))
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} is not a Python file")
    if str(path.parent) not in sys.path:
        # The file may import its neighbours. At the end of the list the folder cannot hide installed modules.
        sys.path.append(str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def returning_solution(function: Callable[..., Any]) -> Solve:
    """Return a function that returns a Solution with checked homes.

    Parameters
    ----------
    function
        A function that returns homes, a pair of homes and a lower bound, or a Solution.

    Returns
    -------
    Solve
        The function with one kind of result.
    """

    @functools.wraps(function)
    def solve(instance: Instance, **arguments: Any) -> Solution:
        if _requires_progress(function):
            arguments.setdefault("on_progress", _Silent())
        answer = function(instance, **arguments)
        if isinstance(answer, Solution):
            return dataclasses.replace(answer, home=checked_home(instance, answer.home))
        if isinstance(answer, tuple) and len(answer) == 2 and np.ndim(answer[0]) == 1 and np.ndim(answer[1]) == 0:
            return Solution(checked_home(instance, answer[0]), bound=float(answer[1]))
        return Solution(checked_home(instance, answer))

    return solve


class _Silent:
    """A listener to progress for the warm-up, in which nobody listens but the function must get the argument."""

    def __call__(self, seconds: float, incumbent: float, bound: float) -> None:
        pass

    def keep(self, home: npt.ArrayLike) -> None:
        pass


def _requires_progress(function: Callable[..., Any]) -> bool:
    """Return whether a function has the argument ``on_progress`` without a default."""
    spec = inspect.signature(function).parameters.get("on_progress")
    return spec is not None and spec.default is spec.empty


def _annotated_arguments(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the named arguments of a method, after a check that it can be called as one."""
    try:
        signature = signature_of(function)
    except (TypeError, ValueError) as error:  # a function of C
        raise InputError("method", f"expected {FORM}, got a function without a signature") from error
    try:
        progress = {"on_progress": None} if _requires_progress(function) else {}
        signature.bind(None, seed=0, time_limit=1.0, **progress)
    except TypeError as error:
        if "missing a required" in str(error) and "seed" in signature.parameters:
            raise InputError("method", f"every parameter needs a default value ({error})") from error
        raise InputError("method", f"expected {FORM}, got another signature ({error})") from error
    return named_arguments(signature)


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function, with annotations that were written as text evaluated where possible.

    Parameters
    ----------
    function
        The function.

    Returns
    -------
    inspect.Signature
        The signature.

    Raises
    ------
    TypeError, ValueError
        If it has none, like some functions of C.
    """
    try:
        return inspect.signature(function, eval_str=True)
    except Exception:  # an annotation that cannot be evaluated can raise anything
        return inspect.signature(function)


def named_arguments(signature: inspect.Signature) -> dict[str, inspect.Parameter]:
    """Return the arguments of a function that can be given by name.

    Parameters
    ----------
    signature
        The signature of the function.

    Returns
    -------
    dict
        The arguments by their names. One without a usable annotation gets the type of its default.
    """
    arguments = {}
    for name, spec in signature.parameters.items():
        if spec.kind in (spec.POSITIONAL_ONLY, spec.VAR_POSITIONAL, spec.VAR_KEYWORD):
            continue
        kind = type(spec.default)
        if spec.annotation is spec.empty or isinstance(spec.annotation, str):
            spec = spec.replace(annotation=kind if kind in (bool, int, float) else str)
        arguments[name] = spec
    return arguments
