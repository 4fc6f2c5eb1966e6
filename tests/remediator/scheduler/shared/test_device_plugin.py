"""Pods that we bind, and gpushare's device plugin, which gives them their cards on the node."""

from tests.remediator.scheduler.shared.played_plugin import ASSIGNED, PlayedPlugin
from tests.remediator.scheduler.shared.stand import Stand


async def test_the_device_plugin_gives_each_pod_the_card_that_was_reserved_in_the_order_of_their_binds() -> None:
    async with Stand(n=(8, 8, 8)).working() as stand:
        (replica,) = stand.replicas
        plugin = PlayedPlugin(stand, "n", 3)
        for name, size in (("first", 8), ("small", 3), ("second", 8)):
            assert await replica.bind(await stand.make_pod(name, size), "n") == ""
        assert stand.bound() == {"first": "n/0", "small": "n/1", "second": "n/2"}
        assert [await plugin.allocate(size) for size in (8, 3, 8)] == ["card-0", "card-1", "card-2"]
        assert await plugin.allocate(8) == "no-gpu-has-8GiB-to-run", "each Pod is assigned once"
        assert (await stand.pod("first"))["metadata"]["annotations"][ASSIGNED] == "true"


async def test_what_the_device_plugin_writes_changes_no_book() -> None:
    async with Stand(n=(8, 8)).working() as stand:
        (replica,) = stand.replicas
        made = await stand.make_pod("job", 6)
        assert await replica.bind(made, "n") == ""
        before = stand.ledger("n")
        await PlayedPlugin(stand, "n", 2).allocate(6)
        await stand.seen()
        await replica.sweep.once()
        assert stand.ledger("n") == before == {"job": [(0, 6)]}
        assert await replica.bind(made, "n") == "", "a bind that comes again after that changes nothing"
        assert (await stand.pod("job"))["metadata"]["annotations"][ASSIGNED] == "true"


async def test_the_device_plugin_knows_one_card_and_one_container_as_the_page_says() -> None:
    async with Stand(n=(8, 8)).working() as stand:
        (replica,) = stand.replicas
        plugin = PlayedPlugin(stand, "n", 2)
        assert await replica.bind(await stand.make_pod("wide", 8, cards=2), "n") == ""
        assert await plugin.allocate(8) == "no-gpu-has-8GiB-to-run"
        assert await replica.bind(await stand.make_pod("double", 2, 2), "n") == ""
        assert await plugin.allocate(2) == "no-gpu-has-2GiB-to-run", "the kubelet asks for each container"
