"""Given homes from which a method starts: a file, or a list of one server per client."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from relocbench.instances.errors import InputError, reason, shown
from relocbench.instances.evaluation import checked_home
from relocbench.instances.files.homes_file import read_homes
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray


@dataclass(frozen=True)
class StartHomes:
    """Homes to start from.

    Attributes
    ----------
    label
        The name in a selector: the file, or ``given``.
    digest
        A hash of the file or of the homes, which is part of what identifies a run.
    path
        The file with its absolute path; None for given homes.
    home
        The given homes; None for those of a file, which are read when the instance is known.
    """

    label: str
    digest: str
    path: Path | None = None
    home: tuple[int, ...] | None = None

    @classmethod
    def in_file(cls, path: Path) -> "StartHomes":
        """Return the homes that a file contains.

        Parameters
        ----------
        path
            A file that :func:`instances.files.homes_file.read_homes` reads.

        Returns
        -------
        StartHomes
            The homes.

        Raises
        ------
        InputError
            If the file cannot be read.
        """
        try:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise InputError(f"start: {path}", f"cannot be read ({reason(error)})") from error
        return cls(str(path), digest[:16], path.resolve())

    @classmethod
    def given(cls, home: npt.ArrayLike) -> "StartHomes":
        """Return homes that exist in memory.

        Parameters
        ----------
        home
            One server per client, or an object that has them as its attribute ``home``, such as a result.

        Returns
        -------
        StartHomes
            The homes, which are checked when the instance is known.

        Raises
        ------
        InputError
            If they are not a list of whole numbers.
        """
        array = np.asarray(getattr(home, "home", home))
        whole = array.ndim == 1 and array.dtype.kind in "iuf" and bool(np.isfinite(array).all())
        if not whole or not np.array_equal(array, np.floor(array)):
            raise InputError("start", f"expected one server per client as whole numbers, got {shown(home)}")
        homes = tuple(map(int, array))
        return cls("given", hashlib.sha256(repr(homes).encode()).hexdigest()[:16], home=homes)

    def read(self, instance: Instance) -> IntArray:
        """Return the homes of the clients of an instance.

        Parameters
        ----------
        instance
            The instance.

        Returns
        -------
        array
            One server per client.

        Raises
        ------
        InputError
            If they are not an assignment of the instance.
        """
        if self.path is not None:
            return read_homes(self.path, instance)
        return checked_home(instance, np.array(self.home))

    def version(self) -> str:
        """Return what identifies the homes.

        Returns
        -------
        str
            The label and the hash.
        """
        return f"{self.label} ({self.digest})"

    def __str__(self) -> str:
        return self.label
