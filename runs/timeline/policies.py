"""Policies: functions that decide at the beginning of each epoch whether homes are computed again.

To add a policy, write a function

    policy(history, epoch, *, <parameters with types and defaults>) -> homes or None

and add it to ``POLICIES``. None keeps the homes as they are; a client that arrives then goes to its nearest server.
"""

import functools
import inspect
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy.typing as npt

from relocbench.heuristics.anneal import relocate as anneal_relocating
from relocbench.instances.errors import InputError, did_you_mean, one_of, shown
from relocbench.instances.evaluation import evaluate
from relocbench.instances.gap import gap as relative_gap
from relocbench.instances.generators.families import family
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.nearest_server import nearest_server
from relocbench.instances.settings import setting
from relocbench.instances.timeline.relocation_state import relocation_to
from relocbench.instances.timeline.schedule_cost import ScheduleCost
from relocbench.instances.timeline.timeline import Epoch, Timeline
from relocbench.instances.timeline.window import window_instance
from relocbench.runs.certify import certify
from relocbench.runs.exception_text import described
from relocbench.runs.external_function import code_at, load_function
from relocbench.runs.method_code import function_code, project_code
from relocbench.runs.methods import setting_text
from relocbench.runs.run_error import RunError
from relocbench.runs.selectors import NAME, PLACE_AND_FUNCTION, split_at_commas
from relocbench.runs.solve import warm_up
from relocbench.runs.timeline.method_runner import MethodRunner, Solved

# A history remembers the costs of this many epochs.
REMEMBERED = 64


@dataclass(frozen=True)
class LastSolve:
    """The last time that homes were computed.

    Attributes
    ----------
    number
        The epoch.
    y
        Mean delay of a publication of that epoch with the new homes.
    clusters
        The number of clusters that RELOC chose; None for other methods.
    """

    number: int
    y: float
    clusters: int | None = None


@dataclass(eq=False)
class History:
    """What a policy knows when an epoch begins.

    Attributes
    ----------
    timeline
        The timeline with its prices. A policy that looks at later epochs knows the future.
    home
        The homes that apply if the policy returns None: those so far, and the nearest server for clients that arrive.
    before
        The epoch before and its homes; None in the first epoch.
    last_solve
        When homes were last computed; None if never.
    costs
        The costs of the last epochs, at most 64 of them, the latest one last.
    seed, time_limit
        Of the method.
    upcoming
        Returns the next epochs, at most as many as are asked for.
    """

    timeline: Timeline
    home: IntArray
    before: tuple[Epoch, IntArray] | None
    last_solve: LastSolve | None
    costs: deque[ScheduleCost]
    seed: int
    time_limit: float
    upcoming: Callable[[int], list[Epoch]]
    _runner: MethodRunner
    _epoch: Epoch
    solved: Solved | None = field(default=None, init=False)

    def solve(self) -> IntArray:
        """Run the method of the replay on the present epoch.

        A method that takes a start begins with the homes so far.

        Returns
        -------
        array
            One server for each client that is present.

        Raises
        ------
        InputError
            If the method does not support the instance.
        RunError
            If the run failed.
        """
        start = None if self.before is None else self.home
        clusters = None if self.last_solve is None else self.last_solve.clusters
        self.solved = self._runner.solve(self._epoch.instance, start, clusters)
        return self.solved.home


PolicyFunction = Callable[..., npt.ArrayLike | None]


def never(history: History, epoch: Epoch) -> IntArray | None:
    """Solve in the first epoch, and never again.

    Parameters
    ----------
    history, epoch
        As for every policy.

    Returns
    -------
    array or None
        New homes in the first epoch only.
    """
    return history.solve() if history.last_solve is None else None


def always(history: History, epoch: Epoch) -> IntArray | None:
    """Solve in every epoch.

    Parameters
    ----------
    history, epoch
        As for every policy.

    Returns
    -------
    array
        New homes.
    """
    return history.solve()


def every(history: History, epoch: Epoch, *, k: int = 10) -> IntArray | None:
    """Solve in every k-th epoch.

    Parameters
    ----------
    history, epoch
        As for every policy.
    k
        The period, in epochs.

    Returns
    -------
    array or None
        New homes, or None to keep them.

    Raises
    ------
    InputError
        If ``k`` is below 1.
    """
    if k < 1:
        raise InputError("policy every: k", f"expected at least 1, got {k}")
    due = history.last_solve is None or epoch.number - history.last_solve.number >= k
    return history.solve() if due else None


