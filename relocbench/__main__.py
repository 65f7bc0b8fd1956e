"""``python -m relocbench``: the command."""

from relocbench.cli import run

run()
