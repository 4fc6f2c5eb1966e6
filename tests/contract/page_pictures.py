"""The page in a browser, as pictures for docs/page.md, and how fast: `python -m tests.contract.page_pictures CHROMIUM`.

Given the file axe.min.js of axe-core, too, it prints what that finds against each page.
A controller works on a simulated fleet; a headless Chromium loads its page. Then 5,000 nodes: what a first paint takes.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from remediator.core.breaker import Breaker
from remediator.kube.api.builtin import NODE
from tests.harness.browser import Browser, Screen, browser
from tests.harness.controller import ControllerHarness, controller_harness, running
from tests.harness.page import ServedPage, page_served
from tests.remediator.test_cli_status import one_held_one_repaired_one_with_a_person

FIGURES = Path(__file__).parents[2] / "docs" / "figures"
RACK, RACKS = "topology.kubernetes.io/rack", 6
PICTURES = {
    "fleet": ("/", Screen(1280, 860)),
    "dark": ("/", Screen(1280, 860, dark=True)),
    "phone": ("/", Screen(390, 844, phone=True)),
    "node": ("/nodes/gpu-3", Screen(1280, 860)),
}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
VIOLATION = "rule => `${rule.id}: ${rule.nodes.length}, ${rule.nodes[0].html}`"
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


async def fill(harness: ControllerHarness) -> str:
    """Three sick nodes among 96; gives the name of the case that a person has."""
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    for number in range(4, 97):
        labels = {RACK: f"rack-{number % RACKS + 1}"}
        await harness.client.create(NODE, {"metadata": {"name": f"gpu-{number}", "labels": labels}})
        await harness.client.patch(NODE, f"gpu-{number}", {"status": ready}, subresource="status")
    await one_held_one_repaired_one_with_a_person(harness)
    for number in range(1, 4):
        await harness.client.patch(NODE, f"gpu-{number}", {"metadata": {"labels": {RACK: f"rack-{number}"}}})
    await harness.client.patch(NODE, "gpu-40", {"spec": {"unschedulable": True}})
    return str(harness.cases("gpu-3")[0]["metadata"]["name"])


@asynccontextmanager
async def small_fleet(**settings: Any) -> AsyncIterator[tuple[ServedPage, str]]:
    """Its page, and the name of a case."""
    async with controller_harness() as harness, running(harness, breaker=Breaker(7, timedelta(minutes=3))):
        case = await fill(harness)
        async with page_served(harness, signs=False, gang_topology=RACK, **settings) as page:
            yield page, case


@asynccontextmanager
async def large_fleet(nodes: int) -> AsyncIterator[ServedPage]:
    """The page of so many nodes in racks of 18."""
    async with controller_harness() as harness:
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        harness.beating = False
        for number in range(nodes):
            name, labels = f"gpu-node-{number:04}", {RACK: f"rack-{number // 18:03}"}
            await harness.client.create(NODE, {"metadata": {"name": name, "labels": labels}})
            await harness.client.patch(NODE, name, {"status": ready}, subresource="status")
        async with page_served(harness, signs=False, gang_topology=RACK) as page:
            yield page


async def paints(tab: Browser, url: str, times: int) -> list[float]:
    """Milliseconds until the first paint, of so many loads; the first of all is not counted."""
    measured = []
    for _ in range(times + 1):
        await tab.open(url)
        paint = await tab.ask(PAINT)
        while paint is None:  # nothing is painted yet
            paint = await tab.ask(f"new Promise(then => requestAnimationFrame(() => then({PAINT})))")
        measured.append(float(paint))
    return measured[1:]


async def barriers(tab: Browser, axe: str) -> list[str]:
    """What axe-core finds that keeps people out, "" for nobody asks it."""
    if not axe:
        return []
    await tab.ask(Path(axe).read_text() + ";0")
    ran = f"axe.run({{runOnly: {RULES}}}).then(each => each.violations.map({VIOLATION}))"
    return list(await tab.ask(ran))


async def main(chromium: str, axe: str = "") -> None:
    """Draw all of them, and print figures."""
    async with browser(chromium) as tab:
        async with small_fleet() as (page, case):
            for name, (path, screen) in (PICTURES | {"case": (f"/cases/{case}", Screen(1280, 860))}).items():
                await tab.open(page.url + path, screen)
                await tab.draw(FIGURES / f"page-{name}.png")
                print(name, await barriers(tab, axe))
            print("console:", tab.problems or "no error")
        async with large_fleet(5000) as page:
            _, headers, text = await page.answer("/", Accept_Encoding="gzip")
            print(f"5,000 nodes: {len(text) >> 10} KiB, compressed {int(headers['Content-Length']) >> 10} KiB")
            print("first paint, ms:", [round(paint) for paint in await paints(tab, page.url, 5)])


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
