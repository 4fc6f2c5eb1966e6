"""NVML as the second source of idleness: what it vetoes, what it must prove, and what is done where it cannot tell."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remediator.core import names
from remediator.core.gpu_use import GPU_USE, UseProof, found, read
from remediator.core.idle_policy import Finding, IdlePolicy, NvmlSource, Signal
from remediator.core.node import Node, NodeCondition, Status
from remediator.core.pod_facts import PodFacts
from remediator.core.shared_gpus import CardSizes
from remediator.core.writers import DETECTOR_STALE
from remediator.janitor.decide import JanitorReason
from remediator.janitor.idle import nvml
from remediator.janitor.idle.evidence import Evidence, SignalAnswers, judge
from remediator.janitor.idle.table import State
from remediator.janitor.outcome import JanitorOutcome
from tests.harness.examples import examples
from tests.harness.kinds import PODS, Object
from tests.remediator.janitor.idle_place import HOUR, NODES, Cluster, became
from tests.remediator.janitor.place import NOW

UID, MINUTE = "3f2a1b0c-1234-5678-9abc-def012345678", timedelta(minutes=1)
WINDOW = 2 * HOUR


def stamped(at: datetime) -> str:
    return f"{at:%Y%m%dT%H%MZ}"


def condition(name: str, status: Status = Status.TRUE, message: str = "", beat: datetime = NOW) -> NodeCondition:
    return NodeCondition(name, status, "", beat, beat, message)


def conditions(message: str, **more: NodeCondition) -> dict[str, NodeCondition]:
    return {GPU_USE: condition(GPU_USE, message=message), **more}


WHOLE = "nvidia.com/gpu"


def node(said: dict[str, NodeCondition] | None) -> Node | None:
    """One with eight GPUs, each of one Pod at a time."""
    return None if said is None else Node("gpu-1", "u", {}, said, devices=((WHOLE, 8),))


LONG, LATELY = stamped(NOW - WINDOW), stamped(NOW - WINDOW + MINUTE)
FREE = f"gpus=8 others-until={LONG}"
PROOFS = {
    "nobody used one in the window": (conditions(FREE), UseProof.UNUSED, ""),
    "others did, and nobody knows who": (
        conditions(f"gpus=8 others-until={LATELY}"),
        UseProof.UNKNOWN,
        "2026-01-09 22:01",
    ),
    "nobody can tell who did": (conditions("gpus=8 others-until=?"), UseProof.UNKNOWN, "does not tell"),
    "it does": (conditions(f"gpus=8 used=00000001,3f2a1b0c others-until={LONG}"), UseProof.USED, "last hour"),
    "it does, and nobody can tell of others": (conditions("gpus=8 used=3f2a1b0c others-until=?"), UseProof.USED, ""),
    "another does": (conditions(f"gpus=8 used=00000001 others-until={LONG}"), UseProof.UNUSED, ""),
    "it did in the window": (
        conditions(f"gpus=8 used-until=3f2a1b0c@{LATELY} others-until={LONG}"),
        UseProof.USED,
        "until 2026-01-09 22:01 UTC",
    ),
    "it did before": (conditions(f"gpus=8 used-until=3f2a1b0c@{LONG} others-until={LONG}"), UseProof.UNUSED, ""),
    "no node": (None, UseProof.UNKNOWN, "its node is not known"),
    "no Condition": ({"Ready": condition("Ready")}, UseProof.UNKNOWN, "no Condition GpuUse"),
    "no GPU": ({GPU_USE: condition(GPU_USE, Status.FALSE)}, UseProof.UNKNOWN, "is False"),
    "the detector cannot tell": (
        {GPU_USE: condition(GPU_USE, Status.UNKNOWN, "lost")},
        UseProof.UNKNOWN,
        "Unknown: lost",
    ),
    "no heartbeat for 16 minutes": (
        {GPU_USE: condition(GPU_USE, message=FREE, beat=NOW - 16 * MINUTE)},
        UseProof.UNKNOWN,
        "GpuUse of its node has no",
    ),
    "a heartbeat from the future": (
        {GPU_USE: condition(GPU_USE, message=FREE, beat=NOW + 6 * MINUTE)},
        UseProof.UNKNOWN,
        "has no heartbeat",
    ),
    "detectors run": (conditions(FREE, DetectorStale=condition(DETECTOR_STALE, Status.FALSE)), UseProof.UNUSED, ""),
    "one has stopped": (conditions(FREE, DetectorStale=condition(DETECTOR_STALE)), UseProof.UNKNOWN, "DetectorStale"),
    "nobody says that they run": (
        conditions(FREE, DetectorStale=condition(DETECTOR_STALE, Status.FALSE, beat=NOW - HOUR)),
        UseProof.UNKNOWN,
        "no heart",
    ),
    "nonsense": (conditions("gpus=8 used=3f2a1b0c"), UseProof.UNKNOWN, "cannot be read"),
    "no day": (conditions("gpus=8 others-until=20260231T0000Z"), UseProof.UNKNOWN, "cannot be read"),
}


@pytest.mark.parametrize(("said", "proof", "words"), PROOFS.values(), ids=PROOFS.keys())
def test_only_a_report_of_now_about_the_whole_window_proves_that_a_pod_used_nothing(
    said: dict[str, NodeCondition] | None, proof: UseProof, words: str
) -> None:
    result = found(node(said), UID, WINDOW, NOW)
    assert (result.proof, words in result.why) == (proof, True), result


EXCLUSIVE = Node("gpu-1", "u", {}, {}, devices=((WHOLE, 8), ("nvidia.com/gpu.count", 8)))
SHARED = {
    "16 are offered": replace(EXCLUSIVE, devices=((WHOLE, 16),)),
    "a label counts replicas": replace(EXCLUSIVE, labels={f"{WHOLE}.replicas": "4"}),
    "a label says time-slicing": replace(EXCLUSIVE, labels={f"{WHOLE}.sharing-strategy": "time-slicing"}),
    "a label says MPS": replace(EXCLUSIVE, labels={names.GPU_MPS: "true"}),
    "the resource of shared ones": replace(EXCLUSIVE, devices=((WHOLE, 4), (f"{WHOLE}.shared", 16))),
    "memory of cards is shared": replace(EXCLUSIVE, cards=CardSizes((16, 16))),
    "only claims of devices": replace(EXCLUSIVE, devices=()),
}


@pytest.mark.parametrize("how", SHARED)
@pytest.mark.parametrize("named", ["used=00000001", f"used-until=00000001@{LATELY}"])
def test_where_pods_may_share_a_gpu_the_use_that_one_is_named_for_may_have_been_of_any_other(
    how: str, named: str
) -> None:
    for place, proof in ((EXCLUSIVE, UseProof.UNUSED), (SHARED[how], UseProof.UNKNOWN)):
        told = replace(place, conditions=conditions(f"gpus=8 {named} others-until={LONG}"))
        assert found(told, UID, WINDOW, NOW).proof is proof
        assert found(told, "00000001-1234", WINDOW, NOW).proof is UseProof.USED
    before = conditions(f"gpus=8 used-until=00000001@{LONG} others-until={LONG}")
    assert found(replace(SHARED[how], conditions=before), UID, WINDOW, NOW).proof is UseProof.UNUSED


def test_what_a_node_says_why_it_cannot_tell_is_one_line_of_200_characters() -> None:
    said = "lost\ndeleted  pods/team-b/p\x1b[2J\n" + "A" * 1_000_000
    unknown = {GPU_USE: condition(GPU_USE, Status.UNKNOWN, said)}
    why = found(node(unknown), UID, WINDOW, NOW).why
    assert why.startswith("GpuUse of its node is Unknown: lost deleted pods/team-b/p [2J AAA")
    assert (why.isprintable(), len(why)) == (True, len("GpuUse of its node is Unknown: ") + 200)


def test_the_window_ends_with_the_heartbeat_so_that_a_clock_that_is_wrong_moves_both_times() -> None:
    for behind in (0, 10, 15):
        told = {GPU_USE: condition(GPU_USE, message=f"gpus=8 others-until={LONG}", beat=NOW - behind * MINUTE)}
        assert found(node(told), UID, WINDOW - behind * MINUTE, NOW).proof is UseProof.UNUSED
        assert found(node(told), UID, WINDOW - behind * MINUTE + MINUTE, NOW).proof is UseProof.UNKNOWN


@given(st.text(max_size=40) | st.from_regex("gpus=8( used=[0-9a-f]{8})?( others-until=[0-9]{8}T[0-9]{4}Z)?"))
def test_whatever_a_node_says_is_read_or_not_and_never_an_error(message: str) -> None:
    read(message)


PROMETHEUS = {state: Evidence(state, "") for state in State}


@pytest.mark.parametrize("source", [NvmlSource.REQUIRED, NvmlSource.IF_REPORTED])
@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("case", PROOFS)
def test_a_pod_is_idle_only_if_prometheus_says_so_and_nvml_can_only_take_that_back(
    case: str, state: State, source: NvmlSource
) -> None:
    said, proof, _ = PROOFS[case]
    policy = IdlePolicy("gpus", ("team",), nvml=source)
    pod = PodFacts("team", "p", UID, 2, NOW - 10 * HOUR, node="gpu-1")
    result = nvml.judge(pod, PROMETHEUS[state], {"gpu-1": node(said)}, policy, NOW).state
    if state is not State.IDLE:
        assert result is state
    else:
        unknown = State.UNKNOWN if source is NvmlSource.REQUIRED else State.IDLE
        table = {UseProof.USED: State.CONTRADICTED, UseProof.UNUSED: State.IDLE, UseProof.UNKNOWN: unknown}
        assert result is table[proof]


@settings(max_examples=examples(300), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([119, 120]), st.sampled_from([*PROOFS])), max_size=8
    )
)
def test_with_both_sources_what_is_taken_is_what_both_find_idle(drawn: list[tuple[float, int, str]]) -> None:
    policy = IdlePolicy("gpus", ("team",), nvml=NvmlSource.REQUIRED)
    by_prometheus, by_nvml, by_both = set(), set(), set()
    for number, (use, steps, case) in enumerate(drawn):
        pod = PodFacts("team", f"p{number}", UID, 2, NOW - 10 * HOUR, node="gpu-1")
        answers = [SignalAnswers(Signal(), {pod.key: use}, {pod.key: 2.0}, {pod.key: float(steps)})]
        first = judge(pod, answers, policy, NOW)
        nodes = {"gpu-1": node(PROOFS[case][0])}
        by_prometheus |= {number} if first.state is State.IDLE else set()
        by_nvml |= {number} if found(nodes["gpu-1"], UID, policy.idle_for, NOW).proof is UseProof.UNUSED else set()
        by_both |= {number} if nvml.judge(pod, first, nodes, policy, NOW).state is State.IDLE else set()
    assert by_both == by_prometheus & by_nvml


def test_only_policies_about_idle_gpus_ask_nvml() -> None:
    asks = {
        (finds, source)
        for finds in Finding
        for source in NvmlSource
        if IdlePolicy("x", ("*",), finds=finds, nvml=source).asks_nvml
    }
    assert asks == {(Finding.IDLE_GPUS, NvmlSource.REQUIRED), (Finding.IDLE_GPUS, NvmlSource.IF_REPORTED)}
    assert IdlePolicy("x", ("*",)).nvml is NvmlSource.IF_REPORTED


# --- in a cluster ---------------------------------------------------------------------------------------------------

TOLD = [(JanitorOutcome.TOLD, "pods/team/p", JanitorReason.IDLE_NOTICE)]
DELETED = [(JanitorOutcome.DELETED, "pods/team/p", JanitorReason.IDLE)]
IN_USE = [(JanitorOutcome.HELD, "pods/team/p", JanitorReason.NVML_IN_USE)]
TAKEN_BACK = [(JanitorOutcome.CLEARED, "pods/team/p", JanitorReason.NVML_IN_USE)]
CANNOT_TELL = [(JanitorOutcome.HELD, "pods/team/p", JanitorReason.CANNOT_TELL)]
LONG_FREE = f"gpus=8 others-until={stamped(NOW - 9 * HOUR)}"


async def cluster(source: str) -> tuple[Cluster, Object]:
    """A Pod on gpu-1 that Prometheus has idle."""
    at = Cluster()
    await at.policy(nvml=source)
    return at, await at.gpus("p", node="gpu-1")


def in_use(pod: Object) -> str:
    return f"gpus=8 used={pod['metadata']['uid'][:8]} others-until={stamped(NOW - 9 * HOUR)}"


@pytest.mark.parametrize("source", ["Required", "IfReported"])
async def test_what_both_have_idle_is_taken_after_its_grace(source: str) -> None:
    at, _ = await cluster(source)
    await at.tells("gpu-1", LONG_FREE)
    assert became(await at.idle()) == TOLD
    await at.tells("gpu-1", LONG_FREE, 4)
    assert became(await at.idle(4)) == DELETED


@pytest.mark.parametrize("source", ["Required", "IfReported"])
async def test_what_nvml_has_in_use_is_not_idle_whatever_prometheus_says(source: str) -> None:
    at, pod = await cluster(source)
    await at.tells("gpu-1", in_use(pod))
    report = await at.idle()
    assert became(report) == IN_USE
    assert report.lines[0].message == "alice: NVML: p: it uses a GPU, or did within the last hour"
    assert (report.gpus, at.writes()) == (0, [])
    await at.tells("gpu-1", LONG_FREE, 1)
    assert became(await at.idle(1)) == TOLD
    await at.tells("gpu-1", in_use(pod), 6)
    assert became(await at.idle(6)) == TAKEN_BACK
    assert names.IDLE_UNTIL not in await at.marks(PODS, "p")


@pytest.mark.parametrize(("offered", "became_of_it"), [("8", TOLD), ("32", CANNOT_TELL)])
async def test_on_a_node_whose_gpus_are_time_sliced_the_use_of_another_pod_leaves_it_open(
    offered: str, became_of_it: list[object]
) -> None:
    at, _ = await cluster("Required")
    await at.tells("gpu-1", f"gpus=8 used=00000001 others-until={stamped(NOW - 9 * HOUR)}")
    await at.admin.patch(NODES, "gpu-1", {"status": {"capacity": {WHOLE: offered}}}, subresource="status")
    assert became(await at.idle()) == became_of_it


async def test_off_does_not_look_at_it() -> None:
    at, pod = await cluster("Off")
    await at.tells("gpu-1", in_use(pod))
    assert became(await at.idle()) == TOLD
    assert not [path for _, path, *_ in at.transport.asked if "/nodes/" in path]


@pytest.mark.parametrize(
    "said", ["no node", "no Condition", "an old heartbeat", "DetectorStale", "MIG", "not long enough"]
)
async def test_where_nvml_cannot_tell_required_starts_nothing_and_ends_nothing_and_if_reported_goes_on(
    said: str,
) -> None:
    required, _ = await cluster("Required")
    if_reported, _ = await cluster("IfReported")
    for at in (required, if_reported):
        await at.tells("gpu-1", LONG_FREE)
        assert became(await at.idle()) == TOLD
        if said == "no node":
            await at.admin.delete(NODES, "gpu-1")
        elif said == "no Condition":
            await at.admin.patch(NODES, "gpu-1", {"status": {"conditions": []}}, subresource="status")
        elif said != "an old heartbeat":
            stale = {"DetectorStale": "True"} if said == "DetectorStale" else {}
            until = {"MIG": "?", "not long enough": stamped(NOW + 4 * HOUR)}.get(said, stamped(NOW - 9 * HOUR))
            await at.tells("gpu-1", f"gpus=8 others-until={until}", 5, **stale)
    assert became(await required.idle(5)) == CANNOT_TELL
    assert required.writes() == []
    assert names.IDLE_UNTIL in await required.marks(PODS, "p"), "the notice stands"
    assert became(await if_reported.idle(5)) == DELETED


async def test_the_node_is_read_again_before_a_pod_is_taken() -> None:
    at, pod = await cluster("IfReported")
    await at.tells("gpu-1", LONG_FREE)
    await at.idle()
    await at.tells("gpu-1", LONG_FREE, 5)

    async def meanwhile() -> None:
        await at.tells("gpu-1", in_use(pod), 5)

    at.before_get = meanwhile  # the first object that is read by its name in a namespace: the Pod, before it is taken
    assert became(await at.idle(5)) == []
    assert await at.names(PODS, "team") == {"p"}
    assert became(await at.idle(5)) == TAKEN_BACK


async def test_a_node_is_read_once_in_a_pass_however_many_pods_it_has() -> None:
    at = Cluster()
    await at.policy(mode="DryRun", nvml="Required")
    await at.tells("gpu-1", LONG_FREE)
    for name in ("a", "b", "c"):
        await at.gpus(name, node="gpu-1")
    await at.gpus("busy", use=50, node="gpu-2")
    assert len(became(await at.idle())) == 3
    assert [path for _, path, *_ in at.transport.asked if "/nodes/" in path] == ["/api/v1/nodes/gpu-1"]


@pytest.mark.parametrize(("code", "lines"), [(403, CANNOT_TELL), (503, [])])
async def test_nodes_that_cannot_be_read_are_a_problem_of_the_policy(code: int, lines: list[object]) -> None:
    at, _ = await cluster("Required")
    await at.tells("gpu-1", LONG_FREE)
    at.server.faults.refuse(code, when=lambda asked: "/nodes/" in asked.path)
    report = await at.idle()
    assert became(report) == lines
    (problem,) = report.problems
    begin = "nobody can tell what NVML says: nodes cannot be read" if code == 403 else "the pass ended early"
    assert problem.startswith(begin)
    assert at.writes() == []
