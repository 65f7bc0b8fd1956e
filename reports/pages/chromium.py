"""Chromium, if it is installed: it takes the screenshots for PNG files and runs the tests of pages."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from relocbench.instances.errors import InputError

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SCREENSHOT_SECONDS = 120.0


def find_chromium() -> str | None:
    """Return the path of Chromium.

    Returns
    -------
    str or None
        The path; None if Chromium is not installed.
    """
    return next(filter(None, map(shutil.which, NAMES)), None)


def require_chromium() -> str:
    """Return the path of Chromium.

    Returns
    -------
    str
        The path.

    Raises
    ------
    InputError
        If Chromium is not installed.
    """
    if (program := find_chromium()) is None:
        raise InputError(
            "picture", f"expected one of {', '.join(NAMES)}, but none is installed; a page (.html) does not need it"
        )
    return program


def take_screenshot(page: Path, picture: Path, width: int, height: int, scale: int = 2) -> Path:
    """Take a screenshot of a page.

    Parameters
    ----------
    page
        The HTML file.
    picture
        The PNG file to write.
    width, height
        The size of the browser window in pixels.
    scale
        The number of image pixels per window pixel, in each direction.

    Returns
    -------
    Path
        The PNG file.

    Raises
    ------
    InputError
        If Chromium is not installed or writes no picture.
    """
    program = require_chromium()
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
            command.insert(1, "--no-sandbox")  # Chromium refuses to run as root otherwise.
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SCREENSHOT_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(str(picture), f"{Path(program).name} could not take the picture ({error})") from error
    if not picture.is_file() or not picture.stat().st_size:
        lines = done.stderr.strip().splitlines()
        reason = f": {lines[-1]}" if lines else ""
        raise InputError(str(picture), f"{Path(program).name} did not write the picture{reason}")
    return picture
