"""The claims of the paper's evaluation: each with a test, a verdict on our data, and the numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relocbench.heuristics.reloc import Step
from relocbench.instances.gap import excess
from relocbench.reports.paper.measures import BEST, Measured, Measures, interval
from relocbench.reports.paper.readings import DEFAULT_CLUSTERS, after, otos, reloc
from relocbench.reports.statistics import FEWEST_FOR_INTERVAL, Interval

# Whether a claim holds at each value that it is about.
Points = Mapping[str, bool]

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
    """The result of testing a claim under one reading of Algorithm 1.

    Attributes
    ----------
    word
        One of the verdicts, such as ``holds``.
    points
        Whether the claim holds at each value that it is about, by the name of the value, such as ``σ = 5``.
    numbers
        The numbers behind it.
    """

    word: str
    points: Mapping[str, bool]
    numbers: str

    @property
    def share(self) -> float | None:
        """The share of the values at which the claim holds; None if it was not tested."""
        return sum(self.points.values()) / len(self.points) if self.points and self.word != UNKNOWN else None


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, and how it is tested.

    Attributes
    ----------
    statement
        The claim, in our words.
    test
        How it is tested.
    judge
        Tests it on measures.
    depends_on_reading
        Whether it is a claim about RELOC.
    """

    statement: str
    test: str
    judge: "Callable[[_Data], tuple[Points, str]]"
    depends_on_reading: bool


def judge(measures: Measures, clusters: Sequence[int], reading: str) -> dict[str, Verdict]:
    """Test every claim under one reading of Algorithm 1.

    Parameters
    ----------
    measures
        The measures of all assignments. With fewer than five seeds, every verdict is ``too few seeds to tell``.
    clusters
        The values of K.
    reading
        The settings of the reading.

    Returns
    -------
    dict
        One verdict for each of ``CLAIMS``, by its key.
    """
    data = _Data(measures, clusters, reading)
    few = len(measures.seeds) < FEWEST_FOR_INTERVAL
    found = {}
    for key, claim in CLAIMS.items():
        points, numbers = claim.judge(data)
        if few:
            found[key] = Verdict(UNKNOWN, {}, f"{numbers} (needs {FEWEST_FOR_INTERVAL} seeds)")
        else:
            found[key] = Verdict(_word(points), points, numbers)
    return found


@dataclass(frozen=True)
class _Data:
    """The measures, with RELOC under one reading."""

    measures: Measures
    clusters: Sequence[int]
    reading: str

    def reloc(self, k: int = DEFAULT_CLUSTERS) -> str:
        return reloc(self.reading, k)

    def after(self, step: Step) -> str:
        return after(step, self.reading)

    @property
    def otos(self) -> str:
        return otos(self.reading)

    @property
    def others(self) -> tuple[str, ...]:
        """The three methods of the paper beside RELOC."""
        return ("random", "nearest", self.otos)

    def against(self, study: str, method: str, others: Sequence[str], what: str = "y") -> dict[float, Interval]:
        """Return for each value the mean difference between a method and the best of others, with its interval."""
        found = {}
        for x in self.measures.values(study):
            if differences := self.measures.differences(study, x, method, others, what):
                found[x] = interval(differences)
        return found

    def mean(self, study: str, x: float, method: str, what: str) -> float:
        found = self.measures.mean(study, x, method, what)
        return float("nan") if found is None else found.mean

    def instances(self, study: str) -> list[Mapping[str, Measured]]:
        """Return the assignments of each instance by method, for the instances that all four methods solved."""
        four = {*self.others, self.reloc()}
        return [methods for methods in self.measures.instances(study) if four <= methods.keys()]


def _word(points: Points) -> str:
    if not points:
        return NOT_TESTED
    return HOLDS if all(points.values()) else IN_PART if any(points.values()) else FAILS


def _listed(intervals: Mapping[float, Interval], symbol: str) -> str:
    return "; ".join(
        f"{symbol} = {x:g}: {found.mean:+.3f} [{found.limits[0]:+.3f}, {found.limits[1]:+.3f}]"
        for x, found in intervals.items()
    )


