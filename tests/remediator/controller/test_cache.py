"""What follows from many facts at once."""

import asyncio
from dataclasses import replace

from remediator.controller import fleet
from remediator.core.breaker import DisruptiveStart
from tests.builders import START, a_budget, a_case, a_node, a_template, pool
from tests.harness.replica import empty_cache


def test_a_case_is_found_by_its_uid():
    cache = empty_cache()
    cache.cases.note("c", a_case("c", uid="second", version="20"))
    assert cache.case("first") is None
    assert cache.case("second").version == "20"


def test_nodes_are_counted_anew_when_one_of_them_may_change_a_number_and_only_then():
    cache = empty_cache()
    cache.budgets._reflector._keep("b", a_budget("b"))
    cache.nodes._reflector._keep("n", a_node("n", version="1"))
    counted = cache.nodes_by.members()
    assert cache.nodes_by.members() is counted
    cache.nodes._reflector._keep("n", a_node("n", version="2", boot_id="another"))
    assert cache.nodes_by.members() is counted, "a reboot changes no number"
    cache.nodes.note("n", replace(a_node("n", version="3"), unschedulable=True))
    cordoned = cache.nodes_by.members()
    assert cordoned is not counted
    assert cache.nodes_by.members() is cordoned
    kept = replace(a_node("n", version="4"), unschedulable=True, kept_cordoned="uid-of-its-case")
    cache.nodes.note("n", kept)
    assert cache.nodes_by.members()["b"].kept_out == {"n"}, "an operation has made our cordon one for a person"
    cache.nodes._reflector._version = "4"
    assert cache.nodes.get("n").unschedulable is False
    assert cache.nodes_by.members() == counted, "the watch never showed our cordon"


async def test_who_asks_for_the_nodes_of_budgets_while_another_counts_them_anew_waits_for_the_new_numbers():
    """A scrape has counted 200 of 1000 nodes as an admission pass begins, which must not decide by the old budgets."""
    cache = empty_cache()
    for number in range(1000):
        cache.nodes._reflector._keep(f"n{number}", a_node(f"n{number}"))
    cache.nodes_by.members()
    cache.budgets._reflector._keep("new", a_budget("new"))
    scrape = asyncio.ensure_future(cache.nodes_by.refresh())
    await asyncio.sleep(0)
    await cache.nodes_by.refresh()
    assert cache.nodes_by.members()["new"].total == 1000
    await scrape


async def test_who_waits_for_the_nodes_of_budgets_does_not_wait_for_ever_while_a_user_edits_budgets_all_the_time():
    """1000 nodes are five slices; the budget is another one at each turn of the loop."""
    cache = empty_cache()
    for number in range(1000):
        cache.nodes._reflector._keep(f"n{number}", a_node(f"n{number}", labels={"pool": str(number % 2)}))
    edits = 0

    async def edit():
        nonlocal edits
        while True:
            edits += 1
            cache.budgets._reflector._keep("b", a_budget("b", selector=pool(str(edits % 2))))
            await asyncio.sleep(0)

    user = asyncio.ensure_future(edit())
    await asyncio.sleep(0)
    waiting = asyncio.ensure_future(cache.nodes_by.refresh())
    for _ in range(100):
        await asyncio.sleep(0)
    assert waiting.done()
    user.cancel()
    await waiting
    assert cache.nodes_by.members()["b"].total == 500
    over = [bool(cache.nodes_by.index.over(cache.nodes.get(f"n{number}"))) for number in range(4)]
    assert over == [number % 2 == edits % 2 for number in range(4)], "by the budget as it is now"


def test_what_templates_need_is_made_once_for_many_passes_and_anew_when_one_of_them_changes(monkeypatch):
    cache, made = empty_cache(), []
    monkeypatch.setattr(fleet, "api_pods_of", lambda cache, template: made.append(template.name) or ())
    cache.templates._reflector._keep("reset", a_template("reset", version="1", after=("restart",)))
    for _ in range(3):
        assert fleet.fleet_context(cache, START).templates == frozenset()
    assert made == ["reset"]
    cache.templates._reflector._keep("restart", a_template("restart", version="2"))
    assert fleet.fleet_context(cache, START).templates == {"reset", "restart"}
    assert made == ["reset", "reset", "restart"]


def test_an_entry_of_a_case_that_nobody_has_heard_of_counts_as_one_start_and_not_beside_the_one_that_is_kept_of_it():
    """Another leader has opened and entered the case; or it is deleted, and its start is kept."""
    cache = empty_cache()
    entered = DisruptiveStart(START, "opened-by-another", "n")
    cache.budgets._reflector._keep("b", a_budget("b", claims=(("n", entered.case),)))
    assert [(start.at, start.case) for start in cache.starts(START)] == [(START, entered.case)]
    cache.deleted_starts = frozenset({entered})
    assert cache.starts(START) == [entered]
