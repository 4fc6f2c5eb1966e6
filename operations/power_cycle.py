#!/usr/bin/env -S python3 -I -S -B
"""Take a node's power away through its BMC and give it back, once for one attempt.

For a node that nothing else reaches. Off, then on, is what the BMC is told, each seen in its power state; one that
cannot do that is told PowerCycle or ForceRestart. Whether it worked is told by the node's new boot id and its Ready. A
power state in between (PoweringOn, PoweringOff) is waited for; a node that was being turned on is not turned off.

Whose BMC it is, is told by its UUID (Redfish: UUID of the system; IPMI: System GUID), which must be that of the node
(status.nodeInfo.systemUUID) or that of the entry. A UUID that boards are sold with, or that another node has as well,
proves nothing. Where nothing can be compared, nothing is done unless trustAddress says so.

Never twice: before the power goes, a Lease named after the attempt is created in the namespace of operations. Only one
start of an attempt can create it. A second start takes no power away; if it finds the node off, it turns it on. The
Lease belongs to the NodeOperation and goes with it. The boot id prevents another attempt.

A node that the BMC says is off already is turned on and no more. While the power is off, and the BMC has said so, the
VolumeAttachments of the node are looked for. Where there are any, and the UUID of the BMC is that of the node, the node
is declared out of service (the taint node.kubernetes.io/out-of-service=nodeshutdown:NoExecute, with the annotation
remediator.dev/out-of-service-boot), so that the control plane deletes its Pods by force and detaches the volumes; it is
turned on when they are, or after detachSeconds. The controller takes taint and annotation off once the node is Ready in
another boot. Trouble with any of this keeps no node without power.

PARAMETERS: caseUID (the case that holds the node), force (false: true also cuts a node that is alive), trustAddress
(false: true also where nothing tells whose BMC it is; the node is then never declared out of service), waitSeconds
(180, for the power to go, and again to come back), offSeconds (10, without power), detachSeconds (120, for volumes).
The BMC is read from /etc/remediator/bmc, one file for each key: node/ is the Secret remediator-bmc-<node>, which is
that of this node alone, and shared/ the ConfigMap remediator-bmc, for what all nodes share. Keys: address ({node} is
replaced), username, password (only in the Secret), protocol (redfish, ipmi), ca.crt, insecure, system, uuid.

With --dry-run and without ATTEMPT_ID it reads Node, Secret and ConfigMap from its standard input, as kubectl prints
them, and says whose BMC it is and whether the power is on. It asks no API server and changes nothing.

Exit 2: the node is Ready (reboot it), or its kubelet still renews its Lease; another boot id than EXPECTED_BOOT_ID; the
case or the operation has ended, or does not hold this node; no Secret, a wrong password, a certificate that is not
trusted, the BMC of another machine, or nothing that tells whose it is; the power state is not told; this attempt was
started before.
Exit 1: the BMC or the API server does not answer, or the power does not go or come back in time.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

import os
import time
from pathlib import Path
from typing import Any, NamedTuple

from nodelib.bmc.entry import Entry, read_entry
from nodelib.bmc.identity import require_known
from nodelib.bmc.ipmi import Ipmi
from nodelib.bmc.piped import read_piped
from nodelib.bmc.power import BETWEEN, Bmc, Power, Silent, ask_power, settle, told
from nodelib.bmc.redfish import Redfish
from nodelib.bmc.twin import twin_of
from nodelib.contract.operation import Environment, Failed, Refused, main
from nodelib.contract.parameters import flag, number
from nodelib.k8s.api import Api
from nodelib.k8s.case import OperationAndNode, look, patiently
from nodelib.k8s.fence import LEASES, Fence
from nodelib.k8s.out_of_service import Volumes

PATIENCE = 60.0  # seconds that API server and BMC may take to answer before anything was done
REBOOT = "reboot it, or set PARAMETERS.force"


class Orders(NamedTuple):
    """What PARAMETERS say; times in seconds."""

    force: bool
    trusted: bool
    wait: float
    rest: float
    detach: float


def read_orders(given: dict[str, Any]) -> Orders:
    """Return what PARAMETERS say. Raises Refused."""
    return Orders(
        force=flag(given, "force"),
        trusted=flag(given, "trustAddress"),
        wait=number(given, "waitSeconds", 180, least=1),
        rest=number(given, "offSeconds", 10),
        detach=number(given, "detachSeconds", 120),
    )


def require_dead(ready: str, name: str) -> None:
    """Raise Refused for a node that says that it is Ready, or of which nothing is said."""
    if ready == "True":
        raise Refused(f"{name} is Ready: {REBOOT}")
    if not ready:
        raise Refused(f"{name} has no Ready condition, so nobody can tell whether it is alive")


def require_boot(seen: OperationAndNode, expected: str) -> None:
    """Raise Refused when the node has booted since the controller looked."""
    if not expected:
        raise Refused("EXPECTED_BOOT_ID is needed")
    boot_id = seen.info.get("bootID")
    if boot_id != expected:
        raise Refused(f"boot id is {boot_id}, not {expected}: it was rebooted since")


def look_at(api: Api, environment: Environment, force: bool) -> OperationAndNode:
    """Return operation and node. Raises Refused unless the node is the one meant, in its boot, and not alive."""
    seen = look(api, environment)
    require_boot(seen, environment.expected_boot_id)
    if not force:
        require_dead(seen.ready, environment.node)
    return seen


def require_silence(api: Api, name: str) -> None:
    """Watch the node's Lease for as long as it is good for. Raises Refused when its kubelet renews it.

    Two looks at one Lease need no clock but ours; its renewTime was written by the clock of a node that may be wrong.
    """
    first = patiently(lambda: renewals(api, name), PATIENCE)
    until = time.monotonic() + first[1]
    while time.monotonic() < until:
        time.sleep(min(5.0, first[1] / 4))
        if patiently(lambda: renewals(api, name), PATIENCE) != first:
            raise Refused(f"the kubelet of {name} still renews its Lease, it is alive: {REBOOT}")


def renewals(api: Api, name: str) -> tuple[str, float]:
    """Return when the kubelet renewed its Lease last, by its own clock, and how many seconds that is good for."""
    reply = api.get(f"{LEASES}/kube-node-lease/leases/{name}")
    if reply.status == 404:
        return "", 40.0
    if reply.status != 200:
        raise Failed(f"the Lease of {name} cannot be read: {reply.message}")
    spec = reply.body.get("spec") or {}
    return str(spec.get("renewTime")), float(spec.get("leaseDurationSeconds") or 40)


def connect(entry: Entry, system_uuid: str, trusted: bool, twin: str = "") -> Bmc:
    """Return the BMC of a node. `twin`: another node with its UUID. Raises Refused, Failed when it is silent."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            bmc = (Ipmi if entry.protocol == "ipmi" else Redfish)(entry, system_uuid)
            bmc.identity = bmc.identity.beside(twin)
            require_known(bmc.identity, system_uuid, entry, trusted)
            return bmc
        except Silent as error:
            if time.monotonic() >= until:
                raise Failed(f"the BMC does not answer: {error}") from error
        time.sleep(1.0)


