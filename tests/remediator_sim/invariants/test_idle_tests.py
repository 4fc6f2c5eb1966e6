"""I1, I4, I5: tests of idle nodes within their share, beside nobody, and none stays."""

from remediator_sim.invariants.contract import NAMESPACES, OPERATIONS, PODS, TEMPLATES
from tests.remediator_sim.invariants.histories import History, breaks, histories, holds
from tests.remediator_sim.invariants.idle import BOOT, an_idle_node, made, neighbour, said
from tests.remediator_sim.invariants.recording import Recording, tried


def of_share(count: int, share: int | str, *, over: int = 0, mode: str = "Enforce", nodes: int = 5) -> History:
    """So many tests of so many nodes, of which the first have ended."""

    def write(recording: Recording) -> None:
        recording.policy(mode, idleTest={"probe": "gpu-check", "share": share})
        for number in range(nodes):
            an_idle_node(recording, f"n{number}")
        for number in range(count):
            made(recording, number)
            if number < over:
                said(recording, number, 0)

    return write


HOLDS = [(of_share(2, 2), 2), (of_share(2, "40%"), 2), (of_share(1, "5%"), 1), (of_share(4, 1, over=3), 4)]
BROKEN = [
    (of_share(3, 2), "number 3 of policy p where 2 may be"),
    (of_share(3, "59%"), "number 3 of policy p where 2 may be"),  # 2.95 nodes
    (of_share(1, 2, mode="DryRun"), "for policy p, which asks for none"),
]


@histories("checks", HOLDS)
def test_tests_within_the_share_keep_the_promise(history: History, checks: int) -> None:
    holds("I1", history, checks)


@histories("text", BROKEN)
def test_one_test_more_than_the_share_breaks_the_promise(history: History, text: str) -> None:
    breaks("I1", history, text)


def of_neighbours(count: int, at_once: int, template: str = "gpu-check") -> History:
    """So many Pods on neighbours, for a template that lets so many be, and a policy that tests no idle node."""

    def write(recording: Recording) -> None:
        spec = {"neighbours": {"sameLabel": "rack", "atOnce": at_once}}
        recording.write(TEMPLATES, "gpu-check", spec=spec)
        for number in range(count):
            an_idle_node(recording, f"n{number}")
            neighbour(recording, number, template)

    return write


@histories("checks", [(of_neighbours(2, 2), 2), (of_neighbours(1, 2), 1)])
def test_as_many_neighbours_as_the_template_says_keep_the_promise(history: History, checks: int) -> None:
    holds("I1", history, checks)


TOO_MANY = [
    (of_neighbours(3, 2), "number 3 of template gpu-check where 2 may be"),
    (of_neighbours(1, 2, template="other-check"), "number 1 of template other-check where 0 may be"),
]


@histories("text", TOO_MANY)
def test_one_neighbour_more_than_the_template_says_breaks_the_promise(history: History, text: str) -> None:
    breaks("I1", history, text)


def on_a_node(later: float = 5, boot: str = BOOT, **what: object) -> History:
    """A test of a node to which this has happened, so many seconds before."""

    def write(recording: Recording) -> None:
        recording.policy(idleTest={"probe": "gpu-check", "share": 1})
        an_idle_node(recording, "n0")
        recording.write("nodes", "n0", **what)
        recording.later(later)
        made(recording, 0, boot=boot)

    return write


def beside(pod: dict[str, object], later: float = 5) -> History:
    """A test of a node on which a Pod stands."""

    def write(recording: Recording) -> None:
        recording.policy(idleTest={"probe": "gpu-check", "share": 2})
        an_idle_node(recording, "n0")
        recording.write(PODS, "w", "default", status={"phase": "Running"}, **pod)
        recording.later(later)
        made(recording, 0)

    return write


def of_two(later: float) -> History:
    """Two tests of one node, one so many seconds after the other."""

    def write(recording: Recording) -> None:
        recording.policy(idleTest={"probe": "gpu-check", "share": 2})
        an_idle_node(recording, "n0")
        made(recording, 0)
        recording.later(later)
        made(recording, 1, node="n0")

    return write


def paused(recording: Recording) -> None:
    """A test while a user has paused everything."""
    recording.policy(idleTest={"probe": "gpu-check", "share": 1})
    an_idle_node(recording, "n0")
    recording.write(NAMESPACES, "remediator-system", metadata={"annotations": {"remediator.dev/paused": "x"}})
    recording.later(5)
    made(recording, 0)


def taints(key: str) -> dict[str, object]:
    return {"taints": [{"key": key, "value": "uid-a", "effect": "NoSchedule"}]}


