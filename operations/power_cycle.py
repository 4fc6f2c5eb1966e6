#!/usr/bin/env -S python3 -I -S -B
"""Take a node's power away through its BMC and give it back, once for one attempt.

For a node that nothing else reaches. Off, then on, is what the BMC is told, each seen in its power state; one that
cannot do that is told PowerCycle or ForceRestart. Whether it worked is told by the node's new boot id and its Ready.

Never twice: before the power goes, a Lease named after the attempt is created in the namespace of operations. Only one
start of an attempt can create it. A second start takes no power away; if it finds the node off, it turns it on. The
Lease belongs to the NodeOperation and goes with it. The boot id prevents another attempt.

PARAMETERS: caseUID (the case that holds the node), force (false: true also cuts a node that is alive, and turns one on
that was off before), waitSeconds (180, for the power to go, and again to come back), offSeconds (10, without power).
The BMC is read from /etc/remediator/bmc, one file for each key: node/ is the Secret remediator-bmc-<node>, which is
that of this node alone, and shared/ the ConfigMap remediator-bmc, for what all nodes share. Keys: address ({node} is
replaced), username, password (only in the Secret), protocol (redfish, ipmi), ca.crt, insecure, system, uuid.

Exit 2: the node is Ready (reboot it), or its kubelet still renews its Lease; another boot id than EXPECTED_BOOT_ID; the
case or the operation has ended, or does not hold this node; no Secret, a wrong password, a certificate that is not
trusted, or the BMC of another machine; the power is off already; this attempt was started before.
Exit 1: the BMC or the API server does not answer, or the power does not go or come back in time.
"""

import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

import os
import time
from pathlib import Path
from typing import Any

from nodelib.bmc.ipmi import Ipmi
from nodelib.bmc.power import Bmc, Power, Silent, ask_power, read_entry
from nodelib.bmc.redfish import Redfish
from nodelib.contract.operation import Environment, Failed, Refused, main
from nodelib.contract.parameters import flag, number
from nodelib.k8s.api import Api
from nodelib.k8s.case import OperationAndNode, look, patiently

PATIENCE = 60.0  # seconds that API server and BMC may take to answer before anything was done
LEASES = "/apis/coordination.k8s.io/v1/namespaces"
REBOOT = "reboot it, or set PARAMETERS.force"

Object = dict[str, Any]


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


class Fence:
    """The Lease that only one start of an attempt can create."""

    def __init__(self, api: Api, attempt: str):
        self.api, self.attempt = api, attempt
        self.path = f"{LEASES}/{api.namespace}/leases"
        self.me = f"{os.uname().nodename}.{os.urandom(4).hex()}"

    def holder(self) -> str:
        """Return which start of this attempt holds it, "" for none. Raises Failed, Unreachable."""
        reply = self.api.get(f"{self.path}/{self.attempt}")
        if reply.status == 404:
            return ""
        if reply.status != 200:
            raise Failed(f"Lease {self.attempt} cannot be read: {reply.message}")
        return str((reply.body.get("spec") or {}).get("holderIdentity") or "another start")

    def take(self, operation: Object) -> None:
        """Create it. Raises Refused when another start has, Failed, Unreachable; may be called again after that."""
        reply = self.api.request("POST", self.path, self.lease(operation))
        if reply.status == 409 and self.holder() == self.me:
            return  # ours: the answer to the first request was lost
        if reply.status == 409:
            raise Refused(f"attempt {self.attempt} was started before")
        if reply.status >= 300:
            raise Failed(f"Lease {self.attempt} could not be created, so nothing was done: {reply.message}")

    def lease(self, operation: Object) -> Object:
        """Return the Lease; it goes when its NodeOperation goes."""
        meta = operation["metadata"]
        owner = {
            "apiVersion": "remediator.dev/v1alpha1",
            "kind": "NodeOperation",
            "name": meta["name"],
            "uid": meta["uid"],
        }
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.attempt, "ownerReferences": [owner]},
            "spec": {"holderIdentity": self.me},
        }


def connect(system_uuid: str, node: str) -> Bmc:
    """Return the BMC of a node. Raises Refused, or Failed when it does not answer."""
    entry = read_entry(Path(os.environ.get("BMC_DIR", "/etc/remediator/bmc")), node)
    if entry.protocol == "ipmi":
        return Ipmi(entry)
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return Redfish(entry, system_uuid)
        except Silent as error:
            if time.monotonic() >= until:
                raise Failed(f"the BMC does not answer: {error}") from error
        time.sleep(1.0)


def first_step(state: str, before: bool, force: bool, name: str) -> str:
    """Say what a power state asks for: cut the power, or only turn it on. Raises Refused for neither.

    `before` tells that this attempt was started before.
    """
    if state == "Off" and (before or force):
        return "on"
    if before:
        raise Refused(f"this attempt was started before, and the power of {name} is {state}")
    if state == "On":
        return "cut"
    if state == "Off":
        raise Refused(f"{name} is off: somebody may be working on it; turn it on by hand, or set PARAMETERS.force")
    raise Refused(f"the power of {name} is {state or 'not told'}: wait until it is On or Off")


def restart(bmc: Bmc, name: str) -> str:
    """Do it in the one step that this BMC has for it, once, and return the sentence. Raises Refused, Failed."""
    lost = ""
    try:
        bmc.tell(bmc.steps.cut)
    except Silent as error:
        lost = f"; the answer was lost: {error}"
    return f"{name} was told to {bmc.steps.cut}{lost}; its next boot id tells whether it did"


def act(bmc: Bmc, step: str, name: str, wait: float, rest: float) -> str:
    """Do what the power state asks for and return the sentence. Raises Refused, Failed."""
    if step == "on":
        Power(bmc).restore(wait)
        return f"{name} was off and is on again"
    if not bmc.steps.on:
        return restart(bmc, name)
    Power(bmc).cycle(wait, rest)
    return f"power-cycled {name}"


def power_cycle(environment: Environment, dry_run: bool) -> str:
    """Power-cycle the node of this environment and return the sentence."""
    force = flag(environment.parameters, "force")
    wait = number(environment.parameters, "waitSeconds", 180, least=1)
    rest = number(environment.parameters, "offSeconds", 10)
    api, name = Api(os.environ, environment.token_dir), environment.node
    seen = patiently(lambda: look_at(api, environment, force), PATIENCE)
    fence = Fence(api, environment.attempt)
    before = bool(patiently(fence.holder, PATIENCE))
    bmc = connect(seen.info.get("systemUUID", ""), name)
    step = first_step(ask_power(bmc, PATIENCE), before, force, name)
    if step == "on" and not bmc.steps.on:
        raise Refused(f"{name} is off, and its BMC has no command that turns it on: power-cycle by hand")
    if not force and not before and seen.ready == "Unknown":
        require_silence(api, name)
    if dry_run:
        return preview(bmc, fence, step, name)
    seen = patiently(lambda: look_at(api, environment, force), PATIENCE)
    if not before:
        patiently(lambda: fence.take(seen.operation), PATIENCE)
    return act(bmc, step, name, wait, rest)


def preview(bmc: Bmc, fence: Fence, step: str, name: str) -> str:
    """Print what would be sent and return the sentence."""
    print(f"would create Lease {fence.attempt}")
    if step == "on":
        print(f"would {bmc.shown(bmc.steps.on)}")
        return f"would turn {name} on"
    print(f"would {bmc.shown(bmc.steps.cut)}")
    if bmc.steps.on:
        print(f"would wait for Off and {bmc.shown(bmc.steps.on)}")
    return f"would power-cycle {name}"


if __name__ == "__main__":
    main(power_cycle, __doc__)
