"""What each of our accounts does at the API server, and what is refused to it beside that: one row for each verb."""

from typing import NamedTuple

from remediator.kube.wire.transport import STRATEGIC_PATCH
from tests.cluster.rights.asking import OPERATIONS, OTHER, OWN, SYSTEM, Object, Request, patch
from tests.cluster.rights.attacks.attack import (
    APPS,
    ELSEWHERE,
    KEEP,
    LEASES,
    NODES,
    NOT_READY,
    OURS,
    SPACES,
    THEIRS,
    bmc,
    bundle_url,
    condition,
    event,
    gpu_label,
    placed,
    taints,
)
from tests.cluster.rights.world import CASE, RULES, device_rule, eviction_of, lease, operation_pod

MARK, KEPT = "remediator.dev/cordoned-by", "remediator.dev/kept-cordoned"


class Deed(NamedTuple):
    """Whose deed it is, in words, the request; and words of the policy that refuses it, "" where it is allowed."""

    who: str
    words: str
    request: Request
    refused: str = ""


def notes(node: str, **marks: str | None) -> Request:
    given = {MARK: marks.get("mark"), KEPT: marks.get("kept")}
    return patch(f"{NODES}/{node}", {"metadata": {"annotations": given}})


def said(*types: str) -> Object:
    return {"status": {"conditions": [condition(kind)["status"]["conditions"][0] for kind in types]}}


def cleared(request: Request) -> Request:
    return request._replace(body={"metadata": {"annotations": None, "labels": None, "finalizers": ["a/b"]}})


def out_of_service(node: str, value: str = "nodeshutdown") -> Request:
    """The taint beside those that the node has, and the annotation that says whose it is."""
    case = {"key": "remediator.dev/case", "value": CASE, "effect": "PreferNoSchedule"}
    reserved = {"key": "example.com/reserved", "effect": "PreferNoSchedule"}
    taint = {"key": "node.kubernetes.io/out-of-service", "value": value, "effect": "NoExecute"}
    marks = {"annotations": {"remediator.dev/out-of-service-boot": "b"}}
    return patch(f"{NODES}/{node}", {"metadata": marks, "spec": {"taints": [case, reserved, NOT_READY, taint]}})


def checkpoint(pod: str, space: str = "team", name: str = "remediator.dev/checkpoint-requested") -> Request:
    return patch(f"{SPACES}/{space}/pods/{pod}", {"metadata": {"annotations": {name: "2026-01-01T00:00:00Z"}}})


def isolation(taint: str = "remediator.dev/isolated", owned: bool = True, **selector: str | None) -> Request:
    """A DeviceTaintRule; of one device and a case unless something else is said."""
    made = device_rule("made", **selector)
    made["spec"]["taint"]["key"] = taint
    return Request("POST", RULES, made if owned else {**made, "metadata": {"name": "made"}})


def labels(operand: str, value: str | None) -> Request:
    """The label of one operand of the GPU operator."""
    return patch(f"{NODES}/{OTHER}", {"metadata": {"labels": {f"nvidia.com/gpu.deploy.{operand}": value}}})


def back_to_work(node: str, case: str | None = CASE, cordoned: bool | None = None, **more: Object) -> Request:
    """The cordon of the case goes, and its mark becomes the other one."""
    marks = {"annotations": {MARK: None, "remediator.dev/in-service": case}}
    return patch(f"{NODES}/{node}", {"metadata": {**marks, **more}, "spec": {"unschedulable": cordoned}})


