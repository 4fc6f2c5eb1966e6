"""Whether the case that started this Pod still holds the node: looked up before every disruption, never assumed."""

from nodelib.contract.operation import Refused

TAINT = "remediator.dev/case"
OURS = "/apis/remediator.dev/v1alpha1"
ENDED = ("Succeeded", "Failed", "Refused", "Cancelled")


def require_claim(node: dict, case_uid: str) -> None:
    """Raise Refused unless the node carries the taint of this case."""
    taints = (node.get("spec") or {}).get("taints") or []
    if not case_uid or (TAINT, case_uid) not in [(taint.get("key"), taint.get("value")) for taint in taints]:
        raise Refused(f"node {node['metadata']['name']} is not held by case {case_uid or '(none given)'}")
