"""Fewer devices than before the case is no recovery. Known are the GPUs that nodes had when their cases were opened."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from remediator.core.case import Case
from remediator.core.node import Node
from remediator.core.policy import InventoryMode, Policy
from remediator.core.reasons import Reason
from remediator.core.sharing import changed, divides_by_growth


class Devices(NamedTuple):
    """What is known of the devices of a node since the newest attempt."""

    lacking: str = ""  # which, with the numbers
    unknown: str = ""  # why nobody knows which it has


NOTHING_KNOWN = Devices()


def missing(case: Case, policy: Policy, node: Node, others: Iterable[Case]) -> str:
    """Which devices the node lacks, a phrase each with the numbers; "" where it lacks none, or nobody counts them.

    A resource that the node does not name at all counts as 0. A label that is gone says nothing. Nor do resources where
    the GPUs are divided or shared otherwise than when the case was opened: only the label that counts GPUs is compared.
    """
    if policy.verify.inventory is not InventoryMode.KEEP:
        return ""
    now, before = dict(node.devices), known(case, others)
    otherwise = _otherwise(case, node)
    lacking = ((name, now.get(name, 0), most) for name, most in sorted(before.items()))
    return ", ".join(
        f"{name} {have} of {most}"
        for name, have, most in lacking
        if have < most and (name in now if _physical(name) else not otherwise)
    )


def _otherwise(case: Case, node: Node) -> bool:
    """Whether labels say that somebody has divided or shared the GPUs otherwise since the case was opened, or another
    resource has grown in a way that only a person can have caused: a GPU that is lost makes none.
    """
    if case.trigger is None:
        return False
    before = dict(case.trigger.devices)
    grown = [name for name, count in node.devices if not _physical(name) and count > before.get(name, 0)]
    more = bool(before) and any(divides_by_growth(node, name) for name in grown)
    return more or changed(case.trigger.layout, node)


def _physical(name: str) -> bool:
    """Whether it is a label that counts GPUs as NVML lists them, and no resource."""
    return name.endswith(".count")


def known(case: Case, others: Iterable[Case]) -> Mapping[str, int]:
    """What the node had when this case was opened, and the most physical GPUs when an earlier one of it was.

    Of earlier cases resources say nothing: their counts change with MIG and time slicing. A user who releases a node
    takes it as it is: cases that were opened before do not count any more.
    """
    mine = [other for other in (*others, case) if other.node_uid == case.node_uid and other.trigger]
    released = [other.created for other in mine if other.reason is Reason.RELEASED_BY_USER]
    since = max(released, default=None)
    most: dict[str, int] = {}
    for other in mine:
        counts = since is None or other.created > since or other.uid == case.uid
        for name, count in other.trigger.devices if counts and other.trigger else ():
            if other.uid == case.uid or _physical(name):
                most[name] = max(most.get(name, 0), count)
    return most
