"""A headless Chromium, driven over a pipe by its own protocol: no driver, no port, no package."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run
--disable-background-networking --disable-component-update --disable-sync
--remote-debugging-pipe""".split()
PATIENCE = 60  # seconds


def find_chromium() -> str:
    """The browser's path; skips the test where there is none."""
    path = next((p for n in NAMES if (p := shutil.which(n))), None)
    if path is None:
        pytest.skip("no Chromium: apt-get install chromium")
    return path


class Page:
    """A page in a browser: evaluates, clicks and takes screenshots. ``errors`` are those logged."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing, self._rest, self._count = reading, writing, b"", 0
        self._session: str | None = None
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._events: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")
        attached = self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.resize(1280, 900)

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its result."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != self._count:
            self._take(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            chunk = os.read(self._reading, 1 << 20)
            assert chunk, "the browser ended"
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\0")
        return json.loads(line)

    def _take(self, event: dict[str, Any]) -> None:
        method, params = event.get("method", ""), event.get("params", {})
        self._events.append(method)
        if method == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.errors.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(self, path: Path) -> float:
        """Open a file; return the seconds until it is shown."""
        self._events.clear()
        start = time.perf_counter()
        self.send("Page.navigate", url=path.absolute().as_uri())
        while "Page.loadEventFired" not in self._events:
            self._take(self._receive())
        self.evaluate("new Promise(d => requestAnimationFrame(() => requestAnimationFrame(d)))")
        return time.perf_counter() - start

    def resize(self, width: int, height: int) -> None:
        """Set the size of the window."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.send("Emulation.setDeviceMetricsOverride", **size)

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression, awaited."""
        reply = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    def middle_of(self, selector: str) -> tuple[float, float]:
        """Where an element is on the screen."""
        return tuple(self.evaluate(
            f"(() => {{const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]})()"
        ))  # fmt: skip

    def click(self, selector: str) -> None:
        """Click the middle of an element."""
        x, y = self.middle_of(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def turn_wheel(self, selector: str, distance: float) -> None:
        """Turn the wheel over an element; negative is upwards."""
        x, y = self.middle_of(selector)
        self.send(
            "Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=distance
        )

    def type_text(self, selector: str, text: str) -> None:
        """Type into a field."""
        self.click(selector)
        self.send("Input.insertText", text=text)

    def take_screenshot(self, full_page: bool = False) -> bytes:
        """The page as PNG."""
        reply = self.send("Page.captureScreenshot", captureBeyondViewport=full_page)
        return base64.b64decode(reply["data"])


@contextmanager
def open_browser() -> Iterator[Page]:
    """A page in a fresh browser, which ends with the block."""
    command = [find_chromium(), *FLAGS]
    down, up = os.pipe(), os.pipe()  # to the browser, from it
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:

        def connect() -> None:  # the browser reads 3 and writes 4
            copies = os.dup(down[0]), os.dup(up[1])
            os.dup2(copies[0], 3)
            os.dup2(copies[1], 4)

        process = subprocess.Popen(
            [*command, f"--user-data-dir={profile}"], preexec_fn=connect, close_fds=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(down[0])
        os.close(up[1])
        try:
            yield Page(up[0], down[1])
        finally:
            process.kill()
            process.wait(PATIENCE)
            os.close(down[1])
            os.close(up[0])
