"""Of each eviction that a drain asks for: whether it may, row by row."""

from dataclasses import replace

import pytest

from remediator.core.eviction import (
    ALLOWED,
    AskedEviction,
    EvictablePod,
    EvictionRuling,
    Ruling,
    by_pod,
    by_request,
    drain_account,
    unknown,
)
from remediator.core.names import Namespaces
from remediator.core.operation import OperationPhase
from tests.builders import an_operation, at

SPACES = Namespaces()
DRAIN = an_operation(phase=OperationPhase.DRAINING, drain_pod="gpu-1-drain-0", template="reboot")
ITSELF = an_operation(phase=OperationPhase.OPERATING, drain_pod="gpu-1-drain-0", template="drain")
ASKED = AskedEviction(drain_account(SPACES.operations), "gpu-1-drain-0", "team", "trainer-0", "uid-1")
POD = EvictablePod("uid-1", DRAIN.node)


def test_the_account_is_that_of_the_drain_in_the_namespace_of_operations():
    assert drain_account("gpu-pods") == "system:serviceaccount:gpu-pods:remediator-drain"


def test_who_is_no_drain_is_not_judged():
    assert by_request(replace(ASKED, user="alice", speaker="", uid=""), (), SPACES) == ALLOWED


@pytest.mark.parametrize("operation", [DRAIN, ITSELF], ids=["before an operation", "as what was asked for"])
def test_a_drain_that_runs_may_take_a_pod_of_its_node(operation):
    assert by_request(ASKED, [operation], SPACES) == operation
    assert by_pod(ASKED, operation, POD) == ALLOWED


REQUESTS = [
    (replace(ASKED, speaker=""), [DRAIN], Ruling.REFUSED, "bound to the Pod of a drain"),
    (replace(ASKED, uid=""), [DRAIN], Ruling.REFUSED, "names the Pod by its uid"),
    (replace(ASKED, namespace="kube-system"), [DRAIN], Ruling.REFUSED, "no Pod of the cluster itself"),
    (replace(ASKED, namespace="remediator-operations"), [DRAIN], Ruling.REFUSED, "none of an operation"),
    (ASKED, [], Ruling.LATER, "no operation is known whose drain is Pod gpu-1-drain-0; ask again"),
    (ASKED, [DRAIN, DRAIN], Ruling.LATER, "no operation is known"),
    (ASKED, [replace(DRAIN, deleting=True)], Ruling.REFUSED, "does not drain any more"),
    (ASKED, [replace(DRAIN, drained_at=at(1))], Ruling.REFUSED, "does not drain any more"),
    (ASKED, [replace(DRAIN, phase=OperationPhase.PENDING)], Ruling.REFUSED, "does not drain any more"),
    (ASKED, [replace(DRAIN, phase=OperationPhase.OPERATING)], Ruling.REFUSED, "does not drain any more"),
    *(
        (ASKED, [replace(each, phase=phase)], Ruling.REFUSED, "does not drain any more")
        for each in (DRAIN, ITSELF)
        for phase in (
            OperationPhase.SUCCEEDED,
            OperationPhase.FAILED,
            OperationPhase.REFUSED,
            OperationPhase.CANCELLED,
        )
    ),
]


def test_while_no_drain_may_go_on_it_is_asked_for_again_and_others_are_not_held():
    assert by_request(ASKED, [DRAIN], SPACES, "it is paused") == EvictionRuling(Ruling.LATER, "it is paused; ask again")
    assert by_request(replace(ASKED, user="alice"), (), SPACES, "it is paused") == ALLOWED


@pytest.mark.parametrize(("asked", "operations", "ruling", "why"), REQUESTS)
def test_what_the_request_alone_shows_to_be_wrong_is_refused_before_a_pod_is_read(asked, operations, ruling, why):
    found = by_request(asked, operations, SPACES)
    assert isinstance(found, EvictionRuling)
    assert found.ruling is ruling
    assert why in found.why


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        (replace(POD, node="gpu-2"), "team/trainer-0 is not on gpu-1, which it drains"),
        (replace(POD, node="gpu-1a"), "is not on gpu-1"),
        (replace(POD, node=""), "is not on gpu-1"),
        (replace(POD, mirrors=True), "a drain touches no mirror Pod"),
        (replace(POD, of_daemon_set=True), "a drain touches no Pod of a DaemonSet"),
    ],
)
def test_a_pod_that_is_not_the_drains_is_refused(pod, why):
    found = by_pod(ASKED, DRAIN, pod)
    assert found.ruling is Ruling.REFUSED
    assert why in found.why


@pytest.mark.parametrize("pod", [None, replace(POD, uid="uid-2", node="gpu-2")], ids=["gone", "another of its name"])
def test_a_pod_that_is_gone_is_left_to_the_api_server_which_evicts_none_of_another_uid(pod):
    assert by_pod(ASKED, DRAIN, pod) == ALLOWED


def test_a_pod_that_cannot_be_read_is_refused_for_now():
    assert unknown(ASKED, "timeout") == EvictionRuling(
        Ruling.LATER, "team/trainer-0 cannot be read: timeout; ask again"
    )