def threshold(history: History, epoch: Epoch, *, worse: float = 0.1) -> IntArray | None:
    """Solve when the mean delay ``Y`` has risen too far above that of the last solve.

    Parameters
    ----------
    history, epoch
        As for every policy.
    worse
        The relative rise of ``Y`` that is accepted.

    Returns
    -------
    array or None
        New homes, or None to keep them.

    Raises
    ------
    InputError
        If ``worse`` is below 0.
    """
    if not worse >= 0:
        raise InputError("policy threshold: worse", f"expected at least 0, got {worse:g}")
    last = history.last_solve
    if last is None or evaluate(epoch.instance, history.home).y > (1 + worse) * last.y:
        return history.solve()
    return None


def gap(history: History, epoch: Epoch, *, above: float = 0.1, limit: float = 1.0) -> IntArray | None:
    """Solve when the certified gap of the present homes in the present epoch is too large.

    The gap is ``(ΣD - bound) / ΣD`` with the bound that ``certify`` proves.

    Parameters
    ----------
    history, epoch
        As for every policy.
    above
        The gap that is accepted.
    limit
        Seconds for the bound. The shorter, the weaker the bound, and the more often the method runs.

    Returns
    -------
    array or None
        New homes, or None to keep them.

    Raises
    ------
    InputError
        If ``above`` is below 0 or ``limit`` not above 0.
    """
    if not above >= 0 or not limit > 0:
        raise InputError("policy gap", f"expected above >= 0 and limit > 0, got {above:g} and {limit:g}")
    if history.last_solve is None:
        return history.solve()
    bound = certify(epoch.instance, seed=history.seed, time_limit=limit, start=history.home).bound
    found = relative_gap(evaluate(epoch.instance, history.home).objective, bound)
    return history.solve() if found is not None and found > above else None


def relocate(history: History, epoch: Epoch, *, ahead: int = 0, moves: int = 200_000) -> IntArray | None:
    """Improve the homes so far by annealing that counts delay and relocation together.

    In the first epoch it improves the homes of the method.

    Parameters
    ----------
    history, epoch
        As for every policy.
    ahead
        How many later epochs it looks at. The homes minimise what they cost if they stay for all these epochs, with
        the true positions of the clients in them. With 0 it knows the present epoch only.
    moves
        The number of proposals of the annealing.

    Returns
    -------
    array
        New homes.

    Raises
    ------
    InputError
        If ``ahead`` is below 0 or ``moves`` below 1.
    """
    if ahead < 0 or moves < 1:
        raise InputError("policy relocate", f"expected ahead >= 0 and moves >= 1, got {ahead} and {moves}")
    start = history.solve() if history.before is None else history.home
    instance, seconds = window_instance([epoch, *history.upcoming(ahead)])
    prices = relocation_to(epoch, history.timeline.prices, seconds, history.before)
    found = anneal_relocating(instance, prices, start, seed=history.seed, time_limit=history.time_limit, moves=moves)
    return found.home


POLICIES: Mapping[str, PolicyFunction] = {
    function.__name__: function for function in (never, always, every, threshold, gap, relocate)
}
RESERVED = ("history", "epoch")


@dataclass(frozen=True)
class Policy:
    """A policy with chosen parameters.

    Attributes
    ----------
    name
        Its name.
    function
        The function that decides.
    settings
        The parameters that were set; the others have their defaults.
    code
        The version of the code of a function in a file; otherwise empty.
    """

    name: str
    function: PolicyFunction
    settings: Mapping[str, Any] = field(default_factory=dict)
    code: str = ""

    def __str__(self) -> str:
        inside = ",".join(f"{name}={setting_text(value)}" for name, value in sorted(self.settings.items()))
        return f"{self.name}[{inside}]" if inside else self.name

    def __call__(self, history: History, epoch: Epoch) -> npt.ArrayLike | None:
        """Decide about an epoch.

        Parameters
        ----------
        history
            What is known so far.
        epoch
            The epoch that begins.

        Returns
        -------
        array-like or None
            New homes, or None to keep those so far.

        Raises
        ------
        InputError
            If a function in a file raises an exception of its own.
        """
        if not self.code:
            return self.function(history, epoch, **self.settings)
        try:
            return self.function(history, epoch, **self.settings)
        except (InputError, RunError):
            raise
        except Exception as error:
            raise InputError(f"policy {self}", f"raised {described(error)}") from error

    def warm_up(self) -> None:
        """Compile what the policy itself runs, so that its time is not that of compiling."""
        if self.function is gap:
            warm_up("bound")
        if self.function is relocate:
            _warm_up_relocation()

    def version(self) -> str:
        """Return the version of the policy's code.

        Returns
        -------
        str
            As in :mod:`runs.method_code`.
        """
        if self.name in POLICIES:
            return project_code(__name__)
        return self.code or function_code(self.function, self.name)


