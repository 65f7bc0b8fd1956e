"""Create the project's environment and run a job in it; needs Python 3.11 or newer and nothing else.

python3 bootstrap.py             study how far from optimal the methods are, and print the path of the page
python3 bootstrap.py test        run every check: lint, format, types, tests (arguments that follow go to pytest)
python3 bootstrap.py test quick  the same with fewer tests: those of the changed rooms, without the slow ones
python3 bootstrap.py install     only create or refresh the environment (.venv)
python3 bootstrap.py exact       create the environment anew, with the exact versions of constraints.txt
"""

from __future__ import annotations  # an older Python must get as far as the message about its version

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
# Rooms whose tests `test quick` runs after a change in a room: the room itself and one above it that takes little time.
TESTED_WITH = {
    "instances": ("instances", "heuristics"),
    "heuristics": ("heuristics", "runs"),
    "formulations": ("formulations", "runs"),
    "runs": ("runs", "relocbench"),
    "spark": ("spark",),
    "reports": ("reports",),
    "relocbench": ("relocbench",),
}


def main() -> int:
    """Run the job that the arguments name.

    Returns
    -------
    int
        The exit code of the job.
    """
    job, *rest = sys.argv[1:] or ["study"]
    if sys.version_info < (3, 11):  # noqa: UP036
        return fail(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}")
    if job not in ("study", "test", "install", "exact") or (rest and job != "test"):
        return fail(f"unknown arguments: {' '.join(sys.argv[1:])}\n\n{__doc__}")
    if not (ROOT / "relocbench" / "instances").is_dir():
        return fail(
            "relocbench/instances is not a folder, because this checkout has lost its symbolic links;"
            " run `git config --global core.symlinks true` and clone the project again"
        )
    if (problem := install(exact=job == "exact")) is not None:
        return fail(problem)
    if job in ("install", "exact"):
        return 0
    if job == "study":
        return run(SCRIPTS / "relocbench", "study")
    if rest[:1] == ["quick"]:
        return test("-m", "not slow", *rest[1:], *tests_of_the_change())
    return test(*rest)


def install(exact: bool = False) -> str | None:
    """Make ``.venv`` match pyproject.toml.

    Parameters
    ----------
    exact
        Whether to create it anew with the versions of constraints.txt instead of the newest that pyproject.toml allows.

    Returns
    -------
    str | None
        What went wrong, or None.
    """
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + str(ROOT).encode()).hexdigest()
    if not exact and PYTHON.exists() and STAMP.exists() and STAMP.read_text() == wanted:
        return None
    print(f"installing into {ENVIRONMENT.name} (a few minutes the first time)", flush=True)
    # --clear: it is not worth repairing an environment of another Python or of a checkout that was moved.
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
        *(["--constraint", ROOT / "constraints.txt"] if exact else []),
    ):
        return "the dependencies could not be installed: see pip's message above"
    STAMP.write_text(wanted)
    return None


def test(*arguments: str) -> int:
    """Run lint, format, types and tests; one failure does not hide the next.

    Parameters
    ----------
    *arguments
        Passed on to pytest.

    Returns
    -------
    int
        0 if every check passed, else 1.
    """
    # Kernels are compiled beside lint and types; else all pytest processes would compile them. One process begins with
    # the first method, the other with the last one. If this fails, the tests fail too, with a better message.
    compiling = [
        subprocess.Popen(
            [str(PYTHON), "-m", "tests.compile_kernels", *order],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for order in ([], ["reversed"])
    ]
    checks = [
        run(PYTHON, "-m", "ruff", "check", "."),
        run(PYTHON, "-m", "ruff", "format", "--check", "."),
        run(PYTHON, "-m", "mypy"),
    ]
    for process in compiling:
        process.wait()
    # One process more than the cores of a small machine: many tests wait for a limit, a page or a process.
    checks.append(run(PYTHON, "-m", "pytest", "-n", "3", *arguments))
    return 1 if any(checks) else 0


def tests_of_the_change() -> list[str]:
    """Return the test folders and files for what has changed since the branch left its upstream.

    Files that are not committed count as changed. Without an upstream, or if nothing has changed since, the change is
    the last commit.

    Returns
    -------
    list[str]
        Paths for pytest. The tests of rooms and docs are always among them.
    """
    chosen = {"tests/test_rooms.py", "tests/test_docs.py"}
    for file in changed_files():
        top, *rest = file.split("/")
        if top == "tests" and rest[0] in TESTED_WITH:
            chosen.add(f"tests/{rest[0]}")
        elif top == "tests" and rest[0].startswith("test_") and (ROOT / file).exists():
            chosen.add(file)
        elif top in TESTED_WITH:
            chosen |= {f"tests/{room}" for room in TESTED_WITH[top]}
    print("tests of the change:", *sorted(chosen), flush=True)
    return sorted(chosen)


def changed_files() -> list[str]:
    """List the files that `test quick` regards as changed.

    Returns
    -------
    list[str]
        Their paths from the project's folder.
    """
    untracked = git("ls-files", "--others", "--exclude-standard")
    upstream = git("merge-base", "HEAD", "@{upstream}") or git("merge-base", "HEAD", "origin/main")
    for base in (*upstream, "HEAD~1"):
        if found := git("diff", "--name-only", base) + untracked:
            return found
    return []


def git(*arguments: str) -> list[str]:
    """Run a git command in the project's folder.

    Parameters
    ----------
    *arguments
        What follows ``git``.

    Returns
    -------
    list[str]
        The lines that it prints; none if it fails or there is no git.
    """
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


def run(*command: str | Path) -> int:
    """Run a command in the project's folder.

    Parameters
    ----------
    *command
        The program and its arguments.

    Returns
    -------
    int
        Its exit code.
    """
    return subprocess.run([str(part) for part in command], cwd=ROOT, check=False).returncode


def fail(message: str) -> int:
    """Print what is wrong in the form that the command uses.

    Parameters
    ----------
    message
        One line.

    Returns
    -------
    int
        The exit code for wrong input, 2.
    """
    print(f"bootstrap: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
