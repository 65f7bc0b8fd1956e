"""The features of the instances of a study as files: Parquet, and the table that instance-space tools read."""

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from relocbench.instances.features import FEATURES
from relocbench.instances.files.atomic_write import written_whole
from relocbench.reports.study.excess import Measurement, per_instance

FORMAT = "relocbench-features/1"


def write_features(
    measurements: Sequence[Measurement], features: Mapping[str, Mapping[str, float]], path: Path
) -> None:
    """Write the features of each instance as Parquet, with one row per instance.

    Parameters
    ----------
    measurements
        The runs of the study.
    features
        The features of each instance, by hash.
    path
        The file.
    """
    instances = {one.hash: one for one in measurements if one.hash in features}
    rows = [
        {"format": FORMAT, "instance": one.instance, "hash": key, "group": one.group, "block": one.block}
        | {name: features[key][name] for name in FEATURES}
        for key, one in instances.items()
    ]
    texts = ("format", "instance", "hash", "group", "block")
    schema = pa.schema([*((name, pa.string()) for name in texts), *((name, pa.float64()) for name in FEATURES)])
    with written_whole(path) as temporary:
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), temporary)


def write_metadata(
    measurements: Sequence[Measurement], features: Mapping[str, Mapping[str, float]], path: Path
) -> None:
    """Write the table that tools for instance space analysis (MATILDA, PyISpace) call ``metadata.csv``.

    It has one row per instance: ``Instances``, ``Source`` (the group), a column ``feature_NAME`` for each feature, and
    a column ``algo_NAME`` for each method with its mean excess; empty if it has none.

    Parameters
    ----------
    measurements
        The runs of the study.
    features
        The features of each instance, by hash.
    path
        The file.
    """
    methods = list(dict.fromkeys(one.selector for one in measurements))
    means = [per_instance(one for one in measurements if one.selector == name) for name in methods]
    instances = {one.hash: one for one in measurements if one.hash in features}
    columns = [f"algo_{name}" for name in _identifiers(methods)]
    with written_whole(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["Instances", "Source", *(f"feature_{name}" for name in FEATURES), *columns])
        for key, one in instances.items():
            excess = [values.get(key, "") for values in means]
            writer.writerow([one.instance, one.group, *(features[key][name] for name in FEATURES), *excess])


def _identifiers(selectors: Sequence[str]) -> list[str]:
    """Return a name of letters, digits and underscores for each method; these tools accept no others."""
    found: list[str] = []
    for selector in selectors:
        plain = re.sub(r"[^A-Za-z0-9]+", "_", selector).strip("_")
        repeats = sum(name == plain or name.startswith(f"{plain}_again") for name in found)
        found.append(plain if not repeats else f"{plain}_again{repeats}")
    return found
