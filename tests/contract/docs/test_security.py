"""The tables of docs/security.md are those that tests try on a real API server."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from remediator.core.names import OPERATION_LABEL, OPERATIONS_NAMESPACE
from remediator.web import evictions, extender, github_hook, webhook
from remediator.web.endpoints import EVICTIONS as EVICTION_LIMITS
from remediator.web.endpoints import EXTENDER, GITHUB, PROBES, WEBHOOK
from remediator.web.endpoints import PAGE as PAGE_LIMITS
from remediator.web.listener import CALLER_BYTES, TURN_BYTES, UNREAD_MILLISECONDS, ConnectionLimits
from remediator.web.page import entry
from remediator.web.stranger import MOST_BYTES, PIECE_BYTES
from tests.bench import attacks
from tests.cluster.rights.attacks import ATTACKS
from tests.cluster.rights.deeds import DEEDS
from tests.cluster.rights.granted import (
    EVICTIONS,
    JANITOR,
    LATER,
    NODE_LEASES,
    RBAC,
    REQUESTS,
    SECOND,
    SHARED,
    WATCHDOG,
    granted,
    row,
    verb_rows,
)
from tests.cluster.rights.granted import (
    PAGE as RIGHTS_OF_PAGE,
)
from tests.cluster.rights.optional_deeds import OPTIONAL_DEEDS
from tests.cluster.rights.told import verb_table
from tests.contract.docs.test_tables import bare, table
from tests.contract.test_manifests import ACCOUNTS
from tests.contract.test_programs import pod_spec, templates
from tests.harness import yaml_files

DEPLOY = Path(__file__).parents[3] / "deploy"
PAGE = (DEPLOY.parent / "docs" / "security.md").read_text()
OPTIONAL = {
    SHARED: "remediator",
    REQUESTS: "remediator",
    NODE_LEASES: "remediator",
    RIGHTS_OF_PAGE: "remediator",
    EVICTIONS: "remediator",
    JANITOR: "remediator-janitor",
    SECOND: "remediator-scheduler",
    WATCHDOG: "remediator-watchdog",
}
# What all Pods of operations are held to, whoever writes.
OF_ALL = "remediator-operations-stay-as-made"
# Names of annotations, labels and taints in a policy: not of resources, nor of what a token says.
KEY = re.compile(
    r"'((?!pods/|nodes/|nodeoperations/|devicetaintrules/|authentication\.|kubernetes\.io/metadata)[a-z][a-z.-]*/[a-z.-]*)'"
)
# What a deed calls that which a role lets its account write, where that is not the name of the resource.
CALLED = {
    "nodes/status": "conditions",
    "pods/eviction": "evicts",
    "pods/binding": "binds pods",
    "pods/status": "status",
    "nodeoperations/status": "progress",
    "nodes": "node",
    "leases": "lease",
    "secrets": "secret",
    "daemonsets": "workloads",
    "cronjobs": "workloads",
}
CONTROLLER = [
    rule["resources"]
    for role in yaml_files.read_all(RBAC)
    if role["kind"] == "ClusterRole" and role["metadata"]["name"] == "remediator"
    for rule in role["rules"]
    if rule["apiGroups"] == ["remediator.dev"]
]
FIRST_YAML = re.compile(r"## What our Pods ask\n.*?```yaml\n(.*?)```", re.DOTALL)
UNBOUND = "a token that is bound to a Pod is needed"  # test_a_token_that_is_bound_to_no_pod_writes_nothing


def rows(heading: str, header: str = "") -> list[str]:
    """The rows of the table with this header below a heading; without one, of its last table."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    table = section.partition(header)[2].partition("|---|\n") if header else section.rpartition("|---|\n")
    return table[2].partition("\n\n")[0].splitlines()


def policies(file: Path) -> dict[str, str]:
    """The text of each admission policy of a file, by its name."""
    documents = [each for each in yaml_files.read_all(file) if each["kind"] == "ValidatingAdmissionPolicy"]
    return {each["metadata"]["name"]: str(each["spec"]) for each in documents}


def holds(account: str, file: Path) -> dict[str, str]:
    """The policies that name an account, of those that are applied with `file`: but those that let it pass alone."""
    files = sorted((DEPLOY / "admission").glob("*.yaml")) if file == RBAC else [file]
    named = re.compile(rf"== 'system:serviceaccount:[a-z-]+:{account}'|'system:serviceaccount:[a-z-]+:{account}'[,\]]")
    found = {name: text for each in files if each.name != "users.yaml" for name, text in policies(each).items()}
    others = {"remediator-operations-are-the-controllers"}
    return {name: text for name, text in found.items() if named.search(text) and name not in others}


