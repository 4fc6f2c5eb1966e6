"""The types of our kinds: what goes over the wire, and what comes back."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from remediator.kube import api
from remediator.kube.api import decode
from remediator.kube.api.decode import times


@pytest.mark.parametrize(
    ("duration", "expected"),
    [("90s", 90.0), ("2m", 120.0), ("1h30m", 5400.0), ("250ms", 0.25), ("7d", 604800.0), ("0s", 0.0)],
)
def test_a_duration_is_read_in_seconds(duration: str, expected: float) -> None:
    assert api.seconds(duration) == expected


@pytest.mark.parametrize("text", ["", "5", "5 m", "-5m", "1.5h", "5m!", "1h\n"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        api.seconds(text)


POLICY = {"mode": "Enforce", "nodeSelector": {}, "when": [{"condition": "A"}]}
TEMPLATE = {"drain": {"strategy": "Evict"}, "podTemplate": {}}
TOO_LONG: dict[str, tuple[type, Any, dict[str, Any]]] = {
    "spec.cooldown": (api.RemediationPolicy, decode.remediation_policy, {"cooldown": "367d"}),
    "spec.attempts.window": (api.RemediationPolicy, decode.remediation_policy, {"attempts": {"window": "367d"}}),
    "spec.relapse.window": (api.RemediationPolicy, decode.remediation_policy, {"relapse": {"window": "367d"}}),
    "spec.lemon.window": (api.RemediationPolicy, decode.remediation_policy, {"lemon": {"window": "367d"}}),
    "spec.verify.settle": (api.RemediationPolicy, decode.remediation_policy, {"verify": {"settle": "367d"}}),
    "spec.verify.fresh": (api.RemediationPolicy, decode.remediation_policy, {"verify": {"fresh": "367d"}}),
    "spec.verify.timeout": (api.RemediationPolicy, decode.remediation_policy, {"verify": {"timeout": "367d"}}),
    "spec.correlation.within": (
        api.RemediationPolicy,
        decode.remediation_policy,
        {"correlation": {"nodes": 3, "within": "367d"}},
    ),
    "spec.urgency.deadline": (
        api.RemediationPolicy,
        decode.remediation_policy,
        {"urgency": {"mode": "WhenIdle", "deadline": "367d"}},
    ),
    "spec.when[1].for": (
        api.RemediationPolicy,
        decode.remediation_policy,
        {"when": [{"condition": "A"}, {"condition": "B", "for": "367d"}]},
    ),
    "spec.timeout": (api.NodeOperationTemplate, decode.template, {"timeout": "367d"}),
    "spec.drain.timeout": (
        api.NodeOperationTemplate,
        decode.template,
        {"drain": {"strategy": "Evict", "timeout": "367d"}},
    ),
    "spec.drain.evictFor": (
        api.NodeOperationTemplate,
        decode.template,
        {"drain": {"strategy": "Evict", "evictFor": "367d"}},
    ),
    "spec.drain.skipWaitForDelete": (
        api.NodeOperationTemplate,
        decode.template,
        {"drain": {"strategy": "Evict", "skipWaitForDelete": "367d"}},
    ),
}


@pytest.mark.parametrize(
    ("written", "seconds"),
    [({}, 30), ({"terminationGracePeriodSeconds": 110}, 110)]
    + [({"terminationGracePeriodSeconds": absurd}, 24 * 3600) for absurd in (86_401, 2**63 - 1)]
    + [({"terminationGracePeriodSeconds": absurd}, 1) for absurd in (-1, 0)]
    + [({"terminationGracePeriodSeconds": absurd}, 30) for absurd in (None, "110", [110])],
)
def test_how_long_a_pod_of_a_template_may_take_to_end_is_read_whatever_is_written(
    written: dict[str, Any], seconds: int
) -> None:
    spec = {"drain": {"strategy": "None"}, "timeout": "3m", "podTemplate": {"spec": written}}
    wire = msgspec.convert({"metadata": {"name": "n"}, "spec": spec}, api.NodeOperationTemplate)
    assert decode.template(wire).grace == timedelta(seconds=seconds)


@pytest.mark.parametrize("field", TOO_LONG)
def test_a_duration_of_more_than_366_days_that_was_stored_before_is_not_read_and_is_named(field: str) -> None:
    kind, read, changes = TOO_LONG[field]
    usual = POLICY if kind is api.RemediationPolicy else TEMPLATE
    wire = msgspec.convert({"metadata": {"name": "a"}, "spec": usual | changes}, kind)
    with pytest.raises(ValueError, match=re.escape(f"{field} is 367d: must be at most 366d (8784h)")):
        read(wire)


def test_a_duration_of_366_days_is_read_as_the_schema_counts_it() -> None:
    assert times.limited("366d", "a") == timedelta(days=366)
    assert times.limited("366d999ms", "a") == timedelta(days=366, seconds=0.999)
    with pytest.raises(ValueError, match="a is 366d1s"):
        times.limited("366d1s", "a")


def test_a_new_case_says_kind_and_version_and_leaves_defaults_out() -> None:
    spec = api.NodeRemediationSpec(node_name="gpu-17", node_uid="n1", policy_name="gpu-lost")
    sent = msgspec.json.decode(msgspec.json.encode(api.NodeRemediation(metadata=api.ObjectMeta(name="a"), spec=spec)))
    assert sent == {
        "apiVersion": "remediator.dev/v1alpha1",
        "kind": "NodeRemediation",
        "metadata": {"name": "a"},
        "spec": {"nodeName": "gpu-17", "nodeUID": "n1", "policyName": "gpu-lost"},
    }


def test_zero_is_said_where_absent_means_not_known() -> None:
    assert msgspec.to_builtins(api.DrainStatus(left=0)) == {"left": 0}
    assert msgspec.to_builtins(api.NodeRemediationStatus(rung=0)) == {"rung": 0}
    assert msgspec.to_builtins(api.NodeDisruptionBudgetStatus(unavailable=0)) == {"unavailable": 0}


def test_an_object_from_a_server_is_read_with_all_that_we_do_not_know() -> None:
    stored = {
        "apiVersion": "remediator.dev/v1alpha1",
        "kind": "RemediationPolicy",
        "metadata": {"name": "a", "uid": "u", "creationTimestamp": "2026-01-02T03:04:05Z", "managedFields": [{}]},
        "spec": {
            "mode": "DryRun",
            "nodeSelector": {"matchLabels": {"a": "b"}},
            "when": [{"all": [{"condition": "A"}, {"condition": "B", "status": "False"}], "for": "1m", "new": 1}],
            "ladder": [{"operation": "reboot"}],
        },
    }
    policy = msgspec.json.decode(msgspec.json.encode(stored), type=api.RemediationPolicy)
    (when,) = policy.spec.when
    assert policy.metadata.creation_timestamp == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert when.for_ == "1m"
    assert [(match.condition, match.status) for match in when.all] == [("A", "True"), ("B", "False")]
    assert policy.spec.attempts == api.Attempts(max=4, window="168h")
    assert policy.status.conditions == ()


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        (api.Intent(boot_id="b"), {"bootID": "b"}),
        (api.Success(boot_id_changed=True), {"bootIDChanged": True}),
        (api.NodeDisruptionBudgetStatus(adopted_uid="u"), {"adoptedUID": "u"}),
        (
            api.NodeOperationSpec(node_name="a", node_uid="b", case_uid="c", template_name="d"),
            {"nodeName": "a", "nodeUID": "b", "caseUID": "c", "templateName": "d"},
        ),
        (api.When(condition="A", for_="1m"), {"condition": "A", "for": "1m"}),
    ],
)
def test_names_on_the_wire_are_those_of_kubernetes(value: msgspec.Struct, wire: object) -> None:
    assert msgspec.to_builtins(value) == wire


def test_every_kind_decodes_to_the_type_of_its_name() -> None:
    assert [kind.name for kind in api.KINDS] == [kind.type.__name__ for kind in api.KINDS]
    assert [kind.name for kind in api.KINDS if kind.namespaced] == ["TicketRoute"]  # teams have namespaces of their own
    assert api.CASE.path("a", subresource="status") == "/apis/remediator.dev/v1alpha1/noderemediations/a/status"
