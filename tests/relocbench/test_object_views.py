"""How the objects that users get look in a terminal and in a notebook."""

import dataclasses
import re
from fractions import Fraction
from html.parser import HTMLParser

import pytest

import relocbench
from relocbench.instances.evaluation import evaluate
from relocbench.reports.gate.comparison import Finding
from relocbench.reports.gate.measurement import FailedRun
from relocbench.reports.gate.verdict import Subject
from relocbench.reports.study.study import Study
from relocbench.runs.selectors import as_selector
from relocbench.runs.timeline.policy_selectors import as_policy
from tests.reports.study.samples import measurement
from tests.samples import worked_example

NAME = "<b>mine</b>"
INSTANCE = dataclasses.replace(worked_example(), name=NAME)
SOLUTION = relocbench.Solution([0, 0, 1, 1], bound=3.5, status="time_limit", facts={"nodes": 7})
COST = evaluate(INSTANCE, SOLUTION.home)
PROVED = relocbench.Verdict(True, objective=Fraction(5), bound=Fraction(4), steps=1)
SUBJECT = Subject("mine.py:<f>", "reloc", 1, 5)
FINDING = Finding("mine.py:<f>", "all", "all", 1, 0.12, None, True)
FAILED = FailedRun("mine.py:<f>", "tiny-loose-plain-0", 0, "error", "<b>no homes</b>")
TIMELINE = relocbench.Timeline.static(INSTANCE, n_epochs=2)
VIEWS = {
    "Instance": (INSTANCE, "<Instance <b>mine</b>: 4 clients, 2 servers, 2 topics>"),
    "Solution": (SOLUTION, "<Solution 4 homes: time_limit, bound 3.5>"),
    "Solution without a bound": (relocbench.Solution([0]), "<Solution 1 home: feasible>"),
    "Evaluation": (COST, "<Evaluation ΣD 8.6142857: Y 2.15357 ms = Y1 0.225 + Y2 1.92857, least θ 0.714>"),
    "Result": (
        relocbench.Result(INSTANCE, as_selector("nearest"), 0, SOLUTION, COST, 0.25),
        "<Result nearest on <b>mine</b>: time_limit, ΣD 8.6142857, Y 2.15357 ms, bound 3.5, gap 59.4%>",
    ),
    "Certified": (
        relocbench.Certified(SOLUTION, None, PROVED),
        "<Certified feasible: ΣD 5, bound 3.5, gap 20%>",
    ),
    "Verdict": (PROVED, "<Verdict proved, feasible: ΣD 5, bound 4, gap 20%, 1 step>"),
    "Verdict without a proof": (
        relocbench.Verdict(False, "claim: is <b>not</b> proved"),
        "<Verdict not proved: claim: is <b>not</b> proved>",
    ),
    "Study": (
        Study([measurement("<i>", "nearest", 0.25)], [], ["**<b>wrong</b>**"], [], "out/report.html"),
        "<Study 1 run, 1 method, 1 instance, 1 warning: out/report.html>",
    ),
    "GateVerdict": (
        relocbench.GateVerdict((SUBJECT,), "baseline.json", relocbench.Rule(), (FINDING,), (), (FAILED,)),
        "<GateVerdict FAILED: mine.py:<f>, worse in 1 test, 1 failed run>",
    ),
    "Library": (relocbench.Library(), None),
    "Timeline": (TIMELINE, "<Timeline <b>mine</b>: 2 epochs, 2 servers>"),
    "ScheduleCost": (
        relocbench.ScheduleCost(seconds=60.0, delay_cost=7.5, handovers=2, handover_cost=100.0),
        "<ScheduleCost 107.5 over 60 s: delay 7.5 + handover 100 + spool 0>",
    ),
    "Replay": (
        relocbench.Replay(
            TIMELINE, as_policy("never"), as_selector("nearest"), 0, relocbench.ScheduleCost(delay_cost=3.0), 1, 0.1
        ),
        "<Replay never nearest on <b>mine</b>: cost 3, 0 handovers, Y 0 ms>",
    ),
    "Schedule": (
        relocbench.Schedule((), relocbench.ScheduleCost(delay_cost=3.0), 2.5),
        "<Schedule feasible: cost 3, bound 2.5>",
    ),
    "TimelineVerdict": (
        relocbench.TimelineVerdict(True, objective=Fraction(5), bound=Fraction(4), steps=1),
        "<TimelineVerdict proved, feasible: cost 5, bound 4, gap 20%, 1 step>",
    ),
    "TimelineVerdict without a schedule": (
        relocbench.TimelineVerdict(True, bound=Fraction(4), steps=1),
        "<TimelineVerdict proved: bound 4>",
    ),
    "CertifiedTimeline": (
        relocbench.CertifiedTimeline(
            (),
            relocbench.ScheduleCost(delay_cost=5.0),
            None,
            relocbench.TimelineVerdict(True, objective=Fraction(5), bound=Fraction(4)),
        ),
        "<CertifiedTimeline feasible: cost 5, bound 4, gap 20%>",
    ),
}


class Tags(HTMLParser):
    """Collects the tags of a text, and checks that they are nested."""

    def __init__(self):
        super().__init__()
        self.seen, self.open = set(), []

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.open.append(tag)
        assert {name for name, _ in attrs} <= {"style"}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize(("shown", "text"), VIEWS.values(), ids=VIEWS)
def test_an_object_is_one_line_in_a_terminal(shown, text):
    assert repr(shown) == text or (
        text is None and re.fullmatch(r"<Library version \d+: \d+ entries, .*>", repr(shown))
    )


@pytest.mark.parametrize("shown", [shown for shown, _ in VIEWS.values()], ids=VIEWS)
def test_an_object_is_a_card_in_a_notebook_that_loads_nothing_and_escapes_every_text(shown):
    tags = Tags()
    tags.feed(shown._repr_html_())
    assert tags.open == []
    assert tags.seen <= {"div", "strong", "table", "thead", "tbody", "tr", "th", "td"}
    assert not re.search(r"array\(|url\(|https?:", shown._repr_html_())


def test_every_public_class_with_content_has_both_views():
    public = {name for name in relocbench.__all__ if isinstance(getattr(relocbench, name), type)}
    expected = {name for name in public if not name.endswith("Error")} - {"Rule", "Prices"}
    assert {name for name in expected if hasattr(getattr(relocbench, name), "_repr_html_")} == expected
    assert {name.split()[0] for name in VIEWS} == expected


def test_the_card_of_a_gate_names_what_is_worse_and_what_failed():
    html = VIEWS["GateVerdict"][0]._repr_html_()
    assert "Check: FAILED" in html
    assert "+12.00%" in html
    assert "no homes" in html


def test_the_card_of_a_study_has_the_mean_excess_of_each_method():
    html = VIEWS["Study"][0]._repr_html_()
    assert "25%" in html
    assert "nearest" in html
