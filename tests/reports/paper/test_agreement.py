import pytest

from relocbench.heuristics.readings import READINGS
from relocbench.reports.paper.agreement import Agreement
from relocbench.reports.paper.claims import CLAIMS, FAILS, HOLDS, IN_PART, NOT_TESTED, UNKNOWN, Verdict
from relocbench.reports.paper.readings import all_readings, as_reading, main_readings, otos, settings_of
from relocbench.reports.paper.verdict_maps import FALSE, TRUE, claim_map, where

PROSE, PSEUDOCODE, OTHER = "reading=prose", "reading=pseudocode", "reading=prose,ties=placed"
SIZES = ("2", "4", "6")


def verdict(*true):
    points = {f"σ = {number}": value for number, value in enumerate(true)}
    word = NOT_TESTED if not true else HOLDS if all(true) else IN_PART if any(true) else FAILS
    return Verdict(word, points, "")


def agreement(verdicts, sizes=SIZES, plausible=SIZES):
    """Return an agreement with given verdicts: a function of claim, size and reading."""
    found = Agreement({}, (1, 2, 4), [])
    found.groups, found.readings = ["paper", *sizes], [PROSE, PSEUDOCODE, OTHER]
    found.plausible = list(plausible)
    found.verdicts = {
        (group, reading): {key: verdicts(key, group, reading) for key in CLAIMS}
        for group in found.groups
        for reading in found.readings
    }
    return found


def test_the_sentence_says_under_which_readings_and_sizes_a_claim_holds():
    def verdicts(key, size, reading):
        return verdict(reading == PROSE and size in ("4", "6"), reading == PROSE)

    assert where(agreement(verdicts), "fastest") == (
        "Holds under `prose` at a least size of 4 to 6; nowhere under `pseudocode` and `prose,ties=placed`."
    )


@pytest.mark.parametrize(
    ("true", "sentence"),
    [
        ((True, True), "Holds under every reading on all instances."),
        ((False, False), "Does not hold under any reading, on any instances."),
        ((), "There is no value on which it could be tested."),
    ],
)
def test_the_sentence_of_a_claim_with_the_same_verdict_everywhere(true, sentence):
    assert where(agreement(lambda *_: verdict(*true)), "fastest") == sentence


def test_a_claim_that_holds_nowhere_is_shown_where_it_comes_closest():
    def verdicts(key, size, reading):
        return verdict(True, size == "4" and reading == OTHER, False)

    sentence = where(agreement(verdicts), "fastest")
    assert sentence.startswith("Does not hold completely under any reading")
    assert "`prose,ties=placed` at a least size of 4: true at σ = 0, σ = 1." in sentence


def test_too_few_seeds_are_no_verdict():
    found = agreement(lambda *_: Verdict(UNKNOWN, {}, ""))
    assert where(found, "fastest") == "There are too few seeds to tell."
    assert (found.score(PROSE), found.chosen) == (None, None)


def test_a_claim_about_other_methods_does_not_name_readings():
    found = agreement(lambda key, group, reading: verdict(group != "6"))
    assert where(found, "NS Y2") == "Holds on `paper` and at a least size of 2 to 4."


def test_the_map_has_one_square_per_value():
    table = claim_map(agreement(lambda key, size, reading: verdict(size == "2", True)), "fastest", [PROSE, PSEUDOCODE])
    assert [column.name for column in table.columns] == ["reading", "paper", "size ≥ 2", "size ≥ 4", "size ≥ 6"]
    assert [cell.text for cell in table.rows[0]][1:] == [FALSE + TRUE, TRUE + TRUE, FALSE + TRUE, FALSE + TRUE]
    assert "σ = 0, σ = 1" in table.caption


def test_the_reading_is_chosen_by_its_agreement_over_the_plausible_sizes_only():
    def verdicts(key, size, reading):
        return verdict(reading == (PROSE if size == "2" else PSEUDOCODE))

    assert agreement(verdicts, plausible=["2"]).chosen == PROSE
    assert agreement(verdicts, plausible=["4", "6"]).chosen == PSEUDOCODE
    assert agreement(verdicts, plausible=[]).chosen is None


def test_a_departure_from_the_paper_needs_more_than_noise():
    def verdicts(better):
        return lambda key, size, reading: verdict(*[True] * (better if reading == OTHER else 10), *[False] * 10)

    assert agreement(verdicts(11)).chosen == PROSE
    assert agreement(verdicts(40)).chosen == OTHER


def test_every_reading_of_the_grid_is_a_different_one():
    readings = all_readings()
    assert len({str(as_reading(reading)) for reading in readings}) == len(readings) > 40
    assert [settings_of(as_reading(reading)) for reading in readings] == readings
    assert set(main_readings()) <= set(readings)
    assert {f"reading={name}" for name in READINGS} <= set(main_readings())
    # Every open point of Algorithm 1 is varied.
    fields = {name for reading in readings for name, value in vars(as_reading(reading)).items()}
    assert all(len({vars(as_reading(reading))[name] for reading in readings}) > 1 for name in fields)


def test_otos_cooperates_as_the_reading_does():
    assert {otos(PROSE), otos(PSEUDOCODE)} == {"otos", "otos[cooperation=client]"}
