"""``relocbench spark arrange``."""

from pathlib import Path
from typing import Annotated

import typer

from relocbench.commands.options import Conf, Master, Memory, Partitions, started
from relocbench.instances.errors import plural
from relocbench.terminal import print_json


def run(
    edges: Annotated[
        str,
        typer.Argument(
            help="Edge list `follower<TAB>followee`, or with --roles `follower<TAB>followee<TAB>role`: a file, a "
            "folder of files, or a pattern; a path or a URI."
        ),
    ],
    out: Annotated[str, typer.Option(metavar="PATH", help="Folder to write to: a path or a URI.")],
    min_size: Annotated[int, typer.Option(help="Least number of members of a topic.", min=1)] = 2,
    max_size: Annotated[int, typer.Option(help="Largest number of members of a topic.", min=1)] = 21,
    max_topics_per_client: Annotated[
        int, typer.Option(help="Topics that a client stays in, those with the lowest ids; 0: no limit.", min=0)
    ] = 4,
    topics: Annotated[int, typer.Option(help="Number of topics to draw; 0: keep all.", min=0)] = 0,
    seed: Annotated[int, typer.Option(help="Seed of the draw.", min=0)] = 0,
    undirected: Annotated[
        bool, typer.Option("--undirected", help="Each line means that both users follow each other.")
    ] = False,
    roles: Annotated[
        bool,
        typer.Option(
            "--roles",
            help="The third column is the role of the followee in the topic of the follower: publish, subscribe or "
            "both. A line from a follower to itself has its own role, which otherwise is both.",
        ),
    ] = False,
    max_bad: Annotated[
        float, typer.Option(help="Largest permitted share of lines that are neither edges nor comments.", min=0, max=1)
    ] = 0.01,
    master: Master = None,
    memory: Memory = None,
    partitions: Partitions = None,
    conf: Conf = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Convert a follower graph into topics: each follower with its followees is one topic.

    The two ids of a line are separated by a tab, spaces or a comma. # and % start comments. Files may end in .gz.

    Example: relocbench spark arrange user_sns.txt --out topics
    """
    from relocbench.spark.checkpoints import INPUTS_KEY, unwrap_input_errors
    from relocbench.spark.dropped import described
    from relocbench.spark.edge_list import find_edges
    from relocbench.spark.locations import location, require_writable
    from relocbench.spark.progress import run_with_progress
    from relocbench.spark.topic_filters import Filters
    from relocbench.spark.topics_from_graph import arrange

    filters = Filters(
        min_size=min_size,
        max_size=max_size,
        max_topics_per_client=max_topics_per_client,
        topics=topics,
        seed=seed,
        undirected=undirected,
        roles=roles,
    )
    source, folder = location(edges), location(out)
    if isinstance(source, Path):  # report a missing file and a wrong folder before Java starts
        find_edges(source).require_text()
    if isinstance(folder, Path):
        require_writable(folder)
    with started(master, memory, partitions, conf) as spark, unwrap_input_errors():
        record, existed = run_with_progress(
            spark, lambda: arrange(spark, source, folder, filters, max_bad), "arranging"
        )
    if as_json:
        print_json({**{name: value for name, value in record.items() if name != INPUTS_KEY}, "folder": str(out)})
        return
    if record["bad_lines"]:
        print(f"{plural(record['bad_lines'], 'bad line')} of {record['lines']:,}, such as {record['bad_example']}")
    for line in described(record):
        print(line)
    if by_role := record.get("memberships_by_role"):
        names = {"publish": "only publish", "subscribe": "only subscribe", "both": "do both"}
        print("of the memberships " + ", ".join(f"{by_role[role]:,} {does}" for role, does in names.items()))
    sizes = f"{plural(record['memberships'], 'membership')}, the largest topic has {record['largest']:,}"
    print(f"{plural(record['topics'], 'topic')}, {sizes}{' (written earlier)' if existed else ''}: {out}")
