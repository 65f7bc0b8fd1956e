"""The paper's qualitative claims, each with a test and a verdict on our data."""

from dataclasses import dataclass

from reports.paper_rows import PaperRow, sigmas_of, values_of
from reports.statistics import FEWEST_FOR_INTERVAL, mean_interval

Interval = tuple[float, float, float]


@dataclass(frozen=True)
class Claim:
    """What the paper says, what we tested, whether it holds, and the numbers."""

    says: str
    verdict: str
    numbers: str


def claims(rows: list[PaperRow]) -> list[Claim]:
    """Judge every claim; with few seeds nothing can be told."""
    judged = _judged(rows)
    if len({row.seed for row in rows}) >= FEWEST_FOR_INTERVAL:
        return judged
    return [Claim(claim.says, "too few seeds to tell", f"needs at least {FEWEST_FOR_INTERVAL}") for claim in judged]


def _judged(rows: list[PaperRow]) -> list[Claim]:
    return [
        _reloc_beats("nearest", "NS", rows),
        _reloc_beats("otos", "OTOS", rows),
        _nearest_is_best_on_distance(rows),
        _otos_stores_least(rows),
        _otos_is_farther(rows),
        _reloc_fits(rows),
        _more_clusters_help(rows),
    ]


def _differences(rows: list[PaperRow], method: str, other: str, what: str = "y") -> dict[float, Interval]:
    """Return for each spread the mean and interval of ``method`` minus ``other``, instance by instance."""
    told = {}
    for sigma in sigmas_of(rows):
        pairs = zip(values_of(rows, method, sigma, what), values_of(rows, other, sigma, what), strict=True)
        told[sigma] = mean_interval([mine - theirs for mine, theirs in pairs])
    return told


def _listed(told: dict[float, Interval]) -> str:
    return "; ".join(f"σ {sigma:g}: {mean:+.3f} [{low:+.3f}, {high:+.3f}]" for sigma, (mean, low, high) in told.items())


def _reloc_beats(other: str, name: str, rows: list[PaperRow]) -> Claim:
    told = _differences(rows, "reloc", other)
    wins = [f"{sigma:g}" for sigma, (_, _, high) in told.items() if high < 0]
    losses = [f"{sigma:g}" for sigma, (_, low, _) in told.items() if low > 0]
    wanted = {f"{sigma:g}" for sigma in told if sigma >= 5}
    verdict = "holds" if set(wins) >= wanted else "holds in part" if set(wins) & wanted else "does not hold"
    return Claim(
        f"RELOC has a smaller delay than {name} for σ ≥ 5",
        f"{verdict}: better at σ = {', '.join(wins) or 'none'}, worse at σ = {', '.join(losses) or 'none'}",
        f"Y(RELOC) - Y({name}): {_listed(told)}",
    )


def _nearest_is_best_on_distance(rows: list[PaperRow]) -> Claim:
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


def _otos_stores_least(rows: list[PaperRow]) -> Claim:
    against = {other: _differences(rows, "otos", other, "storage_used") for other in ("reloc", "nearest", "random")}
    clear = all(high < 0 for told in against.values() for _, _, high in told.values())
    means = "; ".join(
        f"{method} {mean_interval([row.storage_used for row in rows if row.method == method])[0]:.0%}"
        for method in ("otos", *against)
    )
    return Claim(
        "OTOS uses the least storage of the four",
        "holds at every σ" if clear else "does not hold at every σ",
        f"mean use of storage: {means}",
    )


def _otos_is_farther(rows: list[PaperRow]) -> Claim:
    told = _differences(rows, "otos", "reloc", "y1")
    farther = [f"{sigma:g}" for sigma, (_, low, _) in told.items() if low > 0]
    verdict = "holds" if len(farther) == len(told) else "holds in part" if farther else "does not hold"
    return Claim(
        "OTOS has a larger Y1 than RELOC throughout",
        f"{verdict}: at σ = {', '.join(farther) or 'none'}",
        f"Y1(OTOS) - Y1(RELOC): {_listed(told)}",
    )


def _reloc_fits(rows: list[PaperRow]) -> Claim:
    mine = [row for row in rows if row.method == "reloc"]
    within = sum(row.fullest_storage <= 1 for row in mine)
    averages = [mean_interval(values_of(rows, "reloc", sigma, "storage_used"))[0] for sigma in sigmas_of(rows)]
    worst = max(row.fullest_storage for row in mine)
    verdict = (
        "holds" if within == len(mine) else "holds on the average of servers" if max(averages) <= 1 else "does not"
    )
    return Claim(
        "RELOC's storage stays under A",
        f"{verdict}; no server at all exceeds it on {within} of {len(mine)} instances",
        f"mean use {min(averages):.0%} to {max(averages):.0%} of A; worst server {worst:.0%}",
    )


def _more_clusters_help(rows: list[PaperRow]) -> Claim:
    names = ("reloc[k=1]", "reloc[k=2]", "reloc", "reloc[k=8]", "reloc[k=16]")
    told = _differences(rows, "reloc[k=16]", "reloc")
    helps = [f"{sigma:g}" for sigma, (_, _, high) in told.items() if high < 0]
    hurts = [f"{sigma:g}" for sigma, (_, low, _) in told.items() if low > 0]
    wanted = {f"{sigma:g}" for sigma in told if sigma <= 5}
    verdict = "holds" if set(helps) >= wanted else "holds in part" if set(helps) & wanted else "does not hold"
    numbers = []
    for sigma in told:
        means = [f"{mean_interval(values_of(rows, name, sigma))[0]:.2f}" for name in names]
        numbers.append(f"σ {sigma:g}: {' '.join(means)}")
    return Claim(
        "For σ ≤ 5 a larger K helps",
        f"{verdict}: K = 16 is better than K = 4 at σ = {', '.join(helps) or 'none'}, "
        f"worse at σ = {', '.join(hurts) or 'none'} (with as many clusters as servers RELOC is NS)",
        "Y at K = 1, 2, 4, 8, 16 — " + "; ".join(numbers),
    )
