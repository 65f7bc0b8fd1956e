"""The answers of a study of moving clients in words. Every number and every verdict comes from the rows."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from relocbench.reports.moving.growth import CLIENTS, growth
from relocbench.reports.moving.summary import Line, Summary, time_text
from relocbench.reports.pages.method_style import name_of
from relocbench.reports.statistics import Interval

# Periods whose cost is within this share of the best are as good for practice.
ABOUT_AS_GOOD = 0.01
# A smaller difference than this share is written as none.
NO_DIFFERENCE = 0.00005
NEAREST = "nearest"


@dataclass(frozen=True)
class Answer:
    """A question and its answer, with the marks of :func:`reports.pages.markup.marked`.

    Attributes
    ----------
    question
        The question.
    verdict
        The answer in a sentence or two.
    details
        The numbers behind it, one sentence each.
    """

    question: str
    verdict: str
    details: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole answer as one paragraph."""
        return " ".join((self.verdict, *self.details))


def answers(summary: Summary) -> list[Answer]:
    """Answer the questions of a study.

    Parameters
    ----------
    summary
        The results.

    Returns
    -------
    list of Answer
        The answers to those questions for which there are rows.
    """
    found = [
        _period(summary),
        _nearest(summary),
        _relocation(summary),
        _distance(summary),
        _clusters(summary),
        _run_time(summary),
    ]
    return [answer for answer in found if answer is not None]


def percent(value: float) -> str:
    """Return a share as a percentage with a suitable number of digits.

    Parameters
    ----------
    value
        The share.

    Returns
    -------
    str
        Such as ``3.4 %``.
    """
    digits = 0 if abs(value) >= 0.0995 else 1 if abs(value) >= 0.00095 or value == 0 else 2
    return f"{100 * value:.{digits}f} %"


def with_interval(found: Interval) -> str:
    """Return a mean share with its interval.

    Parameters
    ----------
    found
        The interval, of shares.

    Returns
    -------
    str
        Such as ``3.4 % [2.0 %, 4.7 %]``, or the mean alone with fewer than five seeds.
    """
    if found.low is None or found.high is None:
        return percent(found.mean)
    return f"{percent(found.mean)} [{percent(found.low)}, {percent(found.high)}]"


def sign(found: Interval) -> int:
    """Return whether a difference is below or above 0.

    Parameters
    ----------
    found
        The difference.

    Returns
    -------
    int
        -1 or 1; 0 if the interval contains 0. Without an interval the mean decides.
    """
    low, high = found.limits
    return 1 if low > 0 else -1 if high < 0 else 0


def at(summary: Summary, group: str) -> str:
    """Return how a sentence names a group.

    Parameters
    ----------
    summary, group
        The study and the group.

    Returns
    -------
    str
        Such as ``at 30 km/h`` or ``on sf-taxi``.
    """
    return f"at {group}" if summary.speed(group) is not None and "km/h" in group else f"on {group}"


def _has_speeds(summary: Summary) -> bool:
    """Return whether the study has timelines of several speeds."""
    speeds = [summary.speed(group) for group in summary.groups]
    return None not in speeds and len(set(speeds)) > 1


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _period(summary: Summary) -> Answer | None:
    details, chosen, short = [], [], []
    for group in summary.groups:
        lines = summary.periodic(group, summary.main)
        best = summary.best(group, summary.main)
        if best is None or len(lines) < 2:
            continue
        period = time_text(best.period or 0.0)
        chosen.append((summary.speed(group), best.period or 0.0))
        short.append(f"every **{period}** {at(summary, group)}")
        near = _around(lines, best)
        ends = [time_text(line.period or 0.0) for line in (near[0], near[-1])]
        extra = [
            f"{_less(summary.difference(line, best), strong=False)} with {time_text(line.period or 0.0)}"
            for line in (lines[0], lines[-1])
            if line is not best
        ]
        text = f"{at(summary, group)} a publication costs {best.cost.mean:.3f} ms with {period}. It {_listed(extra)}"
        if len(lines) > 2 and best in (lines[0], lines[-1]):
            text += f". This is the {'shortest' if best is lines[0] else 'longest'} period that was tried"
        if ends[0] != ends[1]:
            text += f". Periods from {ends[0]} to {ends[1]} cost at most {percent(ABOUT_AS_GOOD)} more than the best"
        details.append(_sentence(text) + ".")
    if not details:
        return None
    question = f"At what period is {name_of(summary.main)} worth running again?"
    return Answer(question, f"{_sentence(_listed(short))}.{_trend(chosen)}", tuple(details))


