"""A headless Chromium over its DevTools protocol: it loads a page, is asked, and draws."""

import asyncio
import base64
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-port=0", "about:blank")
START_SECONDS, LOAD_SECONDS = 60.0, 60.0


class Screen(NamedTuple):
    """What it is drawn for."""

    width: int = 1280
    height: int = 900
    dark: bool = False
    phone: bool = False


class Browser:
    """One tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._numbers = socket, count(1)
        self.problems: list[str] = []  # what its console says of errors

    async def call(self, method: str, **parameters: Any) -> Any:
        """One command of the protocol."""
        answer = await self._given(method, **parameters)
        assert "error" not in answer, answer
        return answer["result"]

    async def _given(self, method: str, **parameters: Any) -> Any:
        number = next(self._numbers)
        await self._socket.send_str(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = await self._message()
            if message.get("id") == number:
                return message

    async def open(self, url: str, screen: Screen = Screen()) -> None:  # noqa: B008
        """Load a page, until all of it is there."""
        size = {"width": screen.width, "height": screen.height, "deviceScaleFactor": 1, "mobile": screen.phone}
        await self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if screen.dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])
        await self.call("Log.enable")
        await self.call("Page.enable")
        await self.call("Page.navigate", url=url)
        async with asyncio.timeout(LOAD_SECONDS):
            while (await self._message()).get("method") != "Page.loadEventFired":
                pass

    async def ask(self, script: str) -> Any:
        """What a line of JavaScript gives, or what it promises."""
        given = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in given, given
        return given["result"].get("value")

    async def shows(self, script: str) -> bool:
        """Whether this is so; not while another page is being loaded."""
        given = await self._given("Runtime.evaluate", expression=script, returnByValue=True)
        return bool(given.get("result", {}).get("result", {}).get("value"))

    async def press(self, key: str) -> None:
        """One key."""
        for kind in ("keyDown", "keyUp"):
            codes = {"Tab": 9, "ArrowRight": 39, "Enter": 13}
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key])

    async def draw(self, file: Path) -> None:
        """The part that is on the screen, as a picture."""
        file.write_bytes(base64.b64decode((await self.call("Page.captureScreenshot", format="png"))["data"]))

    async def _message(self) -> Any:
        message = json.loads((await self._socket.receive(timeout=LOAD_SECONDS)).data)
        if message.get("method") == "Log.entryAdded" and message["params"]["entry"]["level"] == "error":
            self.problems.append(message["params"]["entry"]["text"])
        return message


@asynccontextmanager
async def browser(chromium: str) -> AsyncIterator[Browser]:
    """A process of its own, with nothing of a user, that ends with the block."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = (chromium, f"--user-data-dir={profile}", *FLAGS)
        process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
        assert process.stderr is not None
        try:
            async with asyncio.timeout(START_SECONDS):
                while not (line := (await process.stderr.readline()).decode()).startswith("DevTools listening on "):
                    assert line, "Chromium has ended"
            root = line.split()[-1].replace("ws://", "http://").split("/devtools")[0]
            async with aiohttp.ClientSession() as session:
                async with session.get(f"{root}/json") as answer:
                    (tab, *_) = [each for each in await answer.json() if each["type"] == "page"]
                async with session.ws_connect(tab["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                    yield Browser(socket)
        finally:
            process.terminate()
            await process.wait()
