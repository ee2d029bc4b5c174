"""Chromium without a window, told what to do over a pipe (the DevTools protocol)."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PATIENCE_S = 60.0
QUICK = (
    "--headless",
    "--no-sandbox",  # Chromium has none for root
    "--no-first-run",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-component-update",
    "--disable-background-networking",
    "--no-default-browser-check",
    "--hide-scrollbars",
)


@dataclass
class Seen:
    """What happened in a page: requests that were sent, and what the console calls an error."""

    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class Browser:
    """One Chromium. Each page is opened in a tab of its own."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back = to, back
        self._buffer = b""
        self._last = 0
        self._events: list[dict[str, Any]] = []

    def open(self, place: Path | str, *, width: int = 1280, scheme: str = "light") -> "Page":
        """A file or a URL, loaded to its end on a screen of that width."""
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        attached = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})
        page = Page(self, attached["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.resize(width)
        page.call(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
        )
        url = place if isinstance(place, str) else place.absolute().as_uri()
        page.call("Page.navigate", {"url": url})
        self._wait_for("Page.loadEventFired", page.session)
        # What a page asks for after it was loaded is on its way by then.
        page.evaluate("new Promise(done => setTimeout(done, 100))")
        return page

    def call(
        self, method: str, parameters: dict[str, Any] | None = None, session: str | None = None
    ) -> Any:
        """The result of a command. Raises RuntimeError for one that fails."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters or {}}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        while True:
            answer = self._read()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._events.append(answer)

    def events(self, session: str) -> list[dict[str, Any]]:
        """What was told of a tab so far."""
        return [e for e in self._events if e.get("sessionId") == session]

    def _wait_for(self, method: str, session: str) -> None:
        while not any(e["method"] == method for e in self.events(session)):
            self._events.append(self._read())

    def _read(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._back], [], [], deadline - time.monotonic())
            assert ready, f"Chromium said nothing for {PATIENCE_S:g} s"
            more = os.read(self._back, 1 << 20)
            assert more, "Chromium has ended"
            self._buffer += more
        message, _, self._buffer = self._buffer.partition(b"\0")
        result: dict[str, Any] = json.loads(message)
        return result


class Page:
    """A page that was opened."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self.session = session

    def call(self, method: str, parameters: dict[str, Any] | None = None) -> Any:
        return self._browser.call(method, parameters, self.session)

    def resize(self, width: int) -> None:
        """A telephone where it is narrow."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
        )

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript."""
        result = self.call(
            "Runtime.evaluate",
            {"expression": expression, "returnByValue": True, "awaitPromise": True},
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def seen(self) -> Seen:
        """Requests, also those that came to nothing, and errors in the console."""
        seen = Seen()
        for event in self._browser.events(self.session):
            method, words = event["method"], event["params"]
            if method == "Network.requestWillBeSent":
                seen.requests.append(words["request"]["url"])
            elif method == "Runtime.exceptionThrown":
                seen.errors.append(words["exceptionDetails"]["text"])
            elif method == "Runtime.consoleAPICalled" and words["type"] in ("error", "assert"):
                seen.errors.append(str([a.get("value") for a in words["args"]]))
            elif method == "Log.entryAdded" and words["entry"]["level"] == "error":
                seen.errors.append(words["entry"]["text"])
        return seen

    def screenshot(self, path: Path, *, height: int | None = None) -> None:
        """The whole page as PNG, or the upper part of it."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "scale": 1, "width": size["width"]}
        clip["height"] = min(height or size["height"], size["height"])
        asked = {"clip": clip, "captureBeyondViewport": True}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", asked)["data"]))


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """A Chromium with a profile in this folder, ended afterwards."""
    program = next((result for name in NAMES if (result := shutil.which(name))), None)
    assert program, "no Chromium: sh intop/lab/system-packages.sh tests"
    # It reads commands at its descriptor 3, and answers at 4.
    ours_in, theirs_out = (_high(end) for end in os.pipe())
    theirs_in, ours_out = (_high(end) for end in os.pipe())

    def place() -> None:
        os.dup2(theirs_in, 3)
        os.dup2(theirs_out, 4)

    process = subprocess.Popen(
        [program, *QUICK, "--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=place,
        close_fds=False,  # Python's own are closed by themselves; 3 and 4 are to stay
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Browser(ours_out, ours_in)
    finally:
        # It ends when nobody is left to tell it anything, and its other processes with it.
        os.close(ours_out)
        os.close(ours_in)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _high(descriptor: int) -> int:
    """The same, well away from 3 and 4."""
    high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return high
