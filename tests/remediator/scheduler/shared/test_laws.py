"""What holds of every answer about Pods that share GPUs, whatever is sent: JSON, and each node in one list."""

import asyncio
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remediator.scheduler.extender import Extender
from remediator.scheduler.mps import Mps
from remediator.scheduler.reasons import VerdictReason
from remediator.scheduler.row import NodeState
from remediator.scheduler.shared.cards import Cards, CardsReason
from tests.harness.scheduler import names_body, victims_body
from tests.remediator.scheduler.shared.stand import Replica, Stand
from tests.remediator.scheduler.test_extender import ROWS, warm
from tests.remediator.web.test_extender_laws import pods

R = VerdictReason
SIZES = (16, 16, 8)
SHARED = {
    "empty": Cards(((0, 16), (1, 16), (2, 8)), (16, 16, 8), SIZES),
    "over": Cards(((0, -4), (1, 2)), (16, 16), SIZES),
    "gone": Cards((), (), ()),
    **{reason.value: Cards(((0, 16),), (16,), (16,), reason, "why") for reason in CardsReason},
}
NODES = {name: NodeState(R.FIT, cards=cards, mps=Mps.USABLE) for name, cards in SHARED.items()}
LISTS = ("NodeNames", "FailedNodes", "FailedAndUnresolvableNodes")
words = st.text(max_size=4)
words |= st.sampled_from(["1", "2", "0", "-1", "65", "true", "yes", "proven", "", "9" * 40, "\u0662", " 2"])
notes = st.dictionaries(
    st.sampled_from(["gpu-cards", "gpu-mps", "require-health", "gang-size", "gang"]), words, max_size=4
)


@pytest.fixture(scope="module")
def shared() -> Extender:
    extender = warm({**ROWS, **NODES})
    extender.shared = object()  # type: ignore[assignment]  # only whether it is on is looked at
    return extender


@pytest.mark.slow
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.sampled_from([*ROWS, *NODES, "nobody"]), max_size=20), pods, notes)
def test_each_node_is_in_one_list_or_the_error_says_why_there_are_none(
    shared: Extender, names: list[str], wanted: dict[str, Any], written: dict[str, str]
) -> None:
    wanted["metadata"]["annotations"] |= {f"remediator.dev/{key}": text for key, text in written.items()}
    wanted["spec"]["containers"] += [{"name": "m", "resources": {"limits": {"aliyun.com/gpu-mem": "6"}}}]
    body = names_body(names, wanted)
    answer = json.loads(shared.filter(body))
    listed = [name for key in LISTS for name in answer[key] or ()]
    assert sorted(listed) == ([] if answer["Error"] else sorted(set(names)))
    scores = json.loads(shared.prioritize(body))
    assert [each["Host"] for each in scores] == ([] if answer["Error"] else list(dict.fromkeys(names)))
    assert all(type(each["Score"]) is int for each in scores)
    left = json.loads(shared.preempt(victims_body({name: ["u"] for name in names}, wanted)))["NodeNameToMetaVictims"]
    assert left.keys() <= set(names)


@pytest.fixture(scope="module")
def bind() -> Iterator[Callable[[bytes], tuple[dict[str, Any], int]]]:
    """Bind, and how many writes there were by then; its nodes are not known here yet."""

    async def stood() -> tuple[Stand, Replica]:
        stand = Stand()
        return stand, Replica(stand, Random(0), stand.server.transport())

    with asyncio.Runner() as runner:
        stand, replica = runner.run(stood())
        made = len(stand.server.audit)
        yield lambda body: (json.loads(runner.run(replica.binder.bind(body))), len(stand.server.audit) - made)


odd = st.none() | st.integers() | st.text(max_size=12)
odd |= st.sampled_from(["..", "a/../b", "%2e%2e", "x?y", "\x00", "é" * 300])
fields = st.dictionaries(st.sampled_from(["PodName", "PodNamespace", "PodUID", "Node"]), odd)
texts = st.fixed_dictionaries({key: odd.map(str) for key in ("PodName", "PodNamespace", "PodUID", "Node")})


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=60) | (fields | texts).map(lambda sent: json.dumps(sent).encode()))
def test_whatever_is_to_be_bound_the_answer_is_one_error_and_nothing_is_written(bind: Any, body: bytes) -> None:
    answer, writes = bind(body)
    assert (list(answer), writes) == (["Error"], 0)
    assert answer["Error"]
    assert "Traceback" not in answer["Error"]
