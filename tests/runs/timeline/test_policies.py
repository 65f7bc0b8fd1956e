"""Policies decide when homes are computed again, and what they are computed from."""

import itertools

import numpy as np
import pytest

from relocbench.heuristics import adaptive, reloc
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.generate import generate
from relocbench.instances.timeline.moving_generator import generate_timeline
from relocbench.instances.timeline.schedule_cost import schedule_cost
from relocbench.instances.timeline.timeline import Timeline
from relocbench.instances.timeline.window import window_instance
from relocbench.runs.certify import certify
from relocbench.runs.run_error import RunError
from relocbench.runs.timeline.policies import POLICIES
from relocbench.runs.timeline.policy_selectors import as_policy, parse_policies
from relocbench.runs.timeline.replay import replay
from tests.timelines import random_homes, random_timeline

MOVING = generate_timeline(1, speed=80.0, n_epochs=12, topics=12, servers=9, sigma=5)
STILL = generate_timeline(1, speed=0.0, n_epochs=5, topics=12, servers=9, sigma=5)


def solved_in(policy, timeline=MOVING, method="nearest"):
    return [row.epoch for row in replay(timeline, policy, method).rows if row.solved]


def test_never_always_and_every_solve_when_their_names_say():
    assert solved_in("never") == [0]
    assert solved_in("always") == list(range(12))
    assert solved_in("every[k=5]") == [0, 5, 10]
    assert solved_in("every") == [0, 10]


def test_threshold_solves_as_soon_as_the_delay_has_risen_too_far():
    rows = replay(MOVING, "threshold[worse=0.05]", "reloc").rows
    last = rows[0].solved_y
    for before, row, epoch in zip(rows, rows[1:], list(MOVING.epochs())[1:], strict=False):
        assert row.solved == (evaluate(epoch.instance, before.home).y > 1.05 * last)
        last = row.solved_y if row.solved else last
    assert 1 < sum(row.solved for row in rows) < 12
    assert solved_in("threshold[worse=1000]") == [0]
    assert solved_in("threshold", STILL) == [0]


def test_gap_solves_when_the_certified_gap_is_above_its_limit():
    instance = generate("tiny", seed=0, regime="scarce", shape="plain")
    still = Timeline.static(instance, n_epochs=2)
    optimal = certify(instance, time_limit=5)
    assert optimal.status == "optimal"
    worst = max(range(instance.n_servers), key=lambda server: evaluate(instance, [server] * 4).objective)
    gap = 1 - optimal.bound / evaluate(instance, [worst] * 4).objective

    def solves(above):
        """Return in which epochs the policy solves if all clients have their home at the worst server."""
        policy = as_policy(f"gap[above={above},limit=1]")
        seen = []

        def begin_badly(history, epoch):
            if history.last_solve is None:
                return [worst] * 4
            seen.append(policy(history, epoch) is not None)
            return None

        replay(still, begin_badly, "nearest")
        return seen

    assert gap > 0.1
    assert solves(gap - 0.05) == [True]
    assert solves(gap + 0.05) == [False]


def test_relocate_costs_less_than_solving_always_and_less_with_a_look_ahead():
    costs = {
        policy: replay(MOVING, policy, "reloc").cost
        for policy in ("always", "never", "relocate[moves=2e4]", "relocate[ahead=4,moves=2e4]")
    }
    always, never, myopic, farsighted = (cost.total for cost in costs.values())
    assert farsighted < myopic < min(always, never)
    assert costs["relocate[moves=2e4]"].handovers < costs["always"].handovers


def test_relocate_moves_more_clients_when_relocation_is_free():
    dear, free = (
        replay(MOVING.with_prices(handover=price, spool=price / 50), "relocate[moves=1e4]", "reloc").cost.handovers
        for price in (5000.0, 0.0)
    )
    assert dear < free / 4


@pytest.mark.parametrize("seed", range(0, 32, 5))
def test_the_instance_of_a_window_costs_what_homes_cost_that_stay_for_the_window(seed):
    """Only the present clients and topics count, so the later epochs have the same ones here."""
    timeline = generate_timeline(seed, speed=70.0, n_epochs=3, topics=6, servers=4)
    epochs = list(timeline.epochs())
    home = np.random.default_rng(seed).integers(4, size=epochs[0].instance.n_clients)
    instance, seconds = window_instance(epochs)
    cost = schedule_cost(timeline, [home] * 3)
    assert seconds / timeline.prices.publication_period * evaluate(instance, home).objective == pytest.approx(
        cost.total
    )
    assert window_instance(epochs[:1]) == (epochs[0].instance, 60.0)


