"""Histories of tests of idle nodes: a node, its tests and their results."""

from typing import Any

from remediator_sim.invariants.contract import INVENTORIES, PODS
from tests.remediator_sim.invariants.recording import Recording

BOOT, KEY = "boot-1", "remediator.dev/idle-test"


def an_idle_node(recording: Recording, name: str, boot: str = BOOT) -> None:
    """A node that is well, in this boot."""
    recording.node(name, fault="False")
    recording.write("nodes", name, status={"nodeInfo": {"bootID": boot}})


def made(recording: Recording, number: int, *, node: str = "", boot: str = BOOT, **labels: str) -> None:
    """One test, of ten seconds. `labels`: those of remediator.dev/ that it has besides, with _ for -."""
    marks = {KEY: "true"} | {f"remediator.dev/{name.replace('_', '-')}": value for name, value in labels.items()}
    meta = {"uid": f"uid-test-{number}", "namespace": "remediator-operations", "labels": marks}
    named = {"name": f"test-{number}", "annotations": {KEY: f"p/{node or f'n{number}'}/{boot}"}}
    spec = {"containers": [{}], "activeDeadlineSeconds": 10}
    recording.write(PODS, f"test-{number}", metadata=meta | named, spec=spec, status={"phase": "Pending"})


def neighbour(recording: Recording, number: int, template: str = "gpu-check", operation: str = "uid-op") -> None:
    """A Pod that is the other end of what an operation measures, of ten seconds."""
    made(recording, number, operation=template, neighbour_of=operation)


def said(recording: Recording, number: int, code: int, **status: Any) -> None:
    """It ends with this code."""
    ended = [{"name": "main", "state": {"terminated": {"exitCode": code}}}]
    phase = "Failed" if code else "Succeeded"
    recording.write(PODS, f"test-{number}", status={"phase": phase, "containerStatuses": ended} | status)


def kept(recording: Recording, *, passed: bool, node: str = "n0", policy: str = "p", boot: str = BOOT) -> None:
    """The inventory of a node says what a test of it has found."""
    result = {"policy": policy, **({"passed": True} if passed else {}), "bootID": boot, "at": recording.now.isoformat()}
    recording.write(INVENTORIES, node, spec={"nodeName": node}, status={"idleTest": result})
