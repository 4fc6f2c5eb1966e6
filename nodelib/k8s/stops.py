"""What a user stops the repair of a node with, also in its middle, as the API server has it now. Pure."""

from collections.abc import Mapping

EXCLUDE = "remediator.dev/exclude"
PAUSED = "remediator.dev/paused"
ROLES = tuple(f"node-role.kubernetes.io/{role}" for role in ("control-plane", "master", "etcd", "controlplane"))

Object = Mapping


def why_stopped(node: Object, case: Object, policy: Object, namespace: Object) -> str:
    """Return what stops the repair of the node, "" where nothing does. {} stands for what was not asked for."""
    name, mode = node["metadata"]["name"], (policy.get("spec") or {}).get("mode", "Enforce")
    calls = ((policy.get("spec") or {}).get("urgency") or {}).get("mode") == "Never"
    asks = case and (policy.get("spec") or {}).get("approval") == "Required"
    checks = (
        (PAUSED in _of(namespace, "annotations"), "all new work is paused"),
        (mode != "Enforce", f"the mode of the policy is {mode}"),
        (calls, "the urgency of the policy is Never"),
        (bool((case.get("spec") or {}).get("release")), "spec.release of the case is true"),
        (bool((case.get("spec") or {}).get("hold")), "spec.hold of the case is true"),
        (asks and not (case.get("spec") or {}).get("approved"), "spec.approved of the case is not true"),
        (_of(node, "labels").get(EXCLUDE, "false") != "false", f"{name} is excluded"),
        (any(role in _of(node, "labels") for role in ROLES), f"{name} is part of the control plane"),
        (not (node.get("spec") or {}).get("unschedulable"), f"a user has uncordoned {name}"),
    )
    return next((sentence for holds, sentence in checks if holds), "")


def _of(obj: Object, part: str) -> Object:
    return (obj.get("metadata") or {}).get(part) or {}
