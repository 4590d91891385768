"""Owns a headless Chromium for tests: found, started, and driven over its pipe."""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# What `make browser` unpacks, and what systems call it.
UNPACKED = ROOT / "build" / "browser" / "chromium"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome-headless-shell")
# A loaded machine needs many times the second that a page takes.
_SECONDS = 120
_FLAGS = (
    "--headless",
    "--no-sandbox",  # tests run as root in containers
    "--no-zygote",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--font-render-hinting=none",
    "--force-device-scale-factor=1",
    "--remote-debugging-pipe",
)


class BrowserError(Exception):
    """The browser ended, said no, or said nothing."""


def find_browser() -> str | None:
    """Return the path of a Chromium, None if there is none."""
    named = os.environ.get("CHROMIUM")
    if named:
        return named
    if UNPACKED.exists():
        return str(UNPACKED)
    return next(filter(None, map(shutil.which, _NAMES)), None)


class Page:
    """One page of a running browser, driven by the Chrome DevTools Protocol."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._buffer = b""
        self._numbers = itertools.count(1)
        self._session: str | None = None
        self._events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Accessibility"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result.

        Raises:
            BrowserError: The browser refused it or did not answer.
        """
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read(time.monotonic() + _SECONDS, method)
            if answer.get("id") == number:
                break
            self._events.append(answer)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, path: Path, width: int = 1200, height: int = 900) -> None:
        """Load a file and wait until it is there."""
        self.resize(width, height)
        seen = self._loads()
        self.call("Page.navigate", url=path.as_uri())
        deadline = time.monotonic() + _SECONDS
        while self._loads() == seen:
            self._events.append(self._read(deadline, str(path)))

    def _loads(self) -> int:
        return sum(e.get("method") == "Page.loadEventFired" for e in self._events)

    def resize(self, width: int, height: int) -> None:
        """Set the size of the window."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def media(self, kind: str = "screen", **features: str) -> None:
        """Pretend a medium, "screen" or "print", and features: prefers_color_scheme."""
        listed = [
            {"name": name.replace("_", "-"), "value": value}
            for name, value in features.items()
        ]
        self.call("Emulation.setEmulatedMedia", media=kind, features=listed)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript.

        Raises:
            BrowserError: It throws.
        """
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in found:
            raise BrowserError(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Wait until an expression of JavaScript is true.

        Raises:
            BrowserError: It stays false.
        """
        deadline = time.monotonic() + _SECONDS
        while not self.evaluate(expression):
            if time.monotonic() > deadline:
                raise BrowserError(f"it stays false: {expression}")

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press and release a key."""
        common = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        typed = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **typed)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def click(self, selector: str) -> None:
        """Click into the middle of an element."""
        x, y = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=x,
                y=y,
                button="left",
                clickCount=1,
            )

    def roles(self) -> list[tuple[str, str]]:
        """Return (role, name) of everything that assistive tools are told of."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in nodes
            if not node["ignored"]
        ]

    def complaints(self) -> list[str]:
        """Return exceptions and errors that the page has caused so far."""
        self.evaluate("0")
        bad = ("Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(e["params"]) for e in self._events if e.get("method") in bad]

    def screenshot(self, path: Path) -> None:
        """Write a picture of the window as PNG."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        path.write_bytes(base64.b64decode(data))

    def _read(self, deadline: float, what: str) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._answers], [], [], max(left, 0))
            if not ready:
                raise BrowserError(f"no answer to {what}")
            data = os.read(self._answers, 1 << 20)
            if not data:
                raise BrowserError(f"the browser ended before it answered {what}")
            self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message


@contextmanager
def running(browser: str, folder: Path) -> Iterator[Page]:
    """Start a browser with an empty profile in a folder; end it with the context."""
    commands_in, commands_out = os.pipe()
    answers_in, answers_out = os.pipe()
    # The browser reads descriptor 3 and writes descriptor 4.
    shell = f'exec "$0" "$@" 3<&{commands_in} 4>&{answers_out}'
    profile = f"--user-data-dir={folder / 'profile'}"
    with (folder / "browser.log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-c", shell, browser, *_FLAGS, profile],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(commands_in, answers_out),
            env={**os.environ, **_environment(browser)},
        )
        os.close(commands_in)
        os.close(answers_out)
        try:
            yield Page(commands_out, answers_in)
        finally:
            process.kill()
            process.wait()
            os.close(commands_out)
            os.close(answers_in)


def _environment(browser: str) -> dict[str, str]:
    """Return the variables that an unpacked browser needs: its libraries and fonts."""
    folder = Path(browser).parent
    if not (folder / "fonts").is_dir():
        return {}
    path = os.pathsep.join(filter(None, (os.environ.get("LD_LIBRARY_PATH"),)))
    libraries = os.pathsep.join(filter(None, (path, str(folder / "lib"))))
    return {"LD_LIBRARY_PATH": libraries, "FONTCONFIG_PATH": str(folder / "fonts")}
