"""Locations: the files and folders that a step reads or writes, local or in any file system that Spark knows.

A location is a :class:`pathlib.Path` or, for a URI such as ``s3a://bucket/x``, a :class:`RemotePath`, which has the few
methods of a path that are needed here. :func:`location` makes one from the text that a user gave (``Path`` would turn
``s3a://`` into ``s3a:/``). Then ``folder / "name"``, ``folder.exists()``, ``folder.read_text()`` and the functions of
this module work for both kinds. On the driver, a remote path uses Hadoop's ``FileSystem`` through the running session.
Spark's readers and writers get :func:`for_spark`. Code that runs without Java (Python workers, commands without a
session) uses :func:`arrow_file`.
"""

import contextlib
import os
import posixpath
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote

from relocbench.instances.errors import InputError, reason
from relocbench.instances.files.atomic_write import PREFIX, SUFFIX, folder_written_whole, written_whole
from relocbench.instances.files.file_lock import make_folder
from relocbench.spark.remote_path import RemotePath

if TYPE_CHECKING:
    import pyarrow.fs

# A drive letter of Windows is not a scheme.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//[^/]*)?(/.*)?", re.DOTALL)
Location: TypeAlias = Path | RemotePath


def location(text: str | Location) -> Location:
    """Make a location from the text that a user gave. A location stays what it is.

    Parameters
    ----------
    text
        A local path, ``file:///path``, or a URI of another file system, such as ``hdfs://host/path``.

    Returns
    -------
    pathlib.Path or RemotePath
        The location. A path without a scheme is local, whatever Spark's default file system is.

    Raises
    ------
    InputError
        If a URI has no path, or names a file of another machine.
    """
    if not isinstance(text, str):
        return text
    uri = _URI.fullmatch(text)
    if uri is None or not (uri[2] or uri[3]):
        return Path(text)
    scheme, authority, path = uri[1].lower(), uri[2] or "", uri[3] or ""
    if scheme == "file":
        if authority not in ("", "//", "//localhost") or not path:
            raise InputError(text, "expected file:///path, the path of a file on this machine")
        return Path(unquote(path))
    if len(authority) <= 2 and not path:
        raise InputError(text, f"expected {scheme}://host/path, got no path")
    return RemotePath(f"{scheme}:{authority or '//'}", path)


def for_spark(place: Location) -> str:
    """Return the text by which Spark's readers and writers find a location.

    Parameters
    ----------
    place
        The location.

    Returns
    -------
    str
        A URI. Without a scheme Spark would look for a local path in its default file system.
    """
    return str(place) if isinstance(place, RemotePath) else f"file://{place.resolve().as_posix()}"


def for_reading(uri: str) -> str:
    """Return the pattern by which Spark's readers find one file or folder. They take a plain name for a pattern.

    Parameters
    ----------
    uri
        The URI, as :func:`for_spark` returns it.

    Returns
    -------
    str
        The pattern.
    """
    return re.sub(r"([\\\[\]{}*?])", r"\\\1", uri)


def relative_to(place: Location, folder: Location) -> str:
    """Return a location as a path relative to a folder, for a record that must stay true when both are moved.

    Parameters
    ----------
    place
        The location.
    folder
        The folder.

    Returns
    -------
    str
        The relative path; the absolute one if both are in different file systems.
    """
    if isinstance(place, Path) and isinstance(folder, Path):
        return Path(os.path.relpath(place.resolve(), folder.resolve())).as_posix()
    if isinstance(place, RemotePath) and isinstance(folder, RemotePath) and place.root == folder.root:
        return posixpath.relpath(place.path, folder.path)
    return for_spark(place)


def local(place: Location, use: str) -> Path:
    """Return a location as a local path, for code that works with local files only.

    Parameters
    ----------
    place
        The location.
    use
        What the code does, for the error message: ``spark run writes rows to``.

    Returns
    -------
    pathlib.Path
        The same location.

    Raises
    ------
    InputError
        If the location is in another file system.
    """
    if isinstance(place, RemotePath):
        raise InputError(str(place), f"{use} local paths only: give one that all machines mount at the same place")
    return place


@contextlib.contextmanager
def written_folder(folder: Location) -> Iterator[Location]:
    """Write a folder so that it is either complete or absent: the block writes another one, which is then renamed.

    An existing folder is replaced. An object store copies when it renames: if the process is killed meanwhile, the
    folder is incomplete. Therefore only the record of a step, which is written last, says that a step is complete.

    Parameters
    ----------
    folder
        The folder to write.

    Yields
    ------
    pathlib.Path or RemotePath
        The temporary folder, which does not exist yet.

    Raises
    ------
    InputError
        If the folder cannot be written.
    """
    if isinstance(folder, Path):
        with folder_written_whole(folder) as temporary:
            yield temporary
        return
    room = folder.parent / f"{PREFIX}{uuid.uuid4().hex}{SUFFIX}"
    make_folders(folder.parent)
    try:
        yield room
        folder.remove()
        room.rename(folder)
    finally:
        with contextlib.suppress(InputError):  # the error of the block must not be replaced by another one
            room.remove()


def write_text(file: Location, text: str) -> None:
    """Write a text file so that it is either complete or as it was.

    Parameters
    ----------
    file
        The file. Its folder is created.
    text
        The content.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    if isinstance(file, Path):
        with written_whole(file) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return
    with written_folder(file) as room:
        assert isinstance(room, RemotePath)
        room.write_text(text)


def make_folders(folder: Location) -> None:
    """Create a folder and the folders above it, unless they exist.

    Parameters
    ----------
    folder
        The folder.

    Raises
    ------
    InputError
        If a folder cannot be created, or there is a file of that name.
    """
    if isinstance(folder, Path):
        try:
            make_folder(folder)
        except OSError as error:
            raise InputError(str(folder), f"cannot be written ({reason(error)})") from error
        return
    folder.mkdir()


def require_writable(folder: Path) -> None:
    """Create a local folder to write to, and check that files can be created in it.

    Parameters
    ----------
    folder
        The folder.

    Raises
    ------
    InputError
        If there is a file of that name, or the folder cannot be written.
    """
    make_folders(folder)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(str(folder), f"cannot be written ({reason(error)})") from error


def remove(place: Location) -> None:
    """Remove a file, or a folder with everything in it, if it exists.

    Parameters
    ----------
    place
        The location.

    Raises
    ------
    InputError
        If it cannot be removed.
    """
    if isinstance(place, RemotePath):
        place.remove()
        return
    try:
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(str(place), f"cannot be removed ({reason(error)})") from error


def remove_if_empty(folder: Location) -> None:
    """Remove a folder if there is nothing in it.

    Parameters
    ----------
    folder
        The folder. It stays if it cannot be removed.
    """
    with contextlib.suppress(OSError, InputError):
        if isinstance(folder, Path):
            folder.rmdir()
        elif folder.is_empty():
            folder.remove()


def arrow_file(place: Location) -> tuple["pyarrow.fs.FileSystem", str]:
    """Return the file system of pyarrow for a location, for code that runs without Java.

    Parameters
    ----------
    place
        The location.

    Returns
    -------
    file_system, path
        The file system, and the path in it.

    Raises
    ------
    InputError
        If pyarrow has no file system for the scheme, or it cannot be reached.
    """
    import pyarrow.fs

    if isinstance(place, Path):
        return pyarrow.fs.LocalFileSystem(), str(place.resolve())
    return place.in_object_store()
