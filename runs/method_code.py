"""The version of a method's code. It is part of what identifies a run: a stored run of other code is out of date.

==============================  ==========================================================================
method                          its version
==============================  ==========================================================================
of this project                 the version of relocbench, and a hash of all files that the method imports
a function in a file            the name of the file, and a hash of it and of the files that it imports
a function of a distribution    the name and version of the distribution, unless it is an editable one
a function given by value       its name, and a hash of what it does and of all values that it uses
==============================  ==========================================================================
"""

import dis
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from relocbench.instances.kernels.imported_files import OUR_ROOT, content_hash, imported_files
from relocbench.runs.version import __version__

# How the version of a function that is given by value begins.
BY_VALUE = "by value"
# A stored objective depends on the evaluator too.
EVALUATOR = "relocbench.runs.outcome"


@functools.cache
def project_code(module: str) -> str:
    """Return the version of a method of this project.

    Parameters
    ----------
    module
        The full name of the module of the method.

    Returns
    -------
    str
        Such as ``relocbench 0.2.0 (0123456789abcdef)``.
    """
    files: frozenset[Path] = frozenset()
    for name in (module, EVALUATOR):
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        files |= imported_files(Path(spec.origin))
    return f"relocbench {__version__} ({content_hash(files)})"


def file_code(file: Path, module: str = "") -> str:
    """Return the version of a function in a file.

    Parameters
    ----------
    file
        The file that defines the function.
    module
        The full name of its module, if it is imported by that name. Then it may belong to an installed distribution.

    Returns
    -------
    str
        Such as ``mine.py (0123456789abcdef)`` or ``package 1.2.0``.
    """
    if module and (distribution := _installed_distribution(file, module)) is not None:
        return distribution
    own = {path for path in imported_files(file) if not path.is_relative_to(OUR_ROOT / "relocbench")} | {file}
    return f"{file.name} ({content_hash(own)})"


def function_code(function: Callable[..., Any], name: str) -> str:
    """Return the version of a function that is given by value.

    Parameters
    ----------
    function
        The function.
    name
        Its name in selectors.

    Returns
    -------
    str
        Such as ``by value: notebook:mine (0123456789abcdef)``. A function that is defined again with the same text has
        the same version, unless a value that it uses has changed.
    """
    digest = hashlib.sha256()
    for part in _parts(function, {}):
        digest.update(len(part).to_bytes(8, "little") + part)
    return f"{BY_VALUE}: {name} ({digest.hexdigest()[:16]})"


def _parts(value: Any, seen: dict[int, Any]) -> Iterator[bytes]:
    """Yield what determines a value: for a function its instructions, and the same for everything that it uses.

    Nothing may depend on the process: neither the order of sets, nor addresses, nor files and lines, which differ when
    a cell is executed again. ``seen`` holds the values themselves: the address of one that has been freed may belong to
    another value, which would then count as seen.
    """
    if value is None or isinstance(value, str | bytes | int | float | complex):
        yield repr(value).encode()
        return
    if id(value) in seen:
        yield b"again"
        return
    seen[id(value)] = value
    yield type(value).__qualname__.encode()
    if isinstance(value, types.FunctionType):
        yield from _parts([value.__code__, value.__defaults__, value.__kwdefaults__], seen)
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        yield from _parts({name: cell.cell_contents for name, cell in cells}, seen)
        names = sorted(set(_global_names(value.__code__)) & value.__globals__.keys())
        yield from _parts({name: value.__globals__[name] for name in names}, seen)
    elif isinstance(value, types.CodeType):
        yield value.co_code
        yield from _parts([value.co_names, value.co_varnames, value.co_argcount, value.co_consts], seen)
    elif isinstance(value, types.ModuleType):
        yield value.__name__.encode()
    elif isinstance(value, type):
        yield f"{value.__module__}.{value.__qualname__}".encode()
        if value.__module__ == "__main__":
            members = {name: part for name, part in vars(value).items() if not name.startswith("__")}
            yield from _parts(members, seen)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _parts(item, seen)
    elif isinstance(value, set | frozenset):
        yield from sorted(b"|".join(_parts(item, dict(seen))) for item in value)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _parts(name, seen)
            yield from _parts(item, seen)
    elif type(value).__module__ == "__main__":
        yield from _parts([type(value), getattr(value, "__dict__", None)], seen)
    elif isinstance(value, types.MethodType):
        yield from _parts([value.__func__, value.__self__], seen)
    else:
        import cloudpickle

        yield cloudpickle.dumps(value)


def _global_names(code: types.CodeType) -> Iterator[str]:
    """Yield the global variables that instructions read; ``co_names`` also contains the names of attributes."""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(step.argval)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)


@functools.cache
def _distributions() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()


def _installed_distribution(file: Path, module: str) -> str | None:
    """Return name and version of the distribution that has a file; None if there is none, or it is editable."""
    package = module.partition(".")[0]
    for name in _distributions().get(package, ()):
        distribution = importlib.metadata.distribution(name)
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
        if origin.get("dir_info", {}).get("editable"):
            continue
        if any(path.locate() == file for path in distribution.files or ()):
            return f"{distribution.name} {distribution.version}"
    return None
