"""The page in a headless Chromium: live, by keyboard, on a phone, after a link of another site."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from remediator.web.page import followed, snapshots, stream
from tests.harness.browser import Browser, Screen, browser
from tests.harness.chromium import CHROMIUM, needs_chromium
from tests.harness.controller import controller_harness, running
from tests.harness.kinds import NODES
from tests.harness.page import page_served
from tests.harness.waiting import until

RACK = "topology.kubernetes.io/rack"
pytestmark = needs_chromium
CELL = "document.querySelector('a[href=\"/nodes/gpu-2\"]')"
CLICK = "document.querySelector('a,button').click()"
FOCUS = "document.activeElement.getAttribute('href')"


@pytest.mark.slow
async def test_a_reader_sees_a_change_moves_by_arrows_and_needs_no_second_line_on_a_phone() -> None:
    async with controller_harness() as harness, browser(CHROMIUM) as tab:
        for number in range(1, 41):
            await harness.node(f"gpu-{number}")
            await harness.change(NODES, f"gpu-{number}", metadata={"labels": {RACK: "r1"}})
        async with page_served(harness, signs=False) as page:
            await tab.open(f"{page.url}/", Screen(390, 844, phone=True))
            await tab.ask("document.querySelector('a[href=\"/nodes/gpu-1\"]').focus()")
            await tab.press("ArrowRight")
            assert await tab.ask(FOCUS) == "/nodes/gpu-2"
            await harness.change(NODES, "gpu-2", spec={"unschedulable": True})
            await until(lambda: tab.shows(f"{CELL}.textContent === 'C'"))
            assert await tab.ask(f"{CELL}.getAttribute('aria-label')") == "gpu-2, cordoned, no case"
            assert await tab.ask(f"{CELL}.hasAttribute('tabindex')") is False  # by Tab now, too
            assert await tab.ask(FOCUS) == "/nodes/gpu-2"
            counts = await tab.ask("document.querySelector('[data-rack=\"r1\"]').textContent")
            assert counts == "1 cordoned, no case, 39 in service"
            for path in ("/", "/nodes/gpu-2", "/search?q=gpu", "/api"):
                await tab.open(page.url + path, Screen(390, 844, phone=True))
                assert await tab.ask("document.documentElement.scrollWidth") == 390, path
    assert tab.problems == []


CUT_OFF = "[...document.querySelectorAll('html, details')].filter(each => each.scrollWidth > each.clientWidth).length"
WIDTHS = (
    320,
    390,
    641,
    700,
    768,
    1024,
    1120,
    1280,
    1920,
)  # a phone at 200 %, a tablet, both sides of each change of the look


@pytest.mark.slow
async def test_nothing_is_cut_off_at_any_width() -> None:
    said = {"type": "NfsUnavailable", "status": "True", "reason": "KubeletHasSufficientMemory", "message": "NFS " * 60}
    async with controller_harness() as harness, browser(CHROMIUM) as tab, running(harness):
        await harness.policy()
        await harness.node("gpu-1", "True")
        await harness.node("gpu-2")
        await harness.client.patch(NODES, "gpu-2", {"status": {"conditions": [said]}}, subresource="status")
        await until(lambda: harness.cases("gpu-1"))
        docs = "https://git.example.org/organisation/remediator/blob/main/docs"
        async with page_served(harness, signs=False, docs_url=docs) as page:
            for path in ("/", "/api", "/nodes/gpu-2", f"/cases/{harness.cases('gpu-1')[0]['metadata']['name']}"):
                for width in WIDTHS:
                    await tab.open(page.url + path, Screen(width, 900))
                    await tab.ask("document.querySelectorAll('details').forEach(each => each.open = true)")
                    assert await tab.ask(CUT_OFF) == 0, (path, width)


LIVE = "document.getElementById('live')"
RECORD = """
const real = window.setTimeout; window.setTimeout = (act, time) => real(act, time / 30); window.said = [];
addEventListener("DOMContentLoaded", () => {
  const live = document.getElementById("live");
  new MutationObserver(() => said.push(live.textContent)).observe(live, { childList: true });
});
"""
ANY_SPEED = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}


@pytest.mark.slow
async def test_a_page_whose_stream_breaks_says_of_when_it_is_and_is_live_again_once_it_has_come_back() -> None:
    async with controller_harness() as harness, browser(CHROMIUM) as tab:
        await harness.node("gpu-1")
        async with page_served(harness, signs=False) as page:
            await tab.open(f"{page.url}/", Screen(390, 844, phone=True, dark=True))
            await until(lambda: tab.shows(f"{LIVE}.textContent === 'live'"))
            await tab.call("Network.enable")
            await tab.call("Network.emulateNetworkConditions", offline=True, **ANY_SPEED)
            page.page._streams._ended.set()  # what is open ends, as where the replica goes
            await until(lambda: tab.shows(f"{LIVE}.textContent.startsWith('Not live: what you see is of 2')"))
            assert await tab.ask(f"{LIVE}.matches('[role=status].warn')")
            assert await tab.ask("document.documentElement.scrollWidth") == 390
            page.page._streams._ended.clear()
            await tab.call("Network.emulateNetworkConditions", offline=False, **ANY_SPEED)
            await until(lambda: tab.shows(f"{LIVE}.textContent === 'live' && !{LIVE}.matches('.warn')"))


@pytest.mark.slow
async def test_a_page_whose_stream_is_silent_says_so_and_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a browser whose times are 30 times as short: after 1.5 s instead of 45."""
    monkeypatch.setattr(stream, "ALIVE_SECONDS", 3600.0)
    monkeypatch.setattr(snapshots, "STALE", 3600.0)
    async with controller_harness() as harness, browser(CHROMIUM) as tab:
        await harness.node("gpu-1")
        async with page_served(harness, signs=False) as page:
            await tab.call("Page.enable")
            await tab.call("Page.addScriptToEvaluateOnNewDocument", source=RECORD)
            await tab.open(f"{page.url}/")
            await until(lambda: tab.shows("said.filter(each => each.startsWith('Not live')).length >= 2"))
            said = await tab.ask("said.map(each => each.slice(0, 8))")
    assert said[:4] == ["live", "Not live", "live", "Not live"]


