"""What is tried on our own kinds, settings, Leases and programs, and on what others ask of us."""

from remediator.kube import api
from tests.cluster.rights.asking import OPERATIONS, OTHER, OWN, SYSTEM, Request, patch
from tests.cluster.rights.attacks.attack import (
    APPS,
    ASKS,
    CASE_SPEC,
    CLOSED,
    COMPLETE,
    KEEP,
    LEASES,
    OBEYS,
    OPERATION_SPEC,
    OURS,
    PLACES,
    RELEASED,
    REQUESTS,
    SPACES,
    TEAM,
    THEIRS,
    TIDIES,
    WATCHED,
    WORK,
    Attack,
    answer,
    bmc,
    bundle_url,
    held,
    inventory,
    ours,
    route,
)
from tests.cluster.rights.others import EXTERNAL, REPAIRS, repair
from tests.cluster.rights.world import lease, plain_pod

ON_OURS = (
    Attack("open a case", ours("NodeRemediation", "noderemediations", **CASE_SPEC), WORK),
    Attack(
        "approve a case",
        patch(f"{OURS}/noderemediations/waiting", {"spec": {"approved": True}}),
        OBEYS,
    ),
    Attack("hold a case", patch(f"{OURS}/noderemediations/waiting", {"spec": {"hold": True}}), OBEYS),
    Attack("have a case try again", patch(f"{OURS}/noderemediations/escalated", {"spec": {"retry": 1}}), OBEYS),
    Attack(
        "release a case that is Escalated",
        patch(f"{OURS}/noderemediations/escalated", {"spec": {"release": True}}),
        OBEYS,
    ),
    Attack("release a case before that", patch(f"{OURS}/noderemediations/waiting", {"spec": {"release": True}})),
    Attack("delete a case", Request("DELETE", f"{OURS}/noderemediations/waiting"), WORK),
    Attack(
        "take the finalizer off a case",
        patch(f"{OURS}/noderemediations/waiting", {"metadata": {"finalizers": None}}),
        WORK,
    ),
    Attack(
        "write how a case stands",
        patch(f"{OURS}/noderemediations/waiting/status", {"status": {"phase": "Escalated"}}),
        WORK,
    ),
    Attack("start an operation", ours("NodeOperation", "nodeoperations", **OPERATION_SPEC), WORK),
    Attack(
        "write how an operation stands",
        patch(f"{OURS}/nodeoperations/drained/status", {"status": {"phase": "Succeeded"}}),
        WORK,
    ),
    Attack(
        "write the progress of the drain of another operation",
        patch(f"{OURS}/nodeoperations/of-another/status", {"status": {"drain": {"left": 0}}}),
        WORK,
    ),
    Attack("delete an operation", Request("DELETE", f"{OURS}/nodeoperations/drained"), WORK),
    *(Attack(f"delete all {kind.plural} at once", Request("DELETE", f"{OURS}/{kind.plural}")) for kind in api.KINDS),
    Attack(
        "close the breaker of a policy",
        patch(f"{OURS}/remediationpolicies/gpu-lost", {"metadata": {"annotations": CLOSED}}),
    ),
    Attack(
        "close the breaker of a budget",
        patch(f"{OURS}/nodedisruptionbudgets/default", {"metadata": {"annotations": CLOSED}}),
    ),
    Attack("let a policy act", patch(f"{OURS}/remediationpolicies/gpu-lost", {"spec": {"mode": "Enforce"}})),
    Attack(
        "write what an operation runs",
        patch(f"{OURS}/nodeoperationtemplates/reboot", {"spec": {"timeout": "1m"}}),
    ),
    Attack("raise a budget", patch(f"{OURS}/nodedisruptionbudgets/default", {"spec": {"maxUnavailable": "90%"}})),
    Attack(
        "write who holds a budget",
        patch(f"{OURS}/nodedisruptionbudgets/default/status", {"status": {"claims": []}}),
        WORK,
    ),
    Attack(
        "say how many devices another worker has",
        Request("POST", f"{OURS}/nodeinventories", inventory("worker-c", {"nodeName": "worker-c"})),
        WORK,
    ),
    Attack(
        "expect fewer devices of all workers",
        Request("POST", f"{OURS}/nodeinventories", inventory("fewer", {"nodeSelector": {}, "expected": {"gpus": 0}})),
        {"controller": "a role cannot tell the fields of an inventory apart; it expects none"},
    ),
    Attack(
        "have the devices of another worker forgotten",
        patch(f"{OURS}/nodeinventories/{OTHER}", {"spec": {"forgetBefore": "2026-01-01T00:00:00Z"}}),
    ),
    Attack(
        "write which devices another worker had",
        patch(f"{OURS}/nodeinventories/{OTHER}/status", {"status": {"counts": {"gpus": 1}}}),
        WORK,
    ),
    Attack(
        "delete what is known of the devices of another worker",
        Request("DELETE", f"{OURS}/nodeinventories/{OTHER}"),
        WORK,
    ),
    Attack("send the issues of a team elsewhere", Request("POST", f"{TEAM}/ticketroutes", route())),
    Attack(
        "say why the route of a team is not used",
        patch(f"{TEAM}/ticketroutes/theirs/status", {"status": {"issues": 1}}),
        WORK,
    ),
    Attack("have idle Pods deleted", ours("IdlePolicy", "idlepolicies", namespaces=["*"], mode="Enforce")),
    Attack(
        "open an issue about the work of an owner",
        ours("Ticket", "tickets", subject={"kind": "Owner", "ownerName": "team/forged"}),
        {**WORK, **TIDIES},
    ),
    Attack("change the issue about a node", patch(f"{OURS}/tickets/alert", {"metadata": {"labels": {"a": "b"}}}), WORK),
    Attack("have the idle work of an owner kept", patch(f"{OURS}/tickets/owned", {"spec": {"keeps": [KEEP]}}), WORK),
    Attack("close the issue of an owner", Request("DELETE", f"{OURS}/tickets/owned"), WORK),
    Attack(
        "read the Pods of operations on other workers",
        Request("GET", THEIRS),
        WATCHED,
    ),
    Attack(
        "read the signed URL of the bundle of another worker",
        Request("GET", f"{SPACES}/{OPERATIONS}/secrets/elsewhere"),
    ),
    Attack(
        "have the Pod that collects on another worker send its bundle elsewhere",
        Request("POST", f"{SPACES}/{OPERATIONS}/secrets", bundle_url("forged")),
        WORK,
    ),
    Attack(
        "put a BMC of its own in the place of another worker's that is gone",
        Request("POST", f"{SPACES}/{OPERATIONS}/secrets", bmc("worker-c")),
    ),
    Attack("read the key of the store of bundles", Request("GET", f"{SPACES}/{SYSTEM}/secrets/remediator-bundles")),
    Attack(
        "pause everything",
        patch(f"{SPACES}/{SYSTEM}", {"metadata": {"annotations": {"remediator.dev/paused": "true"}}}),
    ),
    Attack(
        "take the label off our namespace that says which Pods may be there",
        patch(f"{SPACES}/{SYSTEM}", {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": None}}}),
    ),
    Attack(
        "send all issues elsewhere, by the file of routes",
        patch(f"{SPACES}/{SYSTEM}/configmaps/remediator-routes", {"data": {"routes.yaml": "mine"}}),
    ),
    Attack("delete the file of routes", Request("DELETE", f"{SPACES}/{SYSTEM}/configmaps/remediator-routes")),
    Attack(
        "read the settings of the controller", Request("GET", f"{SPACES}/{SYSTEM}/configmaps/remediator-routes"), TIDIES
    ),
    Attack(
        "let Pods of others reach the endpoints of the controller",
        Request("DELETE", f"/apis/networking.k8s.io/v1/namespaces/{SYSTEM}/networkpolicies/remediator"),
    ),
    Attack("ask for a repair of another worker", Request("POST", REPAIRS, repair("forged")), ASKS),
    Attack("change what somebody asked for", patch(f"{REPAIRS}/{OTHER}", {"spec": {"operation": "power-cycle"}}), ASKS),
    Attack("take back what somebody asked for", Request("DELETE", f"{REPAIRS}/{OTHER}"), ASKS),
    Attack("answer who has asked", patch(f"{REPAIRS}/{OTHER}/status", answer("Succeeded")), REQUESTS),
    Attack("answer NVSentinel", patch(f"{EXTERNAL}/gpu0-xid79/status", answer(COMPLETE)), REQUESTS),
    Attack("say that NVSentinel has let go of a node", patch(f"{EXTERNAL}/gpu0-xid79/status", answer(RELEASED))),
    Attack(
        "change what NVSentinel asked for",
        patch(f"{EXTERNAL}/gpu0-xid79", {"spec": {"healthEvent": {"nodeName": OWN}}}),
    ),
    Attack(
        "lead in the place of the controller",
        Request("PUT", f"{LEASES}/{SYSTEM}/leases/remediator", held()),
        WORK,
    ),
    Attack(
        "keep every replica of the controller from leading, by a Lease that is made first",
        Request("POST", f"{LEASES}/{SYSTEM}/leases", lease("remediator")),
        WORK,
    ),
    Attack(
        "keep the janitor from leading, by a Lease that is made first",
        Request("POST", f"{LEASES}/{SYSTEM}/leases", lease("remediator-janitor")),
        TIDIES,
    ),
    Attack(
        "keep the second scheduler from leading, by a Lease that is made first",
        Request("POST", f"{LEASES}/kube-system/leases", lease("gpu")),
        PLACES,
    ),
    Attack(
        "lead in the place of the cluster's scheduler",
        Request("PUT", f"{LEASES}/kube-system/leases/kube-scheduler", lease("kube-scheduler")),
    ),
    Attack(
        "say that an attempt of somebody else has begun",
        Request("POST", f"{LEASES}/{OPERATIONS}/leases", lease("op-of-another")),
    ),
    Attack(
        "make a Pod beside the controller",
        Request("POST", f"{SPACES}/{SYSTEM}/pods", plain_pod("x", OWN, "remediator")),
    ),
    Attack(
        "change what the controller runs",
        patch(f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/remediator", {"spec": {"replicas": 0}}),
    ),
    Attack(
        "change what the detectors run",
        patch(f"{APPS}/{SYSTEM}/daemonsets/node-problem-detector", {"spec": {"minReadySeconds": 1}}),
    ),
)
