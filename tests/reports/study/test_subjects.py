from collections import Counter

import pytest

import relocbench
from relocbench.instances.errors import InputError
from relocbench.instances.instance_source import write_instance
from relocbench.reports.study import subjects
from tests.samples import worked_example


def test_the_default_study_has_small_instances_of_every_regime_and_those_of_the_paper():
    found = subjects.default()
    assert Counter(subject.group for subject in found) == {"small": 45, "paper": 30}
    assert list(dict.fromkeys(subject.regime for subject in found)) == [
        *("small-loose", "small-scarce", "small-overloaded"),
        *("paper-s1", "paper-s5", "paper-s10", "paper-s15", "paper-s20"),
    ]
    assert {subject.sigma for subject in found if subject.group == "paper"} == {1, 5, 10, 15, 20}


def test_commands_use_the_library_if_possible_and_generate_the_instance_otherwise():
    known, other = subjects.of_family("paper", [3, 7], {"sigma": 10})
    assert known.command("reloc", 0, 60) == "relocbench solve library:paper-s10-3 --method reloc --seed 0"
    assert other.command("reloc[k=8]", 1, 5) == (
        "relocbench generate --family paper --set sigma=10.0 --seed 7 --out paper-s10-7.json && "
        "relocbench solve paper-s10-7.json --method 'reloc[k=8]' --seed 1 --time-limit 5"
    )


def test_commands_refer_to_the_files_that_were_given(tmp_path):
    write_instance(worked_example(), tmp_path / "mine.json")
    [mine, library] = subjects.of_files([tmp_path / "mine.json", "library:large-s5-m1000-0"])
    assert (mine.source, mine.made_by) == (str(tmp_path / "mine.json"), None)
    assert (library.source, library.group, library.regime) == (
        "library:large-s5-m1000-0",
        "large",
        "large-s5-m1000",
    )
    assert len(subjects.without_duplicates([mine, mine, library])) == 2
    with pytest.raises(InputError):
        subjects.of_files([tmp_path / "absent.json"])


def test_instances_that_differ_only_in_their_load_are_one_sample_and_rows_of_their_own():
    made = [relocbench.generate("small", seed=0, regime="scarce", clients=15, load=load) for load in (0.1, 1.5)]
    made += [relocbench.generate("small", seed=seed, regime="scarce", clients=15) for seed in (0, 1)]
    found = [subjects.Subject(instance, "") for instance in made]
    assert len({one.block for one in found}) == 2
    assert len({one.regime for one in found}) == 3
    assert relocbench.with_load(made[3], 1.5).name == made[1].name.replace("-0", "-1") != made[3].name