def test_every_attack_that_is_tried_is_told_and_no_other() -> None:
    assert rows("One worker is one worker") == [attack.row for attack in ATTACKS]


def test_every_attack_on_an_endpoint_that_is_tried_is_told_and_no_other() -> None:
    told = [row.split(" | ")[0].strip("| ") for row in rows("What attacks do", "| what is sent | memory, MiB |")]
    assert sorted(name.removesuffix(" (1)") for name in told) == sorted(attacks.ALL)


def test_what_operations_ask_is_told_by_where_they_run_and_the_policy_in_the_page_holds_those_with_a_token() -> None:
    pods = {yaml_files.read(path)["metadata"]["name"]: pod_spec(path) for path in templates()}
    of_node = {name for name, pod in pods.items() if pod.get("hostNetwork")}
    with_token = {name for name, pod in pods.items() if pod["automountServiceAccountToken"]}
    told = [{bare(name) for name in row[0].split(", ")} & pods.keys() for row in table("security.md", "Pods | ask")]
    asks_api, asks_bmc, asks_nothing = (names for names in told if names)
    assert (asks_api | asks_bmc, asks_bmc) == (with_token, {"power-cycle"})
    assert asks_nothing == pods.keys() - of_node - with_token, "all others have the network of the node"
    policy = yaml.safe_load(FIRST_YAML.findall(PAGE)[0])
    assert policy["metadata"]["namespace"] == OPERATIONS_NAMESPACE
    (held,) = policy["spec"]["podSelector"]["matchExpressions"]
    assert (held["key"], {*held["values"]}, policy["spec"]["policyTypes"]) == (OPERATION_LABEL, asks_api, ["Egress"])


@pytest.mark.slow
def test_the_rights_of_every_account_are_told_with_those_that_are_used() -> None:
    told = rows("What each account may do")
    assert sorted(told) == sorted(
        [*(row(name) for _, name in ACCOUNTS), *(row(name, file) for file, name in OPTIONAL.items())]
    )


def test_the_verbs_of_every_account_are_told() -> None:
    accounts = [(name, RBAC) for _, name in ACCOUNTS] + [(name, file) for file, name in OPTIONAL.items()]
    assert sorted(verb_table()) == sorted(row for name, file in accounts for row in verb_rows(name, file))


def test_no_right_is_excused_that_is_not_granted() -> None:
    for account, later in LATER.items():
        assert set(later) <= {str(right) for right in granted(account)}


def deeds() -> list[Any]:
    """(account, the file of its rights, its deed in words, what holds it to it) of each row of that table."""
    found = []
    for line in rows("What each account may do", "| account | its one deed | held to it by |\n"):
        who, deed, held = (cell.strip() for cell in line.strip("|").split(" | "))
        names, _, folder = who.partition(", with ")
        file = DEPLOY.parent / folder.strip("`") / "rbac.yaml" if folder else RBAC
        found += [(name, file, deed, held) for name in re.findall(r"`([a-z-]+)`", names)]
    return found


def test_the_deed_of_every_account_is_told() -> None:
    known = [*((name, RBAC) for _, name in ACCOUNTS), *((name, file) for file, name in OPTIONAL.items())]
    assert sorted((name, file) for name, file, *_ in deeds()) == sorted(known)


@pytest.mark.parametrize(("account", "file", "deed", "held"), deeds(), ids=[row[0] for row in deeds()])
def test_a_deed_in_words_is_the_one_that_admission_policies_hold_the_account_to(
    account: str, file: Path, deed: str, held: str
) -> None:
    """By name, and by each annotation, label, taint, Condition and namespace that the words or the policies name."""
    policies = holds(account, file)
    assert set(re.findall(r"`([a-z-]+)`", held)) - {OF_ALL} == set(policies)
    for name, text in policies.items():
        shared = " ".join(words for *_, words, by in deeds() if f"`{name}`" in by)
        assert {key for key in KEY.findall(text) if key not in shared} == set(), name
    known = " ".join((*policies.values(), *(str(yaml_files.read_all(each)) for each in {file, RBAC})))
    told = re.findall(r"`([^`]+)`", deed)
    assert [word for word in told if re.split(r"NAME|PODS|: ", word)[0] not in known] == []