def ended(pod: str, **more: str) -> Request:
    """What a watchdog says of an order that it has carried out."""
    state = {"terminated": {"exitCode": 0, "reason": "Completed", "message": "restarted kubelet"}}
    status = {"name": "c", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    return patch(f"{THEIRS}/{pod}/status", {"status": {"phase": "Succeeded", "containerStatuses": [status], **more}})


def unplaced(**more: str) -> Request:
    """What a scheduler says of a Pod that waits for room on a node."""
    why = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available"}
    status = {"conditions": [why], "nominatedNodeName": OTHER, **more}
    return patch(f"{SPACES}/team/pods/unplaced/status", {"status": status}, STRATEGIC_PATCH)


SECRETS = f"{SPACES}/{OPERATIONS}/secrets"
LEADS_ITSELF = "no other Lease than gpu"
POD = f"{SPACES}/team/pods"
ITS = f"{NODES}/{OTHER}/status"
STATUS = f"{NODES}/{OWN}/status"
AT_ONCE = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "dryRun": ["All"]}
AUTOSCALER = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
HANDLED, REASON = "remediator.dev/handled", "nodeset.slinky.slurm.net/node-cordon-reason"
ASKS = "nothing of a Pod but its annotation remediator.dev/checkpoint-requested"
DEEDS = (
    # The controller.
    Deed("controller", "cordon", patch(f"{NODES}/{OTHER}", {"spec": {"unschedulable": True}})),
    Deed(
        "controller", "taints", taints(OTHER, "remediator.dev/case", "remediator.dev/degraded", "example.com/reserved")
    ),
    Deed(
        "controller",
        "annotations",
        patch(f"{NODES}/{OTHER}", {"metadata": {"annotations": dict.fromkeys((AUTOSCALER, REASON, HANDLED), "x")}}),
    ),
    Deed("controller", "the gate of a new node", taints(OTHER, "remediator.dev/unproven", "example.com/reserved")),
    Deed("controller", "a taint of others", taints(OTHER, "a"), "only taints of its own"),
    Deed(
        "controller",
        "an annotation of others",
        patch(f"{NODES}/{OTHER}", {"metadata": {"annotations": {"a": "b"}}}),
        "only annotations of its own",
    ),
    Deed(
        "controller",
        "a label",
        patch(f"{NODES}/{OTHER}", {"metadata": {"labels": {"a": "b"}}}),
        "no label but",
    ),
    Deed("controller", "pause operands", labels("dcgm", "paused-for-remediation")),
    Deed("controller", "resume operands", labels("nvsm", "true")),
    Deed("controller", "resume ours beside another", labels("client", "paused-for-mig-change")),
    Deed("controller", "turn an operand off", labels("dcgm", "false"), "no label but"),
    Deed("controller", "take its label away", labels("dcgm", None), "no label but"),
    Deed("controller", "resume what another paused", labels("device-plugin", "true"), "no label but"),
    Deed("controller", "the pause of both", labels("client", "true"), "no label but"),
    Deed("controller", "pause the driver", labels("driver", "paused-for-remediation"), "no label but"),
    Deed("controller", "an operand that does not run there", labels("mig-manager", "true"), "no label but"),
    Deed("controller", "say that a node has GPUs", gpu_label(OTHER, "true")),
    Deed("controller", "take that back", gpu_label(OWN, None)),
    Deed("controller", "say that it has none", gpu_label(OTHER, "false"), "no label but"),
    Deed("controller", "turn it into another word", gpu_label(OWN, "false"), "no label but"),
    Deed("controller", "a finalizer", cleared(patch(f"{NODES}/{OTHER}", {})), "nothing of a Node but"),
    Deed(
        "controller",
        "another field of the spec",
        patch(f"{NODES}/{OTHER}", {"spec": {"providerID": "mine"}}),
        "nothing of a Node but",
    ),
    Deed(
        "controller",
        "what a Pod of an operation runs",
        patch(f"{THEIRS}/host", {"spec": {"containers": [{"name": "c", "image": "mine"}]}}, STRATEGIC_PATCH),
        "nobody changes what",
    ),
    Deed("controller", "the finalizer of a Pod", patch(f"{THEIRS}/host", {"metadata": {"finalizers": ["a/b"]}})),
    Deed(
        "controller",
        "its own conditions",
        patch(
            ITS,
            said(
                "PodsRejected",
                "PodsStuckTerminating",
                "RebootLoop",
                "NodeDrift",
                "GpuDeviceTainted",
                "IdleTestFailed",
                "Alert/X",
                "Event/X/3-in-600s",
                "ReportedBy/n/app=x",
            ),
            STRATEGIC_PATCH,
        ),
    ),
    Deed("controller", "a condition of a detector", patch(ITS, said("GpuLost"), STRATEGIC_PATCH), "but its Conditions"),
    Deed("controller", "Ready", patch(ITS, said("Ready"), STRATEGIC_PATCH), "but its Conditions"),
    Deed("controller", "capacity", patch(ITS, {"status": {"capacity": {"pods": "1"}}}), "but its Conditions"),
    Deed(
        "controller",
        "a label through the status",
        patch(ITS, {"metadata": {"labels": {"a": "b"}}}),
        "but its Conditions",
    ),
    Deed("controller", "the rule of a case that is over", Request("DELETE", f"{RULES}/isolated")),
    Deed("controller", "a rule of others", Request("DELETE", f"{RULES}/foreign"), "only rules that isolate-gpu has"),
    Deed("controller", "the URL of a bundle", Request("POST", SECRETS, bundle_url("made"))),
    Deed("controller", "a BMC password", Request("POST", SECRETS, bmc("worker-c")), "no Secret but the URL"),
    Deed(
        "controller",
        "one without its Pod",
        Request("POST", SECRETS, {**bundle_url("made"), "metadata": {"name": "made"}}),
        "no Secret but the URL",
    ),
    Deed(
        "controller",
        "its Lease",
        Request("POST", f"{LEASES}/{SYSTEM}/leases", lease("elsewhere")),
        "no other Lease than",
    ),
    Deed(
        "controller",
        "the Lease of a node in its own namespace",
        Request("POST", f"{LEASES}/{SYSTEM}/leases", lease(f"node-{OWN}", "remediator/case-1")),
        "no other Lease than",
    ),
    # isolate-gpu.
    Deed("isolate-gpu", "one device", isolation()),
    Deed("isolate-gpu", "all devices of a node", isolation(device=None), "may taint single devices"),
    Deed("isolate-gpu", "all devices of a driver", isolation(device=None, pool=None), "may taint single devices"),
    Deed("isolate-gpu", "another taint", isolation("example.com/broken"), "may taint single devices"),
    Deed("isolate-gpu", "a rule without a case", isolation(owned=False), "each with its case as owner"),
    Deed("isolate-gpu", "back to work", back_to_work(OTHER)),
    Deed("isolate-gpu", "another node", back_to_work(OWN), "only what its operation is about"),
    Deed("isolate-gpu", "a cordon that stays", back_to_work(OTHER, cordoned=True), "cordon of its case and no other"),
    Deed("isolate-gpu", "another case", back_to_work(OTHER, case="mine"), "cordon of its case and no other"),
    Deed("isolate-gpu", "no mark that is left", back_to_work(OTHER, case=None), "cordon of its case and no other"),
    Deed("isolate-gpu", "a taint", taints(OTHER), "nothing of a Node but the cordon"),
    Deed("isolate-gpu", "a label", back_to_work(OTHER, labels={"a": "b"}), "nothing of a Node but the cordon"),
    # cordon and uncordon.
    Deed("cordon", "the mark becomes the other", notes(OTHER, kept=CASE)),
    Deed("uncordon", "the mark stays", notes(OTHER, mark=CASE)),
    Deed("cordon", "another case", notes(OTHER, kept="mine"), "name no other case"),
    Deed("cordon", "both marks", notes(OTHER, mark=CASE, kept=CASE), "neither take it off nor copy it"),
    Deed("uncordon", "no mark that is left", notes(OTHER), "neither take it off nor copy it"),
    Deed("cordon", "another node", notes(OWN, kept=CASE), "only what its operation is about"),
    Deed("uncordon", "another node", notes(OWN, kept=CASE), "only what its operation is about"),
    Deed(
        "cordon", "the cordon", patch(f"{NODES}/{OTHER}", {"spec": {"unschedulable": False}}), "nothing of a Node but"
    ),
    Deed("cordon", "a taint", taints(OTHER), "nothing of a Node but"),
    Deed(
        "uncordon", "a label", patch(f"{NODES}/{OTHER}", {"metadata": {"labels": {"a": "b"}}}), "nothing of a Node but"
    ),
    Deed("uncordon", "every annotation", cleared(patch(f"{NODES}/{OTHER}", {})), "nothing of a Node but"),
    # The drain.
    Deed("drain", "evict", eviction_of(f"on-{OTHER}", "team")),
    Deed("drain", "delete", Request("DELETE", f"{POD}/on-{OTHER}")),
    Deed("drain", "its progress", patch(f"{OURS}/nodeoperations/drained/status", {"status": {"drain": {"left": 1}}})),
    Deed("drain", "evict at once", eviction_of(f"on-{OTHER}", "team", gracePeriodSeconds=0), "its own grace period"),
    Deed("drain", "delete at once what is not Ready", Request("DELETE", f"{POD}/on-{OTHER}", AT_ONCE)),
    Deed("drain", "delete what is Ready", Request("DELETE", f"{POD}/ready")),
    Deed("drain", "delete at once what is Ready", Request("DELETE", f"{POD}/ready", AT_ONCE), "its own grace period"),
    Deed("drain", "evict in kube-system", eviction_of(f"on-{OTHER}", "kube-system"), "no Pod of the cluster itself"),
    Deed("drain", "evict an operation", eviction_of("elsewhere", OPERATIONS), "none of an operation"),
    Deed("drain", "delete an operation", Request("DELETE", f"{THEIRS}/elsewhere"), "none of an operation"),
    Deed("drain", "delete on another node", Request("DELETE", f"{POD}/on-{OWN}"), "only what its operation is about"),
    Deed("drain", "delete a mirror Pod", Request("DELETE", f"{POD}/mirror"), "no mirror Pod"),
    Deed("drain", "delete a Pod of a DaemonSet", Request("DELETE", f"{POD}/daemon"), "no Pod of a DaemonSet"),
    Deed("drain", "ask for a checkpoint", checkpoint(f"on-{OTHER}")),
    Deed("drain", "ask on another node", checkpoint(f"on-{OWN}"), "only what its operation is about"),
    Deed("drain", "ask in kube-system", checkpoint(f"on-{OTHER}", "kube-system"), "no Pod of the cluster itself"),
    Deed("drain", "ask one that wants none", checkpoint("daemon"), "that want to be asked"),
    Deed("drain", "another annotation", checkpoint(f"on-{OTHER}", name="example.com/note"), ASKS),
    Deed("drain", "the answer to it", checkpoint(f"on-{OTHER}", name="remediator.dev/checkpoint-done"), ASKS),
    Deed("drain", "every annotation", cleared(patch(f"{POD}/on-{OTHER}", {})), ASKS),
    Deed("drain", "a label of a Pod", patch(f"{POD}/on-{OTHER}", {"metadata": {"labels": {"a": "b"}}}), ASKS),
    Deed(
        "drain",
        "the image of a Pod",
        patch(f"{POD}/on-{OTHER}", {"spec": {"containers": [{"name": "c", "image": "mine"}]}}, STRATEGIC_PATCH),
        ASKS,
    ),
    Deed(
        "drain",
        "its phase",
        patch(f"{OURS}/nodeoperations/drained/status", {"status": {"phase": "Succeeded"}}),
        "status.drain and nothing else",
    ),
    Deed(
        "drain",
        "the progress of another",
        patch(f"{OURS}/nodeoperations/of-another/status", {"status": {"drain": {"left": 1}}}),
        "its own NodeOperation only",
    ),
    # Restarts.
    *(
        deed
        for who in ("restart-device-plugin", "restart-cni")
        for deed in (
            Deed(who, "delete a Pod of a DaemonSet", Request("DELETE", f"{POD}/daemon")),
            Deed(who, "delete another", Request("DELETE", f"{POD}/on-{OTHER}"), "only the Pod of a DaemonSet"),
            Deed(
                who, "delete one elsewhere", Request("DELETE", f"{POD}/daemon-here"), "only what its operation is about"
            ),
        )
    ),
    # power-cycle.
    Deed("power-cycle", "its Lease", Request("POST", f"{LEASES}/{OPERATIONS}/leases", lease("op-power-cycle"))),
    Deed(
        "power-cycle",
        "another Lease",
        Request("POST", f"{LEASES}/{OPERATIONS}/leases", lease("op-other")),
        "only what its operation is about",
    ),
    Deed("power-cycle", "out of service", out_of_service(OTHER)),
    # Two policies refuse it: the node is another's, and it is Ready.
    Deed("power-cycle", "another node, which is Ready", out_of_service(OWN), "denied request"),
    Deed("power-cycle", "another taint", taints(OTHER, "remediator.dev/case", "a"), "the taint out-of-service and"),
    Deed("power-cycle", "another value", out_of_service(OTHER, value="mine"), "the taint out-of-service and"),
    Deed("power-cycle", "the mark of a cordon", notes(OTHER, mark="mine"), "no other annotation"),
    Deed(
        "power-cycle",
        "the cordon",
        patch(f"{NODES}/{OTHER}", {"spec": {"unschedulable": False}}),
        "nothing of a Node but one taint",
    ),
    Deed(
        "controller",
        "out of service",
        out_of_service(OTHER),
        "only taints of its own",
    ),
    # The watchdog.
    Deed("watchdog", "the end of an order", ended(f"order-{OWN}")),
    Deed("watchdog", "that of another node's", ended(f"order-{OTHER}"), "only about orders of the node"),
    Deed("watchdog", "that of a Pod that runs on its node", ended("host"), "only about orders of the node"),
    Deed("watchdog", "an address", ended(f"order-{OWN}", podIP="10.0.0.1"), "only phase and containerStatuses"),
    Deed(
        "watchdog",
        "a finalizer",
        patch(f"{THEIRS}/order-{OWN}/status", {"metadata": {"finalizers": ["a/b"]}}),
        "only phase and containerStatuses",
    ),
    Deed(
        "watchdog",
        "an annotation",
        patch(f"{THEIRS}/order-{OWN}/status", {"metadata": {"annotations": {"a": "b"}}}),
        "only phase and containerStatuses",
    ),
    Deed("watchdog", "the node of an order", Request("GET", f"{NODES}/{OWN}")),
    Deed("watchdog", "its operation", Request("GET", f"{OURS}/nodeoperations/drained")),
    Deed("watchdog", "its orders", Request("GET", f"{THEIRS}?labelSelector=remediator.dev/watchdog")),
    # The second scheduler.
    Deed("scheduler", "place a Pod", Request("POST", f"{POD}/unplaced/binding", placed())),
    Deed("scheduler", "make room", Request("DELETE", f"{POD}/on-{OTHER}")),
    Deed("scheduler", "say why it places none, and for which node it waits", unplaced()),
    Deed("scheduler", "say that it runs", unplaced(phase="Running"), "only its kubelet says"),
    Deed("scheduler", "its Lease", Request("POST", f"{LEASES}/kube-system/leases", lease("gpu"))),
    Deed("scheduler", "another Lease", Request("POST", f"{LEASES}/kube-system/leases", lease("a")), LEADS_ITSELF),
    Deed("scheduler", "its Lease elsewhere", Request("POST", f"{LEASES}/{SYSTEM}/leases", lease("gpu")), LEADS_ITSELF),
    Deed("scheduler", "delete an operation", Request("DELETE", f"{THEIRS}/host"), "no Pod of Remediator"),
    Deed(
        "scheduler",
        "place an order",
        Request("POST", f"{THEIRS}/order-{OTHER}/binding", placed(f"order-{OTHER}")),
        "no Pod of Remediator",
    ),
    Deed(
        "scheduler",
        "the end of an operation",
        patch(f"{THEIRS}/host/status", {"status": {"phase": "Succeeded"}}),
        "no Pod of Remediator",
    ),
    Deed(
        "scheduler", "delete the controller", Request("DELETE", f"{SPACES}/{SYSTEM}/pods/controller"), "no Pod of Rem"
    ),
    # The janitor; tests/cluster/test_janitor.py has its passes.
    Deed("janitor", "delete a Deployment", Request("DELETE", f"{APPS}/team/deployments/web")),
    Deed("janitor", "its Lease", Request("POST", f"{LEASES}/{SYSTEM}/leases", lease("remediator-janitor"))),
    Deed("janitor", "another Lease", Request("POST", f"{LEASES}/{SYSTEM}/leases", lease("a")), "no other Lease than"),
    Deed("janitor", "tell an owner", patch(f"{SPACES}/team", {"metadata": {"annotations": {"janitor/notified": "x"}}})),
    Deed(
        "janitor",
        "an annotation of others",
        patch(f"{SPACES}/team", {"metadata": {"annotations": {"a": "b"}}}),
        "only the annotations",
    ),
    Deed("janitor", "scale to 0", patch(f"{APPS}/team/deployments/web", {"spec": {"replicas": 0}})),
    Deed(
        "janitor",
        "scale in kube-system",
        patch(f"{APPS}/kube-system/deployments/web", {"spec": {"replicas": 0}}),
        "nothing of an object but",
    ),
    Deed("janitor", "the issue of an owner", patch(f"{OURS}/tickets/owned", {"metadata": {"labels": {"a": "b"}}})),
    Deed(
        "janitor",
        "what a comment asks to keep",
        patch(f"{OURS}/tickets/owned", {"spec": {"keeps": [KEEP]}}),
        "denied request",  # by two policies
    ),
    Deed(
        "janitor",
        "the issue about a node",
        patch(f"{OURS}/tickets/alert", {"metadata": {"labels": {"a": "b"}}}),
        "may write only Tickets of the kind Owner",
    ),
    Deed(
        "janitor",
        "a repository for the issue of an owner",
        patch(f"{OURS}/tickets/owned", {"spec": {"alerts": [ELSEWHERE]}}),
        "may not say where an issue goes",
    ),
    Deed(
        "kubelet",
        "an Event about another node",
        Request("POST", f"{SPACES}/default/events", event(OTHER)),
        "a kubelet may tell Events about its own node alone",
    ),
    Deed("janitor", "delete a namespace", Request("DELETE", f"{SPACES}/team")),
    *(
        Deed("janitor", f"delete {name}", Request("DELETE", f"{SPACES}/{name}"), "nothing of the cluster itself")
        for name in ("kube-node-lease", OPERATIONS, SYSTEM)
    ),
    # node-problem-detector.
    Deed("detectors", "our conditions", patch(STATUS, said("GpuLost", "NfsStale"), STRATEGIC_PATCH)),
    Deed("detectors", "an Event", Request("POST", f"{SPACES}/default/events", event(OWN))),
    Deed("detectors", "Ready", patch(STATUS, said("Ready"), STRATEGIC_PATCH), "only the conditions of our detectors"),
    Deed("detectors", "a type of others", patch(STATUS, said("Mine"), STRATEGIC_PATCH), "only the conditions of our"),
    Deed(
        "detectors",
        "take Ready away",
        patch(STATUS, {"status": {"conditions": [{"type": "Ready", "$patch": "delete"}]}}, STRATEGIC_PATCH),
        "only the conditions of our",
    ),
    Deed(
        "detectors",
        "another node",
        patch(f"{NODES}/{OTHER}/status", said("GpuLost"), STRATEGIC_PATCH),
        "only the node that",
    ),
    Deed(
        "detectors",
        "a label",
        patch(STATUS, {"metadata": {"labels": {"a": "b"}}}),
        "nothing of a Node but its conditions",
    ),
    Deed("detectors", "annotations", cleared(patch(STATUS, {})), "nothing of a Node but its conditions"),
    Deed(
        "detectors",
        "its capacity",
        patch(STATUS, {"status": {"capacity": {"nvidia.com/gpu": "8"}}}),
        "nothing of a Node but its conditions",
    ),
    Deed(
        "detectors",
        "an Event on another",
        Request("POST", f"{SPACES}/default/events", event(OTHER)),
        "only of the node",
    ),
    # An administrator, who has every right.
    Deed(
        "administrator",
        "an operation",
        Request("POST", THEIRS, operation_pod("x", OWN, account="remediator-host")),
        "only the account of",
    ),
    Deed(
        "administrator",
        "a shell",
        Request("POST", f"{THEIRS}/host/exec?command=sh&stdout=1", dry=False),
        "only the account of",
    ),
    *(
        Deed("administrator", words, Request(method, f"{THEIRS}/host/{part}", dry=False), "only the account of")
        for words, method, part in (
            ("a shell by a websocket", "GET", "exec?command=sh&stdout=1"),
            ("attach", "POST", "attach?stdout=1"),
            ("forward a port", "POST", "portforward?ports=80"),
            ("ask it by the API server", "GET", "proxy/"),
        )
    ),
    Deed("administrator", "other resources", patch(f"{THEIRS}/host/resize", {"spec": {}}), "only the account of"),
    Deed(
        "administrator",
        "kubectl debug",
        patch(
            f"{THEIRS}/host/ephemeralcontainers",
            {"spec": {"ephemeralContainers": [{"name": "x", "image": "i"}]}},
            STRATEGIC_PATCH,
        ),
        "only the account of",
    ),
    Deed(
        "administrator",
        "another image",
        patch(f"{THEIRS}/host", {"spec": {"containers": [{"name": "c", "image": "mine"}]}}, STRATEGIC_PATCH),
        "nobody changes what",
    ),
    Deed("administrator", "annotate", patch(f"{THEIRS}/host", {"metadata": {"annotations": {"a": "b"}}})),
)
