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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

from relocbench.instances.errors import InputError, reason, shown
from relocbench.instances.files.atomic_write import PREFIX, SUFFIX, folder_written_whole, written_whole
from relocbench.instances.files.file_lock import make_folder
from relocbench.spark.spark_errors import reason_of_java

if TYPE_CHECKING:
    import pyarrow.fs

# A drive letter of Windows is not a scheme.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(//[^/]*)?(/.*)?", re.DOTALL)
# The object stores that pyarrow knows, by the schemes that Hadoop uses for them. A file in such a store appears when it
# is complete. Of Hadoop's own file systems, pyarrow would need Java.
OBJECT_STORES = {"s3a": "s3", "s3n": "s3", "s3": "s3", "gs": "gs", "gcs": "gs", "abfs": "abfs", "abfss": "abfss"}


@dataclass(frozen=True)
class FileStatus:
    """What a file system says about a file.

    Attributes
    ----------
    path
        The path or URI of the file.
    size
        The length in bytes.
    modified
        When the file was written, in milliseconds since 1970.
    """

    path: str
    size: int
    modified: int


class RemotePath:
    """A path in a file system that is not mounted on this machine. It can be sent to executors.

    Parameters
    ----------
    root
        Scheme and authority, such as ``s3a://bucket``.
    path
        The path below it. It begins with ``/``.
    """

    def __init__(self, root: str, path: str) -> None:
        self.root = root
        self.path = posixpath.normpath("/" + path.lstrip("/"))

    def __str__(self) -> str:
        return f"{self.root}{self.path}"

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __truediv__(self, name: str) -> "RemotePath":
        return RemotePath(self.root, posixpath.join(self.path, name))

    @property
    def name(self) -> str:
        """The last part of the path."""
        return posixpath.basename(self.path)

    @property
    def parent(self) -> "RemotePath":
        """The folder that holds this path."""
        return RemotePath(self.root, posixpath.dirname(self.path))

    def exists(self) -> bool:
        """Return whether there is a file or folder.

        Returns
        -------
        bool
            Whether there is one.
        """
        with _java_errors(self, "read"):
            return bool(_hadoop(self).exists(_java_path(self)))

    def is_dir(self) -> bool:
        """Return whether there is a folder.

        Returns
        -------
        bool
            Whether there is one.
        """
        with _java_errors(self, "read"):
            return self.exists() and bool(_hadoop(self).getFileStatus(_java_path(self)).isDirectory())

    def matches(self) -> "list[FileStatus]":
        """List the files that a pattern describes, or the files of a folder.

        Returns
        -------
        list of FileStatus
            The files, sorted by their paths; empty if there is none.
        """
        with _java_errors(self, "read"):
            system = _hadoop(self)
            found = list(system.globStatus(_java_path(self)) or ())
            if len(found) == 1 and found[0].isDirectory():
                found = list(system.listStatus(found[0].getPath()))
            files = [
                FileStatus(str(one.getPath().toString()), int(one.getLen()), int(one.getModificationTime()))
                for one in found
                if one.isFile()
            ]
        return sorted(files, key=lambda one: one.path)

    def read_text(self, encoding: str = "utf-8") -> str:
        """Read a file, through the running session if there is one, otherwise with pyarrow.

        Parameters
        ----------
        encoding
            The encoding of the file.

        Returns
        -------
        str
            The content.

        Raises
        ------
        OSError
            If there is no such file.
        """
        if _context() is None:
            system, path = arrow_file(self)
            with system.open_input_stream(path) as file:
                return bytes(file.read()).decode(encoding)
        if not self.exists():
            raise FileNotFoundError(2, "No such file or directory", str(self))
        with _java_errors(self, "read"):
            stream = _hadoop(self).open(_java_path(self))
            try:
                return bytes(stream.readAllBytes()).decode(encoding)
            finally:
                stream.close()


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
        remove(folder)
        _rename(room, folder)
    finally:
        with contextlib.suppress(InputError):  # the error of the block must not be replaced by another one
            remove(room)


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
        with _java_errors(file, "written"):
            stream = _hadoop(file).create(_java_path(room), True)
            try:
                stream.write(bytearray(text.encode()))
            finally:
                stream.close()


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
        except FileExistsError as error:
            raise InputError(str(folder), "expected a folder to write to, got a file") from error
        except OSError as error:
            raise InputError(str(folder), f"cannot be written ({reason(error)})") from error
        return
    with _java_errors(folder, "written"):
        system, path = _hadoop(folder), _java_path(folder)
        if system.exists(path) and not system.getFileStatus(path).isDirectory():
            raise InputError(str(folder), "expected a folder to write to, got a file")
        if not system.mkdirs(path):
            raise InputError(str(folder), "cannot be written (the folder cannot be created)")


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
        with _java_errors(place, "removed"):
            _hadoop(place).delete(_java_path(place), True)
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
            return
        with _java_errors(folder, "removed"):
            system, path = _hadoop(folder), _java_path(folder)
            if not system.listStatus(path):
                system.delete(path, False)


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
    import pyarrow as pa
    import pyarrow.fs

    if isinstance(place, Path):
        return pyarrow.fs.LocalFileSystem(), str(place.resolve())
    scheme, _, host = place.root.partition("://")
    if scheme not in OBJECT_STORES:
        problem = (
            "cannot be used by Python without Java: give a local folder or an object store (s3a://, gs://, abfs://)"
        )
        raise InputError(str(place), problem)
    scheme = OBJECT_STORES[scheme]
    if scheme == "s3":
        # Unlike from_uri, this does not ask the server for the region of the bucket. pyarrow takes everything from the
        # usual environment variables except the address of a server that is not Amazon's.
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        return pyarrow.fs.S3FileSystem(endpoint_override=endpoint), f"{host}{place.path}"
    try:
        system, path = pyarrow.fs.FileSystem.from_uri(f"{scheme}://{host}{place.path}")
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(str(place), f"cannot be used ({reason(error)})") from error
    return system, path


def _rename(source: RemotePath, target: RemotePath) -> None:
    with _java_errors(target, "written"):
        if not _hadoop(source).rename(_java_path(source), _java_path(target)):
            raise InputError(str(target), f"cannot be written ({shown(str(source), 200)} cannot be renamed)")


def _context() -> Any:
    """Return the context of the running session. It is None if there is no session, and on executors."""
    from pyspark import SparkContext

    return SparkContext._active_spark_context


def _hadoop(place: RemotePath) -> Any:
    """Return Hadoop's file system of a remote path."""
    context = _context()
    if context is None:
        raise InputError(str(place), "cannot be used without a Spark session")
    return _java_path(place).getFileSystem(context._jsc.hadoopConfiguration())


def _java_path(place: RemotePath) -> Any:
    context = _context()
    assert context is not None
    return context._jvm.org.apache.hadoop.fs.Path(str(place))


@contextlib.contextmanager
def _java_errors(place: RemotePath, what: str) -> Iterator[None]:
    """Raise errors of Java as an :class:`InputError` that says that the place cannot be ``what``."""
    from py4j.protocol import Py4JJavaError

    try:
        yield
    except Py4JJavaError as error:
        raise InputError(str(place), f"cannot be {what} ({reason_of_java(error)})") from error
