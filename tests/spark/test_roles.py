"""Roles at full scale: publishers and subscribers from the third column of an edge list."""

import dataclasses
import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from relocbench.cli import app
from relocbench.formulations.certificates.block_bound import Multipliers
from relocbench.heuristics import anneal
from relocbench.heuristics.anneal_region import divide_regions
from relocbench.heuristics.readings import READINGS
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.evaluation_literal import evaluate_literal
from relocbench.instances.files.follower_graph import synthetic_follower_graph
from relocbench.instances.generators.paper_generator import PaperParameters
from relocbench.instances.instance_tables import ROLES
from relocbench.instances.kernels.random_streams import stream
from relocbench.instances.region_state import RegionState
from relocbench.spark import placement
from relocbench.spark.anneal import AnnealOptions, anneal_folder
from relocbench.spark.assign import RelocOptions
from relocbench.spark.bound import BoundOptions, bound_folder, verified_sum
from relocbench.spark.checkpoints import read_dataset, read_record, unwrap_input_errors
from relocbench.spark.compare_local import compare, read_homes, read_local
from relocbench.spark.dual_tables import block_rows, read_block
from relocbench.spark.field_choices import PAPER_MEMBERSHIPS, PAPER_SQUARED_SIZES
from relocbench.spark.pipeline import solve_field, solve_method
from relocbench.spark.placement import read_field
from relocbench.spark.region_tables import read_region, region_rows
from relocbench.spark.stages import Stages
from relocbench.spark.topic_filters import Filters
from relocbench.spark.topics_from_graph import arrange

NAMES = ("publish", "subscribe", "both")
FILTERS = Filters(min_size=1, max_size=9, max_topics_per_client=3, roles=True)


def random_lines():
    """Return the lines of an edge list: most followers have a role of their own, and some edges have two roles."""
    graph = synthetic_follower_graph(stream("roles"), topics=80, min_size=2, max_size=10, max_topics_per_client=6)
    edges = list(zip(graph.follower.tolist(), graph.followee.tolist(), strict=True))
    rng = np.random.default_rng(5)
    lines = [(a, b, NAMES[rng.integers(3)]) for a, b in [*edges, *edges[::20]]]
    lines += [(a, a, NAMES[rng.integers(3)]) for a in sorted({a for a, _ in edges})[::2]]
    # A user that follows only itself has no topic. In the topic 10⁶ nobody receives, in the next one nobody publishes.
    lines += [(999, 999, "both"), (10**6, 10**6, "publish"), (10**6, 10**6 + 2, "publish")]
    lines += [(10**6 + 1, 10**6 + 1, "subscribe"), (10**6 + 1, 10**6 + 3, "subscribe")]
    # The last one of these followers is alone in its topic, because the followee is in three topics already.
    lines += [(10**6 + n, 10**6 + 20, "both") for n in (10, 11, 12, 13)]
    return [lines[i] for i in rng.permutation(len(lines))]


def reference(lines, filters):
    """Return members and roles of each topic by a plain loop."""
    rows = {}
    for follower, followee, name in lines:
        publishes, subscribes = ROLES[name]
        role = rows.setdefault(follower, {}).setdefault(followee, [False, False])
        role[0], role[1] = role[0] or publishes, role[1] or subscribes
    entered, topics = {}, {}
    for follower in sorted(rows):
        members = rows[follower]
        members.setdefault(follower, [True, True])
        if len(members) == 1 or not filters.min_size <= len(members) <= filters.max_size:
            continue
        left = {member: role for member, role in members.items() if entered.get(member, 0) < 3}
        entered.update({member: entered.get(member, 0) + 1 for member in left})
        if len(left) >= filters.min_size:
            order = sorted(left, key=lambda one: (not left[one][0], one != follower, one))
            topics[follower] = [(one, left[one][0] + 2 * left[one][1]) for one in order]
    return topics


@pytest.fixture(scope="module")
def lines():
    return random_lines()


@pytest.fixture(scope="module")
def arranged(spark, lines, tmp_path_factory):
    folder = tmp_path_factory.mktemp("roles")
    (folder / "edges.txt").write_text("".join(f"{a}\t{b}\t{role}\n" for a, b, role in lines))
    record, _ = arrange(spark, str(folder / "edges.txt"), folder / "topics", FILTERS)
    return folder / "topics", record