def test_a_window_counts_the_delay_of_a_client_only_while_it_is_present():
    timeline = random_timeline(9)
    epochs = list(timeline.epochs())
    instance, seconds = window_instance(epochs)
    for position, client in enumerate(epochs[0].clients):
        expected = sum(
            epoch.length * epoch.instance.client_delay(int(there[0]), 0)
            for epoch in epochs
            if len(there := np.flatnonzero(epoch.clients == client))
        )
        assert instance.client_delay(position, 0) == pytest.approx(expected / seconds)


def test_a_policy_of_ones_own_is_a_function_of_history_and_epoch():
    seen = []

    def mine(history, epoch):
        seen.append((epoch.number, history.before is None, len(history.costs), len(history.upcoming(2))))
        assert len(history.home) == epoch.instance.n_clients
        return [0] * epoch.instance.n_clients if epoch.number == 1 else None

    rows = replay(STILL, mine, "nearest").rows
    assert seen == [(0, True, 0, 2), (1, False, 1, 2), (2, False, 2, 2), (3, False, 3, 1), (4, False, 4, 0)]
    assert [row.solved for row in rows] == [False, True, False, False, False]
    assert set(rows[4].home) == {0}


def test_a_policy_in_a_file_has_parameters_and_a_version(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def at(history, epoch, *, k=2):\n    return history.solve() if epoch.number % k == 0 else None\n")
    assert solved_in(f"{path}:at") == [0, 2, 4, 6, 8, 10]
    assert solved_in(f"{path}:at[k=4]") == [0, 4, 8]
    policy = as_policy(f"{path}:at[k=4]")
    assert str(policy) == "mine.py:at[k=4]"
    path.write_text("def at(history, epoch):\n    return history.solve()\n")
    assert as_policy(f"{path}:at").version() != policy.version()
    for text, problem in {
        f"{path}:nothing": "expected a function nothing in mine.py, it has none of that name",
        f"{tmp_path}/absent.py:at": "expected a Python file, the file does not exist",
        f"{path}:at[k=1]": "expected parameter=value with one of: no parameters; got 'k=1'",
    }.items():
        with pytest.raises(InputError) as error:
            as_policy(text)
        assert error.value.problem == problem


def test_two_functions_of_one_name_are_not_one_policy(tmp_path):
    for folder, result in (("one", "None"), ("other", "history.solve()")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(f"def at(history, epoch):\n    return {result}\n")
    one, other = (f"{tmp_path / folder}/mine.py:at" for folder in ("one", "other"))
    assert len(parse_policies([one, one])) == 1
    with pytest.raises(InputError, match=r"^policy mine.py:at: two different functions have this name; rename one"):
        parse_policies([one, other])


def test_parameters_of_a_policy_in_a_file_are_checked_when_it_is_read(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from __future__ import annotations\n\nfrom typing import Annotated\n\n\n"
        "def at(history, epoch, *, k: Annotated[int, 'epochs'] = 2, name=None, **more):\n    return None\n"
    )
    assert as_policy(f"{path}:at[k=3,name=x]").settings == {"k": 3, "name": "x"}
    for inside, problem in {
        "k=often": "policy mine.py:at: k: expected a whole number, got 'often'",
        "kk=3": "policy mine.py:at: expected parameter=value with one of: k, name; got 'kk=3'; did you mean 'k'?",
        "more=3": "policy mine.py:at: expected parameter=value with one of: k, name; got 'more=3'",
        "epoch=3": "policy mine.py:at: expected parameter=value with one of: k, name; got 'epoch=3'",
    }.items():
        with pytest.raises(InputError) as error:
            as_policy(f"{path}:at[{inside}]")
        assert str(error.value).startswith(problem)


def test_errors_of_a_policy_in_a_file_are_one_line_that_names_it(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "def fails(history, epoch):\n    raise RuntimeError('no\\nway')\n\n\n"
        "def short(history, epoch):\n    return [0]\n\n\n"
        "def solves(history, epoch):\n    return history.solve()\n\n\n"
        "def method(instance, *, seed, time_limit):\n    raise RuntimeError('none')\n"
    )
    for function, problem in {
        "fails": "epoch 0: policy mine.py:fails: raised RuntimeError: no way (mine.py, line 2)",
        "short": "epoch 0: policy mine.py:short: home: expected ",
    }.items():
        with pytest.raises(InputError) as error:
            replay(STILL, f"{path}:{function}", "nearest")
        assert str(error.value).startswith(problem)
    # An error of the method is not one of the policy.
    with pytest.raises(RunError):
        replay(STILL, f"{path}:solves", f"{path}:method")


def test_arriving_clients_go_to_their_nearest_server_and_the_others_stay():
    timeline = random_timeline(4)
    home = random_homes(timeline, 4)[0]
    rows = replay(timeline, lambda history, epoch: home if epoch.number == 0 else None, "nearest").rows
    before, epoch = list(timeline.epochs())[:2]
    known = dict(zip(before.clients.tolist(), home.tolist(), strict=True))
    for position, client in enumerate(epoch.clients.tolist()):
        delays = epoch.instance.client_delay(position, np.arange(timeline.n_servers))
        assert rows[1].home[position] == known.get(client, int(np.argmin(delays)))
    assert rows[1].arrivals == len(set(epoch.clients.tolist()) - set(known))


def test_methods_that_take_a_start_begin_with_the_homes_so_far():
    instance = STILL.instance(0)
    good = replay(STILL, "never", "anneal[moves=2e4]").rows[0].home
    polished = replay(STILL, lambda h, e: good if e.number == 0 else h.solve(), "anneal[moves=1]")
    assert all(row.solved_y <= evaluate(instance, good).y * (1 + 1e-9) for row in polished.rows)
    better = adaptive.solve(instance, seed=0, time_limit=9, start=np.array(good, np.int32))
    assert evaluate(instance, better.home).objective <= evaluate(instance, good).objective


def test_reloc_with_automatic_clusters_searches_near_its_last_choice():
    instance = generate("paper", seed=2, sigma=5)
    every = {k: reloc.solve(instance, seed=0, time_limit=60, k=k) for k in (1, 2, 4, 8, 16)}
    near = reloc.solve(instance, seed=0, time_limit=60, k="auto", near=2)
    best = min((1, 2, 4), key=lambda k: evaluate(instance, every[k].home).objective)
    assert near.facts["k"] == best
    assert np.array_equal(near.home, every[best].home)
    rows = replay(MOVING, "always", "reloc[k=auto]").rows
    choices = [row.clusters for row in rows]
    assert all(later in (earlier, min(2 * earlier, 9), earlier // 2) for earlier, later in itertools.pairwise(choices))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sometimes", "policy: expected one of never, always, every, threshold, gap, relocate, got 'sometimes'"),
        ("every[n=3]", "policy every: expected parameter=value with one of: k; got 'n=3'"),
        ("every[k=often]", "policy every: k: expected a whole number from 1, got 'often'"),
        ("every[k=1,k=2]", "policy every: k is given twice"),
        ("never[k=1]", "policy never: expected parameter=value with one of: no parameters; got 'k=1'"),
        ("every]k", "policy: expected name or name[parameter=value,...], got 'every]k'"),
        ("every[k=0]", "policy every: k: expected a whole number from 1, got '0'"),
        ("threshold[worse=-1]", "policy threshold: worse: expected a number from 0, got '-1'"),
        ("threshold[worse=nan]", "policy threshold: worse: expected a number from 0, got 'nan'"),
        ("gap[above=2]", "policy gap: above: expected a number from 0 to 1, got '2'"),
        ("gap[limit=0]", "policy gap: limit: expected a number above 0, got '0'"),
        ("relocate[ahead=-1]", "policy relocate: ahead: expected a whole number from 0, got '-1'"),
        ("relocate[moves=0]", "policy relocate: moves: expected a whole number from 1, got '0'"),
        (7, "policy: expected a name such as every[k=5], or a function, got 7"),
        (lambda epoch: None, "policy <lambda>: expected a function f(history, epoch) (too many positional arguments)"),
        (lambda history, epoch: [0], "epoch 0: policy <lambda>: home: expected "),
    ],
)
def test_a_wrong_policy_is_refused(text, problem):
    with pytest.raises(InputError) as error:
        replay(STILL, text, "nearest")
    assert str(error.value).startswith(problem)


def test_policies_are_written_as_they_are_read():
    texts = ["every[k=5]", "relocate[ahead=2,moves=1000]", "never"]
    assert [str(policy) for policy in parse_policies([",".join(texts), "never"])] == texts
    assert set(POLICIES) == {"never", "always", "every", "threshold", "gap", "relocate"}
    assert as_policy("every[k=5]").version() == as_policy("never").version()
