"""Selectors: text that names a method and sets its parameters, such as ``reloc[k=8,cooperation=topic]``.

==================================  ======================================================================
``reloc``, ``reloc[k=8]``           a method of this project (:mod:`runs.methods`)
``path/to/mine.py:function[a=1]``   a function in a file (:mod:`runs.external_methods`)
``package.module:function``         a function in a module
``name``                            a method that an installed package registers as an entry point
``anneal[start=reloc[k=8]]``        a method that starts from the homes of another one
``anneal[start=homes.csv]``         a method that starts from the homes in a file
==================================  ======================================================================
"""

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.formulations.solvers.availability import SOLVERS, require_solver
from relocbench.instances.errors import InputError, did_you_mean, one_of, shown
from relocbench.instances.files.homes_file import HOMES_ENDINGS
from relocbench.instances.settings import setting
from relocbench.runs.external_methods import method_at, method_of_function, registered_method, registered_names
from relocbench.runs.methods import METHODS, Method, Selector
from relocbench.runs.start_homes import StartHomes

# The forms in which Python users may give a method, and homes to start from.
MethodLike = str | Callable[..., Any] | Selector
StartLike = MethodLike | Path | npt.ArrayLike
# Each matches what comes before the brackets, and the text between the brackets.
PLACE_AND_FUNCTION = re.compile(r"\s*([^\[\]]+):([\w.]+)\s*(?:\[(.*)\])?\s*")
NAME = re.compile(r"\s*([\w.-]+)\s*(?:\[(.*)\])?\s*")


def parse_selector(text: str, methods: Mapping[str, Method] = METHODS) -> Selector:
    """Parse one selector.

    Parameters
    ----------
    text
        A method in one of the forms in the table above, perhaps with ``[parameter=value,...]``.
    methods
        The methods that have a name, apart from those of installed packages.

    Returns
    -------
    Selector
        The method with its settings.

    Raises
    ------
    InputError
        If the text has another form, there is no such method, or a parameter does not exist or has a wrong value.
    """
    if (match := PLACE_AND_FUNCTION.fullmatch(text)) is not None:
        place, function, settings = match.groups()
        return _with_settings(method_at(place, function), settings or "")
    if (match := NAME.fullmatch(text)) is None:
        raise InputError("method", f"expected name or name[parameter=value,...], got {shown(text)}")
    name, settings = match.groups()
    method = methods.get(name) or registered_method(name)
    if method is None and name.endswith(".py"):
        raise InputError("method", f"expected {name}:function, the name of a function in the file is missing")
    if method is None and "." in name:
        place, _, function = name.rpartition(".")
        raise InputError("method", f"expected package.module:function, got {name}; did you mean {place}:{function}?")
    if method is None:
        raise InputError("method", one_of([*methods, *registered_names()], name))
    return _with_settings(method, settings or "")


def parse_selectors(texts: Iterable[str], methods: Mapping[str, Method] = METHODS) -> list[Selector]:
    """Parse lists of selectors.

    Parameters
    ----------
    texts
        Selectors, each text one or several between commas.
    methods
        As for :func:`parse_selector`.

    Returns
    -------
    list of Selector
        The selectors in the given order. A selector that is repeated occurs once.

    Raises
    ------
    InputError
        As for :func:`parse_selector`.
    """
    selectors = [parse_selector(part, methods) for text in texts for part in split_at_commas(text)]
    return list({str(selector): selector for selector in selectors}.values())


def as_selector(method: MethodLike) -> Selector:
    """Return a selector for a method in any of the forms in which Python users may give it.

    Parameters
    ----------
    method
        A selector as text, a function, ``functools.partial(function, parameter=value)``, or a selector, which is
        returned unchanged.

    Returns
    -------
    Selector
        The method with its settings.

    Raises
    ------
    InputError
        As for :func:`parse_selector`, or if the function cannot be called as a method.
    """
    if isinstance(method, Selector):
        return method
    if isinstance(method, str):
        return parse_selector(method)
    if isinstance(method, functools.partial):
        return _of_partial(method)
    if not callable(method):
        raise InputError("method", f"expected a selector as text or a function, got {shown(method)}")
    return Selector(method_of_function(method), {})


