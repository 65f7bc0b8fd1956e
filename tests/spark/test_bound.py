import json
import shutil
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from relocbench.cli import app
from relocbench.formulations.certificates.block_bound import UNIT_BITS, Multipliers
from relocbench.heuristics import anneal
from relocbench.heuristics.anneal_region import divide_regions
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.spark.bound import BoundOptions, bound_folder, verified_sum, verify_folder
from relocbench.spark.checkpoints import INPUTS_KEY, read_dataset, read_record, unwrap_input_errors
from relocbench.spark.compare_local import read_local
from relocbench.spark.dual_tables import block_rows, read_block
from relocbench.spark.placement import read_field

OPTIONS = BoundOptions(rounds=3, labels=6, sweeps=5, region_clients=180)


@pytest.fixture(scope="module")
def bounded(spark, regions_field, tmp_path_factory):
    folder = shutil.copytree(regions_field, tmp_path_factory.mktemp("bound") / "out")
    seen = []
    record, existed = bound_folder(
        spark, folder, folder / "nearest" / "homes", OPTIONS, lambda number, bound: seen.append((number, bound))
    )
    assert not existed
    return folder, record, seen


def multipliers_of(record):
    return Multipliers(tuple(record["alpha"]), tuple(record["beta"]))


def changed_rows(rows, change):
    """Return rows, sorted by topic, that are changed as Python values."""
    values = rows.sort_by("topic").to_pylist()
    change(values)
    return pa.Table.from_pylist(values, rows.schema)


def change_dual(folder, change):
    """Replace the dual of a folder by one with changed rows."""
    rows = changed_rows(pq.read_table(folder / "bound" / "dual"), change)
    shutil.rmtree(folder / "bound" / "dual")
    (folder / "bound" / "dual").mkdir()
    pq.write_table(rows, folder / "bound" / "dual" / "part.parquet")


@pytest.mark.slow
def test_the_bound_rises_and_its_exact_value_is_that_of_the_last_round(bounded):
    folder, record, seen = bounded
    rounds = [read_record(folder / "bound" / "rounds" / name) for name in ("0001", "0002", "0003")]
    assert all(now["blocks"] > 1 for now in rounds)
    assert rounds[0]["before"] < rounds[1]["before"] < rounds[2]["before"] < rounds[2]["after"]
    # In the first and the last round no multiplier changes, so that the bounds of the blocks add up exactly.
    assert rounds[0]["after"] == pytest.approx(rounds[1]["before"], rel=1e-6)
    assert rounds[1]["alpha"] == rounds[2]["alpha"] == record["alpha"]
    assert [bound for _, bound in seen] == [now["after"] for now in rounds]
    assert record["bound"] == pytest.approx(seen[-1][1], rel=1e-6)
    assert Fraction(record["bound"]) <= Fraction(int(record["claim"]), 1 << UNIT_BITS)


@pytest.mark.slow
def test_capacities_that_bind_raise_the_bound(spark, bounded, tmp_path):
    folder, record, _ = bounded
    assert read_record(folder / "bound" / "rounds" / "start")["priced"]
    assert any(record["alpha"])
    copy = shutil.copytree(folder / "field", tmp_path / "out" / "field").parent
    made = read_record(copy / "field")
    made |= {name: [100.0 * value for value in made[name]] for name in ("storage", "compute")}
    (copy / "field" / "made.json").write_text(json.dumps(made))
    shutil.copytree(folder / "nearest" / "homes", copy / "homes")
    ample, _ = bound_folder(spark, copy, copy / "homes", OPTIONS)
    assert not any(ample["alpha"] + ample["beta"])
    assert pq.read_table(copy / "bound" / "dual")["shares"].combine_chunks().flatten().null_count == 0
    assert not len(pq.read_table(copy / "bound" / "dual")["shares"].combine_chunks().flatten())
    assert record["bound"] > ample["bound"] > 0


@pytest.mark.slow
def test_the_bound_is_below_the_best_homes_and_does_not_depend_on_the_blocks(spark, bounded):
    folder, record, _ = bounded
    instance, _ = read_local(folder)
    local = evaluate(instance, anneal.solve(instance, seed=0, time_limit=1e9, moves=300_000).home)
    assert 0 < record["bound"] < local.objective
    homes, dual, multipliers = folder / "nearest" / "homes", folder / "bound" / "dual", multipliers_of(record)
    found = verified_sum(spark, folder, dual, homes, OPTIONS.labels, multipliers, block_clients=80)
    assert found == int(record["claim"])


