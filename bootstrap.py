"""Create the project's environment and run a job in it; needs Python 3.11+ and nothing else.

python3 bootstrap.py          study how far from optimal the methods are, and say where the page is
python3 bootstrap.py test     run every check: format, lint, types, tests
python3 bootstrap.py install  only create or refresh the environment (.venv)
"""

from __future__ import annotations  # so that an older Python gets as far as the message below

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".venv"
SCRIPTS = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin")
PYTHON = SCRIPTS / ("python.exe" if os.name == "nt" else "python")
STAMP = ENVIRONMENT / "installed"
# Dependency groups came with pip 25.1; the pip that Python 3.11 carries is older.
PIP = "pip>=25.1,<27"


def main() -> int:
    """Dispatch on the one argument; everything after ``test`` goes to pytest."""
    job, *rest = sys.argv[1:] or ["study"]
    if sys.version_info < (3, 11):  # noqa: UP036
        return fail(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}")
    if job not in ("study", "test", "install") or (rest and job != "test"):
        return fail(f"unknown arguments: {' '.join(sys.argv[1:])}\n\n{__doc__}")
    if (problem := install()) is not None:
        return fail(problem)
    if job == "install":
        return 0
    if job == "study":
        return run(SCRIPTS / "relocbench", "study")
    # One failure does not hide the next: all four checks always run.
    checks = [
        run(PYTHON, "-m", "ruff", "check", "."),
        run(PYTHON, "-m", "ruff", "format", "--check", "."),
        run(PYTHON, "-m", "mypy"),
        run(PYTHON, "-m", "pytest", "-n", "2", *rest),
    ]
    return 1 if any(checks) else 0


def install() -> str | None:
    """Make ``.venv`` match pyproject.toml; return what went wrong, if anything."""
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + str(ROOT).encode()).hexdigest()
    if PYTHON.exists() and STAMP.exists() and STAMP.read_text() == wanted:
        return None
    print(f"installing into {ENVIRONMENT.name} (a few minutes the first time)", flush=True)
    # --clear: an environment of another Python, or of a moved checkout, is not worth repairing.
    if run(sys.executable, "-m", "venv", "--clear", ENVIRONMENT):
        return "this Python cannot create environments; on Debian or Ubuntu: apt-get install python3-venv"
    if run(PYTHON, "-m", "pip", "install", "--quiet", PIP):
        return "pip could not be upgraded: is a package index reachable?"
    if run(
        PYTHON,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--editable",
        f"{ROOT}[solvers,spark,reports]",
        "--group",
        f"{ROOT}/pyproject.toml:dev",
    ):
        return "the dependencies could not be installed: see pip's message above"
    STAMP.write_text(wanted)
    return None


def run(*command: str | Path) -> int:
    """Run a command in the project's folder and return its exit code."""
    return subprocess.run([str(part) for part in command], cwd=ROOT, check=False).returncode


def fail(message: str) -> int:
    """Say what is wrong, the way the command does."""
    print(f"bootstrap: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
