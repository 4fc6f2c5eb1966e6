"""What the server itself knows of Pods: defaults, a little validation, and how long a delete waits for the kubelet."""

from collections.abc import Iterator
from typing import Any

from remediator_sim.apiserver import status
from remediator_sim.apiserver.status import Obj, StatusCause

FINISHED = ("Succeeded", "Failed")
_MUTABLE = ("activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations")


def ready(pod: Obj) -> bool:
    """Whether the Ready condition is True."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)


def begin(pod: Obj) -> None:
    """Defaults of a new Pod, and its first status."""
    spec = pod["spec"]
    defaults: Obj = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "serviceAccountName": "default",
    }
    for key, value in defaults.items():
        spec.setdefault(key, value)
    for container in _containers(spec):
        container.setdefault("resources", {})
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        container.setdefault("imagePullPolicy", _pull_policy(container.get("image") or ""))
    pod["status"] = {"phase": "Pending", "qosClass": _qos(spec)}


def _pull_policy(image: str) -> str:
    tag = image.rpartition("/")[2].partition(":")[2]
    return "Always" if "@" not in image and tag in ("", "latest") else "IfNotPresent"


def _containers(spec: Obj) -> list[Obj]:
    containers = [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]
    return [container for container in containers if isinstance(container, dict)]


def _qos(spec: Obj) -> str:
    resources = [container.get("resources") or {} for container in _containers(spec)]
    if not any(part.get("requests") or part.get("limits") for part in resources):
        return "BestEffort"
    guaranteed = all(_guaranteed(part) for part in resources)
    return "Guaranteed" if guaranteed else "Burstable"


def _guaranteed(resources: Obj) -> bool:
    limits = resources.get("limits") or {}
    requests = resources.get("requests") or limits
    return all(limits.get(word) is not None and requests.get(word) == limits[word] for word in ("cpu", "memory"))


def check(pod: Obj, old: Obj | None) -> Iterator[StatusCause]:
    """Causes to refuse a Pod: nothing to run, nameless containers, or a change of what cannot change."""
    spec: Any = pod.get("spec")
    if not isinstance(spec, dict) or not spec.get("containers"):
        yield status.required("spec.containers")
        return
    for at, container in enumerate(spec["containers"]):
        for key in ("name", "image"):
            if not container.get(key):
                yield status.required(f"spec.containers[{at}].{key}")
    names = [container.get("name") for container in spec["containers"]]
    for at, name in enumerate(names):
        if name and name in names[:at]:
            yield status.duplicate(f"spec.containers[{at}].name", name)
    if spec.get("restartPolicy") not in ("Always", "OnFailure", "Never"):
        value = status.shown(spec.get("restartPolicy"))
        listed = '"Always", "OnFailure", "Never"'
        detail = f"Unsupported value: {value}: supported values: {listed}"
        yield StatusCause("spec.restartPolicy", "FieldValueNotSupported", detail)
    if old is not None and _fixed(spec) != _fixed(old["spec"]):
        why = (
            "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
            "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
            "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
        )
        yield status.not_allowed("spec", why)


def _fixed(spec: Obj) -> Obj:
    kept = {key: value for key, value in spec.items() if key not in _MUTABLE}
    for key in ("containers", "initContainers"):
        kept[key] = [{**container, "image": ""} for container in spec.get(key) or []]
    return kept


def grace(pod: Obj, asked: int | None) -> int:
    """Seconds that a delete leaves the kubelet; 0 where no kubelet has anything to end."""
    spec, phase = pod["spec"], (pod.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in FINISHED:
        return 0
    return asked if asked is not None else int(spec.get("terminationGracePeriodSeconds") or 30)
