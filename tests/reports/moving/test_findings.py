"""The words of a study of moving clients follow from its rows: other rows, other words."""

from dataclasses import replace

import pytest

from relocbench.reports.moving.findings import answers, percent
from relocbench.reports.moving.growth import growth
from relocbench.reports.moving.plots import part_panels
from relocbench.reports.moving.rows import TimeRow
from relocbench.reports.moving.summary import Summary, time_text
from tests.reports.moving.samples import USUAL, results

PERIOD = "At what period is RELOC worth running again?"
NEAREST = "At which speed is NS better than RELOC?"
RELOCATION = "What does a policy that counts relocation save?"
DISTANCE = "How far are the policies from the best possible schedule?"
CLUSTERS = "Does the best number of clusters K move with the speed?"
RUN_TIME = "Does the run time of RELOC allow this period?"


def words(**changes):
    return {answer.question: answer.text for answer in answers(Summary(results(**changes)))}


def with_cost(key, of_period):
    return {**USUAL, key: of_period}


def test_every_question_is_answered():
    assert list(words()) == [PERIOD, NEAREST, RELOCATION, DISTANCE, CLUSTERS, RUN_TIME]


def test_the_best_period_and_its_trend_come_from_the_costs():
    text = words()[PERIOD]
    assert text.startswith(
        "Every **10 min** at 5 km/h and every **5 min** at 50 km/h. The faster the clients, the shorter"
    )
    assert "Periods from 5 min to 10 min cost at most 1.0 % more" not in text
    assert "It costs 5.0 % more [5.0 %, 5.0 %] with 1 min and costs 4.0 % more [4.0 %, 4.0 %] with 60 min" in text
    flat = words(costs=with_cost((5.0, "reloc"), {1: 2.1, 5: 2.0, 10: 2.01, 60: 2.5}))[PERIOD]
    assert "The best period is the same at every speed." in flat
    assert "Periods from 5 min to 10 min cost at most 1.0 % more" in flat
    # A period that is dear ends the range, even if a longer one is cheap again.
    gap = words(costs=with_cost((5.0, "reloc"), {1: 2.01, 5: 2.1, 10: 2.0, 60: 2.01}))[PERIOD]
    assert "Periods from 10 min to 60 min cost at most 1.0 % more" in gap
    reversed_ = words(costs=with_cost((50.0, "reloc"), {1: 2.6, 5: 2.5, 10: 2.4, 60: 2.3}))[PERIOD]
    assert "The faster the clients, the longer the best period." in reversed_


def test_a_best_period_at_the_end_of_the_range_says_so():
    text = words(costs=with_cost((50.0, "reloc"), {1: 2.1, 5: 2.2, 10: 2.4}))[PERIOD]
    assert text.count("This is the shortest period that was tried.") == 1
    text = words(costs=with_cost((50.0, "reloc"), {1: 2.3, 5: 2.2, 10: 2.1}))[PERIOD]
    assert text.count("This is the longest period that was tried.") == 1


def test_one_speed_has_other_questions():
    costs = {key: value for key, value in USUAL.items() if key[0] == 5.0}
    found = words(costs=costs)
    assert found["Where is NS better than RELOC?"].startswith("**NS is better**")
    assert found["What is the best number of clusters K?"].startswith("The best number is **16**.")


def test_nearest_is_better_where_it_costs_less():
    text = words()[NEAREST]
    assert "**NS is better** than RELOC, each at its best period, at 5 km/h (5.3 % [5.3 %, 5.3 %])" in text
    assert "**RELOC is better** than NS at 50 km/h (-8.3 % [-8.3 %, -8.3 %])" in text
    other = words(costs=with_cost((50.0, "nearest"), {1: 1.0}))[NEAREST]
    assert "RELOC is better" not in other
    equal = words(costs=with_cost((50.0, "nearest"), {5: 2.2}))[NEAREST]
    assert "There is no clear difference between RELOC and NS at 50 km/h" in equal


def test_relocation_saves_what_the_costs_say():
    text = words()[RELOCATION]
    assert text.startswith("`relocate` saves **25 % to 27 %** against RELOC at its best period.")
    assert "It costs **21 % less** [21 %, 21 %] than NS every 1 min" in text
    dear = words(relocate={5.0: 2.5})[RELOCATION]
    assert "At 5 km/h `relocate` costs **25 % more** [25 %, 25 %] than RELOC every 10 min" in dear
    same = words(relocate={5.0: 2.0})[RELOCATION]
    assert "At 5 km/h `relocate` costs the same as RELOC every 10 min" in same
    hardly = words(relocate={5.0: 1.99999})[RELOCATION]
    assert "At 5 km/h `relocate` costs the same as RELOC every 10 min" in hardly
    assert "0.00 %" not in hardly
    assert RELOCATION not in words(relocate={})


