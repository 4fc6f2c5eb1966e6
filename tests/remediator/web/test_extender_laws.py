"""What holds of every answer of the extender over HTTP, whatever is sent: 200, JSON, and each node in one list."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remediator.scheduler.attributes.catalog import facts_of
from remediator.scheduler.reasons import VerdictReason
from remediator.scheduler.row import NodeState
from remediator.web import extender as page
from tests.harness import endpoints
from tests.harness.scheduler import GPU, names_body, node, nodes_body, pod, victims_body
from tests.remediator.scheduler.test_extender import ROWS, bodies, warm
from tests.remediator.scheduler.test_preemption import PODS

CALLS = ("filter", "prioritize", "preempt")
LISTS = ("NodeNames", "FailedNodes", "FailedAndUnresolvableNodes")
MANY = 15_000
Ask = Callable[[str, bytes], Any]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """One extender with nodes of every verdict, asked over one connection as kube-scheduler does."""
    h100 = facts_of({f"{GPU}.memory": "81559"})
    extender = warm({**ROWS, "h100": NodeState(VerdictReason.FIT, ((GPU, 8),), (), h100)})
    extender._fleet.rows.update({f"n{index}": ROWS["fit"] for index in range(MANY)})
    extender._fleet.holdings.by_uid.update(PODS)
    with asyncio.Runner() as runner:
        ends = runner.run(_opened(endpoints.served(page.routes(extender, page.bodies(True)))))
        (_, port), close = ends
        session = runner.run(_session())

        async def post(call: str, body: bytes) -> Any:
            async with session.post(f"http://127.0.0.1:{port}/scheduler/{call}", data=body) as answer:
                assert answer.status == 200
                assert answer.content_type == "application/json"
                return json.loads(await answer.read())

        yield lambda call, body: runner.run(post(call, body))
        runner.run(session.close())
        runner.run(close())


async def _opened(manager: Any) -> tuple[Any, Callable[[], Awaitable[Any]]]:
    value = await manager.__aenter__()

    async def close() -> None:
        await manager.__aexit__(None, None, None)

    return value, close


async def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession()


QUANTITIES = st.sampled_from(
    ["1", "8", 0, 3, "0", "1k", "1e3", "-1", "1.5", "half", "", "9" * 18, "9" * 40, "1m", "1Ki", None, True, [1]]
)
RESOURCES = st.sampled_from([GPU, "amd.com/gpu", "nvidia.com/mig-1g.5gb", "cpu", "memory", "aliyun.com/gpu-mem"])
ASKS = st.sampled_from(
    ["memory>=40G", "memory>=40Gx", "clique", "!!", "", "model in (" + "A," * 300 + "B)", "ecc=true"]
)
WANTS = st.dictionaries(st.sampled_from(["requests", "limits"]), st.dictionaries(RESOURCES, QUANTITIES, max_size=3))


def _pod(wants: list[dict[str, Any]], inits: list[dict[str, Any]], asks: str | None, daemon: bool) -> dict[str, Any]:
    """A Pod with such containers, annotation and owner, absurd or not."""
    made = pod(daemon=daemon)
    made["spec"]["containers"] = [{"name": "c", "resources": resources} for resources in wants]
    made["spec"]["initContainers"] = [{"restartPolicy": "Always", "resources": resources} for resources in inits]
    made["metadata"]["annotations"] = {} if asks is None else {"remediator.dev/gpu": asks}
    return made


pods = st.builds(_pod, st.lists(WANTS, max_size=3), st.lists(WANTS, max_size=2), st.none() | ASKS, st.booleans())
names = st.lists(st.sampled_from([*ROWS, "h100", "nobody", "template"]) | st.text(max_size=8), max_size=30)
LAWS = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def _listed(answer: dict[str, Any]) -> list[str]:
    whole = [each["metadata"]["name"] for each in (answer["Nodes"] or {"items": []})["items"]]
    return [*whole, *(name for key in LISTS for name in answer[key] or ())]


@pytest.mark.slow
@LAWS
@given(names, pods)
def test_each_node_is_in_one_list_or_the_error_says_why_there_are_none(
    ask: Ask, sent: list[str], wanted: dict[str, Any]
) -> None:
    for body in (names_body(sent, wanted), nodes_body([node(name) for name in sent], wanted)):
        answer = ask("filter", body)
        assert list(answer) == ["Nodes", *LISTS, "Error"]
        assert sorted(_listed(answer)) == ([] if answer["Error"] else sorted(set(sent)))
        scores = ask("prioritize", body)
        assert [each["Host"] for each in scores] == ([] if answer["Error"] else list(dict.fromkeys(sent)))
        assert all(type(each["Score"]) is int for each in scores)


@pytest.mark.slow
@LAWS
@given(st.dictionaries(st.sampled_from([*ROWS, "well", "template"]), st.lists(st.sampled_from([*PODS, "x"]))), pods)
def test_nobody_is_evicted_who_was_not_asked_about(
    ask: Ask, victims: dict[str, list[str]], wanted: dict[str, Any]
) -> None:
    left = ask("preempt", victims_body(victims, wanted))["NodeNameToMetaVictims"]
    assert {name: [each["UID"] for each in theirs["Pods"]] for name, theirs in left.items()}.items() <= victims.items()
    assert all(theirs["Pods"] for theirs in left.values())


@pytest.mark.slow
@LAWS
@given(bodies, st.sampled_from(CALLS))
def test_whatever_is_sent_is_answered_with_200_and_without_a_traceback(ask: Ask, body: bytes, call: str) -> None:
    assert "Traceback" not in json.dumps(ask(call, body))


WRONG = [
    pytest.param(b"\x00\xff" * 2000, id="bytes that are no text"),
    pytest.param(b'{"pods": {}, "hosts": []}', id="keys of another protocol"),
    pytest.param(json.dumps({"Pod": pod(), "NodeNames": [node("fit")]}).encode(), id="whole nodes for names"),
    pytest.param(json.dumps({"Pod": pod(), "Nodes": ["fit"]}).encode(), id="names for whole nodes"),
    pytest.param(json.dumps({"Pod": pod(), "Nodes": {"items": [{"metadata": {"name": 7}}]}}).encode(), id="odd name"),
    pytest.param(names_body(["fit"]) + b"}", id="more than one document"),
]


@pytest.mark.parametrize("body", WRONG)
@pytest.mark.parametrize("call", CALLS)
def test_a_body_of_the_wrong_form_is_told_in_one_line_or_answered_with_nothing(
    ask: Ask, body: bytes, call: str
) -> None:
    answer = ask(call, body)
    if call == "filter":
        assert re.fullmatch(r"not ExtenderArgs: [^\n]+", answer["Error"])
        assert _listed(answer) == []
    else:
        assert answer in ([], {"NodeNameToMetaVictims": {}})


def test_fifteen_thousand_names_are_answered_each_once(ask: Ask) -> None:
    sent = [f"n{index}" for index in range(MANY)]
    assert ask("filter", names_body(sent))["NodeNames"] == sent
    assert len({each["Host"] for each in ask("prioritize", names_body(sent))}) == MANY


def test_a_name_that_is_sent_twice_has_one_score_since_the_scheduler_adds_scores_up(ask: Ask) -> None:
    assert [each["Host"] for each in ask("prioritize", names_body(["fit", "busy", "fit"]))] == ["fit", "busy"]
    assert ask("filter", names_body(["fit", "full", "fit", "full"]))["NodeNames"] == ["fit"]


def test_a_pod_that_asks_for_more_than_any_node_has_is_refused_in_words(ask: Ask) -> None:
    answer = ask("filter", names_body(["fit", "full"], pod(gpus=10**17)))
    assert answer["FailedAndUnresolvableNodes"] == dict.fromkeys(["fit", "full"], "node(s) with too few GPUs in all")