def _around(lines: Sequence[Line], best: Line) -> list[Line]:
    """Return the lines around the best one, without a gap, that cost hardly more."""
    runs = itertools.groupby(lines, key=lambda line: line.cost.mean <= (1 + ABOUT_AS_GOOD) * best.cost.mean)
    return next(run for _, found in runs if best in (run := list(found)))


def _trend(chosen: Sequence[tuple[float | None, float]]) -> str:
    """Say how the best period depends on the speed."""
    known = sorted((speed, period) for speed, period in chosen if speed is not None)
    if len({speed for speed, _ in known}) < 2 or len(known) < len(chosen):
        return ""
    periods = [period for _, period in known]
    steps = [later - earlier for earlier, later in itertools.pairwise(periods)]
    if all(step == 0 for step in steps):
        return " The best period is the same at every speed."
    if all(step <= 0 for step in steps):
        return " The faster the clients, the shorter the best period."
    if all(step >= 0 for step in steps):
        return " The faster the clients, the longer the best period."
    return " The best period does not follow the speed."


def _nearest(summary: Summary) -> Answer | None:
    if NEAREST not in summary.methods or summary.main == NEAREST:
        return None
    own, other = name_of(summary.main), name_of(NEAREST)
    found: dict[int, list[str]] = {-1: [], 0: [], 1: []}
    for group in summary.groups:
        best, nearest = summary.best(group, summary.main), summary.best(group, NEAREST)
        if best is None or nearest is None:
            continue
        difference = summary.difference(best, nearest)
        found[sign(difference)].append(f"{at(summary, group)} ({with_interval(difference)})")
    if not any(found.values()):
        return None
    words = {
        1: f"**{other} is better** than {own}, each at its best period, {{}}",
        -1: f"**{own} is better** than {other} {{}}",
        0: f"there is no clear difference between {own} and {other} {{}}",
    }
    parts = [words[key].format(_listed(found[key])) for key in (1, -1, 0) if found[key]]
    text = ". ".join(map(_sentence, parts))
    meaning = f"The percentages say how much more {own} costs than {other}"
    where = "At which speed" if _has_speeds(summary) else "Where"
    return Answer(f"{where} is {other} better than {own}?", f"{text}. {meaning}.")


def _relocation(summary: Summary) -> Answer | None:
    details: list[str] = []
    saved: dict[str, list[float]] = {}
    for group in summary.groups:
        best = summary.best(group, summary.main)
        # The best policy that does not count relocation, with any method.
        rival = summary.cheapest(group, lambda line: not line.counts_relocation and not line.clusters_only)
        for line in summary.others(group):
            if not line.counts_relocation or best is None or rival is None:
                continue
            difference = summary.difference(line, best)
            saved.setdefault(line.policy, []).append(-difference.mean)
            text = f"{at(summary, group)} `{line.policy}` {_less(difference, best.name)}"
            text += f", with {line.handovers:.2g} instead of {best.handovers:.2g} handovers per client and hour"
            if rival is not best:
                text += f". It {_less(summary.difference(line, rival), rival.name)}, the best policy that does not "
                text += f"count relocation ({rival.handovers:.2g} handovers)"
            details.append(_sentence(text) + ".")
    if not details:
        return None
    parts = [
        f"`{policy}` saves {_range(values)} against {name_of(summary.main)} at its best period"
        for policy, values in saved.items()
    ]
    question = "What does a policy that counts relocation save?"
    return Answer(question, f"{_sentence(_listed(parts))}.", tuple(details))


def _range(values: Sequence[float]) -> str:
    low, high = (percent(0.0 if abs(value) < NO_DIFFERENCE else value) for value in (min(values), max(values)))
    return f"**{low}**" if low == high else f"**{low} to {high}**"


def _less(difference: Interval, other: str = "", *, strong: bool = True) -> str:
    """Say how much less or more something costs than something else."""
    mark = "**" if strong else ""
    none = max(map(abs, difference.limits)) < NO_DIFFERENCE
    if sign(difference) == 0 or none:
        same = "the same" if none else "about the same"
        limits = "" if same == "the same" else f" ({with_interval(difference)})"
        return f"costs {same}{' as ' + other if other else ''}{limits}"
    word, shown = "more", difference
    if difference.mean < 0:
        word = "less"
        low = None if difference.high is None else -difference.high
        high = None if difference.low is None else -difference.low
        shown = Interval(-difference.mean, low, high, difference.blocks)
    mean, bracket, limits = with_interval(shown).partition(" [")
    return f"costs {mark}{mean} {word}{mark}{bracket}{limits}{' than ' + other if other else ''}"


