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

import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from relocbench.instances.kernels.imported_files import OUR_ROOT, content_hash, imported_files
from relocbench.runs.version import __version__

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
        Such as ``notebook:mine (0123456789abcdef)``. A function that is defined again with the same text has the same
        version, unless a value that it uses has changed.
    """
    digest = hashlib.sha256()
    for part in _parts(function, set()):
        digest.update(len(part).to_bytes(8, "little") + part)
    return f"{name} ({digest.hexdigest()[:16]})"


def _parts(value: Any, seen: set[int]) -> Iterator[bytes]:
    """Yield what determines a function: its instructions, and the same for everything that it uses."""
    if id(value) in seen:
        yield b"again"
        return
    if isinstance(value, types.FunctionType):
        seen.add(id(value))
        yield from _parts(value.__code__, seen)
        yield from _parts((value.__defaults__, value.__kwdefaults__), seen)
        cells = dict(zip(value.__code__.co_freevars, value.__closure__ or (), strict=True))
        for name, cell in sorted(cells.items()):
            yield name.encode()
            yield from _parts(cell.cell_contents, seen)
        for name in sorted(set(_global_names(value.__code__))):
            if name in value.__globals__:
                yield name.encode()
                yield from _parts(value.__globals__[name], seen)
    elif isinstance(value, types.CodeType):
        # Not the whole object: it contains the file and the lines, which differ when a cell is executed again.
        yield value.co_code + repr((value.co_names, value.co_varnames, value.co_argcount)).encode()
        for constant in value.co_consts:
            yield from _parts(constant, seen)
    elif isinstance(value, types.ModuleType):
        yield f"module {value.__name__}".encode()
    elif isinstance(value, tuple | list):
        yield f"{type(value).__name__} {len(value)}".encode()
        for item in value:
            yield from _parts(item, seen)
    elif value is None or isinstance(value, str | bytes | int | float | complex):
        yield repr(value).encode()
    else:
        import cloudpickle

        yield cloudpickle.dumps(value)


def _global_names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)


def _installed_distribution(file: Path, module: str) -> str | None:
    """Return name and version of the distribution that has a file; None if there is none, or it is editable."""
    package = module.partition(".")[0]
    for name in importlib.metadata.packages_distributions().get(package, ()):
        distribution = importlib.metadata.distribution(name)
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
        if origin.get("dir_info", {}).get("editable"):
            continue
        if any(path.locate() == file for path in distribution.files or ()):
            return f"{distribution.name} {distribution.version}"
    return None
