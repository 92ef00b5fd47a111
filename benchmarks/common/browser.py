"""Headless Chromium over its debugging pipe: no package and no port."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

_SECONDS = 20.0
_EXECUTABLES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--remote-debugging-pipe",
    "--hide-scrollbars",
)


def executable() -> str | None:
    """The path of Chromium; None where there is none."""
    return next((path for name in _EXECUTABLES if (path := shutil.which(name))), None)


class Browser:
    """One page. It records errors of its console and addresses that it requested."""

    def __init__(self, profile: Path) -> None:
        to_browser, from_browser = os.pipe(), os.pipe()

        def descriptors() -> None:
            above = [fcntl.fcntl(each, fcntl.F_DUPFD, 10) for each in (to_browser[0], from_browser[1])]
            for number, each in enumerate(above, start=3):
                os.dup2(each, number, inheritable=True)

        self._process = subprocess.Popen(
            [executable() or _EXECUTABLES[0], *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=descriptors,
            env={**os.environ, "TMPDIR": str(profile)},
        )
        os.close(to_browser[0])
        os.close(from_browser[1])
        self._write, self._read = to_browser[1], from_browser[0]
        self._buffer, self._number = b"", 0
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.received_bytes = 0
        targets = self._call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self._call("Target.attachToTarget", {"targetId": page["targetId"], "flatten": True})
        self._session: str | None = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def size(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._call("Emulation.setDeviceMetricsOverride", metrics)

    def dark(self, on: bool) -> None:
        value = "dark" if on else "light"
        features = [
            {"name": "prefers-color-scheme", "value": value},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self._call("Emulation.setEmulatedMedia", {"features": features})

    def open(self, url: str) -> None:
        """Opens a page, or another address of the page that is open, and waits for its main part."""
        self._call("Page.navigate", {"url": url})
        self.wait("document.querySelector('main h2, .wait[role=alert]') !== null")

    def open_blank(self) -> None:
        self._call("Page.navigate", {"url": "about:blank"})
        self.errors.clear()
        self.requests.clear()
        self.received_bytes = 0

    def run(self, expression: str) -> Any:
        """The value of an expression; a promise is awaited."""
        arguments = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        found = self._call("Runtime.evaluate", arguments)
        if "exceptionDetails" in found:
            details = found["exceptionDetails"]
            raise AssertionError(details.get("exception", {}).get("description", details["text"]))
        return found["result"].get("value")

    def wait(self, expression: str) -> None:
        """Until the expression is true; an AssertionError after `_SECONDS`."""
        end = time.monotonic() + _SECONDS
        while not self.run(f"Boolean({expression})"):
            if time.monotonic() > end:
                raise AssertionError(f"not true within {_SECONDS} s: {expression}; errors: {self.errors}")
            self.run("new Promise((done) => setTimeout(done, 20))")

    def text(self, selector: str) -> str:
        return str(self.run(f"document.querySelector({json.dumps(selector)}).innerText"))

    def texts(self, selector: str) -> list[str]:
        found = self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map((each) => each.innerText)")
        return [str(text) for text in found]

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        arguments: dict[str, Any] = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            size = self._call("Page.getLayoutMetrics")["cssContentSize"]
            arguments["clip"] = {**{key: size[key] for key in ("x", "y", "width", "height")}, "scale": 1}
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", arguments)["data"]))

    def _call(self, method: str, params: dict[str, Any] | None = None) -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params or {}}
        if getattr(self, "_session", None):
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._note(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], _SECONDS)[0]:
                raise AssertionError("Chromium does not answer")
            data = os.read(self._read, 1 << 20)
            if not data:
                raise AssertionError("Chromium has ended")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(line))

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                self.errors.append(details.get("exception", {}).get("description", details["text"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.errors.append(" ".join(str(each.get("value")) for each in params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.errors.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Network.loadingFinished":
                self.received_bytes += params["encodedDataLength"]
