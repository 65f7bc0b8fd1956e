"""What a study of moving clients runs: its timelines, and the policies and methods for each of them."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from relocbench.instances.errors import InputError
from relocbench.instances.files.file_name import safe_file_name
from relocbench.instances.generators.families import Value
from relocbench.instances.timeline.moving_generator import MovingCell
from relocbench.instances.timeline.timeline import Timeline
from relocbench.instances.timeline.timeline_parquet import read_timeline, write_timeline
from relocbench.runs.method_code import project_code
from relocbench.runs.methods import Selector
from relocbench.runs.selectors import PLACE_AND_FUNCTION, parse_selectors, require_available, split_at_commas
from relocbench.runs.timeline.policy_selectors import as_policy, parse_policies

GENERATOR = "relocbench.instances.timeline.moving_generator"
# This policy needs the method in the first epoch only, so it is run with the first method only.
RELOCATE = "relocate"
# The numbers of clusters are compared with homes that are computed again after this many epochs.
CLUSTER_PERIOD = 5


@dataclass(frozen=True)
class Plan:
    """What to study. The defaults are a reduced form of the family ``moving``.

    Attributes
    ----------
    speeds, prices, seeds
        The mean speeds in km/h, the factors of both default prices, and the seeds of generated timelines.
    parameters
        Further parameters of generated timelines, as for :func:`generate_timeline`.
    files
        Timeline files, which replace the generated timelines.
    periods
        The periods of ``every[k=…]``, in epochs. Each is combined with each method.
    policies
        Further policies. Each is combined with each method, except ``relocate``, which is run with the first one only.
    methods
        Selectors of methods. The page asks its questions about the first one.
    clusters
        Numbers of clusters of RELOC to compare, or ``auto``; none without ``reloc`` among the methods.
    sizes
        The numbers of clients for which the time of each method is measured.
    time_limit
        Seconds for each run of a method.
    bound_time
        Seconds for a bound on each timeline that counts relocation; 0 for the sum of the epochs' bounds only.
    """

    speeds: tuple[float, ...] = (5.0, 30.0, 100.0)
    prices: tuple[float, ...] = (1.0,)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    parameters: Mapping[str, Value] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    periods: tuple[int, ...] = (1, 2, 5, 10, 30, 60)
    policies: tuple[str, ...] = ("threshold[worse=0.05]", "relocate", "relocate[ahead=4]")
    methods: tuple[str, ...] = ("reloc", "nearest", "adaptive")
    clusters: tuple[str, ...] = ("1", "2", "4", "8", "16", "auto")
    sizes: tuple[int, ...] = (1_000, 10_000, 100_000)
    time_limit: float = 60.0
    bound_time: float = 0.0

    def __post_init__(self) -> None:
        if not self.periods and not self.policies:
            raise InputError("--periods", "expected at least one period, or a policy with --policies")
        for name, values in (("methods", self.methods), ("speeds", self.speeds), ("prices", self.prices)):
            if not values:
                raise InputError(f"--{name}", "expected at least one")
        if not self.seeds:
            raise InputError("--seeds", "expected at least one")
        for k in self.periods:
            if k < 1:
                raise InputError("--periods", f"expected whole numbers of epochs from 1, got {k}")
        # Errors are found here, not after timelines have been generated.
        _ = self.selectors, self.cluster_selectors, self.policy_texts

    @property
    def selectors(self) -> list[Selector]:
        """The methods, checked."""
        found = parse_selectors(self.methods)
        require_available(found)
        return found

    @property
    def cluster_selectors(self) -> list[Selector]:
        """RELOC with each number of clusters."""
        reloc = next((one for one in self.selectors if one.method.name == "reloc"), None)
        if reloc is None:
            return []
        others = ",".join(f"{name}={value}" for name, value in reloc.settings.items() if name not in ("k", "near"))
        return parse_selectors([f"reloc[k={k}{',' if others else ''}{others}]" for k in self.clusters])

    @property
    def policy_texts(self) -> list[str]:
        """The further policies, checked. Those in files have absolute paths, so that any process finds them."""
        texts = [part for text in self.policies for part in split_at_commas(text)]
        parse_policies(texts)
        found = []
        for text in texts:
            match = PLACE_AND_FUNCTION.fullmatch(text)
            if match is not None and match[1].endswith(".py"):
                text = f"{Path(match[1]).expanduser().resolve()}{text[len(match[1]) :]}"
            found.append(text)
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Subject:
    """A timeline of the study.

    Attributes
    ----------
    file
        The timeline file.
    name, hash
        Of the timeline.
    group
        What replicates have in common, such as ``30 km/h``. The page has one line or panel for each group.
    speed
        The mean speed in km/h that the timeline was generated with; None for a trace.
    seed
        The seed that it was generated with, or its number among the files.
    epochs
        The number of epochs.
    """

    file: Path
    name: str
    hash: str
    group: str
    speed: float | None
    seed: int
    epochs: int

    def timeline(self) -> Timeline:
        """Read the timeline.

        Returns
        -------
        Timeline
            The timeline.
        """
        return read_timeline(self.file)


@dataclass(frozen=True)
class Pair:
    """A policy with a method, as texts."""

    policy: str
    method: Selector
    clusters_only: bool = False


def pairs(plan: Plan, n_epochs: int) -> list[Pair]:
    """Return the policies and methods for a timeline.

    Parameters
    ----------
    plan
        The plan.
    n_epochs
        The number of epochs of the timeline. A longer period is the same as this one.

    Returns
    -------
    list of Pair
        The pairs, each once. Those that only compare numbers of clusters come last.
    """
    selectors = plan.selectors
    found = [
        Pair(f"every[k={k}]", selector)
        for k in sorted({min(k, n_epochs) for k in plan.periods})
        for selector in selectors
    ]
    for text in plan.policy_texts:
        chosen = selectors[:1] if as_policy(text).name == RELOCATE else selectors
        found += [Pair(text, selector) for selector in chosen]
    period = f"every[k={min(CLUSTER_PERIOD, n_epochs)}]"
    found += [Pair(period, selector, clusters_only=True) for selector in plan.cluster_selectors]
    return list({(pair.policy, str(pair.method)): pair for pair in reversed(found)}.values())[::-1]


def subjects(plan: Plan, folder: Path) -> list[Subject]:
    """Return the timelines of a plan; generated ones are written, unless they are there.

    Parameters
    ----------
    plan
        The plan.
    folder
        The folder for generated timelines.

    Returns
    -------
    list of Subject
        The timelines.

    Raises
    ------
    InputError
        If a file is not a timeline, two files hold the same one, or a parameter is wrong.
    """
    found = _given(plan.files) if plan.files else _generated(plan, folder)
    seen: dict[str, Subject] = {}
    for one in found:
        if (other := seen.setdefault(one.hash, one)) is not one:
            raise InputError(str(one.file), f"expected different timelines, this one is also in {other.file}")
    return found


def _generated(plan: Plan, folder: Path) -> list[Subject]:
    found = []
    for speed in plan.speeds:
        for price in plan.prices:
            group = f"{speed:g} km/h" + (f", prices ×{price:g}" if len(plan.prices) > 1 else "")
            for seed in plan.seeds:
                cell = MovingCell(speed, price, 1)
                key = json.dumps([dict(plan.parameters), project_code(GENERATOR)], sort_keys=True)
                digest = hashlib.sha256(key.encode()).hexdigest()[:12]
                path = (folder / safe_file_name(f"{cell.name(seed)}-{digest}", ".parquet")).resolve()
                if not path.exists():
                    write_timeline(cell.build(seed, **plan.parameters), path)
                read = read_timeline(path)
                found.append(Subject(path, read.name, read.hash, group, speed, seed, read.n_epochs))
    return found


def _given(files: Sequence[Path]) -> list[Subject]:
    """Return given timelines. Generated ones that differ in their seeds only are replicates of one group."""
    found = []
    for number, file in enumerate(files):
        read = read_timeline(file)
        made = read.parameters if read.parameters.get("family") == "moving" else {}
        speed, seed = made.get("speed"), made.get("seed")
        name, dash, end = read.name.rpartition("-")
        replicate = dash and seed is not None and end == str(seed)
        group = name if replicate else read.name or file.stem
        speed = float(speed) if isinstance(speed, int | float) else None
        own_seed = seed if isinstance(seed, int) else number
        found.append(Subject(file.resolve(), read.name or file.stem, read.hash, group, speed, own_seed, read.n_epochs))
    by_group = {one.group: one.speed for one in found}
    speeds = list(by_group.values())
    if None not in speeds and len(set(speeds)) == len(speeds):
        return [replace(one, group=f"{one.speed:g} km/h") for one in found]
    return found