@pytest.mark.parametrize(("account", "file", "deed", "held"), deeds(), ids=[row[0] for row in deeds()])
def test_a_deed_in_words_names_all_that_the_roles_of_the_account_let_it_write(
    account: str, file: Path, deed: str, held: str
) -> None:
    ours = {resource for rule in CONTROLLER for resource in rule} if "Our own kinds" in deed else set()
    writes = {right.resource for right in granted(account, file) if right.verb not in ("get", "list", "watch")}
    assert {each for each in writes - ours if CALLED.get(each, each) not in deed.lower()} == set()


def test_every_rule_for_an_account_refuses_it_something_on_a_real_server() -> None:
    """A rule that no deed meets could say anything."""
    files = [*(DEPLOY / "admission").glob("*.yaml"), *OPTIONAL]
    rules = [
        rule["message"]
        for file in files
        if file.name not in ("users.yaml", "operations.yaml")
        for each in yaml_files.read_all(file)
        if each["kind"] == "ValidatingAdmissionPolicy"
        for rule in each["spec"]["validations"]
    ]
    refused = [deed.refused for deed in (*DEEDS, *OPTIONAL_DEEDS) if deed.refused]
    met = {rule for rule in rules if any(words in rule for words in refused)}
    # Which of two policies answers nobody can tell: tests of their own in tests/cluster/rights/test_rights.py.
    apart = {
        "the Pod of an operation may declare no other node out of service than its own",
        "a Node that is Ready is not out of service",
    }
    assert {rule for rule in rules if not rule.startswith(UNBOUND)} - met == apart


# --- limits ----------------------------------------------------------------------------------------------------------


def _strangers(at: ConnectionLimits) -> str:
    return "all" if at.strangers == at.connections else str(at.strangers)


def test_the_limits_of_each_endpoint_are_those_of_the_code() -> None:
    connections, seconds, sizes, pieces, of_callers, late, _, chunks, unread = table(
        "security.md", "limit | probes | extender | webhook | GitHub | page | evictions"
    )
    endpoints = (PROBES, EXTENDER, WEBHOOK, GITHUB, PAGE_LIMITS, EVICTION_LIMITS)
    unknown = (GITHUB, EVICTION_LIMITS)  # nobody is ever a caller there
    assert connections[1:] == [f"{at.connections}; {_strangers(at)}" for at in endpoints]
    assert [cell.partition(";")[0] for cell in seconds[1:]] == [f"{at.first_seconds:.0f}" for at in endpoints]
    idle = [cell.partition("; ")[2] for cell in seconds[1:]]
    assert idle == ["none" if at in unknown else f"{at.idle_seconds:.0f}" for at in endpoints]
    taken = (extender.bodies(False), webhook.bodies(16), github_hook.bodies())
    mib = [f"{bodies.most >> 20} MiB; {bodies.room >> 20} MiB" for bodies in taken]
    form = f"{entry.MOST >> 10} KiB; {entry.ROOM >> 10} KiB"
    asked = f"{evictions.MOST >> 10} KiB; {evictions.ROOM >> 20} MiB"
    assert [cell.partition(" (")[0] for cell in sizes[1:]] == ["none", *mib, form, asked]
    whole = extender.bodies(True)
    assert f"`--extender-whole-nodes`: {whole.most >> 20}; {whole.room >> 20}" in sizes[2]
    often = [f"{bodies.seconds:.0f}" for bodies in taken]
    assert late[1:] == [
        "none",
        f"{often[0]} ({whole.seconds:.0f})",
        *often[1:],
        f"{entry.SECONDS:.0f}",
        f"{evictions.SECONDS:.0f}",
    ]
    open_to_all = (PROBES, *unknown, PAGE_LIMITS)
    few, all_of_it = f"{PIECE_BYTES >> 10} KiB; {MOST_BYTES >> 10} KiB", f"{TURN_BYTES >> 10} KiB; all"
    assert pieces[1:] == [all_of_it if each in open_to_all else few for each in endpoints]
    at_once = f"{CALLER_BYTES >> 10} KiB by TLS, else 256"
    assert of_callers[1:] == ["–" if each in open_to_all else at_once for each in endpoints]
    assert chunks[1:] == ["refused" if each in open_to_all else "taken from callers" for each in endpoints]
    assert set(unread[1:]) == {f"{UNREAD_MILLISECONDS // 1000} s"}
