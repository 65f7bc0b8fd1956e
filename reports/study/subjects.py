"""The instances of a study, and the commands with which a reader obtains each of them."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from relocbench.instances.files.file_name import safe_file_name
from relocbench.instances.generators.families import FAMILIES, Cell, Value, family
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import instance_files, read_instance, read_instances, write_instance
from relocbench.instances.library.library import Library
from relocbench.runs.method_code import BY_VALUE

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
    chosen_group, chosen_block
        The group and the block that the user has chosen, see :mod:`reports.study.groups`; None for the default.
    """

    instance: Instance
    source: str
    made_by: str | None = None
    chosen_group: str | None = None
    chosen_block: str | None = None

    def command(self, selector: str, seed: int, time_limit: float, code: str = "") -> str:
        """Return the command that repeats a run.

        Parameters
        ----------
        selector, seed, time_limit, code
            The run.

        Returns
        -------
        str
            The command, for a shell. For a function that was given by value it is a call in Python, because no command
            can find such a function.
        """
        if code.startswith(BY_VALUE):
            function = selector.rpartition(":")[2].partition("[")[0]
            more = f", time_limit={time_limit:g}" if time_limit != SOLVE_TIME_LIMIT else ""
            return f"relocbench.solve(relocbench.read({self.source!r}), {function}, seed={seed}{more})  # Python"
        solve = f"relocbench solve {shlex.quote(self.source)} --method {shlex.quote(selector)} --seed {seed}"
        if time_limit != SOLVE_TIME_LIMIT:
            solve += f" --time-limit {time_limit:g}"
        return solve if self.made_by is None else f"{self.made_by} && {solve}"

    @property
    def group(self) -> str:
        """The instances among which methods are compared, and that one figure shows.

        It is the family, with the files that the instance was made from. An instance without a family belongs to the
        group of its name without the trailing seed, so ``melbourne-0`` to ``melbourne-5`` are one group. An instance of
        a family under another name, such as ``large-s5-m1000-0``, belongs to the group of the first word.
        """
        if self.chosen_group is not None:
            return self.chosen_group
        family_name = self.family
        if not family_name:
            return self.name_without_seed
        if self.instance.name.startswith(f"{family_name}-"):
            return family_name + self._files
        return self.instance.name.partition("-")[0] or family_name

    @property
    def regime(self) -> str:
        """The row of the table that the instance belongs to, a part of its group.

        It is the regime if the family has regimes, else the cell of the family. A group that the user has chosen is one
        row.
        """
        if self.chosen_group is not None:
            return self.chosen_group
        # A load replaces the capacities that the regime stands for.
        if "regime" in self.instance.parameters and "load" not in self.instance.parameters:
            return f"{self.group}-{self.instance.parameters['regime']}"
        return self.name_without_seed

    @property
    def block(self) -> str:
        """The instances that are one independent sample, because they share random draws.

        It is the seed of the family if the cells of the family share draws, else the instance itself. Instances that
        differ only in their load share all draws.
        """
        if self.chosen_block is not None:
            return self.chosen_block
        seed = self.instance.parameters.get("seed")
        known = FAMILIES.get(self.family)
        if not self.family or seed is None:
            return self.instance.hash
        if known is not None and not known.parameters_class.cells_share_draws:
            return re.sub(r"-load-[^-]+", "", self.instance.name)
        return f"{self.family}, seed {seed}"

    @property
    def family(self) -> str:
        """The name of the family; empty if the instance has none."""
        return str(self.instance.parameters.get("family", ""))

    @property
    def _files(self) -> str:
        """The part of the name that says which files of real data the instance was made from."""
        files = (self.instance.parameters.get(what) for what in ("social", "sites", "people"))
        suffix = "".join(f"-{str(file).partition('.')[0]}" for file in files if file is not None)
        return suffix if self.instance.name.endswith(suffix) else ""

    @property
    def name_without_seed(self) -> str:
        """The name without the seed; for a name without a seed, the name."""
        files = self._files
        cell, dash, seed = self.instance.name.removesuffix(files).rpartition("-")
        return cell + files if dash and seed.isdecimal() else self.instance.name or self.instance.hash[:12]

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
