"""Paths in file systems that are not mounted: Hadoop's, through the running session, or object stores, with pyarrow."""

import contextlib
import os
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from relocbench.instances.errors import InputError, reason
from relocbench.spark.spark_errors import reason_of_java

if TYPE_CHECKING:
    import pyarrow.fs

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
        FileNotFoundError
            If there is no such file.
        """
        if _context() is None:
            system, path = self.in_object_store()
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

    def write_text(self, text: str) -> None:
        """Write this file in place. :func:`spark.locations.write_text` writes it atomically.

        Parameters
        ----------
        text
            The content.
        """
        with _java_errors(self, "written"):
            stream = _hadoop(self).create(_java_path(self), True)
            try:
                stream.write(bytearray(text.encode()))
            finally:
                stream.close()

    def mkdir(self) -> None:
        """Create this folder and the folders above it, unless they exist.

        Raises
        ------
        InputError
            If a folder cannot be created, or there is a file of that name.
        """
        with _java_errors(self, "written"):
            system, path = _hadoop(self), _java_path(self)
            if system.exists(path) and not system.getFileStatus(path).isDirectory():
                raise InputError(str(self), "expected a folder to write to, got a file")
            if not system.mkdirs(path):
                raise InputError(str(self), "cannot be written (the folder cannot be created)")

    def is_empty(self) -> bool:
        """Return whether this is a folder without files.

        Returns
        -------
        bool
            Whether nothing is in it.
        """
        with _java_errors(self, "read"):
            return not _hadoop(self).listStatus(_java_path(self))

    def remove(self) -> None:
        """Remove this file, or this folder with everything in it, if it exists."""
        with _java_errors(self, "removed"):
            _hadoop(self).delete(_java_path(self), True)

    def rename(self, target: "RemotePath") -> None:
        """Rename this file or folder.

        Parameters
        ----------
        target
            The new path, which must not exist.

        Raises
        ------
        InputError
            If it cannot be renamed.
        """
        with _java_errors(target, "written"):
            if not _hadoop(self).rename(_java_path(self), _java_path(target)):
                raise InputError(str(target), f"cannot be written ({self} cannot be renamed)")

    def in_object_store(self) -> tuple["pyarrow.fs.FileSystem", str]:
        """Return pyarrow's file system for this path, which must be in an object store.

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

        scheme, _, host = self.root.partition("://")
        if scheme not in OBJECT_STORES:
            problem = (
                "cannot be used by Python without Java: give a local folder or an object store (s3a://, gs://, abfs://)"
            )
            raise InputError(str(self), problem)
        scheme = OBJECT_STORES[scheme]
        if scheme == "s3":
            # Unlike from_uri, this does not ask the server for the region of the bucket. pyarrow takes everything from
            # the usual environment variables except the address of a server that is not Amazon's.
            endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
            return pyarrow.fs.S3FileSystem(endpoint_override=endpoint), f"{host}{self.path}"
        try:
            system, path = pyarrow.fs.FileSystem.from_uri(f"{scheme}://{host}{self.path}")
        except (pa.ArrowException, OSError, ValueError) as error:
            raise InputError(str(self), f"cannot be used ({reason(error)})") from error
        return system, path


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
