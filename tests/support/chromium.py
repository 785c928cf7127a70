"""Drives a headless Chromium by its DevTools protocol: NUL-terminated JSON through two pipes.

A driver such as Playwright's takes 170 MB of each environment for what the tests need of it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from devtools.testbed.offline.browser import Browser

from support import polling

TIMEOUT = 60.0
"""Seconds, which stop a hanging test and are no measure of speed."""
_COMMAND = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
_KEYS = {"Tab": (9, ""), "Enter": (13, "\r"), "Escape": (27, ""), " ": (32, " "), "End": (35, "")}
"""The code of a key, and what it types."""
_PLACE = """(selector => {
    const element = document.querySelector(selector);
    if (document.readyState !== "complete" || !element) return null;
    element.scrollIntoView({block: "center"});
    const box = element.getBoundingClientRect(), place = [box.x + box.width / 2, box.y + box.height / 2];
    return element.contains(document.elementFromPoint(...place)) ? place : null;
})(%s)"""
"""The middle of an element that nothing hides."""
DESKTOP, PHONE = (1280, 800), (390, 844)
"""Width and height in CSS pixels."""


class Refused(AssertionError):
    """The browser did not do what it was asked for; the message is its own."""


class Chromium:
    """A process. Its messages are read while an answer is waited for."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log
        self._number = 0
        self._rest = b""
        self._answers: dict[int, dict[str, Any]] = {}
        self._pages: dict[str, Page] = {}

    def ask(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """The result of a command of the protocol. Raises Refused."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\0")
        self._process.stdin.flush()
        deadline = time.monotonic() + TIMEOUT
        while self._number not in self._answers:
            self.read(deadline)
        answer = self._answers.pop(self._number)
        if "error" in answer:
            raise Refused(f"{method}: {answer['error']['message']}")
        return dict(answer["result"])

    def read(self, deadline: float) -> None:
        """Take what has come; waits for it until the deadline, and fails then."""
        assert self._process.stdout is not None
        left = max(0.0, deadline - time.monotonic())
        assert select.select([self._process.stdout], [], [], left)[0], "the browser does not answer"
        piece = os.read(self._process.stdout.fileno(), 1 << 16)
        assert piece, f"the browser has ended: {self._log.read_text()[-1000:]}"
        *messages, self._rest = (self._rest + piece).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self._answers[message["id"]] = message
            elif page := self._pages.get(message.get("sessionId", "")):
                page.hear(message["method"], message["params"])

    @contextmanager
    def user(self) -> Iterator[str]:
        """Another user: pages that are opened with what is returned have cookies of their own."""
        made = self.ask("Target.createBrowserContext")["browserContextId"]
        try:
            yield made
        finally:
            with contextlib.suppress(AssertionError, OSError):
                self.ask("Target.disposeBrowserContext", browserContextId=made)

    @contextmanager
    def page(
        self, *, size: tuple[int, int] = DESKTOP, dark: bool = False, script: bool = True, user: str = ""
    ) -> Iterator[Page]:
        """A tab; all of a user have the same cookies."""
        of_user = {"browserContextId": user} if user else {}
        target = self.ask("Target.createTarget", url="about:blank", **of_user)["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        made = self._pages[session] = Page(self, session)
        try:
            for domain in ("Page", "Network", "Log", "Runtime"):
                made.ask(f"{domain}.enable")
            made.resize(size)
            made.scheme(dark=dark)
            made.ask("Emulation.setScriptExecutionDisabled", value=not script)
            yield made
        finally:
            with contextlib.suppress(
                AssertionError, OSError
            ):  # of a browser that has ended, after the test's own error
                self.ask("Target.closeTarget", targetId=target)
            del self._pages[session]


class Page:
    """What a user sees and does; everything is asked about the page that is shown now."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser = browser
        self._session = session
        self.requests: list[str] = []
        """The addresses of all requests."""
        self.complaints: list[str] = []
        """Errors and warnings of the console, exceptions, and what the page's policy forbade."""

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.ask(method, self._session, **parameters)

    def hear(self, method: str, found: dict[str, Any]) -> None:
        """An event of the protocol."""
        if method == "Network.requestWillBeSent":
            self.requests.append(found["request"]["url"])
        elif method == "Log.entryAdded" and found["entry"]["level"] in ("warning", "error"):
            self.complaints.append(f"{found['entry']['text']} {found['entry'].get('url', '')}")
        elif method == "Runtime.consoleAPICalled" and found["type"] in ("warning", "error", "assert"):
            self.complaints.append(" ".join(str(one.get("value", one.get("description"))) for one in found["args"]))
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(found["exceptionDetails"]))

    @property
    def hosts(self) -> set[str]:
        """The hosts and ports of all requests."""
        return {urlsplit(one).netloc for one in self.requests}

    # --- what a user does

    def go(self, address: str) -> None:
        """Open an address, and wait until it is there."""
        answer = self.ask("Page.navigate", url=address)
        assert not answer.get("errorText"), answer
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def press(self, *keys: str) -> None:
        """Press the keys one after another."""
        for key in keys:
            code, typed = _KEYS.get(key, (0, key))
            named = {"key": key, "windowsVirtualKeyCode": code, "code": key if code and key != " " else ""}
            self.ask("Input.dispatchKeyEvent", type="keyDown" if typed else "rawKeyDown", text=typed, **named)
            self.ask("Input.dispatchKeyEvent", type="keyUp", **named)

    def type(self, text: str) -> None:
        """Write the text where the focus is, as if it was pasted."""
        self.ask("Input.insertText", text=text)

    def tab_to(self, selector: str, most: int = 60) -> None:
        """Press Tab until the first element that matches has the focus."""
        for _ in range(most):
            if self.see(f"document.activeElement === document.querySelector({json.dumps(selector)})"):
                return
            self.press("Tab")
        raise AssertionError(f"{selector} is not reached with {most} presses of Tab")

    def click(self, selector: str) -> None:
        """Click in the middle of the first element that matches, once it is there and moves no more."""
        place = self.until(_PLACE % json.dumps(selector))
        while place != (place := self.until(_PLACE % json.dumps(selector))):
            pass
        for type_ in ("mousePressed", "mouseReleased"):
            self.ask(
                "Input.dispatchMouseEvent", type=type_, x=place[0], y=place[1], button="left", buttons=1, clickCount=1
            )

    def resize(self, size: tuple[int, int]) -> None:
        width, height = size
        phone = size == PHONE
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def scheme(self, *, dark: bool) -> None:
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[feature])

    # --- what a user sees

    def see(self, expression: str) -> Any:
        """The value of an expression of JavaScript, which the page's policy does not bind."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise Refused(json.dumps(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def until(self, expression: str) -> Any:
        """The first true value of the expression, also of a page that is opened meanwhile."""

        def now() -> Any:
            with contextlib.suppress(Refused):
                return self.see(expression)

        return polling.until(now, expression, TIMEOUT, 0.05)

    def text(self, selector: str = "body") -> str:
        """What the first element that matches shows; "" without one."""
        return str(self.see(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def until_text(self, words: str, selector: str = "body") -> None:
        """Wait until the element shows the words."""
        self.until(f"document.querySelector({json.dumps(selector)})?.innerText.includes({json.dumps(words)})")

    def picture(self) -> bytes:
        """What is shown, as PNG."""
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])

    def violations(self, axe: Path) -> list[str]:
        """What axe-core finds, a line each."""
        self.see(axe.read_text())
        found = json.loads(self.see("axe.run().then(found => JSON.stringify(found.violations))"))
        return [
            f"{one['id']}: {one['help']}: {node['target']}: {node['failureSummary']}"
            for one in found
            for node in one["nodes"]
        ]


@contextmanager
def chromium(browser: Browser, profile: Path) -> Iterator[Chromium]:
    """A browser, which ends with the context; ``profile`` is an empty folder."""
    # the protocol is read from descriptor 3 and written to descriptor 4
    start = ["sh", "-c", 'exec "$@" 3<&0 4>&1 </dev/null >&2', "sh"]
    command = [*start, str(browser.program), *_COMMAND, f"--user-data-dir={profile}", "about:blank"]
    log = profile / "stderr"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, env=browser.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )
    made = Chromium(process, log)
    try:
        yield made
    finally:
        with contextlib.suppress(AssertionError, OSError):
            made.ask("Browser.close")
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
