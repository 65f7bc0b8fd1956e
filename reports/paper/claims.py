"""What the paper says of its evaluation, in our words, each with a test, a verdict on our data and the numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from relocbench.reports.paper.evaluation import BASELINES
from relocbench.reports.paper.measures import BEST, STEPS, Interval, Measured, Measures
from relocbench.reports.paper.readings import DEFAULT_CLUSTERS, READINGS, reloc
from relocbench.reports.statistics import FEWEST_FOR_INTERVAL, mean_interval

HOLDS, IN_PART, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "too few seeds to tell"
# Where the data has no value that the claim is about.
NOT_ASKED = "not tested"
# From this spread on the paper calls locality weak in its first study, in its third, and up to which strong.
WEAK_FROM, INDIFFERENT_FROM, STRONG_TO = 5.0, 10.0, 5.0
# What we take "does not vary so much" for.
LITTLE = 0.10
# Room for rounding in comparisons of what is equal by construction.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Verdict:
    """What the data says, in a word, and in numbers."""

    word: str
    numbers: str


@dataclass(frozen=True)
class Claim:
    """What the paper says, what we tested, and what came out; for what depends on it, under each other reading."""

    says: str
    test: str
    verdict: Verdict
    others: Mapping[str, Verdict]

    @property
    def decided_by_reading(self) -> bool:
        """Whether another reading of Algorithm 1 gives another verdict."""
        return any(other.word != self.verdict.word for other in self.others.values())


@dataclass(frozen=True)
class _Data:
    """The measures, as a reading of RELOC sees them."""

    measures: Measures
    clusters: Sequence[int]
    reading: str = ""

    def reloc(self, k: int = DEFAULT_CLUSTERS) -> str:
        return reloc(self.reading, k)

    def against(self, study: str, method: str, others: Sequence[str], what: str = "y") -> dict[float, Interval]:
        """Return at each value by how much a method is above the best of others, with its interval."""
        told = {}
        for x in self.measures.values(study):
            if differences := self.measures.differences(study, x, method, others, what):
                told[x] = mean_interval(differences)
        return told

    def mean(self, study: str, x: float, method: str, what: str) -> float:
        found = self.measures.mean(study, x, method, what)
        return float("nan") if found is None else found[0]

    def instances(self) -> list[dict[str, Measured]]:
        """Return for each instance what each method did, where all of the four did something."""
        by_instance: dict[str, dict[str, Measured]] = {}
        for row in self.measures.rows:
            by_instance.setdefault(row.hash, {})[row.method] = row
        four = {*BASELINES, self.reloc()}
        return [methods for methods in by_instance.values() if four <= methods.keys()]


Judge = Callable[[_Data], Verdict]


def claims(measures: Measures, clusters: Sequence[int]) -> list[Claim]:
    """Judge every claim; with few seeds nothing can be told."""
    few = len(measures.seeds) < FEWEST_FOR_INTERVAL

    def judged(judge: Judge, reading: str) -> Verdict:
        verdict = judge(_Data(measures, clusters, reading))
        return Verdict(UNKNOWN, f"{verdict.numbers} (needs {FEWEST_FOR_INTERVAL} seeds)") if few else verdict

    others = [reading for reading in READINGS if reading]
    return [
        Claim(
            says, test, judged(judge, ""), {reading: judged(judge, reading) for reading in others if depends_on_reading}
        )
        for says, test, judge, depends_on_reading in CLAIMS
    ]


def _word(good: int, of: int) -> str:
    if of == 0:
        return NOT_ASKED
    return HOLDS if good == of else IN_PART if good else FAILS


def _listed(told: Mapping[float, Interval], symbol: str) -> str:
    return "; ".join(
        f"{symbol} = {x:g}: {mean:+.3f} [{low:+.3f}, {high:+.3f}]" for x, (mean, low, high) in told.items()
    )


def _below(told: Mapping[float, Interval]) -> int:
    return sum(high < 0 for _, _, high in told.values())


def _above(told: Mapping[float, Interval]) -> int:
    return sum(low > 0 for _, low, _ in told.values())


def _fastest_when_spread(data: _Data) -> Verdict:
    told = data.against("sigma", data.reloc(), BASELINES)
    wanted = {x: interval for x, interval in told.items() if x >= WEAK_FROM}
    return Verdict(
        _word(_below(wanted), len(wanted)), f"Y of RELOC minus the best of the other three, ms: {_listed(told, 'σ')}"
    )


def _fastest_at_any_spool(data: _Data) -> Verdict:
    told = data.against("spool", data.reloc(), BASELINES)
    return Verdict(
        _word(_below(told), len(told)), f"Y of RELOC minus the best of the other three, ms: {_listed(told, 'p')}"
    )


def _nearest_is_near(data: _Data) -> Verdict:
    found = data.instances()
    four = (*BASELINES, data.reloc())
    best = sum(
        methods["nearest"].distance_km <= min(methods[name].distance_km for name in four) + ROUNDING
        for methods in found
    )
    return Verdict(_word(best, len(found)), f"on {best} of {len(found)} instances")


def _nearest_pays_later(data: _Data) -> Verdict:
    values = data.measures.values("sigma")
    first, last = values[0], values[-1]
    early = {row.seed: row.y2 for row in data.measures.of("sigma", first, "nearest")}
    late = {row.seed: row.y2 for row in data.measures.of("sigma", last, "nearest")}
    mean, low, high = mean_interval([late[seed] - early[seed] for seed in early.keys() & late.keys()])
    levels = ", ".join(f"{data.mean('sigma', x, 'nearest', 'y2'):.2f}" for x in values)
    return Verdict(
        NOT_ASKED if first == last else HOLDS if low > 0 else FAILS,
        f"Y2 of NS at σ = {', '.join(f'{x:g}' for x in values)}: {levels} ms; "
        f"from first to last {mean:+.3f} [{low:+.3f}, {high:+.3f}]",
    )


def _nearest_with_room(data: _Data) -> Verdict:
    four = (*BASELINES, data.reloc())
    roomy = [methods for methods in data.instances() if methods["nearest"].least_theta == 1]
    best = [methods for methods in roomy if methods["nearest"].y <= min(methods[name].y for name in four) + ROUNDING]
    over = [methods["nearest"].y / methods[BEST].y - 1 for methods in roomy if BEST in methods]
    more = f"; above the best homes known by {mean_interval(over)[0]:.0%} on average" if over else ""
    return Verdict(
        _word(len(best), len(roomy)),
        f"{len(roomy)} instances on which NS overloads nobody; NS has the least Y of the four on {len(best)}{more}",
    )


def _otos_stores_least(data: _Data) -> Verdict:
    told = data.against("sigma", "otos", ["random", "nearest", data.reloc()], "storage_use")
    means = "; ".join(
        f"σ = {x:g}: OTOS {data.mean('sigma', x, 'otos', 'storage_use'):.0%}, "
        f"RELOC {data.mean('sigma', x, data.reloc(), 'storage_use'):.0%}"
        for x in told
    )
    return Verdict(_word(_below(told), len(told)), f"mean use of a server's storage: {means}")


def _otos_is_farther(data: _Data) -> Verdict:
    told = data.against("sigma", "otos", [data.reloc()], "y1")
    return Verdict(_word(_above(told), len(told)), f"Y1 of OTOS minus Y1 of RELOC, ms: {_listed(told, 'σ')}")


def _reloc_fits(data: _Data) -> Verdict:
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


def _cooperation_contains(data: _Data) -> Verdict:
    told, shown = {}, []
    for x, interval in data.against("spool", STEPS["cooperation"], [STEPS["relation"]]).items():
        if data.mean("spool", x, STEPS["relation"], "least_theta") < 1:
            told[x] = interval
            before, after = (data.mean("spool", x, STEPS[step], "y") for step in ("relation", "cooperation"))
            shown.append(f"p = {x:g}: {before:.2f} → {after:.2f}")
    values = data.measures.values("spool")
    grown = [
        data.mean("spool", values[-1], name, "y") / data.mean("spool", values[0], name, "y")
        for name in (data.reloc(), BEST)
    ]
    return Verdict(
        _word(_below(told), len(told)),
        f"Y before and after the step, ms: {'; '.join(shown) or 'no server was overloaded'}. From p = {values[0]:g} to "
        f"{values[-1]:g} RELOC's Y grows to {grown[0]:.1f} times, that of the best homes known to {grown[1]:.1f} times",
    )


def _clusters_matter_little(data: _Data) -> Verdict:
    shown, calm = [], []
    for x in data.measures.values("sigma"):
        if x >= INDIFFERENT_FROM:
            means = [data.mean("sigma", x, data.reloc(k), "y") for k in data.clusters]
            spread = max(means) / min(means) - 1
            calm.append(spread <= LITTLE)
            shown.append(f"σ = {x:g}: {spread:.0%} between the best and the worst K")
    return Verdict(_word(sum(calm), len(calm)), "; ".join(shown))


def _more_clusters_help(data: _Data) -> Verdict:
    most = max(data.clusters)
    told = data.against("sigma", data.reloc(most), [data.reloc()])
    wanted = {x: interval for x, interval in told.items() if x <= STRONG_TO}
    means = "; ".join(
        f"σ = {x:g}: " + ", ".join(f"{data.mean('sigma', x, data.reloc(k), 'y'):.2f}" for k in data.clusters)
        for x in told
    )
    return Verdict(
        _word(_below(wanted), len(wanted)),
        f"Y of K = {most} minus Y of K = {DEFAULT_CLUSTERS}, ms: {_listed(told, 'σ')}. "
        f"Mean Y at K = {', '.join(map(str, data.clusters))}: {means}",
    )


# What the paper says in our words; the test; the judge; whether the reading of Algorithm 1 matters to it.
CLAIMS: tuple[tuple[str, str, Judge, bool], ...] = (
    (
        f"Of the four, RELOC delivers fastest once σ is {WEAK_FROM:g} km or more.",
        "The 95 % interval of the mean paired difference in Y to the best of the other three is below 0, at each one.",
        _fastest_when_spread,
        True,
    ),
    (
        "NS keeps clients nearest to their homes.",
        "Least mean distance of the four, instance by instance (true by construction).",
        _nearest_is_near,
        False,
    ),
    (
        "NS pays for that with a Y2 that grows with σ.",
        "The 95 % interval of the mean paired rise in Y2 from the least to the largest σ is above 0.",
        _nearest_pays_later,
        False,
    ),
    (
        "Where capacity is ample, NS may be the best choice.",
        "On instances where NS leaves every θ at 1, NS has the least Y of the four.",
        _nearest_with_room,
        True,
    ),
    (
        "OTOS takes up the least storage.",
        "The 95 % interval of the mean paired difference in storage to the thriftiest of the other three is below 0, "
        "at each σ.",
        _otos_stores_least,
        True,
    ),
    (
        "OTOS has a larger Y1 than RELOC throughout.",
        "The 95 % interval of the mean paired difference in Y1 is above 0, at each σ.",
        _otos_is_farther,
        True,
    ),
    (
        "RELOC's storage stays below A, however large σ.",
        "No server holds more than A, on any instance; in part, if the mean over servers stays below A.",
        _reloc_fits,
        True,
    ),
    (
        "The relation step saves storage, the cooperation step levels it between servers.",
        "Paired, at each σ: mean storage after the relation step is below that after the locality step; the fullest "
        "server after cooperation is below the fullest before.",
        _steps_save_and_balance,
        False,
    ),
    (
        "Of the four, RELOC delivers fastest whatever the size of spools.",
        "As the first claim, at each p.",
        _fastest_at_any_spool,
        True,
    ),
    (
        "When the relation step leaves servers overloaded, cooperation keeps the growth of Y small.",
        "Wherever the relation step leaves a θ below 1: Y after cooperation is below Y before, paired.",
        _cooperation_contains,
        False,
    ),
    (
        f"For σ of {INDIFFERENT_FROM:g} km and more, the number of clusters K matters little.",
        f"Mean Y of the worst K is at most {LITTLE:.0%} above that of the best (the threshold is ours).",
        _clusters_matter_little,
        True,
    ),
    (
        f"For σ up to {STRONG_TO:g} km, a larger K lowers Y.",
        f"Y with the largest K is below Y with K = {DEFAULT_CLUSTERS}, paired, at each such σ. (With as many clusters "
        "as servers RELOC is NS.)",
        _more_clusters_help,
        True,
    ),
)
