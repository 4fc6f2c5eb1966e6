"""Objects that have, together, every field of a spec, each with another value than its default."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

Object = dict[str, Any]
CHOICE = {
    "matchLabels": {"pool": "a"},
    "matchExpressions": [{"key": "zone", "operator": "In", "values": ["x"]}],
}
WHEN: tuple[Object, ...] = (
    {"condition": "GpuLost", "status": "False", "reasons": ["Gone"], "for": "4m"},
    {"all": [{"condition": "GpuXid", "status": "False", "reasons": ["Fatal"]}, {"condition": "Busy"}]},
    {"alert": "NodeGpuXid"},
    {"event": {"reason": "TaskHung", "count": 5, "within": "20m"}},
    {"noReadyPod": {"namespace": "gpu-operator", "matchLabels": {"app": "driver"}}},
    {
        "condition": "GpuAvailable",
        "staleAfter": "30m",
        "reportedBy": {"namespace": "nvsentinel", "matchLabels": {"app": "connector"}},
    },
)
RULE: Object = {
    "namespaces": ["batch"],
    "selector": {"matchLabels": {"a": "b"}},
    "owners": ["Job"],
    "strategy": "Delete",
}
LIMITS: Object = {
    "starts": 5,
    "percent": 10,
    "window": "20m",
    "failures": {"of": 6, "most": 3},
}
UNTIL: Object = {"until": "2100-01-01T00:00:00Z", "reason": "the PSU is changed"}
TRIGGER: Object = {
    "condition": "GpuLost",
    "status": "True",
    "reason": "Gone",
    "message": "GPU 3 fell off the bus",
    "since": "2026-10-01T00:00:00Z",
    "cause": "fell off the bus",
    "devices": {"nvidia.com/gpu": 8},
    "layout": {"nvidia.com/gpu.replicas": "4"},
}
SPECS: Mapping[str, tuple[Object, ...]] = {
    "RemediationPolicy": (
        {
            "mode": "Enforce",
            "nodeSelector": CHOICE,
            "when": [*WHEN],
            "severity": "Critical",
            "ladder": [{"operation": "reboot", "attempts": 2, "parameters": {"force": "true"}}],
            "verify": {"settle": "6m", "fresh": "4m", "timeout": "25m", "probe": "gpu-check", "inventory": "Ignore"},
            "attempts": {"max": 5, "window": "48h"},
            "confirm": {"promQL": 'up{node="{{node}}"}', "within": "7m"},
            "cooldown": "45m",
            "relapse": {"window": "24h"},
            "lemon": {"cases": 4, "window": "240h"},
            "urgency": {"mode": "WhenIdle", "deadline": "12h"},
            "windows": [{"cron": "0 2 * * *", "duration": "4h", "timeZone": "Asia/Tokyo"}],
            "approval": "Required",
            "requireSpareGPUs": True,
            "maxBlastRadius": {"jobs": 1, "gpuHours": 2},
            "idleTest": {
                "probe": "gpu-check",
                "share": "5%",
                "window": {"cron": "0 3 * * *", "duration": "3h", "timeZone": "Asia/Tokyo"},
            },
            "admit": {"probe": "gpu-check", "taint": "remediator.dev/unproven"},
            "ticket": {"when": "Always", "route": "gpu"},
            "escalation": {"release": "WhenHealthy"},
            "correlation": {"nodes": 5, "within": "20m", "by": ["reason"]},
        },
    ),
    "NodeOperationTemplate": (
        {
            "drain": {
                "strategy": "EvictThenDelete",
                "timeout": "40m",
                "evictFor": "5m",
                "deleteBarePods": True,
                "deleteEmptyDirData": True,
                "overrideAnnotationsAfter": "10m",
                "skipWaitForDelete": "5m",
                "rules": [RULE],
            },
            "runOn": "Elsewhere",
            "timeout": "25m",
            "success": {"bootIDChanged": True, "nodeReady": True},
            "pauseGpuOperands": True,
            "after": ["reboot"],
            "covers": ["reset-gpu"],
            "podTemplate": {"spec": {"containers": [{"name": "main", "image": "operations"}]}},
        },
        {"drain": {"strategy": "External", "condition": "SlurmDrained"}, "podTemplate": {}},
        {
            "drain": {"strategy": "None"},
            "neighbours": {"sameLabel": "topology.kubernetes.io/rack", "atOnce": 3},
            "podTemplate": {"spec": {"containers": [{"name": "main", "image": "operations"}]}},
        },
    ),
    "NodeDisruptionBudget": (
        {
            "selector": CHOICE,
            "maxUnavailable": "5%",
            "maxQuarantined": 3,
            "fallback": True,
            "groupBy": "rack",
            "breaker": LIMITS,
        },
        {"selector": {}, "minAvailable": 4},
    ),
    "NodeOperation": (
        {
            "nodeName": "gpu-17",
            "nodeUID": "n1",
            "caseUID": "c1",
            "attempt": 2,
            "templateName": "reboot",
            "parameters": {"force": "true"},
            "keepOut": UNTIL,
            "requestedBy": "alice",
        },
    ),
    "NodeRemediation": (
        {
            "nodeName": "gpu-17",
            "nodeUID": "n1",
            "policyName": "gpu-lost",
            "manual": {
                "operation": "by-hand",
                "uid": "o1",
                "templateName": "reboot",
                "parameters": {"force": "true"},
                "requestedBy": "alice",
            },
            "keepOut": UNTIL,
            "newNode": {"taint": "remediator.dev/unproven", "machine": "m1"},
            "trigger": TRIGGER,
            "hold": True,
            "holdSetBy": "alice",
            "release": True,
            "releaseSetBy": "bob",
            "approved": True,
            "approvedBy": "carol",
            "retry": 2,
            "retrySetBy": "dave",
        },
    ),
}
# What stands there instead where a field may not be left out.
INSTEAD: Mapping[str, Any] = {
    "spec.mode": "DryRun",
    "spec.nodeSelector": {"matchLabels": {"other": "b"}},
    "spec.selector": {"matchLabels": {"other": "b"}},
    "spec.drain": {"strategy": "None"},
    "spec.drain.strategy": "Evict",
    "spec.drain.rules.strategy": "Evict",
    "spec.podTemplate": {"metadata": {"labels": {"a": "b"}}},
    "spec.windows.duration": "5h",
    "spec.maxUnavailable": 1,
    "spec.nodeSelector.matchExpressions.operator": "NotIn",
    "spec.selector.matchExpressions.operator": "NotIn",
    "spec.when": [{"condition": "Other"}],
    "spec.when.noReadyPod.matchLabels": {"app": "other"},
    "spec.when.reportedBy.matchLabels": {"app": "other"},
    "spec.idleTest.share": 2,
    "spec.idleTest.window": {"cron": "0 4 * * *", "duration": "2h"},
    "spec.idleTest.window.duration": "5h",
    "spec.admit.taint": "remediator.dev/other",
    "spec.drain.rules.selector.matchLabels": {"other": "b"},
    "spec.keepOut.until": "2101-01-01T00:00:00Z",
    "spec.trigger.since": "2026-11-01T00:00:00Z",
}
TEXT = "another"


def places(value: Any, path: str = "spec") -> Iterator[str]:
    """Every field of a spec, written as in the CRD: without the numbers of entries, nor the keys of maps."""
    for name, part in value.items():
        yield f"{path}.{name}"
        for entry in part if isinstance(part, list) else (part,):
            if isinstance(entry, dict) and name not in OPEN:
                yield from places(entry, f"{path}.{name}")


# Maps whose keys are no fields.
OPEN = frozenset({"matchLabels", "parameters", "podTemplate", "devices", "layout"})


def without(spec: Object, path: str, instead: Any = None) -> Object:
    """The same without this field in any of its entries; or with something else there."""
    changed = deepcopy(spec)
    _change([changed], path.split(".")[1:], instead)
    return changed


def _change(objects: list[Any], steps: list[str], instead: Any) -> None:
    for each in objects:
        if steps[0] not in each:
            continue
        if len(steps) > 1:
            below = each[steps[0]]
            _change(below if isinstance(below, list) else [below], steps[1:], instead)
        elif instead is None:
            del each[steps[0]]
        else:
            each[steps[0]] = instead
