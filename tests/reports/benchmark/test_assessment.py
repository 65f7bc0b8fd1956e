from relocbench.instances.library.library import Library
from relocbench.reports.benchmark.assessment import judge
from relocbench.reports.benchmark.rerun_command import command_of
from relocbench.runs.cross_check import wrong_answers
from relocbench.runs.outcome import Outcome
from relocbench.runs.run_store import Run, row_of
from tests.reports.benchmark.samples import race, row


def test_a_wrong_answer_counts_as_unsolved_and_its_bound_for_nothing():
    rows = [row("cfn", objective=12.0), row("nearest", status="feasible", objective=10.0)]
    [found] = wrong_answers(rows)
    liar, other = judge(rows, [found])
    assert (found.kind, found.methods, found.seed) == ("optimum", ("cfn", "nearest"), 0)
    assert (liar.outcome, liar.proved, liar.best, liar.bound) == ("wrong", False, 10.0, None)
    assert liar.seconds_or_limit == liar.row.time_limit
    assert (other.outcome, other.optimum_known) == ("feasible", False)


def test_another_seed_of_the_same_method_shows_a_wrong_answer_as_well():
    rows = [row("cfn", objective=12.0, seed=0), row("cfn", objective=10.0, seed=1)]
    [found] = wrong_answers(rows)
    assert (found.seed, found.methods) == (0, ("cfn", "cfn"))
    assert [run.outcome for run in judge(rows, [found])] == ["wrong", "optimal"]


def test_the_library_shows_a_wrong_answer_that_no_method_does():
    shelf = Library()
    entry = shelf.entry("small-scarce-m10-l3-0")
    instance = shelf.read(entry.name)

    def claim(objective, bound):
        run = Run(instance.hash, "cfn", 0, 5.0, 1 << 32)
        told = row_of(instance, run, Outcome("optimal"))
        return type(told)(**{**vars(told), "objective": objective, "bound": bound})

    assert wrong_answers([claim(entry.objective, entry.bound)]) == []
    [found] = wrong_answers([claim(2 * entry.objective, 2 * entry.objective)])
    assert found.methods == ("cfn", "library")
    [run] = judge([claim(2 * entry.objective, 2 * entry.objective)], [found])
    assert (run.best, run.library, run.optimum_known) == (entry.objective, entry.name, True)
    assert command_of(run) == (
        "relocbench bench library:small-scarce-m10-l3-0 --method cfn --seed 0 --time-limit 5 --memory-limit 4"
    )


def test_failures_are_no_wrong_answers():
    assert wrong_answers(race()) == []


def test_gaps_are_to_the_best_cost_anybody_has():
    first, *_, last = judge(race(), [])
    assert (first.best, first.root_gap, first.final_gap) == (10.0, 0.2, 0.0)
    assert (last.best, last.bound, last.excess) == (11.0, 8.0, 0.0)


def test_the_command_builds_an_instance_of_a_family_anew():
    [run] = judge([row("milp-strong[solver=scip]")], [])
    command = command_of(run)
    assert command.startswith("relocbench bench --family tiny --seeds 100 --set ")
    assert "--method 'milp-strong[solver=scip]' --seed 0" in command
    [unknown] = judge([row("cfn", parameters="{}")], [])
    assert command_of(unknown) is None
