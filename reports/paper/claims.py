"""The claims of the paper's evaluation: each with a test, a verdict on our data, and the numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from relocbench.instances.gap import excess
from relocbench.reports.paper.evaluation import BASELINES
from relocbench.reports.paper.measures import BEST, STEPS, Interval, Measured, Measures
from relocbench.reports.paper.readings import DEFAULT_CLUSTERS, READINGS, reloc
from relocbench.reports.statistics import FEWEST_FOR_INTERVAL, mean_interval

# The verdicts.
HOLDS = "holds"
IN_PART = "holds in part"
FAILS = "does not hold"
UNKNOWN = "too few seeds to tell"
# The data has no value that the claim is about.
NOT_TESTED = "not tested"
# The first study of the paper calls locality weak from this σ on, in km.
WEAK_FROM = 5.0
# The third study of the paper says that K matters little from this σ on, and that locality is strong up to the other σ.
INDIFFERENT_FROM = 10.0
STRONG_TO = 5.0
# Our threshold for "does not vary so much": the relative difference between the best and the worst K.
LITTLE = 0.10
# The tolerance of comparisons between values that are equal by construction.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Verdict:
    """The result of testing a claim.

    Attributes
    ----------
    word
        One of the verdicts, such as ``holds``.
    numbers
        The numbers behind it.
    """

    word: str
    numbers: str


@dataclass(frozen=True)
class Claim:
    """A tested claim.

    Attributes
    ----------
    statement
        The claim, in our words.
    test
        How it is tested.
    verdict
        The verdict under our reading of Algorithm 1.
    others
        The verdicts under the other readings; empty if the claim does not depend on the reading.
    """

    statement: str
    test: str
    verdict: Verdict
    others: Mapping[str, Verdict]

    @property
    def decided_by_reading(self) -> bool:
        """Whether another reading of Algorithm 1 gives another verdict."""
        return any(other.word != self.verdict.word for other in self.others.values())


@dataclass(frozen=True)
class _Data:
    """The measures, with RELOC under one reading."""

    measures: Measures
    clusters: Sequence[int]
    reading: str = ""

    def reloc(self, k: int = DEFAULT_CLUSTERS) -> str:
        return reloc(self.reading, k)

    def against(self, study: str, method: str, others: Sequence[str], what: str = "y") -> dict[float, Interval]:
        """Return for each value the mean difference between a method and the best of others, with its interval."""
        found = {}
        for x in self.measures.values(study):
            if differences := self.measures.differences(study, x, method, others, what):
                found[x] = mean_interval(differences)
        return found

    def mean(self, study: str, x: float, method: str, what: str) -> float:
        found = self.measures.mean(study, x, method, what)
        return float("nan") if found is None else found[0]

    def instances(self) -> list[dict[str, Measured]]:
        """Return the assignments of each instance by method, for the instances that all four methods solved."""
        by_instance: dict[str, dict[str, Measured]] = {}
        for row in self.measures.rows:
            by_instance.setdefault(row.hash, {})[row.method] = row
        four = {*BASELINES, self.reloc()}
        return [methods for methods in by_instance.values() if four <= methods.keys()]


@dataclass(frozen=True)
class _ClaimTest:
    """A claim before it is tested."""

    statement: str
    test: str
    judge: Callable[[_Data], Verdict]
    depends_on_reading: bool


def claims(measures: Measures, clusters: Sequence[int]) -> list[Claim]:
    """Test every claim.

    Parameters
    ----------
    measures
        The measures of all assignments. With fewer than five seeds, every verdict is ``too few seeds to tell``.
    clusters
        The values of K.

    Returns
    -------
    list of Claim
        The tested claims.
    """
    few = len(measures.seeds) < FEWEST_FOR_INTERVAL

    def judged(claim: _ClaimTest, reading: str) -> Verdict:
        verdict = claim.judge(_Data(measures, clusters, reading))
        return Verdict(UNKNOWN, f"{verdict.numbers} (needs {FEWEST_FOR_INTERVAL} seeds)") if few else verdict

    others = [reading for reading in READINGS if reading]
    return [
        Claim(
            claim.statement,
            claim.test,
            judged(claim, ""),
            {reading: judged(claim, reading) for reading in others if claim.depends_on_reading},
        )
        for claim in CLAIMS
    ]


def _word(good: int, total: int) -> str:
    if total == 0:
        return NOT_TESTED
    return HOLDS if good == total else IN_PART if good else FAILS


def _listed(intervals: Mapping[float, Interval], symbol: str) -> str:
    return "; ".join(
        f"{symbol} = {x:g}: {mean:+.3f} [{low:+.3f}, {high:+.3f}]" for x, (mean, low, high) in intervals.items()
    )


def _below(intervals: Mapping[float, Interval]) -> int:
    return sum(high < 0 for _, _, high in intervals.values())


def _above(intervals: Mapping[float, Interval]) -> int:
    return sum(low > 0 for _, low, _ in intervals.values())


def _fastest_from_weak_locality(data: _Data) -> Verdict:
    intervals = data.against("sigma", data.reloc(), BASELINES)
    relevant = {x: interval for x, interval in intervals.items() if x >= WEAK_FROM}
    return Verdict(
        _word(_below(relevant), len(relevant)),
        f"Y of RELOC minus the best of the other three, ms: {_listed(intervals, 'σ')}",
    )


def _fastest_at_every_spool(data: _Data) -> Verdict:
    intervals = data.against("spool", data.reloc(), BASELINES)
    return Verdict(
        _word(_below(intervals), len(intervals)),
        f"Y of RELOC minus the best of the other three, ms: {_listed(intervals, 'p')}",
    )


def _nearest_has_least_distance(data: _Data) -> Verdict:
    found = data.instances()
    four = (*BASELINES, data.reloc())
    best = sum(
        methods["nearest"].distance_km <= min(methods[name].distance_km for name in four) + ROUNDING
        for methods in found
    )
    return Verdict(_word(best, len(found)), f"on {best} of {len(found)} instances")


def _nearest_y2_grows(data: _Data) -> Verdict:
    values = data.measures.values("sigma")
    first, last = values[0], values[-1]
    early = {row.seed: row.y2 for row in data.measures.of("sigma", first, "nearest")}
    late = {row.seed: row.y2 for row in data.measures.of("sigma", last, "nearest")}
    mean, low, high = mean_interval([late[seed] - early[seed] for seed in early.keys() & late.keys()])
    levels = ", ".join(f"{data.mean('sigma', x, 'nearest', 'y2'):.2f}" for x in values)
    return Verdict(
        NOT_TESTED if first == last else HOLDS if low > 0 else FAILS,
        f"Y2 of NS at σ = {', '.join(f'{x:g}' for x in values)}: {levels} ms; "
        f"from first to last {mean:+.3f} [{low:+.3f}, {high:+.3f}]",
    )


def _nearest_best_with_ample_capacity(data: _Data) -> Verdict:
    four = (*BASELINES, data.reloc())
    ample = [methods for methods in data.instances() if methods["nearest"].least_theta == 1]
    best = [methods for methods in ample if methods["nearest"].y <= min(methods[name].y for name in four) + ROUNDING]
    found = [excess(methods["nearest"].y, methods[BEST].y) for methods in ample if BEST in methods]
    over = [value for value in found if value is not None]
    more = f"; its mean excess over the best known homes is {mean_interval(over)[0]:.0%}" if over else ""
    return Verdict(
        _word(len(best), len(ample)),
        f"{len(ample)} instances on which NS overloads no server; NS has the least Y of the four on {len(best)}{more}",
    )


def _otos_has_least_storage(data: _Data) -> Verdict:
    intervals = data.against("sigma", "otos", ["random", "nearest", data.reloc()], "storage_use")
    means = "; ".join(
        f"σ = {x:g}: OTOS {data.mean('sigma', x, 'otos', 'storage_use'):.0%}, "
        f"RELOC {data.mean('sigma', x, data.reloc(), 'storage_use'):.0%}"
        for x in intervals
    )
    return Verdict(_word(_below(intervals), len(intervals)), f"mean use of a server's storage: {means}")


def _otos_has_larger_y1(data: _Data) -> Verdict:
    intervals = data.against("sigma", "otos", [data.reloc()], "y1")
    return Verdict(
        _word(_above(intervals), len(intervals)), f"Y1 of OTOS minus Y1 of RELOC, ms: {_listed(intervals, 'σ')}"
    )


def _reloc_within_storage(data: _Data) -> Verdict:
    rows = [row for x in data.measures.values("sigma") for row in data.measures.of("sigma", x, data.reloc())]
    means = [data.mean("sigma", x, data.reloc(), "storage_use") for x in data.measures.values("sigma")]
    within = sum(row.fullest_storage <= 1 for row in rows)
    word = HOLDS if within == len(rows) else IN_PART if max(means) <= 1 else FAILS
    return Verdict(
        word,
        f"mean over servers {min(means):.0%} to {max(means):.0%} of A; no server above A on {within} of {len(rows)} "
        f"instances; the fullest server of all {max((row.fullest_storage for row in rows), default=0.0):.0%}",
    )


def _steps_save_and_balance(data: _Data) -> Verdict:
    saved = data.against("sigma", STEPS["relation"], [STEPS["locality"]], "storage_use")
    levelled = data.against("sigma", STEPS["cooperation"], [STEPS["relation"]], "fullest_storage")
    return Verdict(
        _word(_below(saved) + _below(levelled), len(saved) + len(levelled)),
        f"relation step, mean use of storage (share of A): {_listed(saved, 'σ')}. Cooperation step, fullest server: "
        f"{_listed(levelled, 'σ')}",
    )


def _cooperation_limits_growth(data: _Data) -> Verdict:
    intervals, steps = {}, []
    for x, interval in data.against("spool", STEPS["cooperation"], [STEPS["relation"]]).items():
        if data.mean("spool", x, STEPS["relation"], "least_theta") < 1:
            intervals[x] = interval
            before, after = (data.mean("spool", x, STEPS[step], "y") for step in ("relation", "cooperation"))
            steps.append(f"p = {x:g}: {before:.2f} → {after:.2f}")
    values = data.measures.values("spool")
    grown = [
        data.mean("spool", values[-1], name, "y") / data.mean("spool", values[0], name, "y")
        for name in (data.reloc(), BEST)
    ]
    return Verdict(
        _word(_below(intervals), len(intervals)),
        f"Y before and after the step, ms: {'; '.join(steps) or 'no server was overloaded'}. From p = {values[0]:g} to "
        f"{values[-1]:g} RELOC's Y grows by the factor {grown[0]:.1f}, that of the best known homes by {grown[1]:.1f}",
    )


def _clusters_matter_little(data: _Data) -> Verdict:
    spreads, small = [], []
    for x in data.measures.values("sigma"):
        if x >= INDIFFERENT_FROM:
            means = [data.mean("sigma", x, data.reloc(k), "y") for k in data.clusters]
            spread = max(means) / min(means) - 1
            small.append(spread <= LITTLE)
            spreads.append(f"σ = {x:g}: {spread:.0%} between the best and the worst K")
    return Verdict(_word(sum(small), len(small)), "; ".join(spreads))


def _more_clusters_help(data: _Data) -> Verdict:
    most = max(data.clusters)
    intervals = data.against("sigma", data.reloc(most), [data.reloc()])
    relevant = {x: interval for x, interval in intervals.items() if x <= STRONG_TO}
    means = "; ".join(
        f"σ = {x:g}: " + ", ".join(f"{data.mean('sigma', x, data.reloc(k), 'y'):.2f}" for k in data.clusters)
        for x in intervals
    )
    return Verdict(
        _word(_below(relevant), len(relevant)),
        f"Y of K = {most} minus Y of K = {DEFAULT_CLUSTERS}, ms: {_listed(intervals, 'σ')}. "
        f"Mean Y at K = {', '.join(map(str, data.clusters))}: {means}",
    )


CLAIMS = (
    _ClaimTest(
        f"Of the four, RELOC delivers fastest once σ is {WEAK_FROM:g} km or more.",
        "At each such σ, the 95 % interval of the mean paired difference in Y to the best of the other three is below "
        "0.",
        _fastest_from_weak_locality,
        depends_on_reading=True,
    ),
    _ClaimTest(
        "NS has the smallest distances between clients and homes.",
        "On every instance, NS has the least mean distance of the four (true by construction).",
        _nearest_has_least_distance,
        depends_on_reading=False,
    ),
    _ClaimTest(
        "Y2 of NS grows with σ.",
        "The 95 % interval of the mean paired increase of Y2 from the least to the largest σ is above 0.",
        _nearest_y2_grows,
        depends_on_reading=False,
    ),
    _ClaimTest(
        "Where capacity is ample, NS may be the best choice.",
        "On instances where NS leaves every θ at 1, NS has the least Y of the four.",
        _nearest_best_with_ample_capacity,
        depends_on_reading=True,
    ),
    _ClaimTest(
        "OTOS uses the least storage.",
        "At each σ, the 95 % interval of the mean paired difference in storage to the least of the other three is "
        "below 0.",
        _otos_has_least_storage,
        depends_on_reading=True,
    ),
    _ClaimTest(
        "OTOS has a larger Y1 than RELOC at every σ.",
        "At each σ, the 95 % interval of the mean paired difference in Y1 is above 0.",
        _otos_has_larger_y1,
        depends_on_reading=True,
    ),
    _ClaimTest(
        "RELOC's storage stays below A at every σ.",
        "No server exceeds A on any instance. The claim holds in part if the mean over servers stays below A.",
        _reloc_within_storage,
        depends_on_reading=True,
    ),
    _ClaimTest(
        "The relation step saves storage, and the cooperation step balances it between servers.",
        "At each σ, paired: the mean storage after the relation step is below that after the locality step, and the "
        "fullest server after the cooperation step is below the fullest server before it.",
        _steps_save_and_balance,
        depends_on_reading=False,
    ),
    _ClaimTest(
        "Of the four, RELOC delivers fastest for every size of spools.",
        "At each p, the same test as for the first claim.",
        _fastest_at_every_spool,
        depends_on_reading=True,
    ),
    _ClaimTest(
        "When the relation step leaves servers overloaded, cooperation keeps the growth of Y small.",
        "At each p where the relation step leaves a θ below 1, Y after cooperation is below Y before it, paired.",
        _cooperation_limits_growth,
        depends_on_reading=False,
    ),
    _ClaimTest(
        f"For σ of {INDIFFERENT_FROM:g} km and more, the number of clusters K matters little.",
        f"Mean Y of the worst K is at most {LITTLE:.0%} above that of the best (the threshold is ours).",
        _clusters_matter_little,
        depends_on_reading=True,
    ),
    _ClaimTest(
        f"For σ up to {STRONG_TO:g} km, a larger K lowers Y.",
        f"At each such σ, Y with the largest K is below Y with K = {DEFAULT_CLUSTERS}, paired. (With as many clusters "
        "as servers, RELOC is NS.)",
        _more_clusters_help,
        depends_on_reading=True,
    ),
)