def _below(intervals: Mapping[float, Interval], symbol: str, limit: float = 0.0) -> Points:
    return {f"{symbol} = {x:g}": found.limits[1] < limit for x, found in intervals.items()}


def _above(intervals: Mapping[float, Interval], symbol: str) -> Points:
    return {f"{symbol} = {x:g}": found.limits[0] > 0 for x, found in intervals.items()}


def _fastest_from_weak_locality(data: _Data) -> tuple[Points, str]:
    intervals = data.against("sigma", data.reloc(), data.others)
    relevant = {x: found for x, found in intervals.items() if x >= WEAK_FROM}
    return _below(relevant, "σ"), f"Y of RELOC minus the best of the other three, ms: {_listed(intervals, 'σ')}"


def _fastest_at_every_spool(data: _Data) -> tuple[Points, str]:
    intervals = data.against("spool", data.reloc(), data.others)
    return _below(intervals, "p"), f"Y of RELOC minus the best of the other three, ms: {_listed(intervals, 'p')}"


def _nearest_has_least_distance(data: _Data) -> tuple[Points, str]:
    found = data.instances("sigma")
    four = (*data.others, data.reloc())
    best = [
        methods["nearest"].distance_km <= min(methods[name].distance_km for name in four) + ROUNDING
        for methods in found
    ]
    return _by_sigma(found, best), f"on {sum(best)} of {len(found)} instances"


def _nearest_y2_grows(data: _Data) -> tuple[Points, str]:
    values = data.measures.values("sigma")
    first, last = values[0], values[-1]
    early = {row.seed: row.y2 for row in data.measures.of("sigma", first, "nearest")}
    late = {row.seed: row.y2 for row in data.measures.of("sigma", last, "nearest")}
    grown = interval([late[seed] - early[seed] for seed in early.keys() & late.keys()])
    low, high = grown.limits
    levels = ", ".join(f"{data.mean('sigma', x, 'nearest', 'y2'):.2f}" for x in values)
    return (
        {} if first == last else {f"σ = {first:g} to {last:g}": low > 0},
        f"Y2 of NS at σ = {', '.join(f'{x:g}' for x in values)}: {levels} ms; "
        f"from first to last {grown.mean:+.3f} [{low:+.3f}, {high:+.3f}]",
    )


def _nearest_best_with_ample_capacity(data: _Data) -> tuple[Points, str]:
    four = (*data.others, data.reloc())
    ample = [methods for methods in data.instances("sigma") if methods["nearest"].least_theta == 1]
    best = [methods["nearest"].y <= min(methods[name].y for name in four) + ROUNDING for methods in ample]
    found = [excess(methods["nearest"].y, methods[BEST].y) for methods in ample if BEST in methods]
    over = [value for value in found if value is not None]
    more = f"; its mean excess over the best known homes is {float(np.mean(over)):.0%}" if over else ""
    return (
        _by_sigma(ample, best),
        f"{len(ample)} instances on which NS overloads no server; NS has the least Y of the four on {sum(best)}{more}",
    )


def _by_sigma(instances: Sequence[Mapping[str, Measured]], good: Sequence[bool]) -> Points:
    """Return for each σ whether a statement is true on all its instances."""
    points: dict[float, bool] = {}
    for methods, true in zip(instances, good, strict=True):
        x = methods["nearest"].x
        points[x] = points.get(x, True) and true
    return {f"σ = {x:g}": points[x] for x in sorted(points)}


def _otos_has_least_storage(data: _Data) -> tuple[Points, str]:
    intervals = data.against("sigma", data.otos, ["random", "nearest", data.reloc()], "storage_use")
    means = "; ".join(
        f"σ = {x:g}: OTOS {data.mean('sigma', x, data.otos, 'storage_use'):.0%}, "
        f"RELOC {data.mean('sigma', x, data.reloc(), 'storage_use'):.0%}"
        for x in intervals
    )
    return _below(intervals, "σ"), f"mean use of a server's storage: {means}"