@pytest.mark.slow
def test_a_changed_dual_or_claim_proves_nothing_more(spark, bounded, tmp_path):
    folder, record, _ = bounded
    copy = shutil.copytree(folder, tmp_path / "out")
    assert verify_folder(spark, copy)[0]

    def raise_message(rows):
        largest = max((row for row in rows if row["messages"]), key=lambda row: len(row["messages"]))
        largest["messages"][3] += 1 << 20

    change_dual(copy, raise_message)
    proved, _, found = verify_folder(spark, copy)
    assert not proved
    assert found < record["bound"]
    command = ["spark", "verify", str(copy)]
    answer = CliRunner().invoke(app, command, catch_exceptions=False)
    assert answer.exit_code == 1
    assert "not proved" in answer.output

    shutil.rmtree(copy)
    shutil.copytree(folder, copy)

    def raise_share(rows):
        row = next(row for row in rows if any(row["shares"]))
        row["shares"][int(np.argmax(row["shares"]))] += 1 << 12

    change_dual(copy, raise_share)
    answer = CliRunner().invoke(app, command, catch_exceptions=False)
    assert answer.exit_code == 1
    assert "expected no more than the price of each topic" in answer.output

    shutil.rmtree(copy)
    shutil.copytree(folder, copy)
    made = copy / "bound" / "made.json"
    # Larger prices lose more capacity than the shares gain, smaller ones do not cover the shares.
    larger = [value + (1 << 36) for value in record["alpha"]]
    made.write_text(json.dumps(read_record(folder / "bound") | {"alpha": larger}))
    assert not verify_folder(spark, copy)[0]
    for entries, problem in (
        ({"alpha": [value // 2 for value in record["alpha"]]}, "no more than the price"),
        ({"alpha": record["alpha"][1:]}, "alpha: expected a list of 16"),
        ({"beta": [-1, *record["beta"][1:]]}, "beta.0.: expected a whole number"),
        ({"version": 3}, "expected a bound of version 1 or 2"),
        ({"version": 1}, "expected no more than the price"),
        ({"claim": "1e9"}, "claim: expected the digits"),
        ({"claim": None}, "claim: expected the digits"),
        ({"bound": float("nan")}, "bound: expected a number"),
        ({"bound": "1/3"}, "bound: expected a number"),
        ({"labels": 0}, "labels: expected a whole number from 1"),
    ):
        written = read_record(folder / "bound")
        asked = written[INPUTS_KEY] | {name: value for name, value in entries.items() if name == "labels"}
        made.write_text(json.dumps(written | entries | {INPUTS_KEY: asked}))
        with pytest.raises(InputError, match=problem), unwrap_input_errors():
            verify_folder(spark, copy)
    claim = int(record["claim"])
    for name, value in (("claim", str(claim + 1)), ("bound", np.nextafter(record["bound"], np.inf).item() * 1.0001)):
        made.write_text(json.dumps(read_record(folder / "bound") | {name: value}))
        assert not verify_folder(spark, copy)[0]


@pytest.mark.slow
def test_a_client_is_not_counted_twice_in_the_place_of_another(spark, bounded, tmp_path):
    homes = pq.read_table(bounded[0] / "nearest" / "homes").sort_by("client").to_pylist()
    homes[1] = homes[0] | {"home": (homes[0]["home"] + 8) % 16}
    schema = pa.schema([("client", pa.int64()), ("home", pa.int32())])
    pq.write_table(pa.Table.from_pylist(homes, schema), tmp_path / "homes.parquet")
    dual, multipliers = bounded[0] / "bound" / "dual", multipliers_of(bounded[1])
    with pytest.raises(InputError), unwrap_input_errors():
        verified_sum(spark, bounded[0], dual, tmp_path / "homes.parquet", OPTIONS.labels, multipliers)


@pytest.mark.slow
def test_two_blocks_do_not_see_different_messages_of_a_topic(spark, bounded, tmp_path):
    folder, record, _ = bounded
    homes, multipliers = folder / "nearest" / "homes", multipliers_of(record)
    # The region of each server, as the verifier divides the clients.
    field = read_field(folder / "field")
    region = divide_regions(field.server_x, field.server_y, 4, 0, 0)
    home_of = {row["client"]: row["home"] for row in pq.read_table(homes).to_pylist()}

    def favour_both(rows):
        for row in rows:
            home = [home_of[client] for client in row["member"]]
            if len(home) == 2 and region[home[0]] != region[home[1]]:
                # Each row is for the block of one client, to which it gives most of what the pair costs.
                other = row | {"member_home": home[1:] * 2, "messages": [low - (1 << 20) for low in row["messages"]]}
                row["member_home"] = home[:1] * 2
                row["messages"] = [high + (1 << 20) for high in row["messages"]]
                rows.append(other)
                return

    pq.write_table(changed_rows(pq.read_table(folder / "bound" / "dual"), favour_both), tmp_path / "dual.parquet")
    blocks = -(-field.clients // 4)
    with pytest.raises(InputError, match=f"one row for each of {field.topics} topics, got {field.topics + 1}"):
        verified_sum(spark, folder, tmp_path / "dual.parquet", homes, OPTIONS.labels, multipliers, block_clients=blocks)


@pytest.mark.slow
def test_a_bound_of_the_first_version_is_verified_as_it_was(spark, bounded, tmp_path):
    copy = shutil.copytree(bounded[0], tmp_path / "out")
    rows = pq.read_table(copy / "bound" / "dual").drop_columns(["shares"])
    shutil.rmtree(copy / "bound" / "dual")
    (copy / "bound" / "dual").mkdir()
    pq.write_table(rows, copy / "bound" / "dual" / "part.parquet")
    homes = copy / "nearest" / "homes"
    none = Multipliers.none(16)
    claim = verified_sum(spark, copy, copy / "bound" / "dual", homes, OPTIONS.labels, none, is_first_version=True)
    record = read_record(copy / "bound")
    for name in ("version", "alpha", "beta"):
        del record[name]
    record |= {"claim": str(claim), "bound": 0.999 * claim / (1 << UNIT_BITS)}
    (copy / "bound" / "made.json").write_text(json.dumps(record))
    assert verify_folder(spark, copy)[0]
    # It has the messages of the second version, for which the rule of the first one proves something else.
    assert claim != verified_sum(spark, copy, copy / "bound" / "dual", homes, OPTIONS.labels, none)


def drop_member(rows):
    row = next(row for row in rows if len(row["member"]) == 2)
    sizes = {"member": 1, "member_home": 1, "labels": OPTIONS.labels, "messages": 0, "shares": OPTIONS.labels}
    for name, size in sizes.items():
        row[name] = row[name][:size]


def other_label(rows):
    seen = {}
    for row in rows:
        for place, client in enumerate(row["member"]):
            if client in seen:
                own = slice(place * OPTIONS.labels, (place + 1) * OPTIONS.labels)
                free = sorted(set(range(16)) - set(row["labels"][own]))
                row["labels"][own] = sorted([*row["labels"][own][1:], free[0]])
                return
            seen[client] = True


def other_member(rows):
    rows[0]["member"][-1] = 10**9


@pytest.fixture(scope="module")
def whole_block(spark, bounded):
    """Return the rows of a block with all clients, as a task gets them, and the field."""
    folder = bounded[0]
    names = ("field/clients", "nearest/homes", "bound/dual")
    clients, homes, dual = (read_dataset(spark, folder / name) for name in names)
    field = read_field(folder / "field")
    return block_rows(clients, homes, dual, field, np.zeros(16, np.int32)).toArrow(), field


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (drop_member, "has other topics or roles than the clients"),
        (other_label, "has different labels for one client"),
        (other_member, "has other topics or roles than the clients"),
        (lambda rows: rows.pop(), "has other topics or roles than the clients"),
        (lambda rows: rows.append(rows[0]), "has a topic twice"),
        (lambda rows: rows[0]["messages"].pop(), "has topics with a wrong number of messages"),
        (lambda rows: rows[0]["shares"].clear(), "has topics with a wrong number of shares"),
        (lambda rows: rows[0]["shares"].pop(), "has topics with a wrong number of shares"),
        (lambda rows: rows[0].update(shares=None), "has topics without shares"),
        (lambda rows: rows[0]["messages"].__setitem__(0, None), "has missing numbers in messages"),
    ],
)
def test_a_dual_of_another_instance_is_refused(whole_block, change, problem):
    rows, field = whole_block
    assert read_block(rows, field, OPTIONS.labels)[0].own == field.clients
    dual = changed_rows(rows.filter(rows["topic"].is_valid()), change)
    changed = pa.concat_tables([rows.filter(rows["topic"].is_null()), dual])
    with pytest.raises(InputError, match=problem):
        read_block(changed, field, OPTIONS.labels)


@pytest.mark.slow
def test_a_task_that_refuses_a_dual_gives_one_line(spark, bounded, tmp_path):
    copy = shutil.copytree(bounded[0], tmp_path / "out")
    change_dual(copy, lambda rows: rows.pop())
    with pytest.raises(InputError, match="the dual has other topics or roles than the clients"), unwrap_input_errors():
        verify_folder(spark, copy)


@pytest.mark.slow
def test_a_stopped_run_continues_and_partitions_do_not_matter(spark, bounded, tmp_path):
    folder, record, _ = bounded
    copy = shutil.copytree(folder, tmp_path / "out")
    # As after a kill in the third round: a dual without a record.
    (copy / "bound" / "made.json").unlink()
    (copy / "bound" / "rounds" / "0003" / "made.json").unlink()
    first = (copy / "bound" / "rounds" / "0001" / "made.json").stat().st_mtime_ns
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", 3)
    again, existed = bound_folder(spark, copy, copy / "nearest" / "homes", OPTIONS)
    spark.conf.set("spark.sql.shuffle.partitions", before)
    assert not existed
    assert again["claim"] == record["claim"]
    assert (copy / "bound" / "rounds" / "0001" / "made.json").stat().st_mtime_ns == first
