"""Methods by name: selectors such as ``reloc[k=8,cooperation=topic]``, and functions of other people's code."""

import dataclasses
import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import operator
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relocbench.instances.errors import InputError, reason, shown
from relocbench.instances.evaluation import checked_home
from relocbench.instances.instance import Instance
from relocbench.instances.settings import setting
from relocbench.instances.solution import Solution
from relocbench.runs.methods import METHODS, Method, Solve, setting_text

# Where a package registers methods: name = "package.module:function".
GROUP = "relocbench.methods"
PLACED = re.compile(r"\s*([^\[\]]+):([\w.]+)\s*(?:\[(.*)\])?\s*")
NAMED = re.compile(r"\s*([\w.-]+)\s*(?:\[(.*)\])?\s*")


@dataclass(frozen=True)
class Selector:
    """A method with the parameters a user chose, and perhaps another whose homes it starts from."""

    method: Method
    settings: Mapping[str, Any]
    start: "Selector | None" = None

    def __str__(self) -> str:
        shown_settings = {name: setting_text(value) for name, value in self.settings.items()}
        if self.start is not None:
            shown_settings["start"] = str(self.start)
        inside = ",".join(f"{name}={value}" for name, value in sorted(shown_settings.items()))
        return f"{self.method.name}[{inside}]" if inside else self.method.name


def select(text: str) -> Selector:
    """Parse a selector: a method's name and perhaps ``[parameter=value,...]``.

    A method that takes a start accepts ``start=`` with another selector: ``anneal[start=reloc[k=8],moves=2e6]``.
    """
    match = re.fullmatch(r"\s*([\w-]+)\s*(?:\[(.*)\])?\s*", text)
    if match is None:
        raise InputError("method", f"expected name or name[parameter=value,...], got {shown(text)}")
    name, inside = match.groups()
    if name not in METHODS:
        raise InputError("method", f"expected one of {', '.join(METHODS)}, got {shown(name)}")
    return configured(METHODS[name], inside or "")


def configured(method: Method, inside: str) -> Selector:
    """Return a method with the parameters that stand between the brackets of a selector."""
    settings: dict[str, Any] = {}
    start: Selector | None = None
    for part in _split(inside):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        known = method.parameters()
        if key in settings or (key == "start" and start is not None):
            raise InputError(f"method {method.name}", f"{key} is given twice")
        if equals and key == "start" and method.takes("start"):
            start = select(value)
        elif equals and key in known:
            settings[key] = setting(f"method {method.name}: {key}", known[key].annotation, value)
        else:
            names = ", ".join([*known, *(["start"] if method.takes("start") else [])]) or "no parameters"
            problem = f"expected parameter=value with one of: {names}; got {shown(part)}"
            raise InputError(f"method {method.name}", problem)
    return Selector(method, settings, start)


def select_many(texts: Iterable[str]) -> list[Selector]:
    """Parse lists of selectors between commas; one that is there twice is meant once."""
    selectors = [select(part) for text in texts for part in _split(text)]
    return list({str(selector): selector for selector in selectors}.values())


def refuse_absent(selectors: Iterable[Selector]) -> None:
    """Refuse methods that cannot run here."""
    for selector in selectors:
        if reason := selector.method.unavailable():
            raise InputError(f"method {selector.method.name}", reason)


def _split(inside: str) -> list[str]:
    """Split at the commas that stand in no inner brackets."""
    parts, depth = [""], 0
    for character in inside:
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


@dataclass(frozen=True)
class OutsideMethod(Method):
    """A function ``f(instance, *, seed, time_limit, <parameters>)`` that returns homes, or a Solution.

    ``where`` is ``module:function``, or ``file.py:function`` with the whole path.
    """

    @property
    def ours(self) -> bool:
        """Whether it is part of this project."""
        return False

    def load(self) -> Solve:
        """Import the function and return it in the shape of ours."""
        try:
            return _loaded(self.where, _changed_at(self.where))
        except InputError as error:
            raise InputError(f"method {self.name}", error.problem) from error


