import pytest

from relocbench.instances.errors import InputError
from relocbench.spark.anneal import AnnealOptions
from relocbench.spark.bound import BoundOptions
from relocbench.spark.study_jobs import plan_jobs


def labels(methods, counts=("4",), relations=(), seeds=(0,), servers=64):
    jobs = plan_jobs(methods, counts, relations, seeds, servers=servers, rounds=4)
    return [(job.label, job.seed) for job in jobs]


def test_reloc_is_run_with_every_count_relation_and_seed_that_it_does_not_set_itself():
    found = labels(["reloc,reloc[k=2],reloc[relation=svd,k=3]"], ("8", "auto"), ("exact", "svd"), (0, 5))
    expected = [f"reloc[k={k},relation={relation}]" for relation in ("exact", "svd") for k in (8, "auto", 2)]
    assert sorted(found) == sorted((label, seed) for label in [*expected, "reloc[k=3,relation=svd]"] for seed in (0, 5))


def test_methods_without_a_seed_run_once():
    found = labels(["nearest,random,otos"], seeds=(3, 4))
    assert found == [("nearest", 3), ("random", 3), ("random", 4), ("otos", 3)]


def test_auto_has_the_candidates_of_the_local_method_in_its_order():
    (job,) = plan_jobs(["reloc"], ["auto"], ["exact"], [2], servers=9, rounds=4)
    assert [(one.k, one.options.k, one.seed, one.options.relation) for one in job.candidates] == [
        (k, k, 2, "exact") for k in (9, 8, 4, 2, 1)
    ]
    assert job.k is None


def test_options_are_those_of_the_reading():
    prose, code = plan_jobs(
        ["reloc", "reloc[reading=pseudocode,ties=placed,related=7]"], ["2"], [], [0], servers=4, rounds=6
    )
    assert (prose.options.relation, prose.options.revisit, prose.options.cooperation) == ("exact", True, "topic")
    assert (code.options.relation, code.options.revisit, code.options.ties) == ("svd", False, "placed")
    assert (code.options.related, code.options.rounds, prose.options.related) == (7, 6, 100)


def test_methods_of_spark_have_the_settings_of_their_options():
    anneal, bound = plan_jobs(["spark-bound[labels=6],spark-anneal[rounds=3]"], [], [], [5], servers=4, rounds=6)[::-1]
    assert (anneal.options, anneal.folder) == (AnnealOptions(rounds=3, seed=5), "spark-anneal_rounds-3_seed-5")
    assert bound.options == BoundOptions(labels=6, seed=5)
    assert (anneal.k, bound.k) == (None, None)


def test_folders_have_plain_names_that_differ():
    jobs = plan_jobs(["reloc", "nearest"], ["4", "auto"], ["exact", "svd"], [0, 1], servers=9, rounds=4)
    assert jobs[0].folder == "reloc_k-4_relation-exact_seed-0"
    assert len({job.folder for job in jobs}) == len(jobs)


@pytest.mark.parametrize(
    ("methods", "counts", "problem"),
    [
        (["cfn"], ["4"], "--methods: expected .*anneal"),
        (["anneal[start=nearest]"], ["4"], "method anneal: start"),
        (["reloc[threads=2]"], ["4"], "method reloc: threads"),
        (["reloc"], ["four"], "--k: expected numbers of clusters"),
        (["reloc"], ["65"], "--k: expected at most 64, the number of servers, got 65"),
        (["reloc"], [], "--methods: expected at least one"),
        (["reloc[relation=nmf]"], ["4"], "--relation"),
        (["spark-anneal[moves=3]"], ["4"], "method spark-anneal: expected parameter=value with one of: rounds, "),
        (["spark-bound[rounds=0]"], ["4"], "--rounds: expected at least 1"),
    ],
)
def test_wrong_studies_are_refused(methods, counts, problem):
    with pytest.raises(InputError, match=problem):
        labels(methods, counts)
