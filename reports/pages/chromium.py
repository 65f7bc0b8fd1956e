"""Chromium, if it is installed: it makes PNG, SVG and PDF files, and runs the tests of pages."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from relocbench.instances.errors import InputError

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# The longest time for one page, far more than any page needs.
SECONDS = 120.0


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
    size = [f"--force-device-scale-factor={scale}", f"--window-size={width},{height}"]
    return _written(picture, page, [*size, f"--screenshot={picture}"])


def print_pdf(page: Path, document: Path) -> Path:
    """Print a page, on the paper that its style sheet names.

    Parameters
    ----------
    page
        The HTML file.
    document
        The PDF file to write.

    Returns
    -------
    Path
        The PDF file.

    Raises
    ------
    InputError
        If Chromium is not installed or writes no file.
    """
    return _written(document, page, ["--no-pdf-header-footer", f"--print-to-pdf={document}"])


def html_after_scripts(page: Path) -> str:
    """Return the HTML of a page after its scripts have run.

    Parameters
    ----------
    page
        The HTML file.

    Returns
    -------
    str
        The HTML.

    Raises
    ------
    InputError
        If Chromium is not installed or fails.
    """
    done = _run(page, ["--dump-dom"], page)
    if not done.stdout:
        raise InputError(str(page), f"Chromium could not open the page{_reason(done)}")
    return done.stdout


def _written(file: Path, page: Path, options: list[str]) -> Path:
    """Let Chromium write a file, and check that it did."""
    done = _run(page, options, file)
    if not file.is_file() or not file.stat().st_size:
        raise InputError(str(file), f"Chromium did not write the file{_reason(done)}")
    return file


def _run(page: Path, options: list[str], file: Path) -> subprocess.CompletedProcess[str]:
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
            "--virtual-time-budget=20000",
            *options,
            page.resolve().as_uri(),
        ]
        if os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # Chromium refuses to run as root otherwise.
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(str(file), f"{Path(program).name} failed ({error})") from error


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    lines = done.stderr.strip().splitlines()
    return f": {lines[-1]}" if lines else ""
