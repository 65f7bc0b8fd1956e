"""The words that this room adds to the command ``relocbench``."""

from relocbench.reports.study.command import study

__all__ = ["study"]
