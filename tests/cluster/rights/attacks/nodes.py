"""What is tried on nodes, their status, their devices and what is placed on them."""

from remediator.core.names import GPU_PRESENT
from remediator.kube.wire.transport import STRATEGIC_PATCH
from tests.cluster.rights.asking import OTHER, OWN, Request, named, patch
from tests.cluster.rights.attacks.attack import (
    DEVICES,
    EVENTS,
    LEASES,
    NODES,
    OURS,
    OWNED,
    PLACES,
    SHARES,
    SPACES,
    WORK,
    Attack,
    condition,
    event,
    gpu_label,
    ledger,
    new_event,
    placed,
    published,
    taints,
)
from tests.cluster.rights.world import RULES, device_rule

MAY_TELL = "its role lets it; it starts what a policy on Events lets it, within budgets"

ON_NODES = (
    Attack("label another worker", patch(f"{NODES}/{OTHER}", {"metadata": {"labels": {"pool": "mine"}}})),
    Attack(
        "label its own worker as part of the control plane",
        patch(f"{NODES}/{OWN}", {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}),
    ),
    Attack(
        "the same through the status of the Node",
        patch(f"{NODES}/{OWN}/status", {"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}),
    ),
    Attack(
        "have its own worker chosen for Pods with rights in the API, by a label of `node-restriction.kubernetes.io`",
        patch(f"{NODES}/{OWN}", {"metadata": {"labels": {"node-restriction.kubernetes.io/api-pods": "true"}}}),
    ),
    Attack(
        "the same by the shipped selector: take the labels `nvidia.com/gpu.present` and `remediator.dev/gpu.present` "
        "off its own worker",
        patch(f"{NODES}/{OWN}", {"metadata": {"labels": {"nvidia.com/gpu.present": None, GPU_PRESENT: None}}}),
        {"kubelet": "its own node"},
    ),
    Attack("have policies on GPUs select another worker", gpu_label(OTHER, "true"), WORK),
    Attack("take another worker out of these policies, by another value of the label", gpu_label(OTHER, "false")),
    Attack("take its own worker out of these policies", gpu_label(OWN, "false"), {"kubelet": "its own node"}),
    Attack("taint another worker", taints(OTHER, "remediator.dev/case", "example.com/reserved", "mine")),
    Attack("take a taint of others off its own worker", taints(OWN, "remediator.dev/case")),
    Attack("cancel the case of its own worker: take its taint off", taints(OWN, "example.com/reserved"), WORK),
    Attack("cancel the case of another worker", taints(OTHER, "example.com/reserved"), WORK),
    Attack("uncordon its own worker", patch(f"{NODES}/{OWN}", {"spec": {"unschedulable": False}}), OWNED),
    Attack("uncordon another worker", patch(f"{NODES}/{OTHER}", {"spec": {"unschedulable": False}}), WORK),
    Attack(
        "say whose cordon that of another worker is",
        patch(f"{NODES}/{OTHER}", {"metadata": {"annotations": {"remediator.dev/cordoned-by": "mine"}}}),
        WORK,
    ),
    Attack(
        "write an annotation of others on another worker",
        patch(f"{NODES}/{OTHER}", {"metadata": {"annotations": {"example.com/note": "mine"}}}),
    ),
    Attack(
        "say that another worker is unhealthy",
        patch(f"{NODES}/{OTHER}/status", condition("GpuLost"), STRATEGIC_PATCH),
    ),
    Attack(
        "say that its own worker is unhealthy",
        patch(f"{NODES}/{OWN}/status", condition("GpuLost"), STRATEGIC_PATCH),
        {"kubelet": "its own node", "detectors": "its own node"},
    ),
    Attack(
        "say that its own worker is Ready",
        patch(f"{NODES}/{OWN}/status", condition("Ready"), STRATEGIC_PATCH),
        {"kubelet": "its own node"},
    ),
    Attack(
        "say how many GPUs its own worker has",
        patch(f"{NODES}/{OWN}/status", {"status": {"capacity": {"nvidia.com/gpu": "8"}}}),
        {"kubelet": "its own node"},
    ),
    Attack(
        "say that another worker rejects Pods, or that its GPUs have taints",
        patch(f"{NODES}/{OTHER}/status", condition("PodsRejected"), STRATEGIC_PATCH),
        WORK,
    ),
    Attack("publish GPUs of another worker", Request("POST", DEVICES, published(OTHER))),
    Attack("publish GPUs of its own worker", Request("POST", DEVICES, published(OWN)), {"kubelet": "its own node"}),
    Attack(
        "keep Pods off a GPU of another worker",
        Request("POST", RULES, device_rule("forged")),
        {"isolate-gpu": "its work; the rule ends with its case"},
    ),
    Attack("keep Pods off all GPUs at once", Request("POST", RULES, device_rule("forged", pool=None, device=None))),
    Attack("give a GPU back that a case has isolated", Request("DELETE", f"{RULES}/isolated"), WORK),
    Attack("give a GPU back that somebody else has isolated", Request("DELETE", f"{RULES}/foreign")),
    Attack(
        "place a Pod on another worker",
        Request("POST", f"{SPACES}/team/pods/unplaced/binding", placed()),
        SHARES | PLACES,
    ),
    Attack("write which Pod has which GPU", Request("POST", f"{OURS}/gpuledgers", ledger()), SHARES),
    Attack("delete another worker", Request("DELETE", f"{NODES}/{OTHER}")),
    Attack("delete its own worker", Request("DELETE", f"{NODES}/{OWN}")),
    Attack("delete all workers at once", Request("DELETE", NODES)),
    Attack("ask the kubelet of another worker, through the API server", Request("GET", f"{NODES}/{OTHER}/proxy/pods")),
    Attack("register a worker of another name", Request("POST", NODES, named("Node", "worker-c"))),
    Attack(
        "say that another worker is alive: renew its Lease",
        patch(f"{LEASES}/kube-node-lease/leases/{OTHER}", {"spec": {"holderIdentity": OTHER}}),
    ),
    Attack(
        "tell an Event about another worker",
        Request("POST", f"{SPACES}/default/events", event(OTHER)),
        {**WORK, **dict.fromkeys(("janitor", "scheduler"), MAY_TELL)},
    ),
    Attack(
        "the same by the other group of Events",
        Request("POST", f"{EVENTS}/default/events", new_event(OTHER)),
        {"scheduler": MAY_TELL},
    ),
    Attack(
        "tell an Event about its own worker",
        Request("POST", f"{SPACES}/default/events", event(OWN)),
        {**OWNED, "detectors": "its own node", **dict.fromkeys(("janitor", "scheduler"), MAY_TELL)},
    ),
)
