"""The paths of gpushare-scheduler-extender: filter, bind and inspect over HTTP, as kube-scheduler and people ask."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from remediator.core.names import SYSTEM_NAMESPACE, Namespaces
from remediator.kube.informers import Informers
from remediator.kube.wire.client import Client
from remediator.scheduler.extender import Extender
from remediator.scheduler.reasons import FAILED, UNRESOLVABLE
from remediator.scheduler.shared.parts import SharedGpus
from remediator.web import extender as page
from remediator.web import gpushare
from tests.harness import endpoints
from tests.harness.kinds import CONFIG_MAPS, NAMESPACES, NODES, PODS
from tests.harness.replica import at_work, state_of
from tests.harness.scheduler import names_body, victims_body
from tests.harness.scheduler import pod as whole_pod
from tests.harness.waiting import until
from tests.remediator.scheduler.shared.stand import COUNT, MEMORY, Stand, node, pod


class Served:
    """A stand whose extender answers over HTTP."""

    def __init__(self, stand: Stand, extender: Extender, url: str) -> None:
        self.stand, self.extender, self.url = stand, extender, url

    async def post(self, call: str, body: Any) -> Any:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with aiohttp.ClientSession() as session, session.post(f"{self.url}/{call}", data=data) as answer:
            assert answer.status == 200
            return await answer.json()

    async def get(self, path: str, status: int = 200) -> Any:
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}/{path}") as answer:
            assert answer.status == status
            return await answer.json()

    async def bind(self, made: dict[str, Any], at: str) -> str:
        meta = made["metadata"]
        args = {"PodName": meta["name"], "PodNamespace": "default", "PodUID": meta["uid"], "Node": at}
        return (await self.post("bind", args))["Error"]

    async def refusals(self, names: list[str], wanted: dict[str, Any]) -> dict[str, str]:
        """The word for each node: Fit, or why not."""
        answer = await self.post("filter", names_body(names, wanted))
        texts = {text: reason.value for reason, text in (FAILED | UNRESOLVABLE).items()}
        refused = answer["FailedNodes"] | answer["FailedAndUnresolvableNodes"]
        return dict.fromkeys(answer["NodeNames"], "Fit") | {name: texts[text] for name, text in refused.items()}

    async def has_room(self, name: str, *free: int) -> None:
        """Wait until the extender knows that so much is free on the cards."""

        def known() -> bool:
            cards = state_of(self.extender, name).cards
            return cards is not None and tuple(room for _, room in cards.free) == free

        await until(known, 10)


@asynccontextmanager
async def served(**sizes: tuple[int, ...]) -> AsyncIterator[Served]:
    stand = Stand(**sizes)
    client = Client(stand.server.transport())
    await client.create(NAMESPACES, {"metadata": {"name": SYSTEM_NAMESPACE}})
    informers = Informers(client, stand.clock, Namespaces())
    shared = SharedGpus.over(client, informers, stand.clock)
    extender = Extender(client, informers, stand.clock, shared=shared)
    for name, each in sizes.items():
        await client.create(NODES, node(name, *each))
    async with at_work(informers.run(), extender.run()):
        await until(extender.ready, 10)
        async with endpoints.served(gpushare.routes(extender, shared, page.bodies(False))) as (_, port):
            yield Served(stand, extender, f"http://127.0.0.1:{port}{gpushare.PATH}")


async def test_a_pod_is_bound_with_the_annotations_of_gpushare_and_its_memory_is_gone_for_the_next() -> None:
    async with served(n=(16, 16)) as at:
        made = await at.stand.make_pod("job", 4, 6, ALIYUN_COM_GPU_MEM_IDX="1")
        assert await at.refusals(["n"], pod("any", 16)) == {"n": "Fit"}
        assert await at.bind(made, "n") == ""
        notes = (await at.stand.pod("job"))["metadata"]["annotations"]
        assert notes.pop("ALIYUN_COM_GPU_MEM_ASSUME_TIME").isdecimal()
        assert notes == {
            "ALIYUN_COM_GPU_MEM_IDX": "0",
            "ALIYUN_COM_GPU_MEM_POD": "10",
            "ALIYUN_COM_GPU_MEM_DEV": "16",
            "ALIYUN_COM_GPU_MEM_ASSIGNED": "false",
            "scheduler.framework.gpushare.allocation": '{"0":{"0":4},"1":{"0":6}}',
        }
        assert await at.bind(made, "n") == "", "a second bind of a bound Pod changes nothing"
        assert "node n already" in await at.bind(made, "m")
        await at.has_room("n", 6, 16)
        assert await at.refusals(["n"], pod("any", 16, 16, cards=2)) == {"n": "NoFreeGpuMemory"}
        assert await at.refusals(["n"], pod("any", 6, 6, cards=2)) == {"n": "Fit"}


async def test_unequal_cards_and_several_cards_of_one_pod() -> None:
    async with served(n=(8, 24, 24)) as at:
        made = await at.stand.make_pod("wide", 20, 20, cards=2)
        assert await at.bind(made, "n") == ""
        notes = (await at.stand.pod("wide"))["metadata"]["annotations"]
        assert notes["ALIYUN_COM_GPU_MEM_IDX"] == "1,2"
        assert notes["scheduler.framework.gpushare.allocation"] == '{"0":{"1":20},"1":{"2":20}}'
        await at.has_room("n", 8, 4, 4)
        assert await at.refusals(["n"], pod("any", 8)) == {"n": "Fit"}
        assert await at.refusals(["n"], pod("any", 9)) == {"n": "NoFreeGpuMemory"}
        assert await at.refusals(["n"], pod("any", 25)) == {"n": "GpuCardsTooSmall"}
        assert await at.refusals(["n"], pod("any", 9, cards=2)) == {"n": "GpuMemoryMalformed"}


async def test_memory_of_a_pod_that_has_gone_is_free_again_without_waiting() -> None:
    async with served(n=(16,)) as at:
        assert await at.bind(await at.stand.make_pod("job", 16), "n") == ""
        await at.has_room("n", 0)
        await at.stand.delete_pod("job")
        await at.has_room("n", 16)
        await until(lambda: at.stand.ledger("n") == {}, 10)


async def test_pods_are_packed_by_card_and_nobody_is_evicted_where_no_card_would_have_room() -> None:
    async with served(half=(16, 16), empty=(16, 16)) as at:
        on = {name: await at.stand.make_pod(name, memory) for name, memory in (("a", 10), ("b", 10))}
        for made in on.values():
            assert await at.bind(made, "half") == ""
        await at.has_room("half", 6, 6)
        scores = await at.post("prioritize", names_body(["half", "empty"], pod("any", 4)))
        assert max(scores, key=lambda each: each["Score"])["Host"] == "half"
        evicted = victims_body({"half": [on["a"]["metadata"]["uid"]]}, pod("any", 12))
        assert list((await at.post("preempt", evicted))["NodeNameToMetaVictims"]) == ["half"]
        wide = victims_body({"half": [on["a"]["metadata"]["uid"]]}, pod("any", 12, 12, cards=2))
        assert (await at.post("preempt", wide))["NodeNameToMetaVictims"] == {}


async def test_pods_that_gpushare_has_bound_are_taken_in() -> None:
    async with served(n=(16, 16)) as at:
        notes = {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_POD": "12"}
        await at.stand.make_pod("theirs", 12, at="n", **notes)
        await at.has_room("n", 16, 4)
        await at.extender.shared.sweep.once()
        assert at.stand.ledger("n") == {"theirs": [(1, 12)]}


async def test_what_the_author_of_a_pod_writes_into_its_annotations_takes_no_more_than_the_pod_asks_for() -> None:
    """A Pod of 1 GiB that says it holds all of card 1, and then a card that the node never had."""
    async with served(n=(16, 16)) as at:
        assert await at.bind(await at.stand.make_pod("small", 1), "n") == ""
        for card, free in (("1", (15, 15)), ("63", (15, 16))):
            notes = {"ALIYUN_COM_GPU_MEM_IDX": card, "ALIYUN_COM_GPU_MEM_POD": "999999999"}
            body = {"metadata": {"annotations": {**notes, "scheduler.framework.gpushare.allocation": None}}}
            await at.stand.client.patch(PODS, "small", body, namespace="default")
            await at.has_room("n", *free)
            assert await at.refusals(["n"], pod("any", 15)) == {"n": "Fit"}


async def test_unhealthy_cards_are_not_given_and_where_nobody_can_tell_which_no_card_is() -> None:
    async with served(n=(16, 16)) as at:
        made = {"metadata": {"name": "unhealthy-gpu-n", "namespace": "kube-system"}, "data": {"gpus": "0"}}
        await at.stand.client.create(CONFIG_MAPS, made, namespace="kube-system")
        await until(lambda: state_of(at.extender, "n").cards.free == ((1, 16),), 10)
        assert await at.bind(await at.stand.make_pod("job", 4), "n") == ""
        assert at.stand.bound() == {"job": "n/1"}
        body = {"data": {"gpus": "0,x"}}
        await at.stand.client.patch(CONFIG_MAPS, "unhealthy-gpu-n", body, namespace="kube-system")
        await until(lambda: state_of(at.extender, "n").cards.reason, 10)
        assert await at.refusals(["n"], pod("any", 1)) == {"n": "GpuCardsUnknown"}
        assert (await at.bind(await at.stand.make_pod("next", 4), "n")).startswith("GpuCardsUnknown")


async def test_a_node_that_sells_its_gpus_whole_and_by_memory_gets_no_pod_of_either_sort() -> None:
    async with served() as at:
        await at.stand.client.create(NODES, node("both", 16, 16, whole=2))
        await until(lambda: state_of(at.extender, "both").cards, 10)
        assert await at.refusals(["both"], pod("any", 1)) == {"both": "GpusSharedAndWhole"}
        assert await at.refusals(["both"], whole_pod(gpus=1)) == {"both": "GpusSharedAndWhole"}
        assert await at.refusals(["both"], whole_pod(gpus=0)) == {"both": "Fit"}
        assert (await at.bind(await at.stand.make_pod("job", 4), "both")).startswith("GpusSharedAndWhole")


async def test_memory_of_gpus_is_not_sold_while_a_pod_from_before_holds_one_whole() -> None:
    async with served(n=(16, 16)) as at:
        old = await at.stand.client.create(PODS, holder("old", "n"), namespace="default")
        await until(lambda: state_of(at.extender, "n").cards.reason, 10)
        assert await at.refusals(["n"], pod("any", 4)) == {"n": "GpusSharedAndWhole"}
        error = await at.bind(await at.stand.make_pod("job", 16), "n")
        assert error == "GpusSharedAndWhole: GPUs that its Pods still hold whole: 1; let these Pods end first"
        await at.stand.delete_pod(old["metadata"]["name"])
        await until(lambda: not state_of(at.extender, "n").cards.reason, 10)
        assert await at.refusals(["n"], pod("any", 16)) == {"n": "Fit"}


async def test_whole_gpus_are_not_sold_while_a_pod_from_before_holds_memory_of_one() -> None:
    async with served(n=(16, 16)) as at:
        assert await at.bind(await at.stand.make_pod("job", 16), "n") == ""
        await at.has_room("n", 0, 16)
        room = {MEMORY: "0", COUNT: "0", "nvidia.com/gpu": "2"}
        body = {"status": {"capacity": room, "allocatable": room}}
        await at.stand.client.patch(NODES, "n", body, subresource="status")
        await until(lambda: state_of(at.extender, "n").total == (("nvidia.com/gpu", 2),), 10)
        assert await at.refusals(["n"], whole_pod(gpus=1)) == {"n": "GpusSharedAndWhole"}
        assert "Pods that still hold memory of its GPUs: 1" in state_of(at.extender, "n").cards.why
        await at.stand.delete_pod("job")
        await until(lambda: state_of(at.extender, "n").cards is None, 10)
        assert await at.refusals(["n"], whole_pod(gpus=1)) == {"n": "Fit"}


def holder(name: str, at: str) -> dict[str, Any]:
    """A Pod that has a whole GPU of a node."""
    made = pod(name, at=at)
    made["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    return made


async def test_inspect_shows_cards_and_pods_in_the_form_of_gpushare_and_an_unknown_node_gets_an_answer() -> None:
    async with served(n=(16, 16)) as at:
        assert await at.bind(await at.stand.make_pod("job", 10), "n") == ""
        await at.has_room("n", 6, 16)
        on = [{"name": "job", "namespace": "default", "usedGPU": 10}]
        devs = [
            {"id": 0, "totalGPU": 16, "usedGPU": 10, "pods": on},
            {"id": 1, "totalGPU": 16, "usedGPU": 0, "pods": []},
        ]
        shown = {"nodes": [{"name": "n", "totalGPU": 32, "usedGPU": 10, "devs": devs}]}
        assert await at.get("inspect") == await at.get("inspect/n") == shown
        assert await at.get("inspect/nobody", 404) == {"nodes": [], "error": "node nobody is not in the cluster"}


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{}", b"\xff"])
async def test_garbage_is_answered_with_its_error(body: bytes) -> None:
    async with served() as at:
        assert (await at.post("bind", body))["Error"].startswith("not ExtenderBindingArgs: ")


async def test_pods_without_shared_memory_are_bound_without_a_ledger() -> None:
    async with served(n=(16,)) as at:
        assert await at.bind(await at.stand.make_pod("plain"), "n") == ""
        assert (await at.stand.pod("plain"))["spec"]["nodeName"] == "n"
        assert at.stand.ledger("n") == {}


async def test_a_node_that_has_gone_is_forgotten() -> None:
    async with served(n=(16,), other=(16,)) as at:
        store, books = at.extender.shared.binder._store, at.extender.shared.books
        for name in ("n", "other"):
            assert await at.bind(await at.stand.make_pod(f"on-{name}", 16), name) == ""
        await at.has_room("n", 0)
        assert (sorted(store._last), len(store._writers)) == (["n", "other"], 0)
        await at.stand.delete_pod("on-n")
        await at.has_room("n", 16)
        await at.stand.client.delete(NODES, "n")
        await until(lambda: "n" not in books.nodes.keys() and at.stand.ledger("n") == {}, 10)  # noqa: SIM118
        await at.extender.shared.sweep.once()
        await until(lambda: "n" not in books.ledgers.keys(), 10)  # noqa: SIM118
        await at.extender.shared.sweep.once()
        assert (sorted(store._last), sorted(books._pods)) == (["other"], ["other"])