def next_step(bmc: Bmc, state: str, before: bool, name: str) -> str:
    """Say what a power state asks for: cut the power, only turn it on, or wait. Raises Refused for none of them.

    `before` tells that this attempt was started before.
    """
    if state in BETWEEN:
        return "wait"
    if state == "Off" and not bmc.steps.on:
        raise Refused(f"{name} is off, and its BMC has no command that turns it on: power-cycle by hand")
    if state == "Off":
        return "on"
    if before:
        raise Refused(f"this attempt was started before, and the power of {name} is {state}")
    if state == "On":
        return "cut"
    raise Refused(f"the power of {name} is {state or 'not told'}: wait until it is On or Off")


def restart(bmc: Bmc, name: str) -> str:
    """Do it in the one step that this BMC has for it, once, and return the sentence. Raises Refused, Failed."""
    lost = ""
    try:
        told(bmc, bmc.steps.cut)
    except Silent as error:
        lost = f"; the answer was lost: {error}"
    return f"{name} was told to {bmc.steps.cut}{lost}; its next boot id tells whether it did"


def act(bmc: Bmc, step: str, name: str, orders: Orders, volumes: Volumes) -> str:
    """Do what the power state asks for and return the sentence. Raises Refused, Failed."""
    power = Power(bmc, volumes.give_up)
    if step == "on":
        power.restore(orders.wait)
        return f"{name} was off and is on again{volumes.told}"
    if not bmc.steps.on:
        return restart(bmc, name)
    power.cycle(orders.wait, orders.rest)
    return f"power-cycled {name}{volumes.told}"


