"""Every field of the kinds that users write, with values that nobody can mean: lint names the field and a remedy."""

import math
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from remediator.kube import api
from remediator.kube.manifests import crd, lint
from tests.remediator.kube.manifests.examples import Object, manifest

# Every field that a user may write, with a value that is right; a test holds that none is missing.
FULL = {
    "RemediationPolicy": manifest(
        "RemediationPolicy",
        allNodes=False,
        nodeSelector={
            "matchLabels": {"pool": "a"},
            "matchExpressions": [{"key": "a", "operator": "In", "values": ["x"]}],
        },
        when=[
            {"condition": "A", "status": "True", "reasons": ["r"], "for": "2m"},
            {"all": [{"condition": "B", "status": "True", "reasons": ["r"]}]},
            {"alert": "NodeGpuXid", "for": "2m"},
            {"event": {"reason": "TaskHung", "count": 3, "within": "10m"}},
            {"noReadyPod": {"namespace": "gpu-operator", "matchLabels": {"a": "b"}}},
            {
                "condition": "C",
                "staleAfter": "30m",
                "reportedBy": {"namespace": "nvsentinel", "matchLabels": {"a": "b"}},
            },
        ],
        severity="Warning",
        ladder=[{"operation": "reboot", "attempts": 1, "parameters": {"a": "b"}}],
        verify={"settle": "5m", "fresh": "3m", "timeout": "20m", "probe": "gpu-check", "inventory": "Keep"},
        attempts={"max": 4, "window": "168h"},
        confirm={"promQL": 'up{a="{{node}}"}', "within": "5m"},
        cooldown="30m",
        relapse={"window": "72h"},
        lemon={"cases": 3, "window": "720h"},
        urgency={"mode": "WhenIdle", "deadline": "24h"},
        windows=[{"cron": "0 2 * * *", "duration": "4h", "timeZone": "UTC"}],
        approval="None",
        requireSpareGPUs=False,
        maxBlastRadius={"jobs": 1, "gpuHours": 1},
        admit={"probe": "gpu-check", "taint": "remediator.dev/unproven"},
        idleTest={
            "probe": "gpu-check",
            "share": "5%",
            "window": {"cron": "0 2 * * *", "duration": "4h", "timeZone": "UTC"},
        },
        ticket={"when": "Always", "route": "gpu"},
        escalation={"release": "Manual"},
        correlation={"nodes": 3, "within": "10m", "by": ["reason"]},
    ),
    "NodeOperationTemplate": manifest(
        "NodeOperationTemplate",
        name="reset",
        drain={
            "strategy": "EvictThenDelete",
            "timeout": "30m",
            "evictFor": "5m",
            "deleteBarePods": True,
            "deleteEmptyDirData": True,
            "overrideAnnotationsAfter": "10m",
            "skipWaitForDelete": "5m",
            "rules": [
                {
                    "namespaces": ["a"],
                    "selector": {"matchLabels": {"a": "b"}},
                    "owners": ["Job"],
                    "strategy": "Delete",
                }
            ],
        },
        runOn="Target",
        timeout="15m",
        success={"bootIDChanged": True, "nodeReady": True},
        pauseGpuOperands=True,
        neighbours={"sameLabel": "topology.kubernetes.io/rack", "atOnce": 2},
        after=["reboot"],
        covers=["reboot"],
    ),
    "NodeDisruptionBudget": manifest(
        "NodeDisruptionBudget",
        selector={"matchLabels": {"pool": "a"}},
        maxUnavailable="5%",
        maxQuarantined="20%",
        fallback=False,
        groupBy="rack",
        breaker={"starts": 5, "percent": 10, "window": "10m", "failures": {"of": 8, "most": 4}},
    ),
    "NodeOperation": manifest(
        "NodeOperation",
        caseUID=None,
        parameters={"a": "b"},
        keepOut={"until": "2100-01-01T00:00:00Z", "reason": "the PSU is changed"},
    ),
}
# Fields that no example can have beside the others.
APART = {
    "spec.drain.condition",
    "spec.minAvailable",
    "spec.caseUID",
    "spec.requestedBy",
    "spec.attempt",
    "spec.selector.matchExpressions",
}
KNOWN = {"reboot", "gpu-check"}
NEVER_RIGHT: tuple[Any, ...] = (
    *(-1, 1e99, math.nan, 10**12, [], [1], [[]], {"a b": 1}),
    *("x" * 400, "no such thing!", "-5m", "5 m", "５m", "5m\n"),
)
SOMETIMES_RIGHT: tuple[Any, ...] = (0, "", None, {}, True, "1e99", "1ms", "9999999d", "1.5h", "P1D", "NONE", "enforce")
# Texts that may be anything: what they are is not ours to judge.
FREE = re.compile(r"reasons\[0\]$|parameters\.a$|ticket\.route$|nodeUID$|nodeName$|requestedBy$|keepOut\.reason$")
EMPTY = re.compile(r"(matchExpressions|reasons|windows|ladder|rules|after|covers|by|matchLabels|parameters)$")
REGEX = re.compile(r"\[\^?[-A-Za-z0-9]+\][*+{]|\)\?\$")
CAUSE = re.compile(
    r"must (be|have|name|match|leave|not)|is required|unknown field|has no value|there is no|values must|is over|"
    r"leaves no|never comes|names|needs|goes with|belongs to|choose|is the only|give |has no effect|acts also"
)