@functools.cache
def _warm_up_relocation() -> None:
    still = Timeline.static(family("preliminary").cells({"storage": 7.0})[0].build(0), n_epochs=1)
    epoch = still.epoch(0)
    home = nearest_server(epoch.instance)
    prices = relocation_to(epoch, still.prices, epoch.length, (epoch, home))
    anneal_relocating(epoch.instance, prices, home, seed=0, time_limit=60.0, moves=10_000)


PolicyLike = str | PolicyFunction | Policy


def as_policy(policy: PolicyLike) -> Policy:
    """Return a policy in any of the forms in which users may give it.

    Parameters
    ----------
    policy
        Text such as ``every[k=5]`` or ``mine.py:function[a=1]``, a function ``f(history, epoch) -> homes or None``,
        or a policy.

    Returns
    -------
    Policy
        The policy with its settings.

    Raises
    ------
    InputError
        If there is no such policy, a parameter does not exist or has a wrong value, or the function cannot be called
        with a history and an epoch.
    """
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, str):
        return _parsed(policy)
    if not callable(policy):
        raise InputError("policy", f"expected a name such as every[k=5], or a function, got {shown(policy)}")
    name = getattr(policy, "__name__", type(policy).__name__)
    try:
        inspect.signature(policy).bind(None, None)
    except (TypeError, ValueError) as error:
        raise InputError(f"policy {name}", f"expected a function f(history, epoch) ({error})") from None
    return Policy("own" if name in POLICIES else name, policy)


def parse_policies(texts: list[str]) -> list[Policy]:
    """Parse lists of policies.

    Parameters
    ----------
    texts
        Policies, each text one or several between commas.

    Returns
    -------
    list of Policy
        The policies in the given order, each once.

    Raises
    ------
    InputError
        As for :func:`as_policy`.
    """
    found = [_parsed(part) for text in texts for part in split_at_commas(text)]
    return list({str(policy): policy for policy in found}.values())


def _parsed(text: str) -> Policy:
    if (match := PLACE_AND_FUNCTION.fullmatch(text)) is not None and match[1].endswith(".py"):
        return _in_file(*match.groups())
    if (match := NAME.fullmatch(text)) is None:
        raise InputError("policy", f"expected name or name[parameter=value,...], got {shown(text)}")
    name, inside = match.groups()
    if name not in POLICIES:
        raise InputError("policy", one_of(POLICIES, name))
    return Policy(name, POLICIES[name], _settings(name, POLICIES[name], inside or ""))


def _in_file(place: str, function: str, inside: str | None) -> Policy:
    """Return the policy that is a function in a file."""
    name, path = f"{Path(place).name}:{function}", Path(place).expanduser().resolve()
    if not path.is_file():
        raise InputError(f"policy {place}:{function}", "expected a Python file, the file does not exist")
    try:
        found = as_policy(load_function(f"{path}:{function}")).function
    except InputError as error:
        raise InputError(f"policy {place}:{function}", error.problem) from error
    return Policy(name, found, _settings(name, found, inside or ""), code_at(f"{path}:{function}"))


def _settings(name: str, function: PolicyFunction, inside: str) -> dict[str, Any]:
    """Return the settings ``parameter=value,...`` from between the brackets."""
    known = dict(list(inspect.signature(function).parameters.items())[len(RESERVED) :])
    settings: dict[str, Any] = {}
    for part in split_at_commas(inside):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or key not in known:
            problem = f"expected parameter=value with one of: {', '.join(known) or 'no parameters'}; got {shown(part)}"
            raise InputError(f"policy {name}", problem + did_you_mean(known, key))
        if key in settings:
            raise InputError(f"policy {name}", f"{key} is given twice")
        # A function of other people may have defaults without types.
        spec = known[key]
        wanted = type(spec.default) if spec.annotation is inspect.Parameter.empty else spec.annotation
        settings[key] = setting(f"policy {name}: {key}", wanted, value)
    return settings
