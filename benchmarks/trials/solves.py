"""Solves: every exact method with every setting, on odd instances, against enumeration in rational numbers."""

import functools
import json
import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal, get_args, get_origin

from benchmarks.trials.odd_instances import odd_case
from benchmarks.trials.parallel import results_of
from benchmarks.trials.rational_cost import Case, cost, least_cost
from benchmarks.trials.results import Plan, Result, Verdict
from relocbench.formulations.solvers.availability import SOLVERS, missing_solver
from relocbench.instances.errors import InputError
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import read_instance
from relocbench.runs.isolation.supervisor import Worker
from relocbench.runs.methods import METHODS, setting_text
from relocbench.runs.outcome import Outcome
from relocbench.runs.selectors import parse_selector

NAME = "solves"
QUICK, LONG = 120, 10_000
# By this much, relative, a cost or a bound may exceed the true optimum.
TOLERANCE = Fraction(1, 10**6)
# By this much, relative, a reported cost may differ from the exact cost of the homes.
ROUNDING = Fraction(1, 10**9)
# Seconds of each run. Tiny instances need far less; a run that is stopped at this limit is counted as open.
TIME_LIMIT = 10.0
# Runs of the same method that share one process.
GROUP = 40
# An instance is solved by this many selectors before the next one takes its place.
SELECTORS_PER_INSTANCE = 4

# Trials of seed 0 that failed once. The quick form repeats them.
REMEMBERED = (
    "milp-basic 218",
    "milp-basic 839",
    "milp-basic[relax=true] 662",
    "milp-basic[relax=true] 800",
    "milp-basic[relax=true] 995",
    "milp-strong 800",
    "milp-strong[solver=cbc] 479",
    "milp-strong[solver=scip] 186",
    "milp-strong[condition=together] 479",
    "milp-strong[condition=together] 899",
    "milp-strong[presolve=false] 186",
    "milp-strong[presolve=false] 807",
    "pyomo-direct 227",
    "pyomo-direct 572",
    "pyomo-direct[presolve=false] 227",
    "pyomo-direct[presolve=false] 486",
    "pyomo-direct[presolve=false] 572",
    "pyomo-gdp 227",
    "pyomo-gdp 923",
    "pyomo-gdp[transform=hull] 222",
    "pyomo-gdp[transform=hull] 233",
    "cpsat 797",
    "cpsat[conditioned=false] 827",
    "bound 51",
    "bound 126",
    "bound 511",
    "bound 574",
    "cfn 51",
)


@dataclass(frozen=True)
class Trial:
    """One run.

    Attributes
    ----------
    selector
        The method with its settings.
    number
        The number of the instance.
    """

    selector: str
    number: int

    @property
    def key(self) -> str:
        """The name of the trial."""
        return f"{self.selector} {self.number}"


def selectors() -> list[str]:
    """Return every exact method with its default settings and with each setting of a solver, one at a time.

    Returns
    -------
    list of str
        The selectors of the methods that can run here.
    """
    found = []
    for method in METHODS.values():
        if method.proves == "nothing" or method.unavailable():
            continue
        found.append(method.name)
        for name, parameter in method.parameters().items():
            values: tuple[object, ...] = ()
            if get_origin(parameter.annotation) is Literal:
                values = get_args(parameter.annotation)
            elif parameter.annotation is bool:
                values = (False, True)
            others = [value for value in values if value != parameter.default and _can_run(value)]
            found += [f"{method.name}[{name}={setting_text(value)}]" for value in others]
    return found


def _can_run(value: object) -> bool:
    """Return whether the solver that a setting names is installed; other settings can always run."""
    return value not in SOLVERS or missing_solver(str(value)) is None


