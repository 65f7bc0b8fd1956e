"""A workbench that compares heuristics with proven optima for topic allocation on edge servers.

Functions:

- ``generate``: build an instance of a family.
- ``read``: read an instance from a file, ``library:NAME`` or ``family.parquet#name``.
- ``write``: write an instance, a timeline, a result of ``solve`` or a result of ``certify`` to a file.
- ``read_homes``: read homes from a solution file, a certificate, a JSON list, a CSV file or a ``.npy`` file.
- ``with_load``: scale the capacities of an instance to a wanted load.
- ``solve``: find a home for every client with a method; returns a ``Result``.
- ``evaluate``: compute the cost of an assignment; returns an ``Evaluation``.
- ``certify``: find homes and a proved lower bound; returns a ``Certified``.
- ``verify``: check the proof of a certificate; returns a ``Verdict``.
- ``study``: measure how far methods are from proven optima, and write a page; returns a ``Study``.
- ``generate_timeline``, ``import_trace``, ``read_timeline``: get a timeline, in which clients move.
- ``replay``: compute homes again and again in a timeline, under a policy; returns a ``Replay``.
- ``schedule_cost``: compute the cost of homes over time; returns a ``ScheduleCost``.
- ``certify_timeline``: prove a lower bound on the cost of all homes over time; returns a ``CertifiedTimeline``.
- ``verify_timeline``: check the proof of such a bound; returns a ``TimelineVerdict``.
- ``solve_timeline``: find the homes over time of least cost, for tiny timelines; returns a ``Schedule``.
- ``show``: draw homes on a map; returns a plotly figure.
- ``check``: compare a heuristic with its baseline; takes a ``Rule`` and returns a ``GateVerdict``.

Classes:

- ``Instance``: the problem; ``Instance.of`` builds one from your own tables.
- ``Timeline``: servers over time, with clients that come, move and go; ``Prices`` says what a change of homes costs.
- ``Solution``: what a method returns, and what a method of your own may return.
- ``Library``: the certified instances of this package.
- ``InputError``: the error for wrong input; its message names the file, the field and what was expected.
- ``RunError``: the error for a run that gave no homes; its message says how the method failed.

Each name is imported when it is first used, so that ``import relocbench`` is fast and loads no solver.
"""

import importlib
from typing import TYPE_CHECKING

from relocbench.runs.version import __version__

if TYPE_CHECKING:
    from relocbench.formulations.certificates.timeline_verification import TimelineVerdict, verify_timeline
    from relocbench.formulations.certificates.verification import Verdict, verify
    from relocbench.formulations.timeline.schedule import Schedule
    from relocbench.instances.errors import InputError
    from relocbench.instances.evaluation import Evaluation, evaluate
    from relocbench.instances.files.homes_file import read_homes
    from relocbench.instances.generators.generate import generate
    from relocbench.instances.instance import Instance
    from relocbench.instances.library.library import Library
    from relocbench.instances.load import with_load
    from relocbench.instances.solution import Solution
    from relocbench.instances.timeline.moving_generator import generate_timeline
    from relocbench.instances.timeline.prices import Prices
    from relocbench.instances.timeline.schedule_cost import ScheduleCost, schedule_cost
    from relocbench.instances.timeline.timeline import Timeline
    from relocbench.instances.timeline.timeline_parquet import read_timeline
    from relocbench.instances.timeline.trace_csv import import_trace
    from relocbench.reports.gate.check import check
    from relocbench.reports.gate.comparison import Rule
    from relocbench.reports.gate.verdict import Verdict as GateVerdict
    from relocbench.reports.map.show import show
    from relocbench.reports.study.study import Study, study
    from relocbench.runs.certify import Certified, certify
    from relocbench.runs.read_write import read, write
    from relocbench.runs.run_error import RunError
    from relocbench.runs.solve import Result, solve
    from relocbench.runs.timeline.certify_timeline import CertifiedTimeline, certify_timeline
    from relocbench.runs.timeline.replay import Replay, replay
    from relocbench.runs.timeline.solve_timeline import solve_timeline

