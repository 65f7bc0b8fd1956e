"""The units of work of a study of moving clients. Each is independent, and its result is one small file."""

import functools
import hashlib
import itertools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relocbench.formulations.certificates.integer_problem import check_size
from relocbench.instances.errors import InputError
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.timeline.summary import summarise
from relocbench.instances.timeline.timeline import Timeline
from relocbench.instances.timeline.timeline_parquet import read_timeline
from relocbench.reports.moving.plan import Pair, Subject
from relocbench.runs.method_code import project_code
from relocbench.runs.processes import stop_is_requested
from relocbench.runs.timeline.certify_timeline import certify_timeline
from relocbench.runs.timeline.epoch_bounds import epoch_bounds
from relocbench.runs.timeline.policy_selectors import as_policy
from relocbench.runs.timeline.replay import replay
from relocbench.runs.timeline.replay_rows import EpochRow

# Bounds are computed for this many epochs at a time: the first epoch of a block cannot start from the one before.
EPOCHS_PER_BLOCK = 60
# The seed of the methods. Timelines differ in their seeds already.
SEED = 0
# The modules whose code determines the results.
REPLAY = "relocbench.runs.timeline.replay"
BOUNDS = "relocbench.runs.timeline.epoch_bounds"
CERTIFY = "relocbench.runs.timeline.certify_timeline"
SUMMARY = "relocbench.instances.timeline.summary"


class StudyInterruptedError(Exception):
    """The study was interrupted while a unit was under way."""


@dataclass(frozen=True)
class Unit:
    """A piece of work on one timeline.

    Attributes
    ----------
    subject
        The timeline.
    """

    subject: Subject

    def run(self, replays: Path) -> dict[str, Any]:
        """Do the work.

        Parameters
        ----------
        replays
            The folder for replays.

        Returns
        -------
        dict
            The result, as JSON.
        """
        return self._result(replays)

    @functools.cached_property
    def digest(self) -> str:
        """The name of the file with the result. Other code has other names. It stays if a file is edited meanwhile."""
        text = json.dumps([type(self).__name__, self.subject.hash, *self._key()])
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def _key(self) -> list[object]:
        """Return what determines the result besides the timeline, as values that JSON can hold."""
        raise NotImplementedError

    def _result(self, replays: Path) -> dict[str, Any]:
        raise NotImplementedError


@dataclass(frozen=True)
class ReplayUnit(Unit):
    """A replay of the timeline."""

    pair: Pair
    time_limit: float

    def _key(self) -> list[object]:
        policy, method = as_policy(self.pair.policy), self.pair.method
        return [
            str(policy),
            str(method),
            self.time_limit,
            SEED,
            policy.version(),
            method.version(),
            project_code(REPLAY),
        ]

    def _result(self, replays: Path) -> dict[str, Any]:
        clusters: list[int] = []

        def on_epoch(row: EpochRow) -> None:
            _stop_if_requested()
            if row.clusters is not None:
                clusters.append(row.clusters)

        policy, method = as_policy(self.pair.policy), self.pair.method
        found = replay(
            _timeline(self.subject.file),
            policy,
            method,
            seed=SEED,
            time_limit=self.time_limit,
            out=replays,
            on_epoch=on_epoch,
        )
        assert found.path is not None
        return {
            **found.cost.values(),
            "policy": str(policy),
            "method": str(method),
            "solves": found.solves,
            "solve_seconds": found.solve_seconds,
            "clusters": sum(clusters) / len(clusters) if clusters else None,
            "replay": found.path.name,
        }


@dataclass(frozen=True)
class BoundUnit(Unit):
    """The bounds of some consecutive epochs, each by itself."""

    block: int

    def _key(self) -> list[object]:
        return [self.block, EPOCHS_PER_BLOCK, project_code(BOUNDS)]

    def _result(self, replays: Path) -> dict[str, Any]:
        first = self.block * EPOCHS_PER_BLOCK
        timeline = _timeline(self.subject.file)
        epochs = list(itertools.islice(timeline.epochs(), first, first + EPOCHS_PER_BLOCK))
        period = timeline.prices.publication_period
        return {
            "start": [epoch.start for epoch in epochs],
            "length": [epoch.length for epoch in epochs],
            "clients": [epoch.instance.n_clients for epoch in epochs],
            "publications": [epoch.instance.n_publications * epoch.length / period for epoch in epochs],
            "bound": epoch_bounds(epochs, on_epoch=_stop_if_requested),
        }


@dataclass(frozen=True)
class CertifyUnit(Unit):
    """A bound on all epochs together, which counts relocation."""

    replay: str
    seconds: float

    def _key(self) -> list[object]:
        return [self.replay, self.seconds, project_code(CERTIFY)]

    def _result(self, replays: Path) -> dict[str, Any]:
        timeline = _timeline(self.subject.file)
        try:
            for epoch in timeline.epochs():
                check_size(epoch.instance)
        except InputError:  # an epoch is too large for the verifier
            return {"bound": 0.0}
        found = certify_timeline(
            timeline,
            schedule=replays / self.replay,
            time_limit=self.seconds,
            on_progress=lambda *_: _stop_if_requested(),
        )
        if found.interrupted:  # a bound that was computed in less time is not the result
            raise KeyboardInterrupt
        return {"bound": found.bound}


@dataclass(frozen=True)
class SummaryUnit(Unit):
    """The sizes of the timeline, and how much changes in it."""

    def _key(self) -> list[object]:
        return [project_code(SUMMARY)]

    def _result(self, replays: Path) -> dict[str, Any]:
        timeline = _timeline(self.subject.file)
        prices = timeline.prices
        return {
            "servers": timeline.n_servers,
            "handover_price": prices.handover,
            "spool_price": prices.spool,
            "publication_period": prices.publication_period,
            **summarise(timeline.epochs()),
        }


def blocks(subject: Subject) -> list[BoundUnit]:
    """Return the units that compute the bounds of a timeline.

    Parameters
    ----------
    subject
        The timeline.

    Returns
    -------
    list of BoundUnit
        The units in the order of the epochs.
    """
    return [BoundUnit(subject, block) for block in range(-(-subject.epochs // EPOCHS_PER_BLOCK))]


def read_result(path: Path) -> dict[str, Any] | None:
    """Read the result of a unit.

    Parameters
    ----------
    path
        Its file.

    Returns
    -------
    dict or None
        The result; None if the file does not exist or is damaged, so that the unit has to run again.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def write_result(path: Path, result: dict[str, Any]) -> None:
    """Write the result of a unit, completely or not at all.

    Parameters
    ----------
    path
        Its file.
    result
        The result.
    """
    with written_whole(path) as temporary:
        temporary.write_text(json.dumps(result), encoding="utf-8")


def _stop_if_requested() -> None:
    if stop_is_requested():
        raise StudyInterruptedError


@functools.lru_cache(maxsize=4)
def _timeline(file: Path) -> Timeline:
    return read_timeline(file)
