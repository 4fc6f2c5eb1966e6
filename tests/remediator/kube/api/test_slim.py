"""What is kept of thousands of objects is as small as decisions and tickets allow."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from remediator.core import names
from remediator.core.case import AttemptOutcome
from remediator.core.reasons import Reason
from remediator.kube import api
from remediator.kube.api import builtin, decode, gpu_pods, shared_gpus
from tests.bench import ended, large
from tests.builders import at
from tests.remediator.kube.api.sizes import many

ROOT = Path(__file__).parents[4]


def read(**changes):
    """A case that two attempts have cured, with 27 heartbeats and evidence, as the API server sends it."""
    body = ended.case("gpu-1", 1)
    body["metadata"] |= {"uid": "u-1", "resourceVersion": "7"} | changes.pop("metadata", {})
    body["status"] |= changes
    body["status"]["timeline"].append(
        {"at": "2026-11-01T00:00:00Z", "reason": "SharedCause", "message": "as five others"}
    )
    return decode.remediation_case(msgspec.json.decode(msgspec.json.encode(body), type=api.NodeRemediation))


def test_of_an_ended_case_only_what_decisions_and_tickets_need_is_kept():
    case = read()
    assert (case.evidence, [event.reason for event in case.timeline]) == (None, [Reason.SHARED_CAUSE])
    assert [(attempt.outcome, attempt.heartbeats, attempt.boot_id) for attempt in case.attempts] == [
        (AttemptOutcome.FAILED, None, ""),
        (AttemptOutcome.SUCCEEDED, None, ""),
    ]
    assert all(attempt.started and attempt.finished and attempt.message for attempt in case.attempts)
    assert (case.started is None, case.reason, case.message != "") == (False, Reason.VERIFIED, True)


@pytest.mark.parametrize(
    "changes", [{"endedAt": None}, {"metadata": {"finalizers": [names.CASE_FINALIZER]}}], ids=["open", "not released"]
)
def test_a_case_that_something_may_still_be_written_to_is_kept_whole(changes):
    case = read(**changes)
    assert case.evidence
    assert len(case.timeline) == 9
    assert [len(attempt.heartbeats or {}) for attempt in case.attempts] == [27, 27]


def test_words_that_ended_cases_have_in_common_are_one_text():
    one, other = read(), read()
    for word in ("policy", "node", "node_uid", "message"):
        assert getattr(one, word) is getattr(other, word)
    assert one.attempts[0].message is other.attempts[0].message


@pytest.mark.slow
def test_a_node_a_case_and_an_operation_take_no_more_bytes_than_their_facts():
    """In a process of its own: what other tests leave in caches changes what these objects share."""
    program = [sys.executable, "-m", "tests.remediator.kube.api.sizes"]
    done = subprocess.run(program, capture_output=True, text=True, check=True, cwd=ROOT)
    sizes = json.loads(done.stdout)
    for name, most in (("Node", 1216), ("NodeRemediation", 1050), ("NodeOperation", 480)):
        counted, taken = sizes[name]
        assert counted >= 100
        assert taken <= most, (name, taken)


def test_nodes_have_the_words_of_their_conditions_in_common():
    nodes, _ = many(builtin.NODE, [large.node(index, at(0)) for index in range(2)], decode.node)
    for kind, other in zip(nodes[0].conditions, nodes[1].conditions, strict=True):
        assert kind is other is nodes[1].conditions[kind].type


def test_pods_have_the_name_of_their_node_in_common():
    """Of a node with 100 Pods a hundred texts would be kept."""
    spec = {"nodeName": "gpu-000001", "containers": [{"resources": {"requests": {"cpu": "2"}}}]}
    bodies = [{"metadata": {"name": f"p{index}", "namespace": "team"}, "spec": spec} for index in range(2)]
    decoder = msgspec.json.Decoder(gpu_pods.POD.type)
    one, other = (shared_gpus.holding(decoder.decode(msgspec.json.encode(body))) for body in bodies)
    assert (one.node, one.cpu) == ("gpu-000001", 2000)
    assert one.node is other.node
