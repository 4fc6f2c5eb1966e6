"""What goes over the wire, in each form of the protocol, and that nothing a caller sends breaks it."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remediator.metrics import REGISTRY
from remediator.scheduler import extender as module
from remediator.scheduler import fleet
from remediator.scheduler.attributes.catalog import facts_of
from remediator.scheduler.extender import Extender
from remediator.scheduler.reasons import FAILED, UNRESOLVABLE, VerdictReason
from remediator.scheduler.row import NodeState
from tests.builders import a_policy
from tests.harness.replica import an_extender
from tests.harness.scheduler import GPU, names_body, node, nodes_body, pod

ROWS = {
    "fit": NodeState(VerdictReason.FIT, ((GPU, 8),)),
    "busy": NodeState(VerdictReason.FIT, ((GPU, 8),), ((GPU, 6),)),
    "full": NodeState(VerdictReason.FIT, ((GPU, 8),), ((GPU, 8),)),
    "small": NodeState(VerdictReason.FIT, ((GPU, 0),)),
    "cpu": NodeState(VerdictReason.FIT),
    **{
        reason.value.lower(): NodeState(reason, ((GPU, 8),))
        for reason in VerdictReason
        if reason not in (VerdictReason.FIT,)
    },
}
LISTS = ("NodeNames", "FailedNodes", "FailedAndUnresolvableNodes")


def warm(rows: dict[str, NodeState] | None = None) -> Extender:
    """An extender that has these rows and follows nothing."""
    found, informers = an_extender()
    found._fleet.rows.update(ROWS if rows is None else rows)
    informers.policies._reflector.store["gpu-lost"] = a_policy()
    found._fleet.complete.set()
    return found


WARM = warm()


def filtered(body: bytes, by: Extender = WARM) -> dict[str, Any]:
    found = json.loads(by.filter(body))
    assert list(found) == ["Nodes", *LISTS, "Error"]
    return found


def scored(body: bytes, by: Extender = WARM) -> dict[str, int]:
    found = json.loads(by.prioritize(body))
    assert all(list(entry) == ["Host", "Score"] and type(entry["Score"]) is int for entry in found)
    return {entry["Host"]: entry["Score"] for entry in found}


def listed(answer: dict[str, Any]) -> list[str]:
    whole = (answer["Nodes"] or {"items": []})["items"]
    left = [*(answer["NodeNames"] or []), *(one["metadata"]["name"] for one in whole)]
    return [*left, *answer["FailedNodes"], *answer["FailedAndUnresolvableNodes"]]


def test_names_are_answered_with_names_and_refusals_with_the_text_of_their_reason() -> None:
    answer = filtered(names_body(["fit", "full", "unhealthy", "small", "busy"], pod(gpus=1)))
    assert answer == {
        "Nodes": None,
        "NodeNames": ["fit", "busy"],
        "FailedNodes": {"full": FAILED[VerdictReason.NO_FREE_GPUS]},
        "FailedAndUnresolvableNodes": {
            "unhealthy": UNRESOLVABLE[VerdictReason.UNHEALTHY],
            "small": UNRESOLVABLE[VerdictReason.TOO_FEW_GPUS],
        },
        "Error": "",
    }


def test_nodes_that_are_alike_share_a_row_and_no_more_rows_are_shared_than_a_few_thousand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def alike(cpu: int) -> dict[str, NodeState]:
        return {f"{name}-{cpu}": NodeState(VerdictReason.FIT, ((GPU, 8),), cpu=cpu) for name in "ab"}

    monkeypatch.setattr(fleet, "MOST_ALIKE", 3)
    extender = warm({})
    for cpu in range(7):
        extender.stand(alike(cpu))
        assert extender._fleet.rows[f"a-{cpu}"] is extender._fleet.rows[f"b-{cpu}"]
    assert len(extender._fleet.rows) == 14
    assert len(extender._fleet._alike) <= 3


def test_whole_nodes_come_back_whole_and_unchanged() -> None:
    good, bad = node("fit") | {"spec": {"odd": [1, {"deep": "π"}]}}, node("unhealthy")
    answer = filtered(nodes_body([good, bad]))
    assert answer["Nodes"]["items"] == [good]
    assert answer["NodeNames"] is None
    assert listed(answer) == ["fit", "unhealthy"]


def test_a_whole_node_that_we_know_is_judged_by_what_we_know() -> None:
    assert list(filtered(nodes_body([node("full", 8)]))["FailedNodes"]) == ["full"]


def test_a_whole_node_that_we_do_not_know_is_judged_by_what_it_says() -> None:
    nodes = [node("new", 8), node("new-small", 1), node("new-down", 8, Ready="False")]
    answer = filtered(nodes_body(nodes, pod(gpus=2)))
    assert [one["metadata"]["name"] for one in answer["Nodes"]["items"]] == ["new"]
    assert answer["FailedAndUnresolvableNodes"] == {
        "new-small": UNRESOLVABLE[VerdictReason.TOO_FEW_GPUS],
        "new-down": UNRESOLVABLE[VerdictReason.NOT_READY],
    }
    assert scored(nodes_body(nodes, pod(gpus=2)))["new"] > scored(names_body(["new"], pod(gpus=2)))["new"]
    assert "new" not in WARM._fleet.rows, "a simulated node is not remembered"
    assert filtered(names_body(["new-small"], pod(gpus=2)))["NodeNames"] == ["new-small"]


def test_a_name_that_we_do_not_know_is_let_through_and_comes_after_healthy_nodes() -> None:
    assert filtered(names_body(["nobody"]))["NodeNames"] == ["nobody"]
    scores = scored(names_body(["nobody", "fit", "recentlyrepaired", "waitingforrepair"]))
    assert scores["fit"] > scores["recentlyrepaired"] > scores["nobody"] > scores["waitingforrepair"] >= 0


def test_a_pod_of_a_daemonset_may_go_to_a_sick_node() -> None:
    assert filtered(names_body(["unhealthy"], pod(gpus=0, daemon=True)))["NodeNames"] == ["unhealthy"]
    assert filtered(names_body(["unhealthy"], pod(gpus=0)))["NodeNames"] == []


def _lower(key: str) -> str:
    return key.lower()


def _camel(key: str) -> str:
    return key[0].lower() + key[1:]


@pytest.mark.parametrize("change", [_lower, _camel, str.upper], ids=["lower", "camel", "upper"])
@pytest.mark.parametrize("body", [names_body(["fit", "unhealthy"]), nodes_body([node("fit"), node("unhealthy")])])
def test_keys_may_be_in_any_case(change: Callable[[str], str], body: bytes) -> None:
    other = json.dumps({change(key): value for key, value in json.loads(body).items()}).encode()
    assert WARM.filter(other) == WARM.filter(body)
    assert WARM.prioritize(other) == WARM.prioritize(body)


def test_no_nodes_are_answered_with_none() -> None:
    assert listed(filtered(names_body([]))) == listed(filtered(nodes_body([]))) == []
    assert scored(names_body([])) == {}


BAD = [
    pytest.param(b"", "truncated", id="empty"),
    pytest.param(b"hello", "malformed", id="no JSON"),
    pytest.param(b"[]", "Expected `object`", id="no object"),
    pytest.param(b"{}", "Pod is missing", id="no key"),
    pytest.param(b'{"NodeNames": ["a"]}', "Pod is missing", id="no Pod"),
    pytest.param(b'{"Pod": null, "NodeNames": []}', "Pod: Expected `object`", id="Pod is null"),
    pytest.param(b'{"Pod": {}}', "NodeNames and Nodes are both missing", id="no nodes"),
    pytest.param(b'{"Pod": {}, "NodeNames": [7]}', "$.NodeNames[0]", id="a name that is a number"),
    pytest.param(b'{"Pod": {}, "Nodes": {}}', "items", id="no items"),
    pytest.param(b'{"Pod": {}, "Nodes": {"items": [{}]}}', "metadata", id="a node without a name"),
    pytest.param(b'{"Pod": {}, "Nodes": {"items": [{"metadata": {"name": "x"}, "spec": 1}]}}', "$.spec", id="no spec"),
    pytest.param(b'{"Pod": {}, "x": ' + b"[" * 200_000, "recursion", id="too deep"),
    pytest.param(
        b'{"Pod": {}, "Nodes": {"items": [{"metadata": {"name": "a"}, "x": "\xff"}]}}', "utf-8", id="no UTF-8"
    ),
    pytest.param(nodes_body([node("new", "half")]), "whole number", id="a node with half a GPU"),
    pytest.param(names_body(["a"], pod(gpus="half")), "whole number", id="half a GPU"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("body", "told"), BAD)
def test_what_is_malformed_is_told_in_error_with_the_place_and_is_counted(body: bytes, told: str) -> None:
    before = _count("filter", "malformed"), _count("prioritize", "malformed")
    answer = filtered(body)
    assert told in answer["Error"]
    assert answer["NodeNames"] is None
    assert scored(body) == {}
    assert (_count("filter", "malformed"), _count("prioritize", "malformed")) == (before[0] + 1, before[1] + 1)


ODD_TIMES = ["9999-12-31T23:59:59Z", "10000-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "2026-01-01T00:00:00", "now"]


@pytest.mark.parametrize("odd", ODD_TIMES)
@pytest.mark.parametrize("time", ["lastTransitionTime", "lastHeartbeatTime"])
def test_a_condition_with_an_odd_time_makes_the_health_of_its_node_unknown_and_of_no_other(odd: str, time: str) -> None:
    poisoned, sick = node("new", GpuLost="True"), node("sick", GpuLost="True")
    poisoned["status"]["conditions"][1][time] = odd
    answer = filtered(nodes_body([poisoned, sick]))
    assert answer["Error"] == ""
    assert [entry["metadata"]["name"] for entry in answer["Nodes"]["items"]] == ["new"]
    assert list(answer["FailedAndUnresolvableNodes"]) == ["sick"]


def _count(call: str, outcome: str) -> float:
    labels = {"call": call, "result": outcome}
    return REGISTRY.get_sample_value("remediator_extender_answers_total", labels) or 0.0


def test_an_extender_that_is_cold_says_so_and_prefers_nothing() -> None:
    cold, _ = an_extender()
    answer = filtered(names_body(["fit"]), cold)
    assert "has not read the cluster yet" in answer["Error"]
    assert scored(names_body(["fit"]), cold) == {}


def test_more_shapes_than_are_kept_are_answered_all_the_same(monkeypatch) -> None:
    monkeypatch.setattr(module, "SHAPES", 3)
    found = warm()
    for count in [*range(1, 9), *range(1, 9)]:
        assert ("busy" in filtered(names_body(["busy"], pod(gpus=count)), found)["NodeNames"]) == (count <= 2)
        assert len(found._shapes) <= 3


def test_the_shape_that_is_asked_for_most_lately_is_kept(monkeypatch) -> None:
    monkeypatch.setattr(module, "SHAPES", 2)
    found = warm()
    for count in (1, 2, 1, 3):
        found.filter(names_body(["fit"], pod(gpus=count)))
    assert [dict(shape.gpus)[GPU] for shape in found._shapes] == [1, 3]


# --- what a Pod asks by attributes -----------------------------------------------------------------------------------

A100 = facts_of({f"{GPU}.memory": "40960", f"{GPU}.product": "NVIDIA-A100-SXM4-40GB"})
H100 = facts_of({f"{GPU}.memory": "81559", f"{GPU}.product": "NVIDIA-H100-80GB-HBM3"})
MIXED = {
    "a100": NodeState(VerdictReason.FIT, ((GPU, 8),), (), A100),
    "h100": NodeState(VerdictReason.FIT, ((GPU, 8),), (), H100),
    "bare": NodeState(VerdictReason.FIT, ((GPU, 8),)),
}


def asking(**annotations: str) -> dict[str, Any]:
    """A Pod that asks for one GPU, with annotations of ours."""
    wanted = pod()
    wanted["metadata"]["annotations"] = {
        "other": "x",
        **{f"remediator.dev/{key}": text for key, text in annotations.items()},
    }
    return wanted


def test_a_pod_gets_only_nodes_whose_gpus_are_known_to_be_what_it_requires() -> None:
    mixed = warm(MIXED)
    names = list(MIXED)
    answer = filtered(names_body(names, asking(gpu="memory>=80G")), mixed)
    assert answer["NodeNames"] == ["h100"]
    assert answer["FailedAndUnresolvableNodes"] == {
        "a100": UNRESOLVABLE[VerdictReason.OTHER_ATTRIBUTES],
        "bare": UNRESOLVABLE[VerdictReason.ATTRIBUTES_UNKNOWN],
    }
    assert filtered(names_body(names, asking(gpu="memory<80G")), mixed)["NodeNames"] == ["a100"], "another shape"
    assert filtered(names_body(names), mixed)["NodeNames"] == names, "who asks for nothing gets any"


def test_a_pod_gets_first_what_it_prefers() -> None:
    scores = scored(names_body([*MIXED], asking(**{"gpu-preferred": "model=*H100*"})), warm(MIXED))
    assert scores["h100"] > scores["a100"] == scores["bare"]


def test_an_annotation_that_cannot_be_read_refuses_every_node_with_the_place_of_the_mistake() -> None:
    answer = filtered(names_body([*MIXED], asking(gpu="memory>=80G, memroy<1")), warm(MIXED))
    assert answer["Error"] == "", "an error of an ignorable extender would let the Pod go anywhere"
    texts = set(answer["FailedAndUnresolvableNodes"].values())
    words = UNRESOLVABLE[VerdictReason.ATTRIBUTES_MALFORMED]
    assert len(answer["FailedAndUnresolvableNodes"]) == 3
    assert len(texts) == 1
    assert texts.pop().startswith(f"{words}: remediator.dev/gpu: at character 14: 'memroy' is no attribute")


def test_a_whole_node_is_judged_by_its_own_labels() -> None:
    new = node("new")
    new["metadata"]["labels"] |= {f"{GPU}.memory": "81559"}
    for limit, left in (("80G", ["new"]), ("90G", [])):
        answer = filtered(nodes_body([new], asking(gpu=f"memory>={limit}")))
        assert [entry["metadata"]["name"] for entry in answer["Nodes"]["items"]] == left


# --- laws ------------------------------------------------------------------------------------------------------------

names = st.lists(st.sampled_from([*ROWS, "nobody"]) | st.text(max_size=8))
wanted = st.builds(pod, gpus=st.integers(0, 10), daemon=st.booleans())


@given(names, wanted)
def test_each_name_that_is_sent_is_in_exactly_one_list(sent: list[str], wanted_pod: dict[str, Any]) -> None:
    body = names_body(sent, wanted_pod)
    assert sorted(listed(filtered(body))) == sorted(set(sent))
    assert [entry["Host"] for entry in json.loads(WARM.prioritize(body))] == list(dict.fromkeys(sent))


@given(names, wanted)
def test_each_node_that_is_sent_whole_is_in_exactly_one_list(sent: list[str], wanted_pod: dict[str, Any]) -> None:
    body = nodes_body([node(name) for name in sent], wanted_pod)
    assert sorted(listed(filtered(body))) == sorted(set(sent))


@given(names, wanted)
def test_both_forms_say_the_same_of_nodes_that_are_known(sent: list[str], wanted_pod: dict[str, Any]) -> None:
    known = [name for name in dict.fromkeys(sent) if name in ROWS]
    by_name = filtered(names_body(known, wanted_pod))
    whole = filtered(nodes_body([node(name) for name in known], wanted_pod))
    assert by_name["NodeNames"] == [one["metadata"]["name"] for one in whole["Nodes"]["items"]]
    assert all(by_name[key] == whole[key] for key in LISTS[1:])


@given(names, wanted)
def test_what_is_refused_scores_nothing_and_the_order_of_names_does_not_matter(
    sent: list[str], wanted_pod: dict[str, Any]
) -> None:
    body = names_body(sent, wanted_pod)
    scores, answer = scored(body), filtered(body)
    assert all(scores[name] == 0 for key in LISTS[1:] for name in answer[key])
    assert scored(names_body(sent[::-1], wanted_pod)) == scores


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)
keys = st.sampled_from(["Pod", "pod", "NodeNames", "nodenames", "Nodes", "items", "metadata", "name", "spec", "status"])
deeper = st.sampled_from(["containers", "resources", "requests", GPU, "allocatable", "ownerReferences", "conditions"])
shaped = st.recursive(
    json_values,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys | deeper, inner, max_size=4),
    max_leaves=20,
)


def _mutated(body: bytes) -> st.SearchStrategy[bytes]:
    """The body with a few bytes replaced, and perhaps cut."""
    spots = st.lists(st.tuples(st.integers(0, len(body) - 1), st.integers(0, 255)), max_size=4)
    return st.builds(lambda at, cut: _with(body, at)[:cut], spots, st.integers(len(body) // 2, len(body)))


def _with(body: bytes, spots: list[tuple[int, int]]) -> bytes:
    changed = bytearray(body)
    for at, value in spots:
        changed[at] = value
    return bytes(changed)


bodies = (
    st.binary(max_size=40)
    | shaped.map(lambda value: json.dumps(value).encode())
    | st.fixed_dictionaries({"Pod": shaped, "NodeNames": shaped, "Nodes": shaped}).map(lambda v: json.dumps(v).encode())
    | _mutated(names_body(["fit", "unhealthy", "nobody"]))
    | _mutated(nodes_body([node("fit", 1), node("new", 1)]))
)


@pytest.mark.slow
@given(bodies)
def test_whatever_is_sent_the_answer_is_valid_json_and_nothing_is_raised(body: bytes) -> None:
    answer = filtered(body)
    assert answer["Error"] or len(listed(answer)) == len(set(listed(answer)))
    scored(body)


@pytest.fixture(autouse=True)
def _unchanged() -> Iterator[None]:
    """No request leaves anything behind in the fleet."""
    yield
    assert WARM._fleet.rows == ROWS


def requires(health: str) -> dict[str, Any]:
    """A Pod that asks for one GPU, and for a node of such health."""
    asking = pod(gpus=1)
    asking["metadata"]["annotations"] = {"remediator.dev/require-health": health}
    return asking


def test_a_pod_that_requires_proven_health_gets_neither_an_unknown_node_nor_a_stranger() -> None:
    answer = filtered(names_body(["fit", "healthunknown", "stranger", "busy"], requires("proven")))
    assert answer["NodeNames"] == ["fit", "busy"]
    text = UNRESOLVABLE[VerdictReason.UNPROVEN]
    assert answer["FailedAndUnresolvableNodes"] == {"healthunknown": text, "stranger": text}
    assert filtered(names_body(["stranger"], pod(gpus=1)))["NodeNames"] == ["stranger"]


def test_a_requirement_that_cannot_be_read_refuses_every_node_and_says_what_to_write() -> None:
    answer = filtered(names_body(["fit"], requires("yes")))
    (text,) = answer["FailedAndUnresolvableNodes"].values()
    assert text.endswith("remediator.dev/require-health: 'yes' is unknown; write proven; or remove it")