__all__ = [
    "Certified",
    "CertifiedTimeline",
    "Evaluation",
    "GateVerdict",
    "InputError",
    "Instance",
    "Library",
    "Prices",
    "Replay",
    "Result",
    "Rule",
    "RunError",
    "Schedule",
    "ScheduleCost",
    "Solution",
    "Study",
    "Timeline",
    "TimelineVerdict",
    "Verdict",
    "__version__",
    "certify",
    "certify_timeline",
    "check",
    "evaluate",
    "generate",
    "generate_timeline",
    "import_trace",
    "read",
    "read_homes",
    "read_timeline",
    "replay",
    "schedule_cost",
    "show",
    "solve",
    "solve_timeline",
    "study",
    "verify",
    "verify_timeline",
    "with_load",
    "write",
]

# The module and the attribute of each name, as in the imports above. A test compares the two.
_LAZY = {
    "Certified": "relocbench.runs.certify:Certified",
    "CertifiedTimeline": "relocbench.runs.timeline.certify_timeline:CertifiedTimeline",
    "Evaluation": "relocbench.instances.evaluation:Evaluation",
    "GateVerdict": "relocbench.reports.gate.verdict:Verdict",
    "InputError": "relocbench.instances.errors:InputError",
    "Instance": "relocbench.instances.instance:Instance",
    "Library": "relocbench.instances.library.library:Library",
    "Prices": "relocbench.instances.timeline.prices:Prices",
    "Replay": "relocbench.runs.timeline.replay:Replay",
    "Result": "relocbench.runs.solve:Result",
    "Rule": "relocbench.reports.gate.comparison:Rule",
    "RunError": "relocbench.runs.run_error:RunError",
    "Schedule": "relocbench.formulations.timeline.schedule:Schedule",
    "ScheduleCost": "relocbench.instances.timeline.schedule_cost:ScheduleCost",
    "Solution": "relocbench.instances.solution:Solution",
    "Study": "relocbench.reports.study.study:Study",
    "Timeline": "relocbench.instances.timeline.timeline:Timeline",
    "TimelineVerdict": "relocbench.formulations.certificates.timeline_verification:TimelineVerdict",
    "Verdict": "relocbench.formulations.certificates.verification:Verdict",
    "certify": "relocbench.runs.certify:certify",
    "certify_timeline": "relocbench.runs.timeline.certify_timeline:certify_timeline",
    "check": "relocbench.reports.gate.check:check",
    "evaluate": "relocbench.instances.evaluation:evaluate",
    "generate": "relocbench.instances.generators.generate:generate",
    "generate_timeline": "relocbench.instances.timeline.moving_generator:generate_timeline",
    "import_trace": "relocbench.instances.timeline.trace_csv:import_trace",
    "read": "relocbench.runs.read_write:read",
    "read_homes": "relocbench.instances.files.homes_file:read_homes",
    "read_timeline": "relocbench.instances.timeline.timeline_parquet:read_timeline",
    "replay": "relocbench.runs.timeline.replay:replay",
    "schedule_cost": "relocbench.instances.timeline.schedule_cost:schedule_cost",
    "show": "relocbench.reports.map.show:show",
    "solve": "relocbench.runs.solve:solve",
    "solve_timeline": "relocbench.runs.timeline.solve_timeline:solve_timeline",
    "study": "relocbench.reports.study.study:study",
    "verify": "relocbench.formulations.certificates.verification:verify",
    "verify_timeline": "relocbench.formulations.certificates.timeline_verification:verify_timeline",
    "with_load": "relocbench.instances.load:with_load",
    "write": "relocbench.runs.read_write:write",
}
# The names of earlier versions, with those that replace them.
_FORMER = {"read_instance": "read", "write_instance": "write", "write_certificate": "write"}

# mypy must not see this function: it would accept every attribute of the package.
if not TYPE_CHECKING:

    def __getattr__(name):
        if name in _FORMER:
            raise AttributeError(f"relocbench.{name} is now relocbench.{_FORMER[name]}")
        if name not in _LAZY:
            raise AttributeError(f"module 'relocbench' has no attribute {name!r}")
        module, _, attribute = _LAZY[name].partition(":")
        value = getattr(importlib.import_module(module), attribute)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
