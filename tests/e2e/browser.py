"""A real headless Chromium, driven over its own debugging pipe: no driver program, no port."""

import base64
import json
import os
import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_ANSWER_S = 60.0
_WAIT_S = 120.0


class Navigated(AssertionError):
    """The page was left while it was asked."""


@dataclass
class Browser:
    """One page. `noise` is what its console complained of."""

    to: int
    from_: int
    noise: list[str] = field(default_factory=list)
    _number: int = 0
    _rest: bytes = b""
    _session: str = ""

    def attach(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            found = self._read()
            if found.get("id") == self._number:
                error = found.get("error", {})
                if "navigated" in error.get("message", ""):
                    raise Navigated(f"{method}: {error}")
                assert not error, f"{method}: {error}"
                return found["result"]
            self._note(found)

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def value(self, script: str) -> Any:
        """What the script is worth, as JSON."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, f"{script}: {found['exceptionDetails']}"
        return found["result"].get("value")

    def wait(self, script: str) -> None:
        """Until the script is true, on whichever page."""
        until = time.monotonic() + _WAIT_S
        while not self._is_true(script):
            assert time.monotonic() < until, f"never true: {script}\n{self.value('document.body.innerText')}"
            time.sleep(0.1)

    def _is_true(self, script: str) -> bool:
        try:
            return bool(self.value(script))
        except Navigated:
            return False

    def press(self, key: str) -> None:
        codes = {"Tab": 9, "Enter": 13, "End": 35, "ArrowRight": 39, "ArrowDown": 40}
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key], **text)

    def size(self, width: int, height: int) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme: str) -> None:
        """`dark` or `light`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def scripts(self, *, on: bool) -> None:
        self.call("Emulation.setScriptExecutionDisabled", value=not on)

    def text(self) -> str:
        """The page's source as it stands, also where scripts are off; empty while another page comes."""
        root = self.call("DOM.getDocument", depth=0)["root"]["nodeId"]
        try:
            return str(self.call("DOM.getOuterHTML", nodeId=root)["outerHTML"])
        except AssertionError as error:
            if "Could not find node" in str(error):
                return ""
            raise

    def picture(self, file: Path) -> None:
        shot = self.call("Page.captureScreenshot", format="png")
        file.write_bytes(base64.b64decode(shot["data"]))

    def _read(self) -> Mapping[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self.from_], [], [], _ANSWER_S)
            assert ready, "the browser does not answer"
            got = os.read(self.from_, 1 << 20)
            assert got, "the browser is gone"
            self._rest += got
        line, self._rest = self._rest.split(b"\0", 1)
        found: Mapping[str, Any] = json.loads(line)
        return found

    def _note(self, event: Mapping[str, Any]) -> None:
        if event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
            self.noise.append(event["params"]["entry"]["text"])
        if event.get("method") == "Runtime.exceptionThrown":
            self.noise.append(json.dumps(event["params"]["exceptionDetails"]))


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """Its profile is in `folder`. Debian's package `chromium` (tools/setup test) has it."""
    its_in, ours_out = os.pipe()
    ours_in, its_out = os.pipe()
    argv = [
        "bash", "-c", f'exec "$@" 3<&{its_in} 4>&{its_out}', "-",
        "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
        f"--user-data-dir={folder}/profile",
    ]  # fmt: skip
    env = {**os.environ, "HOME": str(folder)}
    with (folder / "chromium.log").open("wb") as log:
        process = subprocess.Popen(
            argv, pass_fds=(its_in, its_out), stdout=log, stderr=log, env=env, start_new_session=True
        )
    os.close(its_in)
    os.close(its_out)
    try:
        browser = Browser(to=ours_out, from_=ours_in)
        browser.attach()
        yield browser
        browser._session = ""
        browser.call("Browser.close")
    finally:
        os.close(ours_out)
        os.close(ours_in)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)
