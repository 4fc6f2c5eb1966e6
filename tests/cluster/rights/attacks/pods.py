"""What is tried on Pods, those of operations and orders among them, and on what users run."""

from remediator.kube.wire.transport import STRATEGIC_PATCH
from tests.cluster.rights.asking import OPERATIONS, OTHER, OWN, SYSTEM, Request, patch
from tests.cluster.rights.attacks.attack import (
    APPS,
    CONTROLLER,
    DEBUG,
    MAKES_ROOM,
    NODES,
    PAUSED,
    READS,
    SPACES,
    THEIRS,
    TIDIES,
    WORK,
    Attack,
    mirror,
    placed,
)
from tests.cluster.rights.world import PODS, eviction_of, operation_pod, order

ON_PODS = (
    Attack("read the Pods of all workers", Request("GET", "/api/v1/pods"), READS),
    Attack(
        "read another Node",
        Request("GET", f"{NODES}/{OTHER}"),
        {
            **WORK,
            **TIDIES,
            **dict.fromkeys(
                ("detectors", "watchdog", *(name for name in PODS if name != "host"), "scheduler"),
                "a role can name no Node; it changes nothing",
            ),
        },
    ),
    Attack(
        "make a Pod that is root on a node",
        Request("POST", THEIRS, operation_pod("forged", OTHER, account="remediator-host")),
        WORK,
    ),
    Attack(
        "make a Pod on its own worker that mirrors a file, with the labels of an operation",
        Request("POST", THEIRS, mirror()),
        WORK,
    ),
    Attack(
        "make a Pod on its own worker that mirrors a file, behind the Services of the controller",
        Request("POST", f"{SPACES}/{SYSTEM}/pods", mirror(SYSTEM)),
    ),
    Attack("get into the Pod of an operation", Request("POST", f"{THEIRS}/host/exec?command=sh&stdout=1")),
    Attack("attach to the Pod of an operation", Request("POST", f"{THEIRS}/host/attach?stdout=1")),
    Attack("forward a port of the Pod of an operation", Request("POST", f"{THEIRS}/host/portforward?ports=80")),
    Attack("read what the Pod of an operation writes", Request("GET", f"{THEIRS}/host/log")),
    Attack("get into the Pod of the controller", Request("POST", f"{CONTROLLER}/exec?command=sh&stdout=1")),
    Attack(
        "get into a Pod of a user on another worker",
        Request("POST", f"{SPACES}/team/pods/on-{OTHER}/exec?command=sh&stdout=1"),
    ),
    Attack(
        "attach to a Pod of a user on another worker", Request("POST", f"{SPACES}/team/pods/on-{OTHER}/attach?stdout=1")
    ),
    Attack(
        "forward a port of a Pod of a user on another worker",
        Request("POST", f"{SPACES}/team/pods/on-{OTHER}/portforward?ports=80"),
    ),
    Attack(
        "put a container into the Pod of an operation",
        patch(f"{THEIRS}/host/ephemeralcontainers", DEBUG, STRATEGIC_PATCH),
    ),
    Attack(
        "change what the Pod of an operation runs",
        patch(f"{THEIRS}/host", {"spec": {"containers": [{"name": "c", "image": "mine"}]}}, STRATEGIC_PATCH),
    ),
    Attack(
        "give the Pod of an operation to another case",
        patch(f"{THEIRS}/host", {"metadata": {"labels": {"remediator.dev/case-uid": "mine"}}}),
    ),
    Attack("delete the Pod of an operation on another worker", Request("DELETE", f"{THEIRS}/elsewhere"), WORK),
    Attack(
        "say how the Pod of an operation on another worker ended",
        patch(f"{THEIRS}/elsewhere/status", {"status": {"phase": "Succeeded"}}),
    ),
    Attack(
        "say how the Pod of an operation on its own worker ended",
        patch(f"{THEIRS}/host/status", {"status": {"phase": "Succeeded"}}),
        {"kubelet": "it runs there"},
    ),
    Attack(
        "make that Pod another's through its status",
        patch(f"{THEIRS}/host/status", {"metadata": {"labels": {"remediator.dev/case-uid": "mine"}}}),
    ),
    Attack(
        "order something of the watchdog of another worker",
        Request("POST", THEIRS, {**order(OTHER), "metadata": {**order(OTHER)["metadata"], "name": "forged"}}),
        WORK,
    ),
    Attack(
        "have an order of its own worker be one of another worker",
        patch(f"{THEIRS}/order-{OWN}/status", {"metadata": {"labels": order(OTHER)["metadata"]["labels"]}}),
    ),
    Attack(
        "place an order on another worker", Request("POST", f"{THEIRS}/order-{OTHER}/binding", placed(f"order-{OTHER}"))
    ),
    Attack("take an order of another worker back", Request("DELETE", f"{THEIRS}/order-{OTHER}"), WORK),
    Attack(
        "say how an order of another worker ended",
        patch(f"{THEIRS}/order-{OTHER}/status", {"status": {"phase": "Succeeded"}}),
    ),
    Attack(
        "say how an order of its own worker ended",
        patch(f"{THEIRS}/order-{OWN}/status", {"status": {"phase": "Succeeded"}}),
        {"watchdog": "it carries it out"},
    ),
    Attack(
        "delete a Pod of another worker",
        Request("DELETE", f"{SPACES}/team/pods/on-{OTHER}"),
        {"drain": "its operation is about that node", **TIDIES, "scheduler": MAKES_ROOM},
    ),
    Attack(
        "delete a Pod of its own worker",
        Request("DELETE", f"{SPACES}/team/pods/on-{OWN}"),
        {"kubelet": "its own node", **TIDIES, "scheduler": MAKES_ROOM},
    ),
    Attack(
        "evict a Pod of another worker",
        eviction_of(f"on-{OTHER}", "team"),
        {"drain": "its operation is about that node; budgets count it"},
    ),
    Attack("evict a Pod of its own worker", eviction_of(f"on-{OWN}", "team"), {"kubelet": "its own node"}),
    Attack("evict a Pod of a DaemonSet of another worker", eviction_of("daemon", "team")),
    Attack("evict a mirror Pod of another worker", eviction_of("mirror", "team")),
    Attack(
        "ask a Pod of another worker for a checkpoint",
        patch(
            f"{SPACES}/team/pods/on-{OTHER}",
            {"metadata": {"annotations": {"remediator.dev/checkpoint-requested": "2026-01-01T00:00:00Z"}}},
        ),
        {"drain": "its operation is about that node"},
    ),
    Attack(
        "run another image in a Pod of another worker",
        patch(
            f"{SPACES}/team/pods/on-{OTHER}",
            {"spec": {"containers": [{"name": "c", "image": "mine"}]}},
            STRATEGIC_PATCH,
        ),
    ),
    Attack("evict a Pod of kube-system", eviction_of(f"on-{OTHER}", "kube-system")),
    Attack(
        "delete a Pod of kube-system",
        Request("DELETE", f"{SPACES}/kube-system/pods/on-{OTHER}"),
        {"scheduler": MAKES_ROOM},
    ),
    Attack(
        "delete a mirror Pod of another worker",
        Request("DELETE", f"{SPACES}/team/pods/mirror"),
        {
            "scheduler": "its kubelet makes it anew",
            "janitor": "its kubelet makes it anew",
        },
    ),
    Attack(
        "delete the Pod of the controller on another worker",
        Request("DELETE", f"{SPACES}/{SYSTEM}/pods/controller"),
        {"drain": "its operation is about that node"},
    ),
    Attack(
        "say how a Pod of a user on another worker runs",
        patch(f"{SPACES}/team/pods/on-{OTHER}/status", {"status": {"phase": "Failed", "reason": "OutOfcpu"}}),
    ),
    Attack(
        "scale the Deployment of a user to 0", patch(f"{APPS}/team/deployments/web", {"spec": {"replicas": 0}}), TIDIES
    ),
    Attack("delete the Deployment of a user", Request("DELETE", f"{APPS}/team/deployments/web"), TIDIES),
    Attack("change what the Deployment of a user runs", patch(f"{APPS}/team/deployments/web", PAUSED)),
    Attack(
        "scale a Deployment of kube-system to 0",
        patch(f"{APPS}/kube-system/deployments/web", {"spec": {"replicas": 0}}),
    ),
    Attack("delete a Deployment of kube-system", Request("DELETE", f"{APPS}/kube-system/deployments/web")),
    Attack("delete the Leases of all nodes, with their namespace", Request("DELETE", f"{SPACES}/kube-node-lease")),
    Attack("delete our namespace", Request("DELETE", f"{SPACES}/{OPERATIONS}")),
)
