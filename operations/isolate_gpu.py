#!/usr/bin/env -S python3 -I -S -B
"""Isolate an unhealthy GPU alone: a DeviceTaintRule keeps Pods off it, and its node goes back to work without it.

For GPUs that a driver of DRA hands out (Kubernetes 1.37). Which devices the case is about is read from its PARAMETERS:
their UUIDs, or a UUID or PCI address in the text of the fault. Each gets a rule that names driver, pool and device and
ends with the case. Then the cordon of the case is taken off: the annotation remediator.dev/cordoned-by=<case uid>
becomes remediator.dev/in-service=<case uid>. A node that somebody else has cordoned stays cordoned.

PARAMETERS: caseUID and case (whose rules they are), gpus (UUIDs, with commas between), fault (its text), effect
(NoSchedule: what runs goes on; or NoExecute: Pods on the GPU are ended).

Exit 2: cannot tell which device the fault is about, or the case names every device of the node; nothing is tainted
then. Exit 1: the API server refuses a rule or the node.
"""

import os
import os.path
import sys

sys.path.append(os.path.realpath(f"{__file__}/../.."))  # where nodelib/ is; python3 -I leaves it out

from typing import Any

from nodelib.contract.operation import Environment, Failed, Refused, main
from nodelib.k8s.api import Api
from nodelib.k8s.case import look, patiently
from nodelib.k8s.cordon_mark import ANNOTATION, Change, cordoned_by, is_cordoned, left, write
from nodelib.k8s.dra import EFFECTS, RULES, SLICES, DraDevice, devices, named, rule

IN_SERVICE = "remediator.dev/in-service"
PATIENCE = 60.0


def unhealthy(slices: list[dict[str, Any]], environment: Environment) -> list[DraDevice]:
    """Return the devices that the fault is about. Raises Refused where nobody can tell, or where all of them are."""
    node, parameters = environment.node, environment.parameters
    known = devices(slices, node)
    gpus = [uuid for uuid in parameters.get("gpus", "").split(",") if uuid]
    faulty = named(known, gpus, parameters.get("fault", ""))
    if not known:
        raise Refused(f"cannot tell which device of {node} is unhealthy: no driver of DRA publishes devices of it")
    if not faulty:
        raise Refused(
            f"cannot tell which device of {node} is unhealthy: none of {len(known)} has a UUID or PCI address of it"
        )
    if len(faulty) == len(known):
        raise Refused(
            f"cannot tell which device of {node} is unhealthy: the case names all of its {len(known)} devices"
        )
    return faulty


def decide(node: dict[str, Any], case_uid: str) -> Change | str:
    """Return the change that gives the node back to work, or why there is nothing to do."""
    name = node["metadata"]["name"]
    if not is_cordoned(node):
        return f"{name} is in service"
    if cordoned_by(node) != case_uid:
        return left(node)
    marks = {"annotations": {ANNOTATION: None, IN_SERVICE: case_uid}}
    patch = {"metadata": marks, "spec": {"unschedulable": None}}
    return Change(patch, f"{name} is in service without it", f"would put {name} back in service")


def isolate(environment: Environment, dry_run: bool) -> str:
    """Taint the unhealthy devices of the node, then give the node back to work; return the sentence."""
    given = environment.parameters
    effect = given.get("effect") or EFFECTS[0]
    if effect not in EFFECTS:
        raise Refused(f"PARAMETERS.effect is {effect!r}, not one of {', '.join(EFFECTS)}")
    api = Api(os.environ, environment.token_dir)
    patiently(lambda: look(api, environment), PATIENCE)
    reply = patiently(lambda: api.get(SLICES, fieldSelector=f"spec.nodeName={environment.node}"), PATIENCE)
    if reply.status == 404:
        raise Refused("the API server has no ResourceSlices: it is no Kubernetes with DRA")
    if reply.status != 200:
        raise Failed(f"{SLICES} cannot be read: {reply.message}")
    faulty = unhealthy(reply.body.get("items") or [], environment)
    listed = ", ".join(map(str, faulty))
    if dry_run:
        return f"would taint {listed} with {effect}"
    for device in faulty:
        patiently(lambda device=device: _taint(api, device, environment, effect), PATIENCE)
    return f"isolated {listed} ({effect}); {write(environment, dry_run, decide)}"


def _taint(api: Api, device: DraDevice, environment: Environment, effect: str) -> None:
    """Create the rule; one of that name being there is success. Raises Failed, Unreachable."""
    parameters = environment.parameters
    body = rule(device, parameters.get("case", ""), parameters.get("caseUID", ""), effect)
    reply = api.request("POST", RULES, body)
    if reply.status >= 300 and reply.status != 409:
        raise Failed(f"{device} cannot be tainted: {reply.message}")


if __name__ == "__main__":
    main(isolate, __doc__)
