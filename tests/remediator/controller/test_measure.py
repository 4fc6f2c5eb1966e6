"""A scrape stops the loop while it counts: what it costs must not grow with the square of anything."""

from remediator.controller import measure
from remediator.core.breaker import Breaker
from remediator.metrics import REGISTRY
from tests.builders import a_budget, a_node, at, pool
from tests.harness.replica import empty_cache


def shown(budget: str, count: str = "total") -> float | None:
    return REGISTRY.get_sample_value("remediator_budget_nodes", {"budget": budget, "count": count})


async def test_a_scrape_counts_the_nodes_of_all_budgets_once_and_shows_no_budget_that_has_gone(monkeypatch) -> None:
    cache, asked = empty_cache(), []
    for number in range(40):
        cache.nodes.note(f"n{number}", a_node(f"n{number}", labels={"pool": str(number // 8)}))
    for number in range(5):
        ledger = a_budget(f"scraped-{number}", 1, selector=pool(str(number)))
        cache.budgets.note(ledger.name, ledger)
    counted = cache.nodes_by.members
    monkeypatch.setattr(cache.nodes_by, "members", lambda: asked.append("now") or counted())
    await measure.gauges(cache, Breaker(), at(60))
    assert asked == ["now"]
    assert [shown(f"scraped-{number}") for number in range(5)] == [8] * 5
    await measure.gauges(empty_cache(), Breaker(), at(60))
    assert [shown(f"scraped-{number}") for number in range(5)] == [None] * 5


async def test_one_full_rack_of_three_and_two_nodes_without_a_rack_are_seen() -> None:
    """Three racks of two may have one node each unavailable; where no rack is known nothing starts."""
    cache = empty_cache()
    racks = {f"{rack}{number}": rack for rack in "abc" for number in range(2)} | {"s0": "", "s1": ""}
    for name, rack in racks.items():
        cache.nodes.note(name, a_node(name, labels={"rack": rack} if rack else {}, unschedulable=name == "a0"))
    cache.budgets.note("racks", a_budget("racks", 1, group_by="rack", grouped_by="rack"))
    await measure.gauges(cache, Breaker(), at(60))
    counts = ("total", "most", "unavailable", "groups_full", "ungrouped")
    assert {count: shown("racks", count) for count in counts} == {
        "total": 8,
        "most": 3,
        "unavailable": 1,
        "groups_full": 1,
        "ungrouped": 2,
    }
    await measure.gauges(empty_cache(), Breaker(), at(60))
    assert shown("racks", "groups_full") is None