def _otos_has_larger_y1(data: _Data) -> tuple[Points, str]:
    intervals = data.against("sigma", data.otos, [data.reloc()], "y1")
    return _above(intervals, "σ"), f"Y1 of OTOS minus Y1 of RELOC, ms: {_listed(intervals, 'σ')}"


def _reloc_within_storage(data: _Data) -> tuple[Points, str]:
    values = data.measures.values("sigma")
    rows = [row for x in values for row in data.measures.of("sigma", x, data.reloc())]
    means = {x: found for x in values if (found := data.measures.mean("sigma", x, data.reloc(), "storage_use"))}
    listed = "; ".join(
        f"σ = {x:g}: {found.mean:.0%} [{found.limits[0]:.0%}, {found.limits[1]:.0%}]" for x, found in means.items()
    )
    within = sum(row.fullest_storage <= 1 for row in rows)
    return (
        _below(means, "σ", 1.0),
        f"mean over servers, share of A: {listed}. No single server is above A on {within} of {len(rows)} instances; "
        f"the fullest server of all has {max((row.fullest_storage for row in rows), default=0.0):.0%}",
    )


def _steps_save_and_balance(data: _Data) -> tuple[Points, str]:
    saved = data.against("sigma", data.after("relation"), [data.after("locality")], "storage_use")
    levelled = data.against("sigma", data.after("cooperation"), [data.after("relation")], "fullest_storage")
    first, second = _below(saved, "σ"), _below(levelled, "σ")
    return (
        {value: first[value] and second[value] for value in first.keys() & second.keys()},
        f"relation step, mean use of storage (share of A): {_listed(saved, 'σ')}. Cooperation step, fullest server: "
        f"{_listed(levelled, 'σ')}",
    )


def _cooperation_limits_growth(data: _Data) -> tuple[Points, str]:
    intervals, steps = {}, []
    for x, found in data.against("spool", data.after("cooperation"), [data.after("relation")]).items():
        if data.mean("spool", x, data.after("relation"), "least_theta") < 1:
            intervals[x] = found
            before, end = (data.mean("spool", x, data.after(step), "y") for step in ("relation", "cooperation"))
            steps.append(f"p = {x:g}: {before:.2f} → {end:.2f}")
    values = data.measures.values("spool")
    grown = data.mean("spool", values[-1], data.reloc(), "y") / data.mean("spool", values[0], data.reloc(), "y")
    return (
        _below(intervals, "p"),
        f"Y before and after the step, ms: {'; '.join(steps) or 'no server was overloaded'}. From p = {values[0]:g} to "
        f"{values[-1]:g} RELOC's Y grows by the factor {grown:.1f}",
    )


def _clusters_matter_little(data: _Data) -> tuple[Points, str]:
    points, spreads = {}, []
    # With one cluster RELOC has no locality step, and with as many clusters as servers it is NS.
    proper = [k for k in data.clusters if 1 < k < max(data.clusters)] or list(data.clusters)
    for x in data.measures.values("sigma"):
        if x >= INDIFFERENT_FROM:
            means = [data.mean("sigma", x, data.reloc(k), "y") for k in proper]
            points[f"σ = {x:g}"] = max(means) / min(means) - 1 <= LITTLE
            spreads.append(f"σ = {x:g}: {max(means) / min(means) - 1:.0%}")
    return points, f"difference between the best and the worst K of {', '.join(map(str, proper))}: {'; '.join(spreads)}"


def _more_clusters_help(data: _Data) -> tuple[Points, str]:
    points, texts = {}, []
    for x in data.measures.values("sigma"):
        means = {k: data.mean("sigma", x, data.reloc(k), "y") for k in data.clusters}
        listed = ", ".join(f"{mean:.2f}" for mean in means.values())
        if x > STRONG_TO:
            texts.append(f"σ = {x:g}: {listed}")
            continue
        best = min(means, key=lambda k: means[k])
        less = interval(data.measures.differences("sigma", x, data.reloc(best), [data.reloc()]))
        points[f"σ = {x:g}"] = best > DEFAULT_CLUSTERS and less.limits[1] < 0
        change = f", {less.mean:+.3f} [{less.limits[0]:+.3f}, {less.limits[1]:+.3f}] to K = {DEFAULT_CLUSTERS}"
        texts.append(f"σ = {x:g}: {listed}; least at K = {best}{change if best != DEFAULT_CLUSTERS else ''}")
    return points, f"mean Y at K = {', '.join(map(str, data.clusters))}: {'; '.join(texts)}"