def doubt(bmc: Bmc, name: str) -> str:
    """Return why the power of this node is not proven to be off now, "" where it is."""
    if bmc.identity.twin:
        return f"node {bmc.identity.twin} has the UUID of {name}, too, so nobody can tell whether {name} is off"
    if not bmc.identity.proven:
        return f"its BMC does not tell the UUID that {name} has, so nobody can tell whether it is off"
    try:
        state = bmc.power()
    except (Silent, Refused, Failed) as error:
        return f"its BMC does not say that it is off: {error}"
    return "" if state == "Off" else f"its power is {state or 'not told'}"


def power_cycle(environment: Environment, dry_run: bool) -> str:
    """Power-cycle the node of this environment and return the sentence."""
    orders = read_orders(environment.parameters)
    if dry_run and not environment.attempt:
        return check(orders)
    api, name = Api(os.environ, environment.token_dir), environment.node
    seen = patiently(lambda: look_at(api, environment, orders.force), PATIENCE)
    fence = Fence(api, environment.attempt)
    before = bool(patiently(fence.holder, PATIENCE))
    entry = read_entry(Path(os.environ.get("BMC_DIR", "/etc/remediator/bmc")), name)
    uuid = str(seen.info.get("systemUUID") or "")
    twin = patiently(lambda: twin_of(api, name, uuid), PATIENCE)
    bmc = connect(entry, uuid, orders.trusted, twin)
    state = ask_power(bmc, PATIENCE)
    if dry_run:
        print("\n".join(introduced(bmc, entry, state)))
    settled = state if dry_run else settle(bmc, state, orders.wait, PATIENCE)
    if (state, settled) == ("PoweringOn", "On"):  # it boots, and was cut a moment ago or just turned on by a person
        return f"{name} was being turned on, and is on; its next boot id tells whether it runs"
    step = next_step(bmc, settled, before, name)
    if not orders.force and not before and seen.ready == "Unknown":
        require_silence(api, name)
    if dry_run:
        print(f"would create Lease {fence.attempt}")
        return preview(bmc, step, name)
    seen = patiently(lambda: look_at(api, environment, orders.force), PATIENCE)
    if not before:
        patiently(lambda: fence.take(seen.operation), PATIENCE)
    volumes = Volumes(api, seen.node, orders.detach, PATIENCE, lambda: doubt(bmc, name))
    return act(bmc, step, name, orders, volumes)


def check(orders: Orders) -> str:
    """Look at the BMC of the Node, the Secret and the ConfigMap that are piped in, and print what would be sent."""
    piped = read_piped(sys.stdin)
    bmc = connect(piped.entry, piped.system_uuid, orders.trusted)
    state = ask_power(bmc, PATIENCE)
    print("\n".join(introduced(bmc, piped.entry, state)))
    return preview(bmc, next_step(bmc, state, False, piped.node), piped.node)


def introduced(bmc: Bmc, entry: Entry, state: str) -> list[str]:
    """Return who answered, whose BMC it is, and the power state, a line each."""
    uuid, proven, named, twin = bmc.identity
    whose = (
        "that of the node" if proven else f"that of {entry.secret}, not that of the node" if named else "not compared"
    )
    whose = f"that of the node and of {twin}" if twin else whose
    return [
        f"{entry.protocol} at {entry.host}:{entry.port} let user {entry.username} in",
        f"its UUID is {uuid or 'not told'}, {whose}"
        + ("" if proven else ": the node is never declared out of service"),
        f"the power is {state or 'not told'}",
    ]


def preview(bmc: Bmc, step: str, name: str) -> str:
    """Print what would be sent and return the sentence."""
    volumes = "declare it out of service if volumes hang on it, and then " if bmc.identity.proven else ""
    if step == "wait":
        return f"would wait until the power of {name} is On or Off"
    if step == "on":
        print(f"would {volumes}{bmc.shown(bmc.steps.on)}")
        return f"would turn {name} on"
    print(f"would {bmc.shown(bmc.steps.cut)}")
    if bmc.steps.on:
        print("would wait for Off")
        print(f"would {volumes}{bmc.shown(bmc.steps.on)}")
    return f"would power-cycle {name}"


if __name__ == "__main__":
    main(power_cycle, __doc__)