def test_topics_with_roles_equal_those_of_a_plain_loop(lines, arranged):
    folder, record = arranged
    table = pq.read_table(folder / "topics").to_pylist()
    found = {row["topic"]: list(zip(row["members"], row["roles"], strict=True)) for row in table}
    expected = reference(lines, FILTERS)
    assert found == expected
    roles = [role for members in expected.values() for _, role in members]
    assert record["memberships_by_role"] == {
        name: roles.count(role) for name, role in zip(NAMES, (1, 2, 3), strict=True)
    }
    assert min(record["memberships_by_role"].values()) > 20
    # What the model says about publications without a receiver is tested below only if there are some.
    alone = [members for members in expected.values() if len(members) == 1 and members[0][1] == 3]
    silent = [members for members in expected.values() if not any(role & 2 for _, role in members)]
    assert alone
    assert silent


OPTIONS = {
    "reloc": RelocOptions(k=3, **dataclasses.asdict(READINGS["prose"])),
    "otos": RelocOptions(),
    "nearest": RelocOptions(),
    "random": RelocOptions(),
}
SVD = RelocOptions(
    k=2, relation="svd", rounds=2, cooperation="client", revisit=False, ties="random", topic_order="large"
)
PARAMETERS = PaperParameters(servers=16, sigma=6.0, storage=90.0, compute=110.0)


def solve(spark, topics, out, method, options):
    return solve_field(spark, topics, out, method, PARAMETERS, options, proportional=False)[0]


@pytest.fixture(scope="module")
def solved(spark, arranged, tmp_path_factory):
    """Run all methods in small blocks, and RELOC by factors as a result of its own. Return the folder and the costs."""
    out = tmp_path_factory.mktemp("roles-solved")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement, "BLOCK_MEMBERSHIPS", 100)
        found = {name: solve(spark, arranged[0], out, name, one) for name, one in OPTIONS.items()}
        field = read_field(out / "field")
        assert field.n_blocks > 1
        found["svd"], _ = solve_method(
            spark, out, field, "reloc", SVD, folder="results/svd", factors="factors", stages=Stages()
        )
    return out, found


@pytest.mark.parametrize("method", [*OPTIONS, "svd"])
def test_homes_and_costs_with_roles_are_those_of_the_local_methods(solved, method):
    out, found = solved
    instance, ids = read_local(out)
    assert instance.n_clients > 200
    if method != "random":
        assert compare(out, method).equal
    cost, home = found[method], read_homes(out / ("results/svd" if method == "svd" else method) / "homes", ids)
    local = evaluate(instance, home).values()
    assert cost["publications"] == local["publications"] < instance.publishers.sizes.sum()
    for part in local:
        assert cost[part] == pytest.approx(local[part], rel=1e-9), part
    assert cost["objective"] == pytest.approx(evaluate_literal(instance, home).objective, rel=1e-9)
    assert min(cost["theta"]) < 1.0


def test_the_instance_has_the_roles_of_the_edge_list(lines, solved):
    instance, ids = read_local(solved[0])
    expected = reference(lines, FILTERS)
    for number, topic in enumerate(sorted(expected)):
        for part, clients in ((1, instance.publishers[number]), (2, instance.subscribers[number])):
            assert ids[clients].tolist() == [member for member, role in expected[topic] if role & part]
        assert instance.spool[number] == 2.0 * len(expected[topic])


def test_homes_with_roles_do_not_depend_on_partitions_or_blocks(spark, arranged, solved, tmp_path):
    ids = read_local(solved[0])[1]
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", 7)
    try:
        cost = solve(spark, arranged[0], tmp_path, "reloc", OPTIONS["reloc"])
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)
    homes = [read_homes(folder / "reloc" / "homes", ids) for folder in (tmp_path, solved[0])]
    assert np.array_equal(*homes)
    assert cost["objective"] == pytest.approx(solved[1]["reloc"]["objective"], rel=1e-12)
    assert compare(tmp_path, "reloc").equal


@pytest.fixture(scope="module")
def regions(spark, solved):
    """Return the field, the nearest homes, two regions of servers, and the rows of each region as a task gets them."""
    folder = solved[0]
    field, (instance, ids) = read_field(folder / "field"), read_local(folder)
    home = read_homes(folder / "nearest" / "homes", ids)
    region = divide_regions(field.server_x, field.server_y, 2, 0, 0)
    clients, homes = (read_dataset(spark, folder / name) for name in ("field/clients", "nearest/homes"))
    rows = region_rows(clients, homes, field, region).toArrow()
    return field, instance, ids, home, region, [rows.filter(pc.equal(rows["region"], number)) for number in (0, 1)]


