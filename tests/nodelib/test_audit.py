"""The log's line of what a program does: the keys of the controller's line, and nothing that is secret."""

import io
import json
from contextlib import suppress

import pytest

from nodelib.bmc.power import Silent, Steps, told
from nodelib.contract import audit
from nodelib.contract.operation import Refused
from remediator.core.audit import AuditOutcome as Controllers
from remediator.core.audit import Write, line, outcome

NODE = {"metadata": {"annotations": {"remediator.dev/cordoned-by": "case-1"}}, "spec": {"unschedulable": True}}
PATCH = {
    "metadata": {"resourceVersion": "7", "annotations": {"remediator.dev/cordoned-by": None, "other": "x"}},
    "spec": {
        "unschedulable": None,
        "taints": [{"key": "a", "value": "b", "effect": "NoExecute"}, {"key": "c", "effect": "NoSchedule"}],
    },
}
ANSWER = {"metadata": {"resourceVersion": "8"}}
POD = "/api/v1/namespaces/team/pods/train-0"


@pytest.fixture
def said(monkeypatch, capsys):
    """What was said since the last look."""
    for name, value in {
        "OPERATION": "drain",
        "NODE_NAME": "gpu-1",
        "CASE_NAME": "gpu-1-gpu-lost-1",
        "ON_BEHALF_OF": "Policy gpu-lost",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(audit, "_said", {})
    return lambda: [json.loads(entry) for entry in capsys.readouterr().err.splitlines()]


def test_a_program_says_the_keys_of_the_controller_and_on_whose_word_it_works(said):
    audit.request("PATCH", "/api/v1/nodes/gpu-1", PATCH, 200, ANSWER, NODE)
    (entry,) = said()
    ours = line("controller", Write("patch", "nodes", "", "gpu-1"), None, Controllers.DONE)
    assert list(entry) == [*ours, "event", "level", "timestamp"]
    about = {key: entry[key] for key in ("program", "verb", "resource", "name", "version", "node", "case", "by", "who")}
    assert about == {
        "program": "drain",
        "verb": "patch",
        "resource": "nodes",
        "name": "gpu-1",
        "version": "8",
        "node": "gpu-1",
        "case": "gpu-1-gpu-lost-1",
        "by": "Policy",
        "who": "gpu-lost",
    }
    assert entry["changes"] == [
        {"field": "metadata.annotations[remediator.dev/cordoned-by]", "before": "case-1", "after": None},
        {"field": "metadata.annotations[other]", "before": None, "after": "x"},
        {"field": "spec.unschedulable", "before": True, "after": False},
        {"field": "spec.taints", "before": [], "after": ["a=b:NoExecute", "c:NoSchedule"]},
    ]


@pytest.mark.parametrize(
    ("method", "path", "resource", "namespace", "name"),
    [
        ("DELETE", POD, "pods", "team", "train-0"),
        ("POST", f"{POD}/eviction", "pods/eviction", "team", "train-0"),
        ("POST", "/apis/resource.k8s.io/v1beta2/devicetaintrules", "devicetaintrules.resource.k8s.io", "", "rule"),
    ],
)
def test_evictions_deletions_and_device_taint_rules_have_a_line(said, method, path, resource, namespace, name):
    audit.request(method, path, {"metadata": {"name": "rule"}, "spec": {"secret": "s3cr3t"}}, 201, {})
    (entry,) = said()
    assert (entry["resource"], entry["namespace"], entry["name"]) == (resource, namespace, name)
    assert "s3cr3t" not in str(entry)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", POD),
        ("POST", f"{POD}/eviction?dryRun=All"),
        ("PATCH", "/apis/remediator.dev/v1alpha1/nodeoperations/op-1/status"),
        ("PATCH", f"{POD}/status"),
        ("POST", "/apis/coordination.k8s.io/v1/namespaces/a/leases"),
    ],
)
def test_what_changes_nothing_of_a_node_has_no_line(said, method, path):
    audit.request(method, path, {}, 200, {})
    assert said() == []