def run(plan: Plan, finished: frozenset[str]) -> Iterator[Result]:
    """Run the trials.

    Parameters
    ----------
    plan
        What to do.
    finished
        The keys of trials that are not repeated.

    Yields
    ------
    Result
        The results.
    """
    known = selectors()
    remembered = [Trial(*_parsed(key)) for key in REMEMBERED]
    every = [Trial(known[n % len(known)], n // SELECTORS_PER_INSTANCE) for n in range(plan.number(QUICK, LONG))]
    if plan.seed == 0:
        every += [trial for trial in remembered if trial.selector in known]
    if plan.only:
        every = [Trial(*_parsed(key)) for key in plan.only]
    by_selector: dict[str, list[Trial]] = {}
    for trial in dict.fromkeys(every):
        if trial.key not in finished:
            by_selector.setdefault(trial.selector, []).append(trial)
    groups = [part[start : start + GROUP] for part in by_selector.values() for start in range(0, len(part), GROUP)]
    yield from results_of(groups, functools.partial(_run_group, plan), plan.jobs, plan.stop)


def _parsed(key: str) -> tuple[str, int]:
    selector, _, number = key.rpartition(" ")
    return selector, int(number)


def _run_group(plan: Plan, group: list[Trial]) -> Iterator[Result]:
    selector = parse_selector(group[0].selector)
    with Worker(stop=plan.stop) as worker:
        for trial in group:
            problem = problem_of(plan.seed, trial.number)
            kind = trial.selector
            files = {"instance.json": problem.text.encode()}
            command = f"relocbench solve instance.json --method '{trial.selector}' --time-limit {TIME_LIMIT:g}"
            if isinstance(problem.instance, InputError):
                note = f"{problem.kind}: the instance is refused: {problem.instance}"
                yield Result(NAME, kind, trial.key, "wrong", note, files, command)
                continue
            outcome = worker.run(problem.instance, selector, seed=0, time_limit=TIME_LIMIT)
            verdict, note = judged(problem.case, problem.least, outcome)
            note = f"{problem.kind}: {note}" if note else ""
            yield Result(NAME, kind, trial.key, verdict, note, files, command)


@dataclass(frozen=True, eq=False)
class Problem:
    """An instance with its optimum.

    Attributes
    ----------
    kind
        Its shape and magnitude.
    case, text, instance
        The content of its file, the file, and what the reader of the project makes of it.
    least
        The exact optimum.
    """

    kind: str
    case: Case
    text: str
    instance: Instance | InputError
    least: Fraction


@functools.lru_cache(maxsize=64)
def problem_of(seed: int, number: int) -> Problem:
    """Return an odd instance with its optimum.

    Parameters
    ----------
    seed, number
        As in :func:`odd_instances.odd_case`.

    Returns
    -------
    Problem
        The instance and its optimum.
    """
    shape, magnitude, case = odd_case(seed, number)
    text = json.dumps(case)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "instance.json")
        path.write_text(text, encoding="utf-8")
        try:
            instance: Instance | InputError = read_instance(path)
        except InputError as error:
            instance = error
    return Problem(f"{shape}, {magnitude}", case, text, instance, least_cost(case)[0])


def judged(case: Case, least: Fraction, outcome: Outcome) -> tuple[Verdict, str]:
    """Judge the outcome of a run.

    Parameters
    ----------
    case
        The content of the instance file.
    least
        The exact optimum.
    outcome
        What the run reported.

    Returns
    -------
    verdict
        What it is worth.
    note
        The reason of a failure or a refusal.
    """
    # A false bound is a false answer, whatever else happened.
    if math.isnan(outcome.bound) or outcome.bound == math.inf:
        return "wrong", f"{outcome.status} with the bound {outcome.bound}"
    if outcome.failure == "refused":
        return ("refused", outcome.error) if outcome.error else ("crashed", "refused without a reason")
    if outcome.failure == "stopped":
        return "hung" if outcome.status == "time_limit" else "crashed", f"{outcome.status}: {outcome.error}"
    if outcome.failure is not None or outcome.status == "error":
        return "crashed", f"{outcome.failure}: {outcome.error}"
    if outcome.bound > -math.inf and Fraction(outcome.bound) > least * (1 + TOLERANCE):
        return "wrong", f"{outcome.status} with the bound {outcome.bound!r}, but the optimum is {float(least)!r}"
    if outcome.home is None or outcome.objective is None:
        return ("crashed" if outcome.status == "optimal" else "open"), f"{outcome.status} without homes"
    exact = cost(case, outcome.home.tolist())
    if abs(Fraction(outcome.objective) - exact) > ROUNDING * exact:
        return "wrong", f"reports the cost {outcome.objective!r}, but its homes cost {float(exact)!r}"
    if outcome.evaluation is not None and abs(Fraction(outcome.evaluation.objective) - exact) > ROUNDING * exact:
        return "wrong", f"evaluates homes to {outcome.evaluation.objective!r}, but they cost {float(exact)!r}"
    true = exact <= least * (1 + TOLERANCE)
    if outcome.status == "optimal":
        return ("right", "") if true else ("wrong", f"optimal at {float(exact)!r}, but the optimum is {float(least)!r}")
    if outcome.status == "claimed":
        return (
            ("claimed", "") if true else ("claimed wrong", f"claimed {float(exact)!r}, the optimum is {float(least)!r}")
        )
    return "open", f"{outcome.status}, {float(exact)!r}"