def test_a_region_with_roles_knows_the_exact_change_of_every_move(regions):
    field, instance, ids, home, region, tables = regions
    cost = evaluate(instance, home)
    loads = np.array([cost.storage_load, cost.compute_load, cost.sent, cost.spread])
    rng = np.random.default_rng(0)
    for number, table in enumerate(tables):
        own_ids, part, own_home, around = read_region(table, field, region, loads)
        state = RegionState(part, own_home, around)
        assert state.cost - float(state.arrays.distance[0]) == pytest.approx(cost.processing_cost, rel=1e-9)
        for client in rng.integers(part.n_clients, size=40):
            server = int(rng.choice(around.own))
            moved = home.copy()
            moved[np.searchsorted(ids, own_ids[client])] = server
            change = evaluate(instance, moved).objective - cost.objective
            assert state.delta(int(client), server) == pytest.approx(change, abs=1e-8)
        assert set(region[own_home]) == {number}


def test_annealing_with_roles_improves_the_homes_by_what_it_says(spark, solved, tmp_path):
    folder = shutil.copytree(solved[0], tmp_path / "out")
    record, _ = anneal_folder(spark, folder, AnnealOptions(rounds=2, proposals=300, region_clients=130))
    instance, ids = read_local(folder)
    local = evaluate(instance, read_homes(folder / "anneal" / "homes", ids))
    assert record["objective"] == pytest.approx(local.objective, rel=1e-9)
    assert record["objective"] < 0.95 * solved[1]["nearest"]["objective"]


BOUND = BoundOptions(rounds=4, labels=6, region_clients=130)


@pytest.fixture(scope="module")
def bounded(spark, solved, tmp_path_factory):
    folder = shutil.copytree(solved[0], tmp_path_factory.mktemp("bounded") / "out")
    return folder, bound_folder(spark, folder, folder / "nearest" / "homes", BOUND)[0]


def proved(spark, folder, record, dual, block_clients=60):
    multipliers = Multipliers(tuple(record["alpha"]), tuple(record["beta"]))
    homes = folder / "nearest" / "homes"
    return verified_sum(spark, folder, dual, homes, BOUND.labels, multipliers, block_clients=block_clients)


def test_a_bound_with_roles_rises_and_is_below_good_homes(spark, bounded):
    folder, record = bounded
    rounds = [read_record(folder / "bound" / "rounds" / f"000{number}") for number in (1, 4)]
    assert rounds[0]["blocks"] > 1
    assert rounds[0]["before"] < rounds[1]["after"]
    assert any(record["alpha"])
    instance, _ = read_local(folder)
    best = evaluate(instance, anneal.solve(instance, seed=0, time_limit=1e9, moves=200_000).home).objective
    assert 0 < record["bound"] < best
    assert proved(spark, folder, record, folder / "bound" / "dual") == int(record["claim"])


