from relocbench.instances.library.library import Library
from relocbench.reports.benchmark.assessment import assess
from relocbench.reports.benchmark.rerun_command import command_of
from relocbench.runs.cross_check import wrong_answers
from relocbench.runs.outcome import Outcome
from relocbench.runs.run_store import Run, row_of
from tests.reports.benchmark.samples import race, row


def test_a_wrong_answer_counts_as_unsolved_and_its_bound_is_not_used():
    rows = [row("cfn", objective=12.0), row("nearest", status="feasible", objective=10.0)]
    [found] = wrong_answers(rows)
    wrong, other = assess(rows, [found])
    assert (found.kind, found.methods, found.seed) == ("optimum", ("cfn", "nearest"), 0)
    assert (wrong.outcome, wrong.proved, wrong.best, wrong.bound) == ("wrong", False, 10.0, None)
    assert wrong.seconds_or_limit == wrong.row.time_limit
    assert (other.outcome, other.optimum_known) == ("feasible", False)


def test_a_claim_is_not_a_proof_but_its_bound_is_cross_checked():
    claim = row("cfn", status="claimed", objective=10.0, bound=10.0)
    homes = row("nearest", status="feasible", objective=10.0)
    claimed, other = assess([claim, homes], [])
    assert (claimed.outcome, claimed.proved, claimed.bound) == ("claimed", False, None)
    assert claimed.seconds_or_limit == claimed.row.time_limit
    assert not other.optimum_known
    [found] = wrong_answers([claim, row("nearest", status="feasible", objective=9.0)])
    assert (found.kind, found.methods) == ("bound", ("cfn", "nearest"))


def test_another_seed_of_the_same_method_can_refute_an_answer():
    rows = [row("cfn", objective=12.0, seed=0), row("cfn", objective=10.0, seed=1)]
    [found] = wrong_answers(rows)
    assert (found.seed, found.methods) == (0, ("cfn", "cfn"))
    assert [run.outcome for run in assess(rows, [found])] == ["wrong", "optimal"]


def test_the_library_can_refute_an_answer():
    library = Library()
    entry = library.entry("small-scarce-m10-l3-0")
    instance = library.read(entry.name)

    def claim(objective, bound):
        run = Run(instance.hash, "cfn", 0, 5.0, 1 << 32)
        base = row_of(instance, run, Outcome("optimal"))
        return type(base)(**{**vars(base), "objective": objective, "bound": bound})

    assert wrong_answers([claim(entry.objective, entry.bound)]) == []
    [found] = wrong_answers([claim(2 * entry.objective, 2 * entry.objective)])
    assert found.methods == ("cfn", "library")
    [run] = assess([claim(2 * entry.objective, 2 * entry.objective)], [found])
    assert (run.best, run.library, run.optimum_known) == (entry.objective, entry.name, True)
    assert command_of(run) == (
        "relocbench bench library:small-scarce-m10-l3-0 --method cfn --seed 0 --time-limit 5 --memory-limit 4"
    )


def test_failures_are_not_wrong_answers():
    assert wrong_answers(race()) == []


def test_gaps_and_excess_refer_to_the_best_known_objective():
    first, *_, last = assess(race(), [])
    assert (first.best, first.root_gap, first.final_gap) == (10.0, 0.2, 0.0)
    assert (last.best, last.bound, last.excess) == (11.0, 8.0, 0.0)


def test_the_command_generates_an_instance_of_a_family():
    [run] = assess([row("milp-strong[solver=scip]")], [])
    command = command_of(run)
    assert command.startswith("relocbench bench --family tiny --seeds 100 --set ")
    assert "--method 'milp-strong[solver=scip]' --seed 0" in command
    [unknown] = assess([row("cfn", parameters="{}")], [])
    assert command_of(unknown) is None
