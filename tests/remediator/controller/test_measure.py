"""A scrape stops the loop while it counts: what it costs must not grow with the square of anything."""

from remediator.controller import measure
from remediator.core.breaker import Breaker
from remediator.metrics import REGISTRY
from tests.builders import a_budget, a_node, at, pool
from tests.harness.replica import empty_cache


def shown(budget: str) -> float | None:
    return REGISTRY.get_sample_value("remediator_budget_nodes", {"budget": budget, "count": "total"})


def test_a_scrape_counts_the_nodes_of_all_budgets_once_and_shows_no_budget_that_has_gone(monkeypatch) -> None:
    cache, asked = empty_cache(), []
    for number in range(40):
        cache.nodes.note(f"n{number}", a_node(f"n{number}", labels={"pool": str(number // 8)}))
    for number in range(5):
        ledger = a_budget(f"scraped-{number}", 1, selector=pool(str(number)))
        cache.budgets.note(ledger.name, ledger)
    counted = cache.nodes_by.members
    monkeypatch.setattr(cache.nodes_by, "members", lambda: asked.append("now") or counted())
    measure.gauges(cache, Breaker(), at(60))
    assert asked == ["now"]
    assert [shown(f"scraped-{number}") for number in range(5)] == [8] * 5
    measure.gauges(empty_cache(), Breaker(), at(60))
    assert [shown(f"scraped-{number}") for number in range(5)] == [None] * 5