HIDE = "Object.defineProperty(document, 'hidden', {{value: {}, configurable: true}}); \
document.dispatchEvent(new Event('visibilitychange'))"


@pytest.mark.slow
async def test_the_page_of_a_node_says_what_has_changed_keeps_the_focus_and_says_that_the_node_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(snapshots, "EVERY", 0.05)
    async with controller_harness() as harness, browser(CHROMIUM) as tab:
        await harness.node("gpu-1")
        async with page_served(harness, signs=False) as page:
            await tab.open(f"{page.url}/nodes/gpu-1", Screen(390, 844, phone=True, dark=True))
            await until(lambda: tab.shows(f"{LIVE}.textContent === 'live'"))
            await tab.ask(f"{LIVE}.stays = true; document.querySelector('#now a').focus()")
            await harness.change(NODES, "gpu-1", spec={"unschedulable": True})
            await until(lambda: tab.shows(f"{LIVE}.textContent === 'live: cordoned, no case'"))
            assert "cordoned, no case" in await tab.ask("document.querySelector('#now p').textContent")
            assert await tab.ask(FOCUS) == "/api/v1/nodes/gpu-1"
            await harness.client.delete(NODES, "gpu-1")
            gone = "gpu-1 is not here any more: what you see is of 2"
            await until(lambda: tab.shows(f"{LIVE}.textContent.startsWith('{gone}')"))
            assert await tab.ask(f"{LIVE}.matches('[role=status].warn')")
            assert await tab.ask("document.querySelector('#now .cell')") is None  # it is in no state
            assert await tab.ask("document.documentElement.scrollWidth") == 390
            await harness.node("gpu-1")
            await until(lambda: tab.shows(f"{LIVE}.textContent === 'live: in service' && !{LIVE}.matches('.warn')"))
            assert await tab.ask(f"{LIVE}.stays")  # a screen reader speaks of what changes in it, not of a new one
    assert tab.problems == []


