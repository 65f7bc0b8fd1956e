"""Chromium for tests: it opens a page without a window, collects console errors, clicks, and takes screenshots."""

import base64
import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from relocbench.reports.pages.chromium import find_chromium

# The longest wait in seconds, far more than any step needs: only a browser that hangs exceeds it.
WAIT_SECONDS = 120.0
# The colour of texts in the dark scheme.
DARK_INK = "rgb(231, 233, 235)"
SWITCH_ALL = """
document.querySelectorAll(".switches [aria-pressed]").forEach((one) => one.click());
redraw(plots).then(() => null);
"""
# The colour of the numbers at an axis, or of texts if the page has no plots.
INK = """
((tick) => (tick ? getComputedStyle(tick).fill : getComputedStyle(document.body).color))(
  document.querySelector(".xtick text")
)
"""
LAYOUT = Path(__file__).parent / "layout.js"
# The debugging protocol uses the file descriptors 3 and 4, so no port is needed.
START = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def chromium():
    """Return the path of Chromium; skip the test if it is not installed."""
    found = find_chromium()
    if found is None:
        pytest.skip("no Chromium is installed")
    return found


@contextlib.contextmanager
def browser(folder):
    """Yield a browser that stores its data below a folder and is closed at the end of the block."""
    program = chromium()
    read_commands, write_commands = os.pipe()
    read_answers, write_answers = os.pipe()
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--remote-debugging-pipe",
        "--no-first-run",
        "--hide-scrollbars",
        f"--user-data-dir={Path(folder) / 'chromium'}",
        "about:blank",
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", START, str(read_commands), str(write_answers), program, *options],
        pass_fds=(read_commands, write_answers),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(read_commands)
    os.close(write_answers)
    opened = Browser(read_answers, write_commands)
    try:
        opened.attach()
        yield opened
    finally:
        with contextlib.suppress(OSError):
            opened.send("Browser.close", session=False)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(read_answers)
        os.close(write_commands)


class Browser:
    """One tab of the browser."""

    def __init__(self, incoming, outgoing):
        self._incoming, self._outgoing = incoming, outgoing
        self._buffer = b""
        self._number = 0
        self._session = None
        self.errors = []

    def attach(self):
        [target] = [
            one for one in self.call("Target.getTargets", session=False)["targetInfos"] if one["type"] == "page"
        ]
        answer = self.call("Target.attachToTarget", session=False, targetId=target["targetId"], flatten=True)
        self._session = answer["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def open(self, page, *, width=1100, height=900, dark=False, media=""):
        """Open a page, wait until its plots are drawn, and return the number of plots."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.set_media(dark=dark, media=media)
        self.errors.clear()
        self.call("Page.navigate", url=Path(page).resolve().as_uri())
        end = time.monotonic() + WAIT_SECONDS
        while (drawn := self.evaluate("document.documentElement?.dataset.drawn ?? null")) is None:
            assert time.monotonic() < end, f"the plots were never drawn: {self.errors}"
            assert not self.errors, self.errors
            time.sleep(0.05)
        return int(drawn)

    def set_media(self, *, dark=False, media=""):
        """Set the colour scheme of the reader, and ``print`` or the screen."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def faults(self):
        """Return the faults of the layout, see ``layout.js``, and the errors of the console."""
        return self.evaluate(LAYOUT.read_text(encoding="utf-8")) + self.errors

    def assert_readable(self, page):
        """Check the layout of a page on a phone and on a screen: light, and dark with all axes switched."""
        for width, height in ((400, 800), (1400, 900)):
            self.open(page, width=width, height=height)
            assert self.faults() == [], f"{width} px"
            self.set_media(dark=True)
            self.evaluate(SWITCH_ALL)
            assert self.evaluate(INK) == DARK_INK
            assert self.faults() == [], f"{width} px, dark, all axes switched"

    def evaluate(self, script):
        """Return the value of a JavaScript expression; a promise is awaited."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, script):
        """Wait until an expression is true."""
        end = time.monotonic() + WAIT_SECONDS
        while not self.evaluate(script):
            assert time.monotonic() < end, f"never true: {script}"
            time.sleep(0.05)

    def texts(self, selector):
        """Return the texts of all elements that match."""
        return self.evaluate(f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.textContent)")

    def click(self, x, y):
        """Click at a position of the page."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self, path, *, whole=True, clip=None):
        """Take a screenshot of the whole page, or of the part (x, y, width, height)."""
        more = {}
        if clip is not None:
            more["clip"] = dict(zip(("x", "y", "width", "height"), clip, strict=True)) | {"scale": 1}
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **more)
        Path(path).write_bytes(base64.b64decode(answer["data"]))

    def press(self, key):
        """Press a key, such as ``Enter``, in the element that has the focus."""
        for kind, more in (("keyDown", {"text": "\r"} if key == "Enter" else {}), ("keyUp", {})):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=13, **more)

    def download(self, folder, script):
        """Run a script that downloads a file into a folder, and return the file."""
        known = set(Path(folder).iterdir())
        self.call("Browser.setDownloadBehavior", session=False, behavior="allow", downloadPath=str(folder))
        self.evaluate(script)
        end = time.monotonic() + WAIT_SECONDS
        while not (new := [one for one in set(Path(folder).iterdir()) - known if one.suffix != ".crdownload"]):
            assert time.monotonic() < end, "nothing was downloaded"
            time.sleep(0.05)
        return new[0]

    def printed(self):
        """Return the page as a PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])

    def call(self, method, *, session=True, **parameters):
        """Call a method of the protocol and return its answer; console errors that arrive meanwhile are stored."""
        number = self.send(method, session=session, **parameters)
        while (message := self._receive()).get("id") != number:
            self._collect(message)
        assert "error" not in message, f"{method}: {message['error']}"
        return message["result"]

    def send(self, method, *, session=True, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session and self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._outgoing, data) :]
        return self._number

    def _receive(self):
        while b"\0" not in self._buffer:
            more = os.read(self._incoming, 1 << 16)
            assert more, "Chromium ended"
            self._buffer += more
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _collect(self, message):
        kind, data = message.get("method"), message.get("params", {})
        if kind == "Runtime.exceptionThrown":
            details = data["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif kind == "Runtime.consoleAPICalled" and data["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(one.get("value", one.get("description"))) for one in data["args"]))
        elif kind == "Log.entryAdded" and data["entry"]["level"] in ("error", "warning"):
            self.errors.append(data["entry"]["text"])
        elif kind == "Network.requestWillBeSent" and not data["request"]["url"].startswith(("file:", "data:", "blob:")):
            self.errors.append(f"requests from the network: {data['request']['url']}")