def _places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, part in parts:
        if step != "podTemplate":
            yield (*path, step)
            yield from _places(part, (*path, step))


def _put(document: Object, path: tuple[str | int, ...], value: Any) -> Object:
    changed = deepcopy(document)
    place: Any = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return changed


def _text(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)[1:]


PLACES = [(kind, path) for kind, document in FULL.items() for path in _places({"spec": document["spec"]})]
IDS = [f"{kind} {_text(path)}" for kind, path in PLACES]


def _findings(document: Object) -> list[lint.LintError]:
    return lint.lint([("x.yaml:1", document)], KNOWN)


@pytest.mark.parametrize("kind", FULL)
def test_an_example_with_every_field_is_right(kind: str) -> None:
    assert _findings(FULL[kind]) == []


@pytest.mark.sampled
@pytest.mark.parametrize(("kind", "path"), PLACES, ids=IDS)
def test_what_nobody_can_mean_is_refused_at_its_field(kind: str, path: tuple[str | int, ...]) -> None:
    for value in NEVER_RIGHT:
        if (value == [] and EMPTY.search(_text(path))) or (isinstance(value, str) and FREE.search(_text(path))):
            continue
        findings = _findings(_put(FULL[kind], path, value))
        assert any(_near(finding.field, _text(path)) for finding in findings), value


@pytest.mark.sampled
@pytest.mark.parametrize(("kind", "path"), PLACES, ids=IDS)
def test_each_refusal_says_what_may_stand_there_and_shows_no_pattern(kind: str, path: tuple[str | int, ...]) -> None:
    for value in (*NEVER_RIGHT, *SOMETIMES_RIGHT):
        for finding in _findings(_put(FULL[kind], path, value)):
            assert CAUSE.search(finding.message), (value, finding)
            assert not REGEX.search(finding.message), (value, finding)
            assert "evaluation error" not in finding.message, (value, finding)


def _near(field: str, place: str) -> bool:
    """At the place, in it, beside it, or at the object that holds it."""
    place = re.sub(r"\.(pool|a)$", "", place)
    above = place.rpartition(".")[0]
    return field.startswith(place) or above in (field, field.rpartition(".")[0]) or field == place.rpartition("[")[0]


@pytest.mark.parametrize("kind", FULL)
def test_no_field_is_missing_here(kind: str) -> None:
    described = crd.crd(next(each for each in api.KINDS if each.name == kind))
    schema = described["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    written = {re.sub(r"\[\d+\]", "", _text(path)) for of, path in PLACES if of == kind}
    missing = {place for place in _described(schema, "spec") if not any(_under(place, each) for each in APART)}
    assert sorted(missing - written) == []


def _under(place: str, other: str) -> bool:
    return place == other or place.startswith(f"{other}.")


def _described(schema: dict[str, Any], path: str) -> Iterator[str]:
    for name, part in schema.get("properties", {}).items():
        if name != "podTemplate":
            yield f"{path}.{name}"
            yield from _described(part.get("items", part), f"{path}.{name}")