def _distance(summary: Summary) -> Answer | None:
    details, ratios = [], []
    for group in summary.groups:
        best = summary.cheapest(group)
        main = summary.best(group, summary.main)
        if best is None or best.ratio is None:
            continue
        ratios.append(best.ratio.mean - 1)
        name = f"`{best.name}`" if best.counts_relocation else best.name
        text = f"{at(summary, group)} the cheapest is {name}, {percent(best.ratio.mean - 1)} above the bound"
        if main is not None and main is not best and main.ratio is not None:
            text += f"; {main.name} is {percent(main.ratio.mean - 1)} above it"
        details.append(_sentence(text) + ".")
    if not details:
        return None
    verdict = (
        f"The cheapest policy is {_range(ratios)} above the certified bound. No schedule costs less than the bound, "
        f"not even one that knows the future; the best schedule lies between the two. {summary.bound_words}"
    )
    return Answer("How far are the policies from the best possible schedule?", verdict, tuple(details))


def _clusters(summary: Summary) -> Answer | None:
    details, best_of = [], []
    as_good: list[set[str]] = []  # per group the numbers that are not clearly worse than the best
    for group in summary.groups:
        lines = summary.clusters(group)
        fixed = [line for line in lines if line.cluster_setting != "auto"]
        if len(fixed) < 2:
            continue
        best, worst = (choose(fixed, key=lambda line: line.cost.mean) for choose in (min, max))
        best_of.append((at(summary, group), best.cluster_setting))
        as_good.append({line.cluster_setting for line in fixed if sign(summary.difference(line, best)) == 0})
        text = f"{at(summary, group)} the best number is {best.cluster_setting}, with {best.cost.mean:.3f} ms per "
        text += f"publication. K = {worst.cluster_setting} {_less(summary.difference(worst, best), strong=False)}"
        auto = [line for line in lines if line.cluster_setting == "auto"]
        if auto and auto[0].clusters is not None:
            difference = _less(summary.difference(auto[0], best), "the best fixed number", strong=False)
            text += f". `k=auto` chooses {auto[0].clusters:.3g} on average and {difference}"
        details.append(_sentence(text) + ".")
    if not details:
        return None
    found = list(dict.fromkeys(k for _, k in best_of))
    if not _has_speeds(summary):
        verdict = f"The best number is {_listed([f'**{k}**' for k in found])}."
    elif len(found) == 1:
        verdict = f"**No.** The best number is {found[0]} at every speed."
    else:
        listed = _listed([f"{k} {place}" for place, k in best_of])
        common = [k for k in found if all(k in numbers for numbers in as_good)]
        verdict = f"**{'Not clearly' if common else 'Yes'}.** The best number is {listed}"
        verdict += f", but K = {common[0]} is not clearly worse at any speed." if common else "."
    question = "Does the best number of clusters K move with the speed?"
    return Answer(
        question if _has_speeds(summary) else "What is the best number of clusters K?", verdict, tuple(details)
    )


def _run_time(summary: Summary) -> Answer | None:
    found = growth(summary, summary.main)
    bests = [line for group in summary.groups if (line := summary.best(group, summary.main)) is not None]
    if found is None or not bests:
        return None
    shortest = min(line.period or 0.0 for line in bests)
    name = name_of(summary.main)
    details: list[str] = []
    fits: list[tuple[int, bool]] = []
    too_long: list[tuple[int, bool]] = []
    for clients in CLIENTS:
        if (known := found.seconds(clients)) is None:
            continue
        seconds, measured = known
        kind = "measured" if measured else f"extrapolated with the exponent {found.exponent:.2f}"
        share = percent(seconds / shortest)
        details.append(f"With {clients:,} clients a run takes {_seconds(seconds)}, {share} of the period ({kind}).")
        (fits if seconds <= shortest else too_long).append((clients, measured))
    if not details:
        return None
    if not fits:
        verdict = f"**No**, not even with {too_long[0][0]:,} clients"
    else:
        clients, measured = fits[-1]
        guess = "" if measured else ", if the time grows as it did between the last two measured sizes"
        verdict = f"**Yes**, up to {clients:,} clients{guess}"
        verdict += f"; not with {too_long[0][0]:,}" if too_long else ""
    verdict += f". The shortest of the best periods is {time_text(shortest)}, and a run of {name} must be shorter."
    return Answer(f"Does the run time of {name} allow this period?", verdict, tuple(details))


def _seconds(value: float) -> str:
    return f"{1000 * value:.2g} ms" if value < 0.1 else f"{value:.2g} s" if value < 100 else f"{value:.0f} s"