CLAIMS = {
    "fastest": Claim(
        f"Of the four, RELOC delivers fastest once σ is {WEAK_FROM:g} km or more.",
        "At each such σ, the 95 % interval of the mean paired difference in Y to the best of the other three is below "
        "0.",
        _fastest_from_weak_locality,
        depends_on_reading=True,
    ),
    "NS distance": Claim(
        "NS has the smallest distances between clients and homes.",
        "On every instance, NS has the least mean distance of the four (true by construction).",
        _nearest_has_least_distance,
        depends_on_reading=False,
    ),
    "NS Y2": Claim(
        "Y2 of NS grows with σ.",
        "The 95 % interval of the mean paired increase of Y2 from the least to the largest σ is above 0.",
        _nearest_y2_grows,
        depends_on_reading=False,
    ),
    "NS ample": Claim(
        "Where capacity is ample, NS may be the best choice.",
        "On instances where NS leaves every θ at 1, NS has the least Y of the four.",
        _nearest_best_with_ample_capacity,
        depends_on_reading=True,
    ),
    "OTOS storage": Claim(
        "OTOS uses the least storage.",
        "At each σ, the 95 % interval of the mean paired difference in storage to the least of the other three is "
        "below 0.",
        _otos_has_least_storage,
        depends_on_reading=True,
    ),
    "OTOS Y1": Claim(
        "OTOS has a larger Y1 than RELOC at every σ.",
        "At each σ, the 95 % interval of the mean paired difference in Y1 is above 0.",
        _otos_has_larger_y1,
        depends_on_reading=True,
    ),
    "RELOC storage": Claim(
        "RELOC's storage stays below A at every σ.",
        "At each σ, the 95 % interval of the mean over servers and seeds, which is what the paper draws, is below A. "
        "Single servers above A are counted with the numbers.",
        _reloc_within_storage,
        depends_on_reading=True,
    ),
    "steps": Claim(
        "The relation step saves storage, and the cooperation step balances it between servers.",
        "At each σ, paired: the mean storage after the relation step is below that after the locality step, and the "
        "fullest server after the cooperation step is below the fullest server before it.",
        _steps_save_and_balance,
        depends_on_reading=True,
    ),
    "fastest, spools": Claim(
        "Of the four, RELOC delivers fastest for every size of spools.",
        "At each p, the same test as for the first claim.",
        _fastest_at_every_spool,
        depends_on_reading=True,
    ),
    "growth, spools": Claim(
        "When the relation step leaves servers overloaded, cooperation keeps the growth of Y small.",
        "At each p where the relation step leaves a θ below 1, Y after cooperation is below Y before it, paired.",
        _cooperation_limits_growth,
        depends_on_reading=True,
    ),
    "K matters little": Claim(
        f"For σ of {INDIFFERENT_FROM:g} km and more, the number of clusters K matters little.",
        f"Mean Y of the worst K is at most {LITTLE:.0%} above that of the best (the threshold is ours). The least and "
        "the largest K are left out: one cluster means no locality step, and with as many as servers RELOC is NS.",
        _clusters_matter_little,
        depends_on_reading=True,
    ),
    "larger K helps": Claim(
        f"For σ up to {STRONG_TO:g} km, a larger K lowers Y.",
        f"At each such σ, the K with the least mean Y is above {DEFAULT_CLUSTERS}, and the 95 % interval of the mean "
        f"paired difference to K = {DEFAULT_CLUSTERS} is below 0. (With as many clusters as servers, RELOC is NS.)",
        _more_clusters_help,
        depends_on_reading=True,
    ),
}
