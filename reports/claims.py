"""The paper's qualitative claims, each with a test and a verdict on our data."""

from dataclasses import dataclass

from reports.study import StudyRow, mean_interval, sigmas_of, values_of

Interval = tuple[float, float, float]


@dataclass(frozen=True)
class Claim:
    """What the paper says, what we tested, whether it holds, and the numbers."""

    says: str
    verdict: str
    numbers: str


def claims(rows: list[StudyRow]) -> list[Claim]:
    """Judge every claim."""
    return [
        _reloc_beats("nearest", "NS", rows),
        _reloc_beats("otos", "OTOS", rows),
        _nearest_is_best_on_distance(rows),
        _otos_stores_least(rows),
        _otos_is_farther(rows),
        _reloc_fits(rows),
        _more_clusters_help(rows),
    ]


def _differences(rows: list[StudyRow], method: str, other: str, what: str = "y") -> dict[float, Interval]:
    """Return for each spread the mean and interval of ``method`` minus ``other``, instance by instance."""
    told = {}
    for sigma in sigmas_of(rows):
        pairs = zip(values_of(rows, method, sigma, what), values_of(rows, other, sigma, what), strict=True)
        told[sigma] = mean_interval([mine - theirs for mine, theirs in pairs])
    return told


def _listed(told: dict[float, Interval]) -> str:
    return "; ".join(f"σ {sigma:g}: {mean:+.3f} [{low:+.3f}, {high:+.3f}]" for sigma, (mean, low, high) in told.items())


def _reloc_beats(other: str, name: str, rows: list[StudyRow]) -> Claim:
    told = _differences(rows, "reloc", other)
    wins = [f"{sigma:g}" for sigma, (_, _, high) in told.items() if high < 0]
    losses = [f"{sigma:g}" for sigma, (_, low, _) in told.items() if low > 0]
    wanted = {f"{sigma:g}" for sigma in told if sigma >= 5}
    verdict = "holds" if set(wins) >= wanted else "holds in part" if wins else "does not hold"
    return Claim(
        f"RELOC has a smaller delay than {name} for σ ≥ 5",
        f"{verdict}: better at σ = {', '.join(wins) or 'none'}, worse at σ = {', '.join(losses) or 'none'}",
        f"Y(RELOC) - Y({name}): {_listed(told)}",
    )


def _nearest_is_best_on_distance(rows: list[StudyRow]) -> Claim:
    least: dict[str, float] = {}
    for row in rows:
        least[row.instance] = min(least.get(row.instance, row.distance_km), row.distance_km)
    best = [row.distance_km <= least[row.instance] + 1e-9 for row in rows if row.method == "nearest"]
    shown = "; ".join(
        f"{method} {mean_interval([row.distance_km for row in rows if row.method == method])[0]:.2f}"
        for method in ("nearest", "reloc", "otos", "random")
    )
    verdict = "holds" if all(best) else "does not hold"
    return Claim(
        "NS gives the smallest distance", f"{verdict}: on {sum(best)} of {len(best)} instances", f"km: {shown}"
    )


def _otos_stores_least(rows: list[StudyRow]) -> Claim:
    shown = {
        method: mean_interval([row.storage_used for row in rows if row.method == method])[0]
        for method in ("otos", "reloc", "nearest", "random")
    }
    verdict = "holds" if min(shown, key=lambda method: shown[method]) == "otos" else "does not hold"
    numbers = "; ".join(f"{method} {value:.0%}" for method, value in shown.items())
    return Claim("OTOS uses the least storage of the four", verdict, f"mean use of storage: {numbers}")


def _otos_is_farther(rows: list[StudyRow]) -> Claim:
    told = _differences(rows, "otos", "reloc", "y1")
    farther = [f"{sigma:g}" for sigma, (_, low, _) in told.items() if low > 0]
    verdict = "holds" if len(farther) == len(told) else "holds in part" if farther else "does not hold"
    return Claim(
        "OTOS has a larger Y1 than RELOC throughout",
        f"{verdict}: at σ = {', '.join(farther) or 'none'}",
        f"Y1(OTOS) - Y1(RELOC): {_listed(told)}",
    )


def _reloc_fits(rows: list[StudyRow]) -> Claim:
    fullest = [row.fullest_storage for row in rows if row.method == "reloc"]
    within = sum(value <= 1 for value in fullest)
    verdict = "holds" if within == len(fullest) else "does not hold" if within == 0 else "holds in part"
    return Claim(
        "RELOC's storage stays under A",
        f"{verdict}: on {within} of {len(fullest)} instances no server exceeds it",
        f"fullest server: mean {sum(fullest) / len(fullest):.0%}, worst {max(fullest):.0%} of A",
    )


def _more_clusters_help(rows: list[StudyRow]) -> Claim:
    told = _differences(rows, "reloc[k=16]", "reloc[k=1]")
    helps = [f"{sigma:g}" for sigma, (_, _, high) in told.items() if high < 0]
    wanted = {f"{sigma:g}" for sigma in told if sigma <= 5}
    verdict = "holds" if set(helps) >= wanted else "holds in part" if set(helps) & wanted else "does not hold"
    numbers = []
    for sigma in told:
        means = [
            f"{mean_interval(values_of(rows, 'reloc' if k == 4 else f'reloc[k={k}]', sigma))[0]:.2f}"
            for k in (1, 2, 4, 8, 16)
        ]
        numbers.append(f"σ {sigma:g}: {' '.join(means)}")
    return Claim(
        "For σ ≤ 5 a larger K helps",
        f"{verdict}: K = 16 beats K = 1 at σ = {', '.join(helps) or 'none'}",
        "Y at K = 1, 2, 4, 8, 16 — " + "; ".join(numbers),
    )
