"""What is studied: instances, and how a reader gets hold of each."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from relocbench.instances.generators.families import Cell, Value, family
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import instance_files, read_instance, read_instances, write_instance
from relocbench.instances.library.library import Library

# Small enough for a proof of the optimum within seconds, in every regime.
DEFAULT_SMALL, DEFAULT_SMALL_SEEDS = (10, 15, 20), range(5)
# At the paper's size the library has proofs for the first four; the others are bounded on the spot.
DEFAULT_PAPER_SEEDS = range(6)


@dataclass(frozen=True, eq=False)
class Subject:
    """An instance, what commands read it from, and the command that puts it there (None where it is there already)."""

    instance: Instance
    source: str
    made_by: str | None = None

    def command(self, selector: str, seed: int, time_limit: float) -> str:
        """Return the command that repeats a run."""
        solve = f"relocbench solve {shlex.quote(self.source)} --method {shlex.quote(selector)} --seed {seed}"
        if time_limit != 60:  # which is the command's own
            solve += f" --time-limit {time_limit:g}"
        return solve if self.made_by is None else f"{self.made_by} && {solve}"

    @property
    def group(self) -> str:
        """The family, or what a name begins with that is of none: what methods are compared within."""
        named = str(self.instance.parameters.get("family", ""))
        name = self.instance.name
        return named if named and name.startswith(f"{named}-") else name.partition("-")[0] or "unnamed"

    @property
    def regime(self) -> str:
        """What gaps are summed up over: the regime where the family has some, else its cell."""
        if "regime" in self.instance.parameters:
            return f"{self.group}-{self.instance.parameters['regime']}"
        cell, dash, seed = self.instance.name.rpartition("-")
        return cell if dash and seed.isdecimal() else self.instance.name or self.instance.hash[:12]

    @property
    def sigma(self) -> float | None:
        """The spread of a topic's members, km, where it is known."""
        value = self.instance.parameters.get("sigma")
        return float(value) if isinstance(value, int | float) else None


def of_family(name: str, seeds: Sequence[int] | None, parameters: Mapping[str, Value]) -> list[Subject]:
    """Return every chosen cell of a family with every seed."""
    chosen = family(name)
    replicates = range(chosen.replicates) if seeds is None else seeds
    return [_of_cell(cell, seed) for cell in chosen.cells(parameters) for seed in replicates]


def of_files(paths: Iterable[Path]) -> list[Subject]:
    """Return the instances of files and folders, and of ``library:`` patterns."""
    found: list[Subject] = []
    for path in paths:
        for file in instance_files(path):
            text = str(file)
            if ".parquet#" in text:
                found.append(_known(read_instance(file), text))
            else:
                several = text.endswith(".parquet")
                found += [_known(one, f"{text}#{one.name}" if several else text) for one in read_instances(file)]
    return found


def kept(instance: Instance, folder: Path) -> Subject:
    """Return an instance that is nowhere yet, written where commands can read it."""
    subject = _known(instance, str(folder / f"{instance.hash[:16]}.json"))
    if not subject.source.startswith("library:") and not Path(subject.source).exists():
        write_instance(instance, subject.source)
    return subject


def default() -> list[Subject]:
    """Return what is studied unless a user says otherwise: small instances, and those of the paper."""
    small = [
        subject
        for clients in DEFAULT_SMALL
        for subject in of_family("small", DEFAULT_SMALL_SEEDS, {"clients": clients})
    ]
    # Regime by regime, not size by size.
    small.sort(key=lambda subject: ("loose", "scarce", "overloaded").index(str(subject.instance.parameters["regime"])))
    return [*small, *of_family("paper", DEFAULT_PAPER_SEEDS, {})]


def once(subjects: Iterable[Subject]) -> list[Subject]:
    """Return the subjects; the same instance twice is one."""
    found: dict[str, Subject] = {}
    for subject in subjects:
        found.setdefault(subject.instance.hash, subject)
    return list(found.values())


def _of_cell(cell: Cell, seed: int) -> Subject:
    instance = cell.build(seed)
    file = f"{instance.name}.json"
    settings = " ".join(f"--set {shlex.quote(f'{name}={value}')}" for name, value in (cell.varied | cell.extra).items())
    made_by = f"relocbench generate --family {cell.family.name} {settings} --seed {seed} --out {shlex.quote(file)}"
    return _known(instance, file, made_by)


def _known(instance: Instance, source: str, made_by: str | None = None) -> Subject:
    """Return a subject; one of the library is read from there."""
    name = _library().get(instance.hash)
    return Subject(instance, source, made_by) if name is None else Subject(instance, f"library:{name}")


@cache
def _library() -> dict[str, str]:
    return {entry.instance: name for name, entry in Library().entries.items()}