def test_the_distance_to_the_bound_is_that_of_the_cheapest():
    assert words()[DISTANCE].startswith("The cheapest policy is **20 % to 28 %** above the certified bound.")
    assert words(bound=1.5)[DISTANCE].startswith("The cheapest policy is **0.1 % to 6.8 %** above the certified bound.")
    assert DISTANCE not in words(bound=0.0)


def test_the_answer_says_whether_the_bound_counts_relocation():
    assert "so it does not count relocation." in words()[DISTANCE]
    assert "The bound counts relocation: all epochs" in words(delay_bound=1.2)[DISTANCE]
    found = results(delay_bound=1.2)
    last = found.schedules[-1].hash
    rows = (replace(row, bound=row.delay_bound) if row.hash == last else row for row in found.schedules)
    assert "together, for 9 of 10 timelines. The others" in Summary(replace(found, schedules=tuple(rows))).bound_words


@pytest.mark.parametrize("delay_bound", [1.1, 1.25])
def test_the_bars_and_the_line_of_the_bound_begin_at_the_same_cost(delay_bound):
    summary = Summary(results(delay_bound=delay_bound))
    for (_, plot), group in zip(part_panels(summary), summary.groups, strict=True):
        bars = [trace for trace in plot.data if trace.type == "bar"]
        costs = [delay_bound + sum(widths) for widths in zip(*(bar.x for bar in bars), strict=True)]
        shown = {line.name: line.cost.mean for line in summary.lines if line.group == group}
        assert costs == pytest.approx([shown[name] for name in bars[0].y])
        line = [trace.x[0] for trace in plot.data if trace.type == "scatter"]
        assert line == ([] if delay_bound == 1.25 else [pytest.approx(1.25 - delay_bound)])


def test_the_best_number_of_clusters_moves_or_not():
    assert words()[CLUSTERS].startswith("**Yes.** The best number is 16 at 5 km/h and 4 at 50 km/h.")
    # At 5 km/h, K = 16 is better than K = 4 with some seeds and worse with others.
    found = results()
    rows = [
        replace(row, total=row.total * (0.9 if row.seed % 2 else 1.05))
        if row.speed == 5.0 and row.method == "reloc[k=4]"
        else row
        for row in found.schedules
    ]
    unclear = {answer.question: answer.text for answer in answers(Summary(replace(found, schedules=tuple(rows))))}
    assert unclear[CLUSTERS].startswith("**Not clearly.** The best number is 16 at 5 km/h and 4 at 50 km/h, but K = 4 ")
    same = {5.0: {"1": 2.2, "4": 2.0}, 50.0: {"1": 2.2, "4": 2.0}}
    assert words(clusters=same)[CLUSTERS].startswith("**No.** The best number is 4 at every speed.")


def test_the_run_time_is_compared_with_the_shortest_best_period():
    text = words()[RUN_TIME]
    assert text.startswith("**Yes**, up to 1,000,000 clients, if the time grows as it did between the last two")
    assert "The shortest of the best periods is 5 min" in text
    assert "With 100,000 clients a run takes 2 s, 0.7 % of the period (measured)." in text
    assert "With 1,000,000 clients a run takes 20 s, 6.7 % of the period (extrapolated with the exponent 1.00)." in text
    slow = words(times={1_000: 10.0, 10_000: 200.0})[RUN_TIME]
    assert slow.startswith("**Yes**, up to 10,000 clients; not with 100,000.")
    assert words(times={1_000: 1e4})[RUN_TIME].startswith("**No**, not even with 1,000 clients.")


def test_times_are_not_extrapolated_below_linear_growth():
    found = growth(Summary(results(times={1_000: 0.5, 10_000: 0.6})), "reloc")
    assert found is not None
    assert found.exponent == 1.0
    assert found.seconds(1_000_000) == (pytest.approx(60.0), False)
    assert found.rows[0] == TimeRow(method="reloc", clients=1_000, servers=16, seconds=0.5)


def test_sizes_that_give_the_same_number_of_clients_count_as_one():
    found = results(times={1_000: 0.5, 10_000: 5.0})
    rows = (*found.times, replace(found.times[-1], seconds=6.0))
    grown = growth(Summary(replace(found, times=rows)), "reloc")
    assert grown is not None
    assert grown.exponent == pytest.approx(1.079, abs=1e-3)
    alone = growth(Summary(replace(found, times=rows[1:])), "reloc")
    assert alone is not None
    assert alone.exponent is None


def test_few_seeds_have_no_intervals():
    assert "[" not in words(seeds=2)[PERIOD]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(30, "30 s"), (60, "1 min"), (90, "1.5 min"), (3600, "60 min"), (7200, "2 h"), (86400, "24 h")],
)
def test_periods_are_written_as_people_say_them(seconds, text):
    assert time_text(seconds) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.25, "25 %"), (0.034, "3.4 %"), (0.0, "0.0 %"), (0.0004, "0.04 %"), (-0.083, "-8.3 %")]
)
def test_shares_are_written_with_few_digits(share, text):
    assert percent(share) == text
