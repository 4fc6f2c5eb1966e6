"""The API server lets each account do what the table of verbs in docs/security.md tells, and nothing else."""

from collections.abc import Iterable, Iterator
from functools import cache

import pytest

from tests.cluster.rights.asking import OPERATIONS, SYSTEM, Object, Request, Speaker
from tests.cluster.rights.told import Grant, told
from tests.cluster.rights.world import World

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]
TOLD = told()
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
REVIEWS, RBAC = "/apis/authorization.k8s.io/v1", "rbac.authorization.k8s.io"
AUTHORIZATION: Object = {"apiVersion": "authorization.k8s.io/v1"}
# Verbs that no request has: to give away or to speak with rights that one has not.
BEYOND = (
    *(Grant(verb, f"{kind}.{RBAC}") for verb in ("bind", "escalate") for kind in ("roles", "clusterroles")),
    *(Grant("impersonate", kind) for kind in ("users", "groups", "serviceaccounts", "uids.authentication.k8s.io")),
    *(Grant(verb, "signers.certificates.k8s.io") for verb in ("approve", "sign", "attest")),
    Grant("create", "nodes/proxy"),
)
SPACES = ("default", "kube-node-lease", "kube-public", "kube-system", OPERATIONS, SYSTEM, "team")
# Roles that Kubernetes itself has, of accounts that have them beside ours; docs/security.md names them.
OF_KUBERNETES = {
    "remediator-scheduler": {
        "": ("clusterroles/system:kube-scheduler", "clusterroles/system:volume-scheduler"),
        "kube-system": ("namespaces/kube-system/roles/extension-apiserver-authentication-reader",),
    }
}


def home(account: str) -> str:
    """The namespace of an account."""
    ours = ("remediator", "node-problem-detector", "remediator-janitor", "remediator-scheduler", "remediator-watchdog")
    return SYSTEM if account in ours else OPERATIONS


def grants(rules: Iterable[Object]) -> set[Grant]:
    """What rules of a role say."""
    return {
        Grant(verb, "/".join((f"{plural}.{group}" if group else plural, *([part] if part else ()))), name)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule.get("apiGroups", ())
        for plural, _, part in (resource.partition("/") for resource in rule.get("resources", ()))
        for name in rule.get("resourceNames") or ("",)
    }


def review(speaker: Speaker, space: str) -> set[Grant]:
    """All that the server lets somebody do in a namespace, what they may everywhere with it."""
    asked = {"kind": "SelfSubjectRulesReview", "spec": {"namespace": space}}
    reply = speaker(Request("POST", f"{REVIEWS}/selfsubjectrulesreviews", AUTHORIZATION | asked, dry=False))
    assert reply.status == 201, reply
    status = reply.json["status"]
    assert not status["incomplete"], status.get("evaluationError")
    return grants(status["resourceRules"])


def expected(world: World, account: str, space: str) -> set[Grant]:
    """What the page tells of an account in a namespace, and what Kubernetes lets every account do."""
    theirs = OF_KUBERNETES.get(account, {})
    roles = (role for place in {"", space} for role in theirs.get(place, ()))
    of_kubernetes = (world.admin(Request("GET", f"/apis/{RBAC}/v1/{role}")).json["rules"] for role in roles)
    everybody = review(world.bearer(world.token("default", "team")), space)
    tables = TOLD[account]
    return everybody.union(tables.get("", ()), tables.get(space, ()), *map(grants, of_kubernetes))


@pytest.mark.parametrize("account", TOLD)
def test_the_server_lists_of_an_account_what_the_page_tells_and_nothing_else(world: World, account: str) -> None:
    """In each namespace, by the server's own list of what somebody may: it knows of roles that no file of ours has."""
    speaker = world.bearer(world.token(account, home(account)))
    for space in SPACES:
        listed, wanted = review(speaker, space), expected(world, account, space)
        assert (sorted(listed - wanted), sorted(wanted - listed)) == ([], []), space


def test_the_page_tells_of_every_account_in_our_namespaces(world: World) -> None:
    def accounts(space: str) -> set[str]:
        items = world.admin(Request("GET", f"/api/v1/namespaces/{space}/serviceaccounts")).json["items"]
        return {item["metadata"]["name"] for item in items} - {"default"}

    assert {(account, home(account)) for account in TOLD} == {
        (account, space) for space in (SYSTEM, OPERATIONS) for account in accounts(space)
    }


@cache
def served(world: World) -> tuple[str, ...]:
    """Every kind and every part of one that the server has, with its group."""

    def listed(path: str, group: str) -> Iterator[str]:
        for each in world.admin(Request("GET", path)).json["resources"]:
            plural, *part = each["name"].split("/")
            yield "/".join((f"{plural}.{group}" if group else plural, *part))

    groups = world.admin(Request("GET", "/apis")).json["groups"]
    versions = [(version["groupVersion"], each["name"]) for each in groups for version in each["versions"]]
    paths = [("/api/v1", ""), *((f"/apis/{version}", group) for version, group in versions)]
    return tuple(sorted({name for path, group in paths for name in listed(path, group)}))


def allowed(world: World, account: str, grant: Grant, space: str) -> bool:
    """What the server decides about one verb."""
    kind, _, part = grant.resource.partition("/")
    plural, _, group = kind.partition(".")
    about = {"verb": grant.verb, "group": group, "resource": plural, "subresource": part, "name": grant.name}
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{home(account)}", "system:authenticated"]
    spec = {
        "user": f"system:serviceaccount:{home(account)}:{account}",
        "groups": groups,
        "resourceAttributes": {**about, "namespace": space},
    }
    asked = {"kind": "SubjectAccessReview", "spec": spec}
    reply = world.admin(Request("POST", f"{REVIEWS}/subjectaccessreviews", AUTHORIZATION | asked, dry=False))
    assert reply.status == 201, reply
    answer: bool = reply.json["status"]["allowed"]
    return answer


@pytest.mark.sampled(on_server=True)
@pytest.mark.parametrize("account", TOLD)
def test_the_server_refuses_an_account_every_verb_on_every_kind_that_the_page_does_not_tell(
    world: World, account: str
) -> None:
    """Each verb on each kind that is served, in all namespaces at once, and those that no request has."""
    asked = {*(Grant(verb, kind) for kind in served(world) for verb in VERBS), *BEYOND}
    wanted = expected(world, account, "no-such-namespace")
    decided = {grant for grant in asked | wanted if allowed(world, account, grant, "")}
    assert (sorted(decided - wanted), sorted(wanted - decided)) == ([], [])
