"""What is tried on Secrets, tokens, certificates, roles, and what the API server itself is told to do."""

from tests.cluster.rights.asking import OPERATIONS, OTHER, OWN, SYSTEM, Request, named, patch
from tests.cluster.rights.attacks.attack import (
    A_KIND,
    ADMISSION,
    ADMITS,
    NODES,
    RBAC,
    RBAC_API,
    SERVED,
    SERVED_API,
    SPACES,
    TIDIES,
    WORK,
    Attack,
    binding,
    endless,
    token_request,
)
from tests.cluster.rights.others import KINDS, SIGNING, signing_request

ON_CREDENTIALS = (
    Attack("read the ConfigMaps of all namespaces", Request("GET", "/api/v1/configmaps"), TIDIES),
    Attack("read the Secrets of all namespaces", Request("GET", "/api/v1/secrets")),
    Attack(
        "read the BMC password of another worker",
        Request("GET", f"{SPACES}/{OPERATIONS}/secrets/remediator-bmc-{OTHER}"),
    ),
    Attack("list the Secrets of operations", Request("GET", f"{SPACES}/{OPERATIONS}/secrets")),
    Attack("read the keys of our endpoints", Request("GET", f"{SPACES}/{SYSTEM}/secrets/remediator-serving"), WORK),
    Attack("ask for a token of the controller", token_request("remediator", SYSTEM)),
    Attack("ask for a token of a drain that is bound to no Pod", token_request("remediator-drain", OPERATIONS)),
    Attack(
        "ask for a token of an account of which no Pod is on its worker",
        token_request("remediator-host", OPERATIONS, "elsewhere"),
    ),
    *(
        Attack(f"ask for a token of {called}", token_request(account, space))
        for account, space, called in (
            ("remediator-janitor", SYSTEM, "the janitor"),
            ("remediator-scheduler", SYSTEM, "the second scheduler"),
            ("remediator-watchdog", SYSTEM, "the watchdog that names no worker"),
            ("node-problem-detector", SYSTEM, "the detectors that names no worker"),
            ("default", "team", "an account of a user"),
        )
    ),
    Attack("have a token of the controller that never ends", Request("POST", f"{SPACES}/{SYSTEM}/secrets", endless())),
    Attack(
        "speak as an administrator",
        Request("GET", NODES, headers={"Impersonate-User": "a", "Impersonate-Group": "system:masters"}),
    ),
    Attack(
        "speak as the controller",
        Request("GET", NODES, headers={"Impersonate-User": f"system:serviceaccount:{SYSTEM}:remediator"}),
    ),
    Attack(
        "speak as the kubelet of another worker",
        Request(
            "GET",
            f"{NODES}/{OTHER}",
            headers={"Impersonate-User": f"system:node:{OTHER}", "Impersonate-Group": "system:nodes"},
        ),
    ),
    Attack(
        "ask for a certificate of the kubelet of another worker",
        Request("POST", SIGNING, signing_request("forged", OTHER)),
    ),
    Attack(
        "ask for a certificate of its own kubelet",
        Request("POST", SIGNING, signing_request("forged", OWN)),
        {"kubelet": "its own node"},
    ),
    Attack(
        "approve that certificate",
        patch(f"{SIGNING}/waiting/approval", {"status": {"conditions": [{"type": "Approved", "status": "True"}]}}),
    ),
    Attack("sign that certificate", patch(f"{SIGNING}/waiting/status", {"status": {"certificate": "aA=="}})),
    Attack("become an administrator", Request("POST", f"{RBAC}/clusterrolebindings", binding(""))),
    Attack(
        "become an administrator of our namespace",
        Request("POST", f"{RBAC}/namespaces/{OPERATIONS}/rolebindings", binding(OPERATIONS)),
    ),
    Attack(
        "write more rights into a role of ours",
        patch(f"{RBAC}/clusterroles/remediator-cordon", {"rules": []}),
    ),
    Attack(
        "write rights for administrators of namespaces",
        Request("POST", f"{RBAC}/clusterroles", {**named("ClusterRole", "forged", RBAC_API), "rules": []}),
    ),
    Attack(
        "take an admission policy away",
        Request("DELETE", f"{ADMISSION}/validatingadmissionpolicybindings/remediator-operations-are-the-controllers"),
    ),
    Attack(
        "have an admission policy only record",
        patch(
            f"{ADMISSION}/validatingadmissionpolicybindings/remediator-operations-are-the-controllers",
            {"spec": {"validationActions": ["Audit"]}},
        ),
    ),
    Attack(
        "change what an admission policy holds",
        patch(
            f"{ADMISSION}/validatingadmissionpolicies/remediator-controller-writes-status",
            {"spec": {"validations": []}},
        ),
    ),
    *(
        Attack(f"have {does}", Request("POST", f"{ADMISSION}/{plural}", named(kind, "forged", ADMITS)))
        for plural, kind, does in (
            (
                "validatingadmissionpolicies",
                "ValidatingAdmissionPolicy",
                "what others write refused, by a policy of its own",
            ),
            (
                "mutatingadmissionpolicies",
                "MutatingAdmissionPolicy",
                "what others write changed, by a policy of its own",
            ),
            ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration", "a webhook of its own asked"),
            (
                "mutatingwebhookconfigurations",
                "MutatingWebhookConfiguration",
                "a webhook of its own change what others write",
            ),
        )
    ),
    Attack(
        "have the webhook of ours asked about what all write",
        patch(
            f"{ADMISSION}/validatingwebhookconfigurations/remediator-evictions", {"metadata": {"labels": {"a": "b"}}}
        ),
        {"controller": "its work: it writes its authority there"},
    ),
    Attack("change one of our kinds", patch(f"{KINDS}/{A_KIND}", {"spec": {"scope": "Namespaced"}})),
    Attack("delete one of our kinds, with all its objects", Request("DELETE", f"{KINDS}/{A_KIND}")),
    Attack(
        "make a kind", Request("POST", KINDS, named("CustomResourceDefinition", "forged", "apiextensions.k8s.io/v1"))
    ),
    Attack("answer in the place of the API server", Request("POST", SERVED, named("APIService", "forged", SERVED_API))),
)
