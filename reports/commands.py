"""The words that this room adds to the command ``relocbench``."""

from reports.study.command import study

__all__ = ["study"]
