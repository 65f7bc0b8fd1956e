"""The browser, where one is installed: pictures are taken with it, and pages tested."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from relocbench.instances.errors import InputError

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 120.0


def find() -> str | None:
    """Return where Chromium is; None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def required() -> str:
    """Return where Chromium is, or say that it is needed."""
    if (program := find()) is None:
        raise InputError(
            "picture", f"expected one of {', '.join(NAMES)} to take it with; none is installed, a page needs none"
        )
    return program


def photograph(page: Path, picture: Path, width: int, height: int, scale: int = 2) -> Path:
    """Take a picture (.png) of a page, in a window of so many pixels, each drawn as ``scale²``."""
    program = required()
    with tempfile.TemporaryDirectory() as folder:
        command = [
            program,
            "--headless",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--no-first-run",
            f"--user-data-dir={folder}",
            f"--force-device-scale-factor={scale}",
            f"--window-size={width},{height}",
            "--virtual-time-budget=20000",
            f"--screenshot={picture}",
            page.resolve().as_uri(),
        ]
        if os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # it refuses to work for root otherwise
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(str(picture), f"{Path(program).name} could not take it ({error})") from error
    if not picture.is_file() or not picture.stat().st_size:
        words = done.stderr.strip().splitlines()
        raise InputError(str(picture), f"{Path(program).name} did not take it" + (f": {words[-1]}" if words else ""))
    return picture
