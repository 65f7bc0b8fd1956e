"""The source files that a module imports, and a hash of their content: what a result of the module depends on."""

import functools
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

OUR_ROOT = Path(__file__).parents[3]
IMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+import\s+(\([^)]*\)|.+)|import\s+(.+))", re.MULTILINE)


def imported_files(module: Path) -> frozenset[Path]:
    """Return the file of a module and all files that it imports, directly or through other modules.

    Parameters
    ----------
    module
        The file.

    Returns
    -------
    frozenset of Path
        The files of its own project and of relocbench. Imports are read from the text, so that nothing is executed.
    """
    sources = {module}
    waiting = [module]
    while waiting:
        file = waiting.pop()
        new = _imported(file, file.stat().st_mtime_ns) - sources
        sources |= new
        waiting += new
    return frozenset(sources)


def content_hash(files: Iterable[Path]) -> str:
    """Return a hash of the content of files.

    Parameters
    ----------
    files
        The files.

    Returns
    -------
    str
        16 hexadecimal digits. They depend on the content and on the order of the paths, not on the folder above them.
    """
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def _imported(module: Path, modification_time: int) -> frozenset[Path]:
    """Return the files that a module imports; the second argument makes the cache read a changed file again."""
    if module.suffix != ".py":
        return frozenset()  # a compiled module
    root = module.parent
    while (root / "__init__.py").exists():
        root = root.parent
    found = set()
    for package, members, modules in IMPORT.findall(module.read_text(encoding="utf-8")):
        # A member of a package may be a module of its own.
        prefix = package if package.endswith(".") else f"{package}."
        names = [package, *(f"{prefix}{name}" for name in re.findall(r"\w+", members))] if package else []
        for name in names or re.findall(r"[\w.]+", modules):
            bare = name.lstrip(".")
            if levels := len(name) - len(bare):
                folders = {module.parents[min(levels, len(module.parents)) - 1]}
            else:
                folders = {root, OUR_ROOT}
            for folder in folders:
                path = folder.joinpath(*bare.split("."))
                found |= {file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()}
    return frozenset(found)