def as_selectors(methods: MethodLike | Iterable[MethodLike]) -> list[Selector]:
    """Return the selectors of one or several methods.

    Parameters
    ----------
    methods
        One method, as in :func:`as_selector`, or several. A text may contain several selectors between commas.

    Returns
    -------
    list of Selector
        The selectors in the given order. A selector that is repeated occurs once.

    Raises
    ------
    InputError
        As for :func:`as_selector`, or if two different functions have the same name.
    """
    several = [methods] if isinstance(methods, str | Selector) or callable(methods) else list(methods)
    found: dict[str, Selector] = {}
    for method in several:
        for selector in parse_selectors([method]) if isinstance(method, str) else [as_selector(method)]:
            known = found.setdefault(str(selector), selector)
            if known.version() != selector.version():
                raise InputError(f"method {selector}", "two different functions have this name; rename one of them")
    return list(found.values())


def with_start(selector: Selector, start: StartLike | None) -> Selector:
    """Return a method that starts from given homes.

    Parameters
    ----------
    selector
        The method.
    start
        Homes (a list, an array or the path of a file), or a method that finds them (a selector or a function); None
        to leave the selector as it is.

    Returns
    -------
    Selector
        The method with its start.

    Raises
    ------
    InputError
        If the method takes no start, or there is no such file or method.
    """
    if start is None:
        return selector
    label = f"method {selector.method.name}"
    if not selector.method.takes("start"):
        raise InputError(label, "start: this method takes no start")
    if isinstance(start, Path):
        return replace(selector, start=StartHomes.in_file(start))
    if isinstance(start, str):
        return replace(selector, start=_parse_start(start))
    if isinstance(start, Selector) or callable(start):
        return replace(selector, start=as_selector(start))
    return replace(selector, start=StartHomes.given(start))


def require_available(selectors: Iterable[Selector]) -> None:
    """Check that methods can run on this machine.

    Parameters
    ----------
    selectors
        The methods.

    Raises
    ------
    InputError
        If a module that one of them needs is not installed, or the solver that its settings name.
    """
    for selector in selectors:
        if problem := selector.method.unavailable():
            raise InputError(f"method {selector.method.name}", problem)
        if (solver := selector.settings.get("solver")) in SOLVERS:
            require_solver(solver)


def _of_partial(partial: functools.partial[Any]) -> Selector:
    """Return a function with the settings that a ``functools.partial`` gives it."""
    method = method_of_function(partial.func)
    known = method.parameters()
    label = f"method {method.name}"
    if partial.args:
        raise InputError(label, "a partial function may set parameters by name only")
    settings = {}
    for name, value in partial.keywords.items():
        if name == "start" and method.takes("start"):
            continue
        if name not in known:
            raise InputError(label, f"expected parameters among: {', '.join(known) or 'none'}; got {name!r}")
        if isinstance(value, np.generic):
            value = value.item()
        settings[name] = setting(f"{label}: {name}", known[name].annotation, value)
    return with_start(Selector(method, settings), partial.keywords.get("start"))


def _parse_start(text: str) -> Selector | StartHomes:
    """Return the start that a text names: a file of homes, by its ending, or a method."""
    return StartHomes.in_file(Path(text)) if text.lower().endswith(HOMES_ENDINGS) else parse_selector(text)


def _with_settings(method: Method, text: str) -> Selector:
    """Return a method with the settings ``parameter=value,...`` from between the brackets of a selector."""
    settings: dict[str, Any] = {}
    start: Selector | StartHomes | None = None
    for part in split_at_commas(text):
        known = method.parameters()  # imports the method, which a selector without settings need not do
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if key in settings or (key == "start" and start is not None):
            raise InputError(f"method {method.name}", f"{key} is given twice")
        if equals and key == "start" and method.takes("start"):
            start = _parse_start(value)
        elif equals and key in known:
            settings[key] = setting(f"method {method.name}: {key}", known[key].annotation, value)
        else:
            names = [*known, *(["start"] if method.takes("start") else [])]
            problem = f"expected parameter=value with one of: {', '.join(names) or 'no parameters'}; got {shown(part)}"
            raise InputError(f"method {method.name}", problem + ("" if key in names else did_you_mean(names, key)))
    return Selector(method, settings, start)


def split_at_commas(text: str) -> list[str]:
    """Split a text at the commas outside all brackets.

    Parameters
    ----------
    text
        The text, such as ``nearest,reloc[k=8,cooperation=topic]``.

    Returns
    -------
    list of str
        The parts that are not empty, without blanks at their ends.
    """
    parts, depth = [""], 0
    for character in text:
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]
