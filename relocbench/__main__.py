"""``python -m relocbench`` runs the command."""

from relocbench.cli import run

run()