def gpus(count: int) -> dict[str, object]:
    container = {"resources": {"limits": {"nvidia.com/gpu": str(count)} if count else {}}}
    return {"spec": {"nodeName": "n0", "containers": [container]}}


ALONE = [
    (on_a_node(), 1),
    (on_a_node(later=1, spec={"unschedulable": True}), 1),  # who made it may not have heard of it
    (beside(gpus(0)), 1),
    (beside(gpus(8), later=1), 1),
]
NOT_ALONE = [
    (on_a_node(spec={"unschedulable": True}), "it is cordoned"),
    (on_a_node(spec=taints("remediator.dev/case")), "case uid-a has it"),
    (on_a_node(spec=taints("karpenter.sh/disrupted")), "another system works on it"),
    (on_a_node(metadata={"labels": {"remediator.dev/exclude": "true"}}), "a person has excluded it"),
    (on_a_node(metadata={"labels": {"node-role.kubernetes.io/etcd": ""}}), "n0 is part of the control plane"),
    (on_a_node(status={"conditions": [{"type": "Ready", "status": "Unknown"}]}), "it is not Ready"),
    (on_a_node(boot="boot-0"), "its boot is boot-1, not boot-0"),
    (beside(gpus(8)), "Pod default/w holds GPUs there"),
    (of_two(5), "test remediator-operations/test-0 goes on there"),
    (paused, "everything is paused"),
]


@histories("checks", ALONE)
def test_a_test_of_a_node_that_nobody_uses_keeps_the_promise(history: History, checks: int) -> None:
    holds("I4", history, checks)


@histories("text", NOT_ALONE)
def test_a_test_beside_a_repair_a_user_or_their_pods_breaks_the_promise(history: History, text: str) -> None:
    breaks("I4", history, text)


def a_repair_beside(*, deleted: float | None = None) -> History:
    """The Pod of an operation on a node whose test goes on, or was deleted so many seconds before."""

    def write(recording: Recording) -> None:
        recording.policy(idleTest={"probe": "gpu-check", "share": 1})
        an_idle_node(recording, "n1")
        made(recording, 0, node="n1")
        recording.later(5)
        recording.budget()
        recording.case("a", "n1", "Operating", startedAt=True, attempts=tried("reset-1", outcome=""))
        recording.operation("reset-1", "a")
        if deleted is not None:
            at = recording.now.isoformat()
            recording.write(PODS, "test-0", metadata={"deletionTimestamp": at})
            recording.later(deleted)
        recording.pod("pod-1", "reset-1")

    return write


@histories("text", [(a_repair_beside(), "beside test test-0"), (a_repair_beside(deleted=20), "beside test test-0")])
def test_a_repair_beside_a_test_breaks_the_promise(history: History, text: str) -> None:
    breaks("I4", history, text)


def test_a_repair_beside_a_test_that_cannot_be_ended_keeps_the_promise() -> None:
    """It waits for a minute after the grace is over."""
    recording = Recording()
    a_repair_beside(deleted=61)(recording)
    assert not any("beside test" in sentence for sentence in recording.found("I4").broken)


def stays(seconds: float, **meta: object) -> History:
    """A test of ten seconds that stands for so long."""

    def write(recording: Recording) -> None:
        recording.policy(idleTest={"probe": "gpu-check", "share": 1})
        an_idle_node(recording, "n0")
        made(recording, 0)
        recording.write(PODS, "test-0", metadata=meta)
        recording.later(seconds)

    return write


@histories("checks", [(stays(195), 0), (stays(300, deletionTimestamp="2026-01-01T12:00:09+00:00"), 0)])
def test_a_test_that_is_taken_back_in_time_keeps_the_promise(history: History, checks: int) -> None:
    """Two minutes to be placed, its ten seconds, a minute more, and ten seconds for us."""
    holds("I5", history, checks)


@histories("text", [(stays(205), "test test-0 stands since")])
def test_a_test_that_nobody_takes_back_breaks_the_promise(history: History, text: str) -> None:
    breaks("I5", history, text)


def measured(seconds: float) -> History:
    """A Pod on a neighbour that stands for so long after the operation has ended that measured to it."""

    def write(recording: Recording) -> None:
        recording.write(TEMPLATES, "gpu-check", spec={"neighbours": {"sameLabel": "rack", "atOnce": 2}})
        an_idle_node(recording, "n0")
        neighbour(recording, 0)
        recording.write(OPERATIONS, "op", spec={"nodeName": "n1"}, status={"finishedAt": recording.now.isoformat()})
        recording.later(seconds)

    return write


def test_a_neighbour_that_is_given_back_soon_after_the_operation_keeps_the_promise() -> None:
    """Ten seconds for us."""
    holds("I5", measured(9), 0)
    breaks("I5", measured(12), "test test-0 stands since")
