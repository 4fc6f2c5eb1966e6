"""axe-core, which others wrote, finds nothing in the page that keeps people out: light, dark, and on a phone."""

import pytest

from tests.contract.page_pictures import barriers, large_fleet, paints, small_fleet
from tests.harness.browser import Screen, browser
from tests.harness.chromium import CHROMIUM, needs_chromium
from tests.harness.controller import controller_harness
from tests.harness.page import page_served
from tests.harness.waiting import PATIENCE
from tests.oracle.emulator import node_modules

pytestmark = [pytest.mark.cluster, needs_chromium]
DOCS = "https://git.example.org/docs"  # runbooks are links, too
SCREENS = (Screen(), Screen(dark=True), Screen(390, 844, phone=True))
HIDDEN = "document.querySelector('main').innerHTML = '<img src=\"data:,\"><a href=\"/\"></a>'"
SHOWN = """document.querySelectorAll('a[href^="/nodes/gpu-node-"]').length"""


async def test_axe_core_finds_nothing_in_a_fleet_a_node_a_case_a_search_what_is_not_there_and_the_api() -> None:
    axe = str(node_modules()[1] / "node_modules/axe-core/axe.min.js")
    async with browser(CHROMIUM) as tab, small_fleet(docs_url=DOCS) as (page, case):
        for path in ("/", "/nodes/gpu-3", f"/cases/{case}", "/search?q=gpu", "/nodes/none", "/api"):
            for screen in SCREENS:
                await tab.open(page.url + path, screen)
                assert await barriers(tab, axe) == [], (path, screen)
        await tab.ask(HIDDEN)
        found = {each.partition(":")[0] for each in await barriers(tab, axe)}
        assert {"image-alt", "link-name"} <= found  # it looks


async def test_axe_core_finds_nothing_in_the_form_to_sign_in() -> None:
    axe = str(node_modules()[1] / "node_modules/axe-core/axe.min.js")
    async with browser(CHROMIUM) as tab, controller_harness() as harness, page_served(harness) as page:
        for screen in SCREENS:
            await tab.open(f"{page.url}/", screen)
            assert await barriers(tab, axe) == [], screen


async def test_the_page_of_5000_nodes_is_painted_within_a_second() -> None:
    """By the browser's own clock, from the address on; the best of three loads, for others use this machine, too."""
    async with browser(CHROMIUM) as tab, large_fleet(5000) as page:
        measured = await paints(tab, page.url, 3)
        print("first paint, ms:", measured)
        assert min(measured) < 1000 * PATIENCE
        assert await tab.ask(SHOWN) == 5000