def test_a_pod_that_a_budget_holds_has_one_line_until_the_answer_is_another(said):
    def evicted(pod, status, reason=""):
        audit.request("POST", f"/api/v1/namespaces/team/pods/{pod}/eviction", {}, status, {"reason": reason})

    for _ in range(20):
        evicted("train-0", 429, "TooManyRequests")
        evicted("train-1", 429, "TooManyRequests")
    evicted("train-0", 409, "Conflict")
    evicted("train-0", 429, "TooManyRequests")
    evicted("train-0", 201)
    evicted("train-0", 201)
    lines = [(entry["name"], entry["outcome"], entry["why"]) for entry in said()]
    held, moved = ("Retry", "429 TooManyRequests"), ("Retry", "409 Conflict")
    again = [("train-0", *moved), ("train-0", *held), *[("train-0", "Done", "")] * 2]
    assert lines == [("train-0", *held), ("train-1", *held), *again]


def test_a_pod_that_a_finalizer_keeps_is_deleted_in_one_line_until_it_changes(said):
    for version in ("7", "7", "7", "8", "8"):
        audit.request("DELETE", POD, {}, 200, {"metadata": {"resourceVersion": version}})
    assert [entry["version"] for entry in said()] == ["7", "8"]


def test_each_object_of_one_name_that_is_deleted_has_its_line(said):
    for _ in range(2):
        audit.request("DELETE", POD, {}, 200, {"kind": "Status", "status": "Success"})
    assert [entry["outcome"] for entry in said()] == ["Done", "Done"]


def test_of_objects_without_end_the_newest_are_known(said):
    for number in range(audit.MOST_SAID + 10):
        audit.request("DELETE", f"{POD}-{number}", {}, 404, {})
    assert (len(audit._said), len(said())) == (audit.MOST_SAID, audit.MOST_SAID + 10)


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
@pytest.mark.parametrize("status", [0, 200, 201, 400, 403, 404, 409, 410, 422, 429, 500, 503])
def test_a_program_and_the_controller_call_the_same_answer_by_the_same_word(method, status):
    reason = "AlreadyExists" if (method, status) == ("POST", 409) else ""
    assert audit.outcome(method, status, reason) == outcome(audit.VERBS[method], status, reason)


class Bmc:
    """One that answers so."""

    steps = Steps("ForceOff", "On")

    def __init__(self, error):
        self.error = error

    def tell(self, step):
        if self.error:
            raise self.error


@pytest.mark.parametrize(
    ("error", "outcome"), [(None, "Done"), (Silent("lost"), "Unknown"), (Refused("not allowed"), "GaveUp")]
)
def test_a_step_of_power_has_a_line_that_says_how_it_ended(said, error, outcome):
    with suppress(Silent, Refused):
        told(Bmc(error), "ForceOff")
    (entry,) = said()
    assert (entry["verb"], entry["resource"], entry["node"], entry["outcome"]) == ("power", "bmcs", "gpu-1", outcome)
    assert entry["changes"] == [{"field": "power", "after": "ForceOff"}]


class Broken:
    """A standard error whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError

    def flush(self) -> None:
        """Nothing to do."""


def test_a_program_goes_on_where_nobody_takes_its_line_any_more(monkeypatch):
    closed = io.StringIO()
    closed.close()
    for stream in (closed, Broken()):
        monkeypatch.setattr("sys.stderr", stream)
        audit.say("reset", "gpus", "0000:1b:00.0", audit.DONE)


@pytest.mark.parametrize(
    ("path", "lines"),
    [
        ("/api/v1/namespaces/leases/pods/train-0", 1),
        ("/api/v1/nodes/leases", 1),
        ("/apis/coordination.k8s.io/v1/namespaces/remediator-system/leases/watchdog", 0),
        ("/apis/remediator.dev/v1alpha1/nodeoperations/a/status", 0),
    ],
)
def test_what_a_user_calls_leases_is_told_of_like_anything_else(said, path, lines):
    audit.request("DELETE", path, None, 200, {})
    assert len(said()) == lines
