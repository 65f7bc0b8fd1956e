"""Groups and blocks of instances that the user chooses.

A *group* is compared together: a mean with its interval, one figure, one set of tests. A *block* is one independent
sample: instances that share random draws. :class:`reports.study.subjects.Subject` has the defaults of both.
"""

import dataclasses
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from relocbench.instances.errors import InputError, shown
from relocbench.instances.instance import Instance
from relocbench.reports.study.subjects import Subject

# What groups can be made by: a text as :func:`grouped` explains it, or a function from an instance to its label.
By = str | Callable[[Instance], str]
# Sizes that every instance has, whether it was generated or not.
SIZES: dict[str, Callable[[Instance], int]] = {
    "clients": lambda instance: instance.n_clients,
    "servers": lambda instance: instance.n_servers,
    "topics": lambda instance: instance.n_topics,
}


def grouped(subjects: Sequence[Subject], group_by: By | None = None, block_by: By | None = None) -> list[Subject]:
    """Give instances the groups and blocks that the user has chosen.

    Parameters
    ----------
    subjects
        The instances.
    group_by
        What the groups are made by: ``family`` (the default), ``name`` (the name without its trailing seed), ``folder``
        (of the file), a size (``clients``, ``servers``, ``topics``), a parameter of the instances such as ``sigma``,
        several of these with commas, or a regular expression between slashes, such as ``/^[a-z]+/``, whose first
        group, or else whose whole match in the name, is the label. Or a function from an instance to its label.
    block_by
        The same for blocks. By default, instances of one family and seed are one block if they share random draws, and
        every other instance is a block of its own.

    Returns
    -------
    list of Subject
        The instances with their groups and blocks.

    Raises
    ------
    InputError
        If no instance has the parameter, the expression is not valid or does not match a name, or the function does not
        return text.
    """
    # Grouping by the family alone is the default, in which a group has one row for each cell.
    groups = None if group_by in (None, "family") else _labels(subjects, group_by, "--group-by")
    blocks = None if block_by is None else _labels(subjects, block_by, "--block-by")
    return [
        dataclasses.replace(
            subject,
            chosen_group=None if groups is None else groups[number],
            chosen_block=None if blocks is None else blocks[number],
        )
        for number, subject in enumerate(subjects)
    ]


def _labels(subjects: Sequence[Subject], by: By | None, option: str) -> list[str]:
    if callable(by):
        return [_text(by(subject.instance), subject, option) for subject in subjects]
    text = str(by)
    if len(text) > 2 and text[0] == text[-1] == "/":
        return [_match(text[1:-1], subject.instance.name, option) for subject in subjects]
    keys = [key.strip() for key in text.split(",")]
    known = list(dict.fromkeys(name for subject in subjects for name in subject.instance.parameters))
    for key in keys:
        if key not in ("family", "name", "folder", *SIZES, *known):
            listed = ", ".join(name for name in known if name not in ("family", *SIZES))
            problem = f"expected family, name, folder, {', '.join(SIZES)}, a /regular expression/"
            problem += f" or a parameter of the instances ({listed})" if listed else ""
            raise InputError(option, f"{problem}, got {shown(key)}")
    return [", ".join(_label(subject, key) for key in keys) for subject in subjects]


def _label(subject: Subject, key: str) -> str:
    if key == "family":
        return dataclasses.replace(subject, chosen_group=None).group
    if key == "name":
        return subject.name_without_seed
    if key == "folder":
        source = subject.source.partition(".parquet#")[0]
        return "library" if source.startswith("library:") else str(Path(source).parent)
    value = SIZES[key](subject.instance) if key in SIZES else subject.instance.parameters.get(key, "none")
    return f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"


def _match(pattern: str, name: str, option: str) -> str:
    try:
        found = re.search(pattern, name)
    except re.error as error:
        raise InputError(option, f"expected a regular expression, got {shown(pattern)} ({error})") from error
    if found is None:
        raise InputError(
            option, f"expected an expression that matches every name, but /{pattern}/ does not match {name}"
        )
    return str(found[1] if found.re.groups else found[0])


def _text(label: object, subject: Subject, option: str) -> str:
    if not isinstance(label, str) or not label:
        problem = f"expected a function that returns text, got {shown(label)} for {subject.instance.name}"
        raise InputError(option, problem)
    return label