AS_OF = "document.querySelector('.as-of')"


@pytest.mark.slow
async def test_the_page_of_a_quiet_node_is_live_beside_a_moment_that_goes_on_and_none_of_it_is_read_aloud(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No replica leads, so nothing on the page changes but the moment; a sign of life comes every 0.05 s."""
    monkeypatch.setattr(stream, "ALIVE_SECONDS", 0.05)
    monkeypatch.setattr(snapshots, "STALE", 0.05)
    monkeypatch.setattr(snapshots, "EVERY", 0.05)
    monkeypatch.setattr(followed, "RENEWED", 0.0)
    async with controller_harness() as harness, browser(CHROMIUM) as tab:
        await harness.node("gpu-1")
        async with page_served(harness, signs=False) as page:
            await tab.call("Page.enable")
            await tab.call("Page.addScriptToEvaluateOnNewDocument", source=RECORD)
            await tab.open(f"{page.url}/nodes/gpu-1")
            await until(lambda: tab.shows(f"{LIVE}.textContent === 'live'"))
            loaded = await tab.ask(f"{AS_OF}.stays = true; {AS_OF}.textContent")
            await until(lambda: tab.shows(f"{AS_OF}.textContent > {json.dumps(loaded)}"))
            assert await tab.ask(f"{AS_OF}.stays")  # the page was not sent anew
            assert await tab.ask("said") == ["live"]
            await tab.ask(HIDE.format("true"))
            assert await tab.ask(f"{LIVE}.textContent === 'as of ' + {AS_OF}.textContent")
    assert tab.problems == []


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/", "/nodes/gpu-1"])
async def test_a_tab_that_nobody_looks_at_follows_nothing_and_is_live_again_once_somebody_does(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "EVERY", 0.05)
    monkeypatch.setattr(stream, "ALIVE_SECONDS", 0.05)
    async with controller_harness() as harness, browser(CHROMIUM) as tab:
        await harness.node("gpu-1")
        await harness.change(NODES, "gpu-1", spec={"unschedulable": True})
        async with page_served(harness, signs=False) as page:
            await tab.open(page.url + path)
            await until(lambda: tab.shows(f"{LIVE}.textContent === 'live'"))
            await tab.ask(HIDE.format("true"))
            assert await tab.ask(f"{LIVE}.textContent.startsWith('as of 2')")
            await until(lambda: page.page._streams._open == 0)
            await harness.change(NODES, "gpu-1", spec={"unschedulable": False})
            await tab.ask(HIDE.format("false"))
            await until(lambda: tab.shows(f"{LIVE}.textContent.startsWith('live: ')"))
            assert "in service" in await tab.ask(f"{LIVE}.textContent")


@asynccontextmanager
async def site_of_others(link: str) -> AsyncIterator[str]:
    """A page on another site than 127.0.0.1, with a link."""

    async def page(_: web.Request) -> web.Response:
        return web.Response(text=f'<a href="{link}">an issue leads here</a>', content_type="text/html")

    app = web.Application()
    app.add_routes([web.get("/", page)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://localhost:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


async def headed(tab: Browser, text: str) -> None:
    """Wait until this is the heading, whatever is loaded meanwhile."""
    await until(lambda: tab.shows(f"document.querySelector('h1')?.textContent === {json.dumps(text)}"))


@pytest.mark.slow
async def test_who_has_signed_in_once_follows_links_of_another_site_without_the_form() -> None:
    async with controller_harness() as harness, browser(CHROMIUM) as tab, page_served(harness) as page:
        await harness.node("gpu-1")
        async with site_of_others(f"{page.url}/nodes/gpu-1") as elsewhere:
            await tab.open(elsewhere)
            await tab.ask(CLICK)
            await headed(tab, "Sign in")  # it knows nobody yet, and does not load itself for ever
            await tab.ask("document.querySelector('#token').value = 'good'")
            await tab.ask(CLICK)
            await headed(tab, "gpu-1")
            await tab.open(elsewhere)
            await tab.ask(CLICK)
            await headed(tab, "gpu-1")
