"""The wheel of this checkout, and a Python in which it is installed as users install it."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def built_wheel(folder):
    """Build the wheel in a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def environment_with(wheel, folder):
    """Return a Python that has the wheel and the packages of this environment, but not this checkout."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    # A path in a .pth file is searched last, and the .pth files in that folder, such as this checkout's, are not read.
    (packages / "shared.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "bin" / "python"


def run_in(folder, python, *arguments):
    """Run Python in a user's folder, without the variables of this test run."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    return subprocess.run(
        [python, *map(str, arguments)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
