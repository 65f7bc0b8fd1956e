"""The instances of the evaluation: which there are, and how to build them from the same files with real data."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from relocbench.instances.generators.families import Value, family
from relocbench.instances.generators.generate import Plan, plan
from relocbench.instances.instance import Instance
from relocbench.reports.paper.measures import Case

# The family of each study and the parameter that it varies. The third study, over K, uses the instances of the first,
# because K is a setting of RELOC and one certificate per instance is enough for both.
STUDIES = {"sigma": ("paper", "sigma"), "spool": ("paper-spooler", "spool_per_member")}
# The family of the fourth study, and the parameter that it varies at each σ.
TIGHTNESS, SIZE = "paper-tightness", "min_topic_size"
# The group of the instances of the paper's own families.
PAPER = "paper"


@dataclass(frozen=True)
class Setup:
    """The setup of an evaluation.

    Attributes
    ----------
    seeds
        The number of replicates per cell.
    time_limit
        The time limit in seconds to certify each instance that the library does not have.
    jobs
        The number of runs at the same time.
    parameters
        Replacements for parameters of the families, such as ``servers``.
    social, sites, people
        Files with a real follower graph, server sites and user positions.
    """

    seeds: int = 5
    time_limit: float = 2.0
    jobs: int = 2
    parameters: Mapping[str, Value] = field(default_factory=dict)
    social: Path | None = None
    sites: Path | None = None
    people: Path | None = None


class Planner:
    """Plans instances of any family from the same files with real data, which are read once.

    Parameters
    ----------
    setup
        The setup of the evaluation.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._any = plan("paper", [0], {}, social=setup.social, sites=setup.sites, people=setup.people)

    def plan(self, name: str, seeds: Sequence[int], parameters: Mapping[str, Value]) -> Plan:
        """Plan cells of a family.

        Parameters
        ----------
        name
            The family.
        seeds
            The seeds of the instances.
        parameters
            Parameters that choose cells or replace what the family fixes.

        Returns
        -------
        Plan
            The plan.
        """
        return dataclasses.replace(self._any, cells=family(name).cells(parameters), seeds=seeds)

    def one(self, name: str, **parameters: Value) -> Instance:
        """Generate the first replicate of one cell.

        Parameters
        ----------
        name
            The family.
        **parameters
            Parameters that choose the cell.

        Returns
        -------
        Instance
            The instance.
        """
        return self.plan(name, [0], parameters).build(0)

    def cases(self, group: str, study: str, seeds: Sequence[int]) -> Iterator[Case]:
        """Generate the instances of a study over σ or over spools.

        Parameters
        ----------
        group
            ``paper`` for the instances of the paper's families, or the least topic size of ``paper-tightness``.
        study
            ``sigma`` or ``spool``.
        seeds
            The seeds of the instances.

        Yields
        ------
        Case
            An instance.
        """
        name, varied = STUDIES[study]
        for cell in family(name).cells(self._setup.parameters):
            value = float(cell.varied[varied])
            if group == PAPER:
                planned = dataclasses.replace(self._any, cells=[cell], seeds=seeds)
            else:
                parameters = dict(cell.family.fixed) | cell.varied | cell.extra | {SIZE: int(group)}
                planned = self.plan(TIGHTNESS, seeds, parameters)
            for number, seed in enumerate(seeds):
                yield Case(group, study, value, seed, planned.build(number))