def test_roles_that_are_exchanged_between_members_of_two_blocks_are_refused(spark, bounded, tmp_path):
    # The numbers of publishers and subscribers stay what they were, and no block has both members.
    folder, record = bounded
    region = divide_regions(
        *(getattr(read_field(folder / "field"), name) for name in ("server_x", "server_y")), 4, 0, 0
    )
    rows = pq.read_table(folder / "bound" / "dual")
    values = rows.to_pylist()

    def exchanges(row):
        places = range(len(row["member"]))
        apart = [
            (i, j) for i in places for j in places if region[row["member_home"][i]] != region[row["member_home"][j]]
        ]
        return [(i, j) for i, j in apart if row["member_role"][i] == 1 and row["member_role"][j] == 2]

    changed = next(row for row in values if exchanges(row))
    i, j = exchanges(changed)[0]
    changed["member_role"][i], changed["member_role"][j] = changed["member_role"][j], changed["member_role"][i]
    pq.write_table(pa.Table.from_pylist(values, rows.schema), tmp_path / "dual.parquet")
    with pytest.raises(InputError, match="other topics or roles"), unwrap_input_errors():
        proved(
            spark,
            folder,
            record,
            tmp_path / "dual.parquet",
            block_clients=-(-read_field(folder / "field").clients // 4),
        )


@pytest.mark.parametrize(
    ("column", "change", "problem"),
    [
        (
            "member_role",
            lambda roles: [1 if role == 3 else role for role in roles],
            "has other topics or roles than the clients",
        ),
        ("member_role", lambda roles: [*roles, 3], "has topics with a wrong number of roles"),
        ("member_role", lambda roles: None, "has topics without member_role"),
        ("shares", lambda shares: [*shares, *[0] * BOUND.labels], "has topics with a wrong number of shares"),
        ("member_home", lambda homes: None, "has topics without homes"),
        ("member_home", lambda homes: [*homes[:-1], 16], "homes that are not servers from 0 to 15"),
    ],
)
def test_a_dual_with_wrong_roles_is_refused(spark, bounded, column, change, problem):
    folder = bounded[0]
    names = ("field/clients", "nearest/homes", "bound/dual")
    clients, homes, dual = (read_dataset(spark, folder / name) for name in names)
    field, rows = read_field(folder / "field"), dual.toArrow()
    values = rows.to_pylist()
    row = next(row for row in values if set(row["member_role"]) == {1, 2, 3})
    row[column] = change(row[column])
    changed = spark.createDataFrame(pa.Table.from_pylist(values, rows.schema))
    with pytest.raises(InputError, match=problem), unwrap_input_errors():
        read_block(block_rows(clients, homes, changed, field, np.zeros(16, np.int32)).toArrow(), field, BOUND.labels)


def test_a_bound_with_roles_is_near_the_optimum_where_capacities_do_not_bind(spark, solved, tmp_path):
    folder = shutil.copytree(solved[0] / "field", tmp_path / "out" / "field").parent
    made = read_record(folder / "field")
    made |= {name: [1e6] * 16 for name in ("storage", "compute")}
    (folder / "field" / "made.json").write_text(json.dumps(made))
    shutil.copytree(solved[0] / "nearest" / "homes", folder / "homes")
    record, _ = bound_folder(spark, folder, folder / "homes", BoundOptions(rounds=4, labels=12, sweeps=10))
    instance, _ = read_local(folder)
    best = evaluate(instance, anneal.solve(instance, seed=0, time_limit=1e9, moves=300_000).home).objective
    assert 0.97 * best < record["bound"] <= best


def test_a_study_with_roles_has_a_page_and_the_wanted_load(arranged, tmp_path):
    command = ["spark", "study", str(arranged[0]), "--servers", "9", "--capacities", "demand", "--load", "1.2"]
    command += ["--methods", "nearest,reloc[k=2]", "--out", str(tmp_path / "out"), "--json"]
    answer = CliRunner().invoke(app, command, catch_exceptions=False)
    assert len(json.loads(answer.stdout)["results"]) == 2
    instance, ids = read_local(tmp_path / "out")
    for name in ("nearest_seed-0", "reloc_k-2_seed-0"):
        assert compare(tmp_path / "out", name).equal
    cost = evaluate(instance, read_homes(tmp_path / "out" / "results" / "nearest_seed-0" / "homes", ids))
    used = (
        cost.storage_load.sum() / instance.storage_capacity.sum(),
        cost.compute_load.sum() / instance.compute_capacity.sum(),
    )
    assert max(used) == pytest.approx(1.2, rel=1e-3)
    # As in the paper's instances, the ratio of both follows the demand of publishers, not of members.
    sizes, published = instance.members.sizes, instance.publishers.sizes
    stored, processed = sizes[published > 0].sum(), (sizes * published).sum()
    ratio = instance.compute_capacity[0] / instance.storage_capacity[0]
    assert ratio == pytest.approx(5 * (processed / PAPER_SQUARED_SIZES) / (stored / PAPER_MEMBERSHIPS), rel=1e-3)
    page = (tmp_path / "out" / "index.html").read_text()
    assert f"{instance.n_publications:,}" in page
    assert "of the edge list" in page


def test_the_command_says_how_many_publish(arranged, lines):
    folder, record = arranged
    limits = ["--min-size", "1", "--max-size", "9", "--max-topics-per-client", "3", "--roles"]
    command = ["spark", "arrange", str(folder.parent / "edges.txt"), "--out", str(folder), *limits]
    answer = CliRunner().invoke(app, command, catch_exceptions=False)
    counts = record["memberships_by_role"]
    assert (
        f"{counts['publish']:,} only publish, {counts['subscribe']:,} only subscribe, {counts['both']:,} do both"
        in (answer.output)
    )
    with pytest.raises(InputError, match="was written with roles True: choose another folder"):
        CliRunner().invoke(app, command[:-1], catch_exceptions=False)


def test_wrong_roles_are_refused_in_one_line(spark, tmp_path):
    (tmp_path / "weights.txt").write_text("1\t2\t0.5\n1\t3\tboth\n")
    with pytest.raises(
        InputError, match=r"expected lines `.*role` with the role publish, subscribe or both, 1 of 2 are"
    ):
        arrange(spark, str(tmp_path / "weights.txt"), tmp_path / "out", Filters(roles=True))
    with pytest.raises(InputError, match="--roles: cannot be combined with --undirected"):
        Filters(roles=True, undirected=True)
