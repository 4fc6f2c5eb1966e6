"""Which devices of DRA a fault is about, and the DeviceTaintRule that keeps Pods off one of them. Pure.

A driver tells the UUID and the PCI address of a GPU by attributes of its own, with or without a domain before their
names; a part of a GPU (MIG) names its parent. The standard name of the address is resource.kubernetes.io/pciBusID.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

Object = dict[str, Any]

RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CASE_UID = "remediator.dev/case-uid"  # label of a rule: the controller ends it with its case
KEY = "remediator.dev/isolated"
EFFECTS = ("NoSchedule", "NoExecute")
UUIDS = ("uuid", "parentUUID", "parentUuid")
ADDRESSES = ("pciBusID", "pcieBusID", "pciBusId")
ADDRESS = re.compile(r"\b([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2})(?:\.[0-7])?\b", re.IGNORECASE)
UUID_BEGIN = 12  # "GPU-9f3c01ab": what detectors write of a UUID


class DraDevice(NamedTuple):
    """One device, by the three names that a rule selects it by, and what tells which GPU it is."""

    driver: str
    pool: str
    name: str
    uuids: frozenset[str]
    addresses: frozenset[str]

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.name}"


def devices(slices: Iterable[Object], node: str) -> list[DraDevice]:
    """Return the devices of this node, of each pool only the newest generation."""
    mine = [part["spec"] for part in slices if part["spec"].get("nodeName") == node]
    newest: dict[tuple[str, str], int] = {}
    for spec in mine:
        newest[_pool(spec)] = max(newest.get(_pool(spec), 0), spec["pool"].get("generation") or 0)
    current = [spec for spec in mine if (spec["pool"].get("generation") or 0) == newest[_pool(spec)]]
    return [_device(spec, device) for spec in current for device in spec.get("devices") or []]


def named(known: Iterable[DraDevice], gpus: Iterable[str], fault: str) -> list[DraDevice]:
    """Return the devices that the fault is about: by a UUID among `gpus`, or by a UUID or a PCI address in its text."""
    uuids, addresses = frozenset(gpus), frozenset(map(_address, ADDRESS.finditer(fault)))
    return [
        device
        for device in known
        if device.uuids & uuids
        or device.addresses & addresses
        or any(len(uuid) >= UUID_BEGIN and uuid[:UUID_BEGIN] in fault for uuid in device.uuids)
    ]


def rule(device: DraDevice, case: str, case_uid: str, effect: str) -> Object:
    """Return the rule of one device: Kubernetes deletes it where the case is deleted, the controller at its end."""
    owner = {"apiVersion": "remediator.dev/v1alpha1", "kind": "NodeRemediation", "name": case, "uid": case_uid}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": rule_name(device, case_uid), "labels": {CASE_UID: case_uid}, "ownerReferences": [owner]},
        "spec": {
            "deviceSelector": {"driver": device.driver, "pool": device.pool, "device": device.name},
            "taint": {"key": KEY, "effect": effect},
        },
    }


def rule_name(device: DraDevice, case_uid: str) -> str:
    """Return the one name that this device has in this case: made twice is "already exists"."""
    digest = hashlib.sha256("\0".join((case_uid, *device[:3])).encode()).hexdigest()[:10]
    return f"{device.pool.replace('/', '-')[:30].strip('-.')}-{device.name[:20].strip('-')}-{digest}"


def _pool(spec: Object) -> tuple[str, str]:
    return spec["driver"], spec["pool"]["name"]


def _device(spec: Object, device: Object) -> DraDevice:
    texts = {
        name.rpartition("/")[2]: value["string"]
        for name, value in (device.get("attributes") or {}).items()
        if isinstance(value.get("string"), str)
    }
    uuids = frozenset(texts[name] for name in UUIDS if texts.get(name))
    matches = (ADDRESS.fullmatch(texts[name]) for name in ADDRESSES if name in texts)
    addresses = frozenset(_address(match) for match in matches if match)
    return DraDevice(spec["driver"], spec["pool"]["name"], device["name"], uuids, addresses)


def _address(match: re.Match[str]) -> str:
    """Without the function, which not every program tells, and the leading zeros of the domain: NVML writes more."""
    return f"{match[1].lstrip('0') or '0'}:{match[2]}".lower()
