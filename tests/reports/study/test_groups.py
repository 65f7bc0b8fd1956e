import dataclasses

import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.generators.generator import Streams
from relocbench.reports.study.groups import grouped
from relocbench.reports.study.subjects import Subject, of_family
from tests.samples import worked_example


def named(name, **parameters):
    instance = dataclasses.replace(worked_example(), name=name, parameters=parameters)
    return Subject(instance, f"places/{name}.json")


PLACES = [named(f"{place}-{seed}", seed=seed, sites=3) for place in ("melbourne", "tokyo") for seed in range(3)]


def groups(subjects, by):
    return list(dict.fromkeys(subject.group for subject in grouped(subjects, by)))


def test_the_seeds_of_one_place_are_one_group_and_one_row_of_independent_samples():
    assert groups(PLACES, None) == ["melbourne", "tokyo"]
    assert [one.regime for one in PLACES[:4]] == ["melbourne"] * 3 + ["tokyo"]
    # The content of these instances is the same, and so are their hashes; instances of other people are independent.
    assert PLACES[0].block == PLACES[0].instance.hash


def test_an_instance_of_a_family_with_real_sites_is_grouped_by_family_and_sites():
    real = named("paper-s5-3-melbourne-cbd", family="paper", seed=3, sites="melbourne-cbd.csv")
    assert (real.group, real.regime, real.block) == ("paper-melbourne-cbd", "paper-s5-melbourne-cbd", "paper, seed 3")


def test_the_cells_of_one_seed_are_one_block_where_they_share_draws():
    paper = of_family("paper", [0, 1], {})
    assert len(paper) == 10
    assert {subject.block for subject in paper} == {"paper, seed 0", "paper, seed 1"}
    tiny = of_family("tiny", [0, 1], {"shape": "plain", "regime": "loose"})
    assert len({subject.block for subject in tiny}) == len(tiny) == 2


@pytest.mark.parametrize("family", [one for one in FAMILIES.values() if not one.parameters_class.cells_share_draws])
def test_a_family_of_independent_cells_uses_no_stream_of_the_family(family, monkeypatch):
    used = []
    of_cell = Streams.of_cell

    def counted(streams, purpose):
        used.append((streams.cell, purpose))
        return of_cell(streams, purpose)

    monkeypatch.setattr(Streams, "of_cell", counted)
    monkeypatch.setattr(Streams, "of_family", lambda *_: pytest.fail("the cells share draws"))
    cells = family.cells()[:4]
    for cell in cells:
        cell.build(0)
    assert len(set(used)) == len(cells)


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("family", ["melbourne", "tokyo"]),
        ("name", ["melbourne", "tokyo"]),
        ("folder", ["places"]),
        ("seed", ["seed=0", "seed=1", "seed=2"]),
        ("folder, seed", ["places, seed=0", "places, seed=1", "places, seed=2"]),
        ("clients", [f"clients={worked_example().n_clients}"]),
        ("/^[a-z]/", ["m", "t"]),
        ("/([0-9])$/", ["0", "1", "2"]),
        (lambda instance: instance.name[-1], ["0", "1", "2"]),
    ],
)
def test_a_user_groups_by_parameters_names_folders_or_a_function(by, expected):
    assert groups(PLACES, by) == expected


def test_a_group_that_the_user_chose_is_one_row():
    chosen = grouped(of_family("paper", [0], {}), "sigma")
    assert [(one.group, one.regime) for one in chosen[:2]] == [("sigma=1", "sigma=1"), ("sigma=5", "sigma=5")]
    by_family = grouped(of_family("paper", [0], {}), "family")
    assert [(one.group, one.regime) for one in by_family[:2]] == [("paper", "paper-s1"), ("paper", "paper-s5")]


def test_an_instance_without_the_parameter_has_a_group_of_its_own():
    assert groups([*PLACES[:1], named("other", load=1.5)], "load") == ["load=none", "load=1.5"]


def test_a_user_says_which_instances_are_not_independent():
    assert [one.block for one in grouped(PLACES[:2], block_by="seed")] == ["seed=0", "seed=1"]


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (
            "load",
            r"--group-by: expected family, name, folder, .* parameter of the instances \(seed, sites\), got 'load'",
        ),
        ("/(/", "--group-by: expected a regular expression"),
        ("/x/", "does not match melbourne-0"),
        (lambda instance: 1, "expected a function that returns text, got 1 for melbourne-0"),
    ],
)
def test_what_cannot_be_grouped_is_refused_in_one_line(by, message):
    with pytest.raises(InputError, match=message) as caught:
        grouped(PLACES, by)
    assert "\n" not in str(caught.value)
