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
TICKET_ROUTE: Object = {"repository": "org/ml", "match": {"labels": {"team": ["ml"]}}}
SPECS = {
    "RemediationPolicy": POLICY,
    "NodeOperationTemplate": TEMPLATE,
    "NodeDisruptionBudget": BUDGET,
    "NodeOperation": OPERATION,
    "NodeRemediation": CASE,
    "NodeInventory": {"nodeSelector": {"matchLabels": {"pool": "h100"}}, "expected": {"gpus": 8}},
    "Ticket": TICKET,
    "TicketRoute": TICKET_ROUTE,
}


def manifest(kind: str, name: str = "reboot", **changes: Any) -> Object:
    """A good object of a kind, with fields of its spec changed, or left out where the change is None."""
    spec = {key: value for key, value in (SPECS.get(kind, {}) | changes).items() if value is not None}
    return {"apiVersion": "remediator.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _policy(**changes: Any) -> Object:
    return manifest("RemediationPolicy", **changes)


def _when(**entry: Any) -> Object:
    return _policy(when=[entry])


RULE = "spec.drain.rules[0]"


def _drain(**changes: Any) -> Object:
    return manifest("NodeOperationTemplate", drain={"strategy": "Evict"} | changes)


def _rule(**changes: Any) -> Object:
    rule = {"strategy": "Delete"} | changes
    return _drain(rules=[{key: value for key, value in rule.items() if value is not None}])


def _window(**changes: Any) -> Object:
    window = {"cron": "0 2 * * 1-5", "duration": "4h", "timeZone": "Asia/Tokyo"} | changes
    return _policy(windows=[{key: value for key, value in window.items() if value is not None}])


# what is wrong → the manifest, and the field that an API server and lint both name
_LIVES = {"namespace": "nvsentinel", "matchLabels": {"app": "connector"}}
WRONG: dict[str, tuple[Object, str]] = {
    "no heartbeat, and nobody who is asked": (_when(condition="A", staleAfter="0s"), "spec.when[0].staleAfter"),
    "heartbeats that nobody writes so often": (_when(condition="A", staleAfter="59s"), "spec.when[0].staleAfter"),
    "believed for days": (_when(condition="A", staleAfter="25h"), "spec.when[0].staleAfter"),
    "another age of an alert": (_when(alert="A", staleAfter="1h"), "spec.when[0].staleAfter"),
    "who writes an alert": (_when(alert="A", reportedBy=_LIVES), "spec.when[0].reportedBy"),
    "Pods of any name": (
        _when(condition="A", reportedBy=_LIVES | {"matchLabels": {}}),
        "spec.when[0].reportedBy.matchLabels",
    ),
    "Pods of no namespace": (
        _when(condition="A", reportedBy=_LIVES | {"namespace": "A_b"}),
        "spec.when[0].reportedBy.namespace",
    ),
    "Pods whose labels fill no Condition": (
        _when(
            condition="A",
            reportedBy=_LIVES | {"matchLabels": {f"{'d' * 63}.{'d' * 63}.{'d' * 63}.{n}/a": "b" * 63 for n in "ab"}},
        ),
        "spec.when[0].reportedBy.matchLabels",
    ),
    "no time to relapse in": (_policy(relapse={"window": "0s"}), "spec.relapse.window"),
    "no case of a lemon": (_policy(lemon={"cases": 0}), "spec.lemon.cases"),
    "too many cases of a lemon": (_policy(lemon={"cases": 21}), "spec.lemon.cases"),
    "no time of a lemon": (_policy(lemon={"window": "0h"}), "spec.lemon.window"),
    "no name of what is covered": (manifest("NodeOperationTemplate", covers=[""]), "spec.covers[0]"),
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
    "an alert beside a condition": (_when(condition="A", alert="B"), "spec.when[0].condition"),
    "a status beside an alert": (_when(alert="B", status="False"), "spec.when[0].alert"),
    "reasons beside an alert": (_when(alert="B", reasons=["a"]), "spec.when[0].alert"),
    "an alert of two words": (_when(alert="Node down"), "spec.when[0].alert"),
    "an empty all": (_when(all=[]), "spec.when[0].condition"),
    "status beside all": (_when(all=[{"condition": "B"}], status="False"), "spec.when[0].all"),
    "a status that is a boolean": (_when(condition="A", status=True), "spec.when[0].status"),
    "a duration in words": (_when(**{"condition": "A", "for": "5 minutes"}), "spec.when[0].for"),
    "a duration past all dates": (_policy(cooldown="9999999d"), "spec.cooldown"),
    "a duration of more than a year": (_policy(cooldown="367d"), "spec.cooldown"),
    "a duration of more than a year in all": (_policy(attempts={"window": "365d24h1s"}), "spec.attempts.window"),
    "a deadline of more than a year": (
        _policy(urgency={"mode": "WhenIdle", "deadline": "8785h"}),
        "spec.urgency.deadline",
    ),
    "a tolerance of more than a year": (_when(**{"condition": "A", "for": "527041m"}), "spec.when[0].for"),
    "a template that may run for more than a year": (
        manifest("NodeOperationTemplate", timeout="366d1s"),
        "spec.timeout",
    ),
    "a drain of more than a year": (_drain(timeout="999999d999999d"), "spec.drain.timeout"),
    "attempts that are forgotten at once": (_policy(attempts={"window": "1ms"}), "spec.attempts.window"),
    "attempts that are forgotten within the hour": (_policy(attempts={"window": "59m59s"}), "spec.attempts.window"),
    "cases of a lemon that are forgotten at once": (_policy(lemon={"window": "1ms"}), "spec.lemon.window"),
    "Events in less time than writers are silent": (
        _when(event={"reason": "TaskHung", "within": "9m59s"}),
        "spec.when[0].event.within",
    ),
    "Events in more time than they are kept": (
        _when(event={"reason": "TaskHung", "within": "1h1s"}),
        "spec.when[0].event.within",
    ),
    "of no Events at all": (_when(event={"reason": "TaskHung", "count": 0}), "spec.when[0].event.count"),
    "a relapse within a moment": (_policy(relapse={"window": "59s"}), "spec.relapse.window"),
    "nodes that fall ill within a moment": (_policy(correlation={"within": "1ms"}), "spec.correlation.within"),
    "no time to recover": (_policy(verify={"timeout": "999ms"}), "spec.verify.timeout"),
    "two days to settle": (_policy(verify={"settle": "48h"}), "spec.verify.settle"),
    "heartbeats that come in two days": (_policy(verify={"fresh": "24h1s"}), "spec.verify.fresh"),
    "a deadline in no time": (_policy(urgency={"mode": "WhenIdle", "deadline": "1ms"}), "spec.urgency.deadline"),
    "an operation of no time": (manifest("NodeOperationTemplate", timeout="1ms"), "spec.timeout"),
    "a drain of no time": (_drain(timeout="1ms"), "spec.drain.timeout"),
    "evictions of no time": (_drain(strategy="EvictThenDelete", evictFor="1ms"), "spec.drain.evictFor"),
    "annotations that hold for no time": (
        _drain(overrideAnnotationsAfter="1ms"),
        "spec.drain.overrideAnnotationsAfter",
    ),
    "a line after a duration": (_policy(cooldown="5m\n"), "spec.cooldown"),
    "a reason without a word": (_when(condition="A", reasons=[""]), "spec.when[0].reasons[0]"),
    "an expression on what is no label key": (
        _policy(nodeSelector={"matchExpressions": [{"key": "a b", "operator": "Exists"}]}),
        "spec.nodeSelector.matchExpressions[0].key",
    ),
    "an expression on what is no label value": (
        _policy(nodeSelector={"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}),
        "spec.nodeSelector.matchExpressions[0].values[0]",
    ),
    "a label whose key no node can have": (
        _policy(nodeSelector={"matchLabels": {"pool": "a", "not a key!": "a"}}),
        "spec.nodeSelector.matchLabels",
    ),
    "a budget by a label whose key no node can have": (
        manifest("NodeDisruptionBudget", selector={"matchLabels": {"a/b/c": "a"}}),
        "spec.selector.matchLabels",
    ),
    "a label that no node can have": (
        _policy(nodeSelector={"matchLabels": {"pool": "a b"}}),
        "spec.nodeSelector.matchLabels[pool]",
    ),
    "an approval that YAML reads as a boolean": (_policy(approval=True), "spec.approval"),
    "a timeout of nothing": (_policy(verify={"timeout": "0s"}), "spec.verify.timeout"),
    "an empty ladder": (_policy(ladder=[]), "spec.ladder"),
    "no ladder": (_policy(ladder=None), "spec.ladder"),
    "status Unknown of a detector": (
        _policy(when=[{"condition": "GpuLost", "status": "Unknown"}], urgency={"mode": "Never"}),
        "spec.when[0].status",
    ),
    "status Unknown inside all": (_when(all=[{"condition": "A", "status": "Unknown"}]), "spec.when[0].all[0].status"),
    "a confirmation without a query": (_policy(confirm={"within": "5m"}), "spec.confirm.promQL"),
    "a query about no node": (_policy(confirm={"promQL": "up"}), "spec.confirm.promQL"),
    "another placeholder": (_policy(confirm={"promQL": 'up{a="{{node}}",b="{{gpu}}"}'}), "spec.confirm.promQL"),
    "a placeholder with spaces": (_policy(confirm={"promQL": 'up{a="{{ node }}"}'}), "spec.confirm.promQL"),
    "a long query": (_policy(confirm={"promQL": 'up{a="{{node}}"}' + " " * 2048}), "spec.confirm.promQL"),
    "within less than two answers may take": (
        _policy(confirm={"promQL": 'up{a="{{node}}"}', "within": "29s"}),
        "spec.confirm.within",
    ),
    "within a day": (_policy(confirm={"promQL": 'up{a="{{node}}"}', "within": "24h"}), "spec.confirm.within"),
    "within days": (_policy(confirm={"promQL": 'up{a="{{node}}"}', "within": "1d"}), "spec.confirm.within"),
    "a correlation of one": (_policy(correlation={"nodes": 1}), "spec.correlation.nodes"),
    "a deadline of a policy that does not wait": (_policy(urgency={"deadline": "24h"}), "spec.urgency.deadline"),
    "a deadline beside Now": (_policy(urgency={"mode": "Now", "deadline": "24h"}), "spec.urgency.deadline"),
    "a deadline of nothing": (_policy(urgency={"mode": "WhenIdle", "deadline": "0s"}), "spec.urgency.deadline"),
    "a deadline in words": (_policy(urgency={"mode": "WhenIdle", "deadline": "never"}), "spec.urgency.deadline"),
    "a mistyped approval": (_policy(approval="required"), "spec.approval"),
    "a window without cron": (_window(cron=None), "spec.windows[0].cron"),
    "a window without duration": (_window(duration=None), "spec.windows[0].duration"),
    "a cron of four fields": (_window(cron="0 2 * *"), "spec.windows[0].cron"),
    "a cron by a nickname": (_window(cron="@daily"), "spec.windows[0].cron"),
    "a cron at 24 o'clock": (_window(cron="0 24 * * *"), "spec.windows[0].cron"),
    "a cron on a 32nd": (_window(cron="0 2 32 * *"), "spec.windows[0].cron"),
    "a cron by day of the month and of the week": (_window(cron="0 2 1 * 1"), "spec.windows[0].cron"),
    "a window of half a minute": (_window(duration="30s"), "spec.windows[0].duration"),
    "a window of nothing": (_window(duration="0h"), "spec.windows[0].duration"),
    "a window of more than a week": (_window(duration="169h"), "spec.windows[0].duration"),
    "a window of more than a week in minutes": (_window(duration="168h1m"), "spec.windows[0].duration"),
    "a zone that is no name": (_window(timeZone="+09:00"), "spec.windows[0].timeZone"),
    "windows without number": (_policy(windows=[{"cron": "0 2 * * *", "duration": "4h"}] * 17), "spec.windows"),
    "an approval that is a word": (manifest("NodeRemediation", approved="yes"), "spec.approved"),
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
    "a breaker that counts nothing": (manifest("NodeDisruptionBudget", breaker={}), "spec.breaker"),
    "a breaker at no start": (manifest("NodeDisruptionBudget", breaker={"starts": 0}), "spec.breaker.starts"),
    "a breaker at more than all": (manifest("NodeDisruptionBudget", breaker={"percent": 101}), "spec.breaker.percent"),
    "a breaker over no time": (
        manifest("NodeDisruptionBudget", breaker={"starts": 5, "window": "0m"}),
        "spec.breaker.window",
    ),
    "a breaker over a second": (
        manifest("NodeDisruptionBudget", breaker={"starts": 5, "window": "1s"}),
        "spec.breaker.window",
    ),
    "a breaker that looks at fewer attempts than it opens at": (
        manifest("NodeDisruptionBudget", breaker={"failures": {"of": 2}}),
        "spec.breaker.failures",
    ),
    "a breaker over three years": (
        manifest("NodeDisruptionBudget", breaker={"starts": 5, "window": "1000d"}),
        "spec.breaker.window",
    ),
    "a breaker that can never open": (
        manifest("NodeDisruptionBudget", breaker={"failures": {"of": 3, "most": 4}}),
        "spec.breaker.failures",
    ),
    "a budget without selector": (manifest("NodeDisruptionBudget", selector=None), "spec.selector"),
    "a template without drain": (manifest("NodeOperationTemplate", drain=None), "spec.drain"),
    "Pods left behind before what is no reboot": (
        manifest("NodeOperationTemplate", drain={"strategy": "Evict", "skipWaitForDelete": "5m"}, success=None),
        "spec.drain",
    ),
    "a time for evictions of what only evicts": (_drain(evictFor="5m"), "spec.drain"),
    "ForceDelete on the node itself": (_drain(strategy="ForceDelete"), "spec.drain"),
    "ForceDelete by a rule on the node itself": (_rule(namespaces=["a"], strategy="ForceDelete"), "spec.drain"),
    "a strategy that there is not": (_drain(strategy="Kill"), "spec.drain.strategy"),
    "a rule for any Pod": (_rule(), f"{RULE}.namespaces"),
    "a rule without strategy": (_rule(strategy=None, namespaces=["a"]), f"{RULE}.strategy"),
    "a rule for no namespace": (_rule(namespaces=[]), f"{RULE}.namespaces"),
    "a rule for no label": (_rule(selector={"matchLabels": {}}), f"{RULE}.selector.matchLabels"),
    "a rule for kube-system": (_rule(namespaces=["team", "kube-system"]), f"{RULE}.namespaces"),
    "a rule for what is no namespace": (_rule(namespaces=["Team*"]), f"{RULE}.namespaces[0]"),
    "a rule for DaemonSets": (_rule(owners=["Job", "DaemonSet"]), f"{RULE}.owners"),
    "a rule for static Pods": (_rule(owners=["Node"]), f"{RULE}.owners"),
    "a rule for Deployments": (_rule(owners=["Deployment"]), f"{RULE}.owners"),
    "a rule for CronJobs": (_rule(owners=["CronJob"]), f"{RULE}.owners"),
    "a drain that is handed over to nobody": (
        manifest("NodeOperationTemplate", drain={"strategy": "External"}),
        "spec.drain",
    ),
    "a drain of ours that waits for a condition": (
        manifest("NodeOperationTemplate", drain={"strategy": "Evict", "condition": "SlurmDrained"}),
        "spec.drain",
    ),
    "a template without Pod": (manifest("NodeOperationTemplate", podTemplate=None), "spec.podTemplate"),
    "a template without a spec of its Pod": (
        manifest("NodeOperationTemplate", podTemplate={"metadata": {}}),
        "spec.podTemplate.spec",
    ),
    "a template whose Pod has no containers": (
        manifest("NodeOperationTemplate", podTemplate={"spec": {"hostPID": True}}),
        "spec.podTemplate.spec.containers",
    ),
    "a template whose Pod has an empty list of containers": (
        manifest("NodeOperationTemplate", podTemplate={"spec": {"containers": []}}),
        "spec.podTemplate.spec.containers",
    ),
    "a template that is done after itself": (manifest("NodeOperationTemplate", after=["reboot"]), "spec.after"),
    "a template's name too long for a label": (manifest("NodeOperationTemplate", name="a" * 64), "<nil>"),
    "a case without node": (manifest("NodeRemediation", nodeUID=None), "spec.nodeUID"),
}
TYPOS: dict[str, tuple[Object, str]] = {
    "in the spec": (_policy(laddder=[]), "spec.laddder"),
    "in a list": (_when(condition="A", reason="b"), "spec.when[0].reason"),
    "in a selector": (_policy(nodeSelector={"matchLabel": {"a": "b"}}), "spec.nodeSelector.matchLabel"),
    "in a budget": (manifest("NodeDisruptionBudget", maxUnavailble=1), "spec.maxUnavailble"),
}
