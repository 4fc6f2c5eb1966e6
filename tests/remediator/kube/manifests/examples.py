"""Manifests of our kinds, good and bad, for lint and for API servers alike."""

from typing import Any

Object = dict[str, Any]

POLICY: Object = {
    "mode": "Enforce",
    "nodeSelector": {"matchLabels": {"pool": "a"}},
    "when": [{"condition": "GpuLost"}],
    "ladder": [{"operation": "reboot"}],
}
TEMPLATE: Object = {
    "drain": {"strategy": "Evict"},
    "podTemplate": {"spec": {"containers": [{"name": "reboot", "image": "operations"}]}},
}
BUDGET: Object = {"selector": {}, "maxUnavailable": "5%"}
OPERATION: Object = {"nodeName": "gpu-17", "nodeUID": "n1", "caseUID": "c1", "templateName": "reboot"}
CASE: Object = {"nodeName": "gpu-17", "nodeUID": "n1", "policyName": "gpu-lost"}
TICKET: Object = {"subject": {"kind": "Node", "nodeName": "gpu-17"}}
SPECS = {
    "RemediationPolicy": POLICY,
    "NodeOperationTemplate": TEMPLATE,
    "NodeDisruptionBudget": BUDGET,
    "NodeOperation": OPERATION,
    "NodeRemediation": CASE,
    "Ticket": TICKET,
}


