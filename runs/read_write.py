"""Reading and writing of everything that users keep in files: instances, solutions and certificates."""

from pathlib import Path

from relocbench.formulations.certificates.certificate import Certificate, write_certificate
from relocbench.formulations.certificates.timeline_certificate import TimelineCertificate, write_timeline_certificate
from relocbench.instances.errors import InputError, shown
from relocbench.instances.files.solution_file import write_solution
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import read_instance, write_instance
from relocbench.instances.timeline.timeline import Timeline
from relocbench.instances.timeline.timeline_parquet import write_timeline
from relocbench.runs.certify import Certified
from relocbench.runs.solve import Result


def read(path: str | Path) -> Instance:
    """Read one instance.

    Parameters
    ----------
    path
        A file, or ``library:NAME`` for an instance of the library. For a Parquet file with several instances the name
        of one follows after ``#``: ``family.parquet#paper-s10-3``.

    Returns
    -------
    Instance
        The instance.

    Raises
    ------
    InputError
        If the source cannot be read, or contains no instance or several.

    Examples
    --------
    >>> import relocbench
    >>> relocbench.read("library:paper-s10-3")
    <Instance paper-s10-3: 380 clients, 16 servers, 64 topics>
    """
    return read_instance(path)


def write(
    value: Instance | Timeline | Result | Certified | Certificate | TimelineCertificate, path: str | Path
) -> None:
    """Write an instance, a timeline, a solution or a certificate to a file, completely or not at all.

    Parameters
    ----------
    value
        An instance or a timeline; the result of ``solve``, which becomes a solution file; or the result of ``certify``
        or a certificate, also of a timeline, which become a certificate file.
    path
        The file. An instance is written to ``.json``, ``.json.gz`` or ``.parquet``, a timeline to ``.parquet``, a
        solution to ``.json``, a certificate to ``.json`` or ``.json.gz``.

    Raises
    ------
    InputError
        If the value is something else, the name has another ending, or the file cannot be written.

    Examples
    --------
    >>> import relocbench
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> relocbench.write(instance, "inst.json")
    >>> relocbench.write(relocbench.solve(instance, "nearest"), "sol.json")
    >>> relocbench.read("inst.json").hash == instance.hash
    True
    """
    if isinstance(value, Instance):
        write_instance(value, path)
    elif isinstance(value, Timeline):
        write_timeline(value, path)
    elif isinstance(value, Result):
        write_solution(value.stored(), path)
    elif isinstance(value, Certified):
        write_certificate(value.certificate, path)
    elif isinstance(value, Certificate):
        write_certificate(value, path)
    elif isinstance(value, TimelineCertificate):
        write_timeline_certificate(value, path)
    else:
        raise InputError("value", f"expected an instance, a timeline, a result or a certificate, got {shown(value)}")
