"""NodeInventories as we read them."""

from remediator.core.idle_result import GpuResult, IdleResult
from remediator.core.node_inventory import Inventory
from remediator.core.reboot_loop import Boots
from remediator.kube import api
from remediator.kube.api.decode.policies import selector
from remediator.kube.api.decode.times import EPOCH, moment


def node_inventory(wire: api.NodeInventory) -> Inventory:
    """What a node, or every node of a group, is known to have."""
    spec, status = wire.spec, wire.status
    return Inventory(
        name=wire.metadata.name,
        node=spec.node_name or "",
        selector=selector(spec.node_selector) if spec.node_selector is not None else None,
        expected=spec.expected,
        forget_before=moment(spec.forget_before),
        learnt=status.counts,
        digest=status.digest,
        since=moment(status.since),
        board=status.board,
        node_uid=status.node_uid,
        gone_since=moment(status.node_gone_since),
        tested=_tested(status.idle_test),
        tested_gpus=tuple(
            GpuResult(gpu.serial, gpu.uuid, gpu.passed, moment(gpu.at) or EPOCH) for gpu in status.tested_gpus
        ),
        boots=_boots(status.boots),
        uid=wire.metadata.uid,
        version=wire.metadata.resource_version,
    )


def _tested(wire: api.IdleTestResult | None) -> IdleResult | None:
    if wire is None:
        return None
    return IdleResult(wire.policy, wire.probe, wire.passed, moment(wire.at) or EPOCH, wire.boot_id, wire.message)


def _boots(wire: api.Boots | None) -> Boots | None:
    if wire is None or not wire.boot_id:
        return None
    return Boots(wire.boot_id, wire.node_uid, tuple(moment(at) or EPOCH for at in wire.unasked))
