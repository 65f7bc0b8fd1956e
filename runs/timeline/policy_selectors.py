"""Policies as users give them: text such as ``every[k=5]`` or ``mine.py:function[a=1]``, or functions."""

import functools
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy.typing as npt

from relocbench.heuristics.anneal import relocate as anneal_relocating
from relocbench.instances.errors import InputError, did_you_mean, one_of, shown
from relocbench.instances.generators.families import family
from relocbench.instances.nearest_server import nearest_server
from relocbench.instances.settings import setting
from relocbench.instances.timeline.epoch import Epoch
from relocbench.instances.timeline.relocation_state import relocation_to
from relocbench.instances.timeline.timeline import Timeline
from relocbench.runs.exception_text import described
from relocbench.runs.external_function import code_at, load_function, named_arguments, signature_of
from relocbench.runs.method_code import function_code, project_code
from relocbench.runs.methods import setting_text
from relocbench.runs.run_error import RunError
from relocbench.runs.selectors import NAME, PLACE_AND_FUNCTION, split_at_commas
from relocbench.runs.solve import warm_up
from relocbench.runs.timeline import policies
from relocbench.runs.timeline.policies import POLICIES, History, PolicyFunction


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
        if self.function is policies.gap:
            warm_up("bound")
        if self.function is policies.relocate:
            _warm_up_relocation()

    def version(self) -> str:
        """Return the version of the policy's code.

        Returns
        -------
        str
            As in :mod:`runs.method_code`.
        """
        if self.name in POLICIES:
            return project_code(policies.__name__)
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
        signature_of(policy).bind(None, None)
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
        As for :func:`as_policy`, or if two different functions have the same name.
    """
    found: dict[str, Policy] = {}
    for policy in (_parsed(part) for text in texts for part in split_at_commas(text)):
        if found.setdefault(str(policy), policy).code != policy.code:
            raise InputError(f"policy {policy}", "two different functions have this name; rename one of them")
    return list(found.values())


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
    known = parameters_of(function)
    settings: dict[str, Any] = {}
    for part in split_at_commas(inside):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or key not in known:
            problem = f"expected parameter=value with one of: {', '.join(known) or 'no parameters'}; got {shown(part)}"
            raise InputError(f"policy {name}", problem + did_you_mean(known, key))
        if key in settings:
            raise InputError(f"policy {name}", f"{key} is given twice")
        settings[key] = setting(f"policy {name}: {key}", known[key].annotation, value)
    return settings


def parameters_of(function: PolicyFunction) -> dict[str, inspect.Parameter]:
    """Return the parameters of a policy that a selector may set.

    Parameters
    ----------
    function
        The policy.

    Returns
    -------
    dict
        For each name the parameter with its type and its default.
    """
    signature = signature_of(function)
    taken = signature.bind(None, None).arguments  # by the history and the epoch
    return {name: spec for name, spec in named_arguments(signature).items() if name not in taken}
