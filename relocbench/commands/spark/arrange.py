"""``relocbench spark arrange``."""

from pathlib import Path
from typing import Annotated

import typer

from relocbench.commands.options import Conf, Master, Memory, Partitions, started
from relocbench.terminal import print_json


def run(
    edges: Annotated[str, typer.Argument(help="Edge list `follower<TAB>followee`, a folder of such, or a pattern.")],
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
    min_size: Annotated[int, typer.Option(help="Members that a topic has at least.", min=1)] = 2,
    max_size: Annotated[int, typer.Option(help="Members that a topic has at most.", min=1)] = 21,
    max_topics_per_client: Annotated[
        int, typer.Option(help="A client stays in so many topics, the lowest; 0: in all.", min=0)
    ] = 4,
    topics: Annotated[int, typer.Option(help="Draw so many topics; 0: keep all.", min=0)] = 0,
    seed: Annotated[int, typer.Option(help="Decides which topics are drawn.", min=0)] = 0,
    max_bad: Annotated[
        float, typer.Option(help="Share of lines that may be neither edges nor comments.", min=0, max=1)
    ] = 0.01,
    master: Master = None,
    memory: Memory = None,
    partitions: Partitions = None,
    conf: Conf = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Arrange a follower graph as topics: each follower with its followees, one row a topic.

    Lines may be separated by tabs, spaces or a comma; # and % start comments; .gz is read.

    Example: relocbench spark arrange user_sns.txt --out topics
    """
    from relocbench.spark.checkpoints import input_errors
    from relocbench.spark.edge_list import find_edges
    from relocbench.spark.progress import watched
    from relocbench.spark.topics_from_graph import Filters, arrange

    filters = Filters(
        min_size=min_size, max_size=max_size, max_topics_per_client=max_topics_per_client, topics=topics, seed=seed
    )
    find_edges(edges)  # before Java starts
    with started(master, memory, partitions, conf) as spark, input_errors():
        found, before = watched(spark, lambda: arrange(spark, edges, out, filters, max_bad), "arranging")
    if as_json:
        print_json({**{name: value for name, value in found.items() if name != "asked"}, "folder": str(out)})
        return
    if found["bad_lines"]:
        print(f"{found['bad_lines']:,} bad lines of {found['lines']:,}, such as {found['bad_example']}")
    sizes = f"{found['memberships']:,} memberships, the largest topic has {found['largest']:,}"
    print(f"{found['topics']:,} topics, {sizes}{' (there already)' if before else ''}: {out}")
