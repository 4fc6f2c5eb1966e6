"""Which rights the files of deploy give to an account, and which of them it has used."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.harness import yaml_files

DEPLOY = Path(__file__).parents[3] / "deploy"
RBAC = DEPLOY / "rbac.yaml"
SHARED, JANITOR, SECOND, WATCHDOG, REQUESTS, PAGE, NODE_LEASES, EVICTIONS = (
    DEPLOY / folder / "rbac.yaml"
    for folder in (
        *("shared-gpus", "janitor", "scheduler/second", "watchdog", "requests", "page", "node-leases"),
        "evictions",
    )
)
READS = "somebody signs in to the page"
TEAMS = "the routes file has teams"
TICKETS, SERVES, OLD = "tickets are on", "it serves TLS", "cases are as old as they are kept"
COUNTS = "a node counts its devices"
EVENTS = "a policy asks about Events"
JUDGED = "a drain evicts: `tests/cluster/rights/test_evictions.py`"
DEVICES, ISOLATED = "run with --device-taints", "a case has isolated a GPU"
# What binding Pods to GPUs does not come to on a server that streams its lists, and when it does.
PAGED = "the API server streams no lists"
BY_PAGES = {"list gpuledgers": PAGED, "list configmaps in kube-system": PAGED}
LISTS = {"list noderepairs": PAGED, "list externalremediationrequests": PAGED}
# The files that not all apply, and what the tests of each do not come to.
OPTIONAL: Mapping[Path, Mapping[str, str]] = {
    SHARED: BY_PAGES,
    JANITOR: {},
    SECOND: {},
    WATCHDOG: {},
    REQUESTS: LISTS,
    NODE_LEASES: {"update leases in medik8s-leases": "a case works for five minutes"},
    EVICTIONS: dict.fromkeys(
        ("get pods", *(f"{verb} validatingwebhookconfigurations" for verb in ("get", "patch"))), JUDGED
    ),
    PAGE: {"create tokenreviews": READS, "create subjectaccessreviews": READS},
}
# What the case of tests/cluster/e2e/test_path.py does not come to: account, right, and when it is used.
LATER = {
    "remediator": {
        "patch nodes/status": "a node rejects Pods or lacks devices, or a driver taints its devices",
        "list nodeinventories": PAGED,
        "create nodeinventories": COUNTS,
        "patch nodeinventories/status": COUNTS,
        "delete nodeinventories": "a node has been gone for 30 days",
        "create nodedisruptionbudgets": "the cluster has no budget",
        "get nodedisruptionbudgets": "somebody else has written the ledger meanwhile",
        "get pods in remediator-operations": "the name of a new Pod is taken",
        "get leases in kube-node-lease": "a kubelet does not report",
        "list events in default": EVENTS,
        "watch events in default": EVENTS,
        "delete noderemediations": OLD,
        "delete nodeoperations": OLD,
        "patch nodeoperations": OLD,
        "create tickets": TICKETS,
        "get tickets": TICKETS,
        "list tickets": TICKETS,
        "watch tickets": TICKETS,
        "patch tickets": TICKETS,
        "delete tickets": TICKETS,
        "patch tickets/status": TICKETS,
        "get namespaces in kube-system": TICKETS,
        "list ticketroutes": TEAMS,
        "watch ticketroutes": TEAMS,
        "patch ticketroutes/status": TEAMS,
        "get secrets in remediator-system": SERVES,
        "update secrets in remediator-system": SERVES,
        "create secrets in remediator-operations": "it has a store of bundles",
        "list resourceslices": DEVICES,
        "watch resourceslices": DEVICES,
        "list devicetaintrules": ISOLATED,
        "delete devicetaintrules": ISOLATED,
        "update noderemediations/finalizers": "no request: OwnerReferencesPermissionEnforcement asks for it",
        "update nodeoperations/finalizers": "no request: OwnerReferencesPermissionEnforcement asks for it",
    },
    "node-problem-detector": {"patch events in default": "an Event is told again"},
}


class Right(NamedTuple):
    """One verb on one resource, everywhere or in one namespace."""

    verb: str
    resource: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f' in {self.namespace}' if self.namespace else ''}"

    def covers(self, event: dict[str, Any]) -> bool:
        """Whether a request is one of this right."""
        about = event.get("objectRef") or {}
        parts = (about.get("resource", ""), about.get("subresource", ""))
        return (
            self.verb == event["verb"]
            and self.resource == "/".join(part for part in parts if part)
            and self.namespace in ("", about.get("namespace", ""), about.get("name", ""))
        )


def granted(account: str, file: Path = RBAC) -> Iterator[Right]:
    """All rights of one account, but those of roles that Kubernetes itself has."""
    roles = {_place(one): one for one in yaml_files.read_all(file)}
    for reference in _bound(account, file):
        for rule in roles[reference]["rules"] if reference in roles else ():
            named = rule.get("resourceNames", [""]) if rule["resources"] == ["namespaces"] else [reference[1]]
            yield from (
                Right(verb, resource, name)
                for verb in rule["verbs"]
                for resource in rule["resources"]
                for name in named
            )


def _place(document: dict[str, Any]) -> tuple[str, str, str]:
    meta = document["metadata"]
    return document["kind"], meta.get("namespace", ""), meta["name"]


def _bound(account: str, file: Path) -> Iterator[tuple[str, str, str]]:
    """The roles of an account: kind, namespace and name."""
    for binding in yaml_files.read_all(file):
        if account in [subject["name"] for subject in binding.get("subjects", ())]:
            reference = binding["roleRef"]
            yield reference["kind"], binding["metadata"].get("namespace", ""), reference["name"]


def row(account: str, file: Path = RBAC) -> str:
    """Its row in docs/security.md: the account, its rights, how many of them a test uses, the others and when."""
    rights, later = [str(right) for right in granted(account, file)], OPTIONAL.get(file, LATER.get(account, {}))
    besides = _with(file)
    ours = {_place(one) for one in yaml_files.read_all(file)}
    theirs = [f"`{reference[2]}`" for reference in _bound(account, file) if reference not in ours]
    besides += f" (besides {', '.join(theirs)} of Kubernetes)" if theirs else ""
    by_when: dict[str, list[str]] = {}
    for right, when in later.items():
        by_when.setdefault(when, []).append(right)
    told = "; ".join(f"{', '.join(names)} ({when})" for when, names in by_when.items())
    return f"| `{account}`{besides} | {len(rights)} | {len(rights) - len(later)} | {told or 'none'} |"


def _grouped(resource: str, group: str) -> str:
    """The kind as kubectl writes it: nodeoperations.remediator.dev/status"""
    plural, *part = resource.split("/")
    return "/".join(((f"{plural}.{group}" if group else plural), *part))


def _verbs(account: str, file: Path) -> Iterator[tuple[str, str]]:
    """Where an account has rights, "" for everywhere, and one rule of them in words."""
    roles = {_place(one): one for one in yaml_files.read_all(file)}
    for reference in _bound(account, file):
        for rule in roles[reference]["rules"] if reference in roles else ():
            of = "".join(f" {name}" for name in rule.get("resourceNames", ()))
            for resource in rule["resources"]:
                for group in rule["apiGroups"]:
                    yield reference[1], f"`{_grouped(resource, group)}{of}` {', '.join(rule['verbs'])}"


def verb_rows(account: str, file: Path = RBAC) -> list[str]:
    """Its rows in the table of verbs of docs/security.md, one for each namespace."""
    held = sorted(_verbs(account, file))
    rows = [
        f"| `{account}`{_with(file)} | {f'`{space}`' if space else 'everywhere'} "
        f"| {'; '.join(words for where, words in held if where == space)} |"
        for space in sorted({where for where, _ in held})
    ]
    return rows or [f"| `{account}` | nowhere | nothing |"]


def _with(file: Path) -> str:
    return f", with `{file.parent.relative_to(DEPLOY.parent)}`" if file in OPTIONAL else ""


def unused(account: str, events: Iterable[dict[str, Any]], file: Path = RBAC) -> set[str]:
    """The rights of an account that no request was one of."""
    asked = [event for event in events if event["user"]["username"].rpartition(":")[2] == account]
    return {str(right) for right in granted(account, file) if not any(map(right.covers, asked))}
