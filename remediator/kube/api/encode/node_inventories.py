"""NodeInventories as we write them."""

from datetime import datetime

from remediator.core.idle_result import IdleResult
from remediator.core.node_inventory import Inventory
from remediator.core.reboot_loop import Boots
from remediator.kube import api
from remediator.kube.api.encode.objects import body, second, second_or_none, status_patch
from remediator.kube.api.patch import Body, MergePatch


def new_inventory(node: str) -> Body:
    """The inventory of a node, of which nothing is known yet."""
    spec = api.NodeInventorySpec(node_name=node)
    return body(api.NodeInventory(metadata=api.ObjectMeta(name=node), spec=spec))


def inventory_status(before: Inventory, after: Inventory) -> Body:
    """A merge patch of what was learnt, refused if the object has moved since we read it."""
    status = api.NodeInventoryStatus(
        counts=dict(after.learnt),
        digest=after.digest,
        since=second_or_none(after.since),
        board=after.board,
        node_uid=after.node_uid,
        node_gone_since=second_or_none(after.gone_since),
        idle_test=_tested(after.tested),
        tested_gpus=tuple(
            api.GpuResult(serial=gpu.serial, uuid=gpu.uuid, passed=gpu.passed, at=second(gpu.at))
            for gpu in after.tested_gpus
        ),
        boots=_boots(after.boots),
    )
    forgotten = {kind: None for kind in before.learnt if kind not in after.learnt}
    patch = status_patch(before.version, status)
    patch["status"]["counts"] = forgotten | dict(after.learnt)
    return patch


def _tested(result: IdleResult | None) -> api.IdleTestResult | None:
    if result is None:
        return None
    return api.IdleTestResult(
        policy=result.policy,
        probe=result.probe,
        passed=result.passed,
        at=second(result.at),
        boot_id=result.boot_id,
        message=result.message,
    )


def _boots(boots: Boots | None) -> api.Boots | None:
    if boots is None:
        return None
    return api.Boots(boot_id=boots.boot_id, node_uid=boots.node_uid, unasked=tuple(map(second, boots.unasked)))


def forgotten_inventory(at: datetime) -> Body:
    """A merge patch that has forgotten what was learnt before this time."""
    return body(MergePatch(spec=api.NodeInventorySpec(forget_before=second(at))))
