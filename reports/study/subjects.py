"""The instances of a study, and the commands with which a reader obtains each of them."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from relocbench.instances.files.file_name import safe_file_name
from relocbench.instances.generators.families import Cell, Value, family
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import instance_files, read_instance, read_instances, write_instance
from relocbench.instances.library.library import Library

# The optimum of instances of these numbers of clients is proved within seconds in every regime.
DEFAULT_SMALL_CLIENTS = (10, 15, 20)
DEFAULT_SMALL_SEEDS = range(5)
# Of these paper-sized replicates the library has proofs for the first four; the others get a bound during the study.
DEFAULT_PAPER_SEEDS = range(6)
# The default time limit of ``relocbench solve``, in seconds.
SOLVE_TIME_LIMIT = 60


@dataclass(frozen=True, eq=False)
class Subject:
    """An instance of a study.

    Attributes
    ----------
    instance
        The instance.
    source
        The file or ``library:`` name that commands read it from.
    made_by
        The command that writes that file; None if the file exists already.
    """

    instance: Instance
    source: str
    made_by: str | None = None

    def command(self, selector: str, seed: int, time_limit: float) -> str:
        """Return the command that repeats a run.

        Parameters
        ----------
        selector, seed, time_limit
            The run.

        Returns
        -------
        str
            The command, for a shell.
        """
        solve = f"relocbench solve {shlex.quote(self.source)} --method {shlex.quote(selector)} --seed {seed}"
        if time_limit != SOLVE_TIME_LIMIT:
            solve += f" --time-limit {time_limit:g}"
        return solve if self.made_by is None else f"{self.made_by} && {solve}"

    @property
    def group(self) -> str:
        """The family, or the first word of the name if there is none. Methods are compared within a group."""
        named = str(self.instance.parameters.get("family", ""))
        name = self.instance.name
        return named if named and name.startswith(f"{named}-") else name.partition("-")[0] or "unnamed"

    @property
    def regime(self) -> str:
        """The regime if the family has regimes, else the cell of the family. The excess is summarised by regime."""
        if "regime" in self.instance.parameters:
            return f"{self.group}-{self.instance.parameters['regime']}"
        cell, dash, seed = self.instance.name.rpartition("-")
        return cell if dash and seed.isdecimal() else self.instance.name or self.instance.hash[:12]

    @property
    def sigma(self) -> float | None:
        """The spread of a topic's members in km, if it is known."""
        value = self.instance.parameters.get("sigma")
        return float(value) if isinstance(value, int | float) else None


def of_family(name: str, seeds: Sequence[int] | None, parameters: Mapping[str, Value]) -> list[Subject]:
    """Generate instances of a family.

    Parameters
    ----------
    name
        The family.
    seeds
        The seeds of the instances; None for all replicates of the family.
    parameters
        Parameters that choose cells or replace what the family fixes.

    Returns
    -------
    list of Subject
        Every chosen cell with every seed.
    """
    chosen = family(name)
    replicates = range(chosen.replicates) if seeds is None else seeds
    return [_from_cell(cell, seed) for cell in chosen.cells(parameters) for seed in replicates]


def of_files(paths: Iterable[Path]) -> list[Subject]:
    """Read instances from files.

    Parameters
    ----------
    paths
        Files, folders and ``library:`` patterns.

    Returns
    -------
    list of Subject
        The instances.
    """
    found: list[Subject] = []
    for path in paths:
        for file in instance_files(path):
            text = str(file)
            if ".parquet#" in text:
                found.append(_subject(read_instance(file), text))
            else:
                several = text.endswith(".parquet")
                found += [_subject(one, f"{text}#{one.name}" if several else text) for one in read_instances(file)]
    return found


def kept(instance: Instance, folder: Path) -> Subject:
    """Write an instance that exists only in memory, so that commands can read it.

    Parameters
    ----------
    instance
        The instance; one of the library is not written.
    folder
        The folder to write it to.

    Returns
    -------
    Subject
        The instance with its file.
    """
    subject = _subject(instance, str(folder / f"{instance.hash[:16]}.json"))
    if not subject.source.startswith("library:") and not Path(subject.source).exists():
        write_instance(instance, subject.source)
    return subject


def default() -> list[Subject]:
    """Return the instances of the default study: small ones of every regime, and those of the paper.

    Returns
    -------
    list of Subject
        The instances, regime by regime.
    """
    small = [
        subject
        for clients in DEFAULT_SMALL_CLIENTS
        for subject in of_family("small", DEFAULT_SMALL_SEEDS, {"clients": clients})
    ]
    small.sort(key=lambda subject: ("loose", "scarce", "overloaded").index(str(subject.instance.parameters["regime"])))
    return [*small, *of_family("paper", DEFAULT_PAPER_SEEDS, {})]


def without_duplicates(subjects: Iterable[Subject]) -> list[Subject]:
    """Remove repeated instances.

    Parameters
    ----------
    subjects
        The instances.

    Returns
    -------
    list of Subject
        The first subject of each instance, in the same order.
    """
    found: dict[str, Subject] = {}
    for subject in subjects:
        found.setdefault(subject.instance.hash, subject)
    return list(found.values())


def _from_cell(cell: Cell, seed: int) -> Subject:
    instance = cell.build(seed)
    file = safe_file_name(instance.name, ".json")
    settings = " ".join(f"--set {shlex.quote(f'{name}={value}')}" for name, value in (cell.varied | cell.extra).items())
    made_by = f"relocbench generate --family {cell.family.name} {settings} --seed {seed} --out {shlex.quote(file)}"
    return _subject(instance, file, made_by)


def _subject(instance: Instance, source: str, made_by: str | None = None) -> Subject:
    """Return the subject of an instance; commands read an instance of the library from the library."""
    name = _library_names().get(instance.hash)
    return Subject(instance, source, made_by) if name is None else Subject(instance, f"library:{name}")


@cache
def _library_names() -> dict[str, str]:
    return {entry.instance: name for name, entry in Library().entries.items()}
