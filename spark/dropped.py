"""Counts of what the filters of ``spark arrange`` drop, rule by rule, taken while the data passes through the tasks."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

# Columns in addition to those of the data. A row of counts has only these, a row of data has none of them.
COUNT_SCHEMA = "rule string, dropped_topics bigint, dropped_memberships bigint"
_ARROW_FIELDS = pa.schema([("rule", pa.string()), ("dropped_topics", pa.int64()), ("dropped_memberships", pa.int64())])
# A rule, the number of topics that it dropped, and the number of memberships (for REPEATED: of edges).
Drop = tuple[str, int, int]
REPEATED, TOO_SMALL, TOO_LARGE = "repeated", "too_small", "too_large"
OVER_LIMIT, LEFT_TOO_SMALL, NOT_DRAWN = "over_limit", "left_too_small", "not_drawn"


class DropCounts:
    """Counts by rule. They are known when the data frames that were observed have been written."""

    def __init__(self) -> None:
        self._observations: list[Observation] = []

    def group(
        self,
        frame: "DataFrame",
        schema: str,
        rules: Sequence[str],
        function: Callable[[pa.Table], tuple[pa.Table, list[Drop]]],
    ) -> "DataFrame":
        """Apply a function to each block, and count what it drops.

        Parameters
        ----------
        frame
            Rows in blocks.
        schema
            The schema of the function's table.
        rules
            The rules that the function applies.
        function
            It returns the rows that it makes of a block, and what each rule has dropped.

        Returns
        -------
        pyspark.sql.DataFrame
            The rows of the function.
        """
        from pyspark.sql import Observation
        from pyspark.sql import functions as sql

        def with_counts(table: pa.Table) -> pa.Table:
            rows, drops = function(table)
            counts = pa.Table.from_pylist(
                [dict(zip(_ARROW_FIELDS.names, drop, strict=True)) for drop in drops], _ARROW_FIELDS
            )
            return pa.concat_tables([rows, counts], promote_options="default")

        observation = Observation()
        self._observations.append(observation)
        sums = [
            sql.sum(sql.when(sql.col("rule") == rule, sql.col(f"dropped_{what}"))).alias(f"{rule} {what}")
            for rule in rules
            for what in ("topics", "memberships")
        ]
        grouped = frame.groupBy("block").applyInArrow(with_counts, f"{schema}, {COUNT_SCHEMA}")
        observed = grouped.observe(observation, *sums).where("rule IS NULL")
        return observed.drop(*_ARROW_FIELDS.names)

    def totals(self) -> dict[str, dict[str, int]]:
        """Return the counts. The observed data frames must have been written.

        Returns
        -------
        dict
            For each rule the numbers of ``topics`` and ``memberships`` that it dropped.
        """
        totals: dict[str, dict[str, int]] = {}
        for observation in self._observations:
            for name, count in observation.get.items():
                rule, what = name.split()
                totals.setdefault(rule, {})[what] = count or 0
        return totals


def described(record: dict[str, Any]) -> list[str]:
    """Describe how the edges of an edge list became memberships, with one line for each rule that dropped something.

    Parameters
    ----------
    record
        The record of ``spark arrange``.

    Returns
    -------
    list of str
        The lines; none for a record of an earlier version.
    """
    if "dropped" not in record:
        return []
    dropped, inputs = record["dropped"], record["asked"]
    edges = record["lines"] - record["bad_lines"]
    distinct = edges - dropped[REPEATED]["memberships"]
    formed = distinct + record["followers"]
    reasons = {
        TOO_SMALL: f"in {{topics:,}} topics with fewer than {inputs['min_size']} members (--min-size)",
        TOO_LARGE: f"in {{topics:,}} topics with more than {inputs['max_size']} members (--max-size)",
        OVER_LIMIT: f"of clients in more than {inputs['max_topics_per_client']} topics (--max-topics-per-client)",
        LEFT_TOO_SMALL: f"in {{topics:,}} topics that this left with fewer than {inputs['min_size']} members",
        NOT_DRAWN: "in {topics:,} topics that were not drawn (--topics)",
    }
    lines = [
        f"{edges:,} edges, {distinct:,} without repetitions and self-follows: "
        f"{formed:,} memberships, with {record['followers']:,} followers as members of their own topics"
    ]
    for rule, text in reasons.items():
        count = dropped.get(rule)
        if count and count["memberships"]:
            lines.append(f"  dropped: {count['memberships']:,} {text.format(**count)}")
    return lines
