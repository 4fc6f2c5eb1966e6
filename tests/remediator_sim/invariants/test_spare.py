"""I4: a node is taken while its Pods find GPUs elsewhere: that is counted, and the contrary reported."""

import pytest

from tests.remediator_sim.invariants.histories import breaks, holds
from tests.remediator_sim.invariants.recording import Recording

GPU = "nvidia.com/gpu"


def _fleet(recording: Recording, *, asks: bool = True, **held: tuple[int, ...]) -> None:
    """Nodes of 8 GPUs each, and what each Pod on them holds, for five seconds; a case of n1."""
    recording.policy(requireSpareGPUs=asks)
    for name, sizes in held.items():
        recording.node(name)
        recording.write("nodes", name, metadata={"name": name, "labels": {"nvidia.com/gpu.count": "8"}})
        for number, size in enumerate(sizes):
            _pod(recording, f"{name}-{number}", name, size)
    recording.case("a", "n1", "Held")
    recording.later(5)


def _pod(recording: Recording, name: str, node: str, size: int, **metadata: object) -> None:
    spec = {"nodeName": node, "containers": [{"name": "main", "resources": {"limits": {GPU: str(size)}}}]}
    head = {"name": name, "uid": f"uid-{name}", "namespace": "default"} | metadata
    recording.write("pods", name, metadata=head, spec=spec, status={"phase": "Running"})


def _taken(recording: Recording, **held: tuple[int, ...]) -> None:
    _fleet(recording, **held)
    recording.taint("n1", "a")


@pytest.mark.parametrize(
    ("held", "text"),
    [
        ({"n1": (4,), "n2": (5,), "n3": (5,)}, "1 of its Pods hold 4 GPUs or more, and there is room for 0"),
        ({"n1": (1, 1, 1), "n2": (7,), "n3": (7,)}, "3 of its Pods hold 1 GPUs or more, and there is room for 2"),
        ({"n1": (2, 2, 4), "n2": (4,)}, "3 of its Pods hold 2 GPUs or more, and there is room for 2"),
    ],
)
def test_a_node_whose_pods_fit_nowhere_else_is_reported(held, text):
    breaks("I4", lambda recording: _taken(recording, **held), text)


@pytest.mark.parametrize(
    "held", [{"n1": (4,), "n2": (4,)}, {"n1": (1, 1, 1), "n2": (7,), "n3": (6,)}, {"n1": (), "n2": (8,)}]
)
def test_a_node_whose_pods_fit_elsewhere_is_counted(held):
    holds("I4", lambda recording: _taken(recording, **held), 1)


def test_under_a_policy_that_does_not_ask_nothing_is_counted():
    holds("I4", lambda recording: _taken(recording, asks=False, n1=(4,), n2=(8,)), 0)


def test_room_on_a_node_that_takes_no_pods_does_not_count():
    def out_of_service(recording: Recording) -> None:
        _fleet(recording, n1=(4,), n2=())
        recording.mark("n2", unschedulable=True)
        recording.later(5)
        recording.taint("n1", "a")

    breaks("I4", out_of_service, "there is room for 0 elsewhere")


def test_a_cordon_and_a_pod_of_a_moment_ago_may_not_be_known_yet():
    def a_moment_ago(recording: Recording) -> None:
        _fleet(recording, n1=(4,), n2=(), n3=())
        recording.mark("n2", unschedulable=True)
        _pod(recording, "new", "n3", 8)
        recording.taint("n1", "a")

    holds("I4", a_moment_ago, 1)


def test_a_pod_that_is_deleted_needs_no_place():
    def leaves(recording: Recording) -> None:
        _fleet(recording, n1=(4,), n2=(8,))
        _pod(recording, "n1-0", "n1", 4, deletionTimestamp="2026-01-01T12:00:00Z")
        recording.taint("n1", "a")

    holds("I4", leaves, 1)