def find_method(wanted: str | Callable[..., Any]) -> Selector:
    """Find a method of the registry or from outside.

    Parameters
    ----------
    wanted
        ``path/to/mine.py:function``, ``package.module:function``, a name registered as entry point
        ``relocbench.methods``, or a selector of a method of ours; each may set parameters in brackets. Or a function
        that stands at the top of a module.

    Raises
    ------
    InputError
        If there is no such method, or it cannot be called as methods are.
    """
    if not isinstance(wanted, str):
        return configured(_checked(_of_function(wanted)), "")
    if (placed := PLACED.fullmatch(wanted)) is not None:
        place, function, inside = placed.groups()
        method = _of_file(place, function) if place.endswith(".py") else _of_module(place, function)
        return configured(_checked(method), inside or "")
    named = NAMED.fullmatch(wanted)
    if named is not None and named[1] not in METHODS:
        for point in importlib.metadata.entry_points(group=GROUP, name=named[1]):
            return configured(_checked(OutsideMethod(point.name, point.value, "nothing", point.value)), named[2] or "")
    return select(wanted)


def _of_file(place: str, function: str) -> Method:
    path = Path(place).expanduser().resolve()
    if not path.is_file():
        raise InputError(f"method {place}:{function}", "expected a Python file, there is none")
    return OutsideMethod(f"{_shown(path, place)}:{function}", "", "nothing", f"{path}:{function}")


def _of_module(place: str, function: str) -> Method:
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)  # a package that is worked on need not be installed
    return OutsideMethod(f"{place}:{function}", "", "nothing", f"{place}:{function}")


def _of_function(function: Callable[..., Any]) -> Method:
    name, module = getattr(function, "__qualname__", "<unnamed>"), getattr(function, "__module__", "") or ""
    if "<" in name:
        raise InputError(
            "method", f"expected a function at the top of a module, which a process can import; got {name}"
        )
    path = Path(inspect.getfile(function)).resolve()
    # Its file names it as the command would, so that both find the same baseline.
    shown = f"{_shown(path, path.name)}:{name}"
    main = module == "__main__" or importlib.util.find_spec(module) is None
    return OutsideMethod(shown, "", "nothing", f"{path if main else module}:{name}")


def _shown(path: Path, otherwise: str) -> str:
    """Return a path as seen from here, if it is below."""
    here = Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else otherwise


def _checked(method: Method) -> Method:
    """Return the method if it can be imported and called."""
    try:
        inspect.signature(method.load()).bind(None, seed=0, time_limit=1.0)
    except TypeError as error:
        form = "f(instance, *, seed, time_limit) -> homes"
        raise InputError(f"method {method.name}", f"expected {form}, it cannot be called so ({error})") from error
    return method


def _changed_at(where: str) -> int:
    place = Path(where.rpartition(":")[0])
    return place.stat().st_mtime_ns if place.suffix == ".py" and place.is_file() else 0


@functools.cache
def _loaded(where: str, changed_at: int) -> Solve:
    """Import ``place:function``; a file that has changed is imported anew."""
    place, _, name = where.rpartition(":")
    try:
        module = _import_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except (Exception, SystemExit) as error:  # it is not our code, so anything may happen
        raise InputError("method", f"cannot be imported ({type(error).__name__}: {_said(error)})") from error
    try:
        function = operator.attrgetter(name)(module)
    except AttributeError as error:
        raise InputError("method", f"expected a function {name} in {Path(place).name}, there is none") from error
    if not callable(function):
        raise InputError("method", f"expected a function, {name} is none")
    return _shaped(function)


def _said(error: BaseException) -> str:
    return reason(error) if isinstance(error, Exception) else str(error)


def _import_file(path: Path) -> Any:
    # Two files of one name must not be taken for each other.
    name = f"{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} is no Python file")
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # for what lies beside it; last, so that it hides nothing
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _shaped(function: Callable[..., Any]) -> Solve:
    """Return a function that gives a Solution, whatever form the homes come in."""

    @functools.wraps(function)
    def solve(instance: Instance, **arguments: Any) -> Solution:
        answer = function(instance, **arguments)
        if isinstance(answer, Solution):
            return dataclasses.replace(answer, home=checked_home(instance, answer.home))
        return Solution(checked_home(instance, answer))

    vars(solve)["__signature__"] = _signature(function)
    return solve


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return a signature that says of every parameter what a selector may set it to, by its default if need be."""
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, SyntaxError):  # annotations that mean nothing here
        signature = inspect.signature(function)
    parameters = []
    for parameter in signature.parameters.values():
        kind = type(parameter.default)
        if parameter.annotation is parameter.empty or isinstance(parameter.annotation, str):
            parameter = parameter.replace(annotation=kind if kind in (bool, int, float) else str)
        parameters.append(parameter)
    return signature.replace(parameters=parameters)