def manifest(kind: str, name: str = "reboot", **changes: Any) -> Object:
    """A good object of a kind, with fields of its spec changed, or left out where the change is None."""
    spec = {key: value for key, value in (SPECS.get(kind, {}) | changes).items() if value is not None}
    return {"apiVersion": "remediator.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _policy(**changes: Any) -> Object:
    return manifest("RemediationPolicy", **changes)


def _when(**entry: Any) -> Object:
    return _policy(when=[entry])


# what is wrong → the manifest, and the field that an API server and lint both name
NOT_SUPPORTED: dict[str, tuple[Object, str]] = {
    "an alert": (_when(alert="NodeGpuXid"), "spec.when[0].alert"),
    "confirm": (_policy(confirm={"promQL": "up"}), "spec.confirm"),
    "a probe": (_policy(verify={"probe": "gpu-check"}), "spec.verify.probe"),
    "relapse": (_policy(relapse={"window": "72h"}), "spec.relapse"),
    "urgency WhenIdle": (_policy(urgency={"mode": "WhenIdle"}), "spec.urgency.mode"),
    "a deadline": (_policy(urgency={"deadline": "24h"}), "spec.urgency.deadline"),
    "windows": (_policy(windows=[{"cron": "0 2 * * *", "duration": "4h"}]), "spec.windows"),
    "approval Required": (_policy(approval="Required"), "spec.approval"),
    "a breaker": (manifest("NodeDisruptionBudget", breaker={}), "spec.breaker"),
    "covers": (manifest("NodeOperationTemplate", covers=["reset-gpu"]), "spec.covers"),
    "ForceDelete": (manifest("NodeOperationTemplate", drain={"strategy": "ForceDelete"}), "spec.drain.strategy"),
    "drain rules": (
        manifest("NodeOperationTemplate", drain={"strategy": "Evict", "rules": [{"strategy": "None"}]}),
        "spec.drain.rules",
    ),
    "an operation without a case": (manifest("NodeOperation", caseUID=None), "spec.caseUID"),
    "an approved case": (manifest("NodeRemediation", approved=True), "spec.approved"),
}
WRONG: dict[str, tuple[Object, str]] = {
    "no mode": (_policy(mode=None), "spec.mode"),
    "a mistyped mode": (_policy(mode="Enforced"), "spec.mode"),
    "no selector": (_policy(nodeSelector=None), "spec.nodeSelector"),
    "an empty selector": (_policy(nodeSelector={}), "spec.nodeSelector"),
    "a selector of empty parts": (
        _policy(nodeSelector={"matchLabels": {}, "matchExpressions": []}),
        "spec.nodeSelector",
    ),
    "all nodes beside a selector": (_policy(allNodes=True), "spec.nodeSelector"),
    "an expression without values": (
        _policy(nodeSelector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
        "spec.nodeSelector.matchExpressions[0].values",
    ),
    "an expression with values too many": (
        _policy(nodeSelector={"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
        "spec.nodeSelector.matchExpressions[0].values",
    ),
    "no condition": (_policy(when=[]), "spec.when"),
    "an entry without condition": (_when(reasons=["a"]), "spec.when[0].condition"),
    "condition beside all": (_when(condition="A", all=[{"condition": "B"}]), "spec.when[0].condition"),
    "an empty all": (_when(all=[]), "spec.when[0].condition"),
    "status beside all": (_when(all=[{"condition": "B"}], status="False"), "spec.when[0].all"),
    "a status that is a boolean": (_when(condition="A", status=True), "spec.when[0].status"),
    "a duration in words": (_when(**{"condition": "A", "for": "5 minutes"}), "spec.when[0].for"),
    "a duration past all dates": (_policy(cooldown="9999999d"), "spec.cooldown"),
    "a timeout of nothing": (_policy(verify={"timeout": "0s"}), "spec.verify.timeout"),
    "an empty ladder": (_policy(ladder=[]), "spec.ladder"),
    "no ladder": (_policy(ladder=None), "spec.ladder"),
    "status Unknown of a detector": (
        _policy(when=[{"condition": "GpuLost", "status": "Unknown"}], urgency={"mode": "Never"}),
        "spec.when[0].status",
    ),
    "status Unknown inside all": (_when(all=[{"condition": "A", "status": "Unknown"}]), "spec.when[0].all[0].status"),
    "status Unknown and a ladder": (_when(condition="Ready", status="Unknown"), "spec.when"),
    "a correlation of one": (_policy(correlation={"nodes": 1}), "spec.correlation.nodes"),
    "a Ticket about nothing": (manifest("Ticket", subject=None), "spec.subject"),
    "a Ticket about a node without a name": (manifest("Ticket", subject={"kind": "Node"}), "spec.subject.nodeName"),
    "a Ticket about a node and an alert": (
        manifest("Ticket", subject={"kind": "Node", "nodeName": "a", "alertName": "b"}),
        "spec.subject.alertName",
    ),
    "a Ticket with an alert of no time": (
        manifest("Ticket", alerts=[{"fingerprint": "a", "name": "b"}]),
        "spec.alerts[0].startsAt",
    ),
    "a ticket at a strange time": (_policy(ticket={"when": "Sometimes"}), "spec.ticket.when"),
    "no attempts": (_policy(attempts={"max": 0}), "spec.attempts.max"),
    "no limit": (manifest("NodeDisruptionBudget", maxUnavailable=None), "spec.maxUnavailable"),
    "two limits": (manifest("NodeDisruptionBudget", minAvailable=1), "spec.maxUnavailable"),
    "more than all": (manifest("NodeDisruptionBudget", maxUnavailable="101%"), "spec.maxUnavailable"),
    "less than none": (manifest("NodeDisruptionBudget", maxUnavailable=-1), "spec.maxUnavailable"),
    "a group by what is no label key": (
        manifest("NodeDisruptionBudget", groupBy="not a label key!! = x"),
        "spec.groupBy",
    ),
    "a group by nothing": (manifest("NodeDisruptionBudget", groupBy=""), "spec.groupBy"),
    "a group by a name of 64": (manifest("NodeDisruptionBudget", groupBy=f"a.b/{'r' * 64}"), "spec.groupBy"),
    "a budget without selector": (manifest("NodeDisruptionBudget", selector=None), "spec.selector"),
    "a template without drain": (manifest("NodeOperationTemplate", drain=None), "spec.drain"),
    "Pods left behind before what is no reboot": (
        manifest("NodeOperationTemplate", drain={"strategy": "Evict", "skipWaitForDelete": "5m"}, success=None),
        "spec.drain",
    ),
    "a template without Pod": (manifest("NodeOperationTemplate", podTemplate=None), "spec.podTemplate"),
    "a template's name too long for a label": (manifest("NodeOperationTemplate", name="a" * 64), "<nil>"),
    "a case without node": (manifest("NodeRemediation", nodeUID=None), "spec.nodeUID"),
}
TYPOS: dict[str, tuple[Object, str]] = {
    "in the spec": (_policy(laddder=[]), "spec.laddder"),
    "in a list": (_when(condition="A", reason="b"), "spec.when[0].reason"),
    "in a selector": (_policy(nodeSelector={"matchLabel": {"a": "b"}}), "spec.nodeSelector.matchLabel"),
    "in a budget": (manifest("NodeDisruptionBudget", maxUnavailble=1), "spec.maxUnavailble"),
}
