"""The manifests of deploy/ and operations/ fit together and ask for no more than they need."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remediator.app import FORGET_SECONDS
from remediator.controller.evictions import SECONDS
from remediator.core.device_count import DEVICES_MISSING
from remediator.core.eviction import drain_account
from remediator.core.names import EVICTION_WEBHOOK, EVICTIONS, SERVING_SECRET
from remediator.core.node_versions import NODE_DRIFT
from remediator.core.reboot_loop import REBOOT_LOOP
from remediator.core.stuck_pods import STUCK_PODS
from remediator.kube import api
from remediator.kube.manifests import lint
from remediator.tickets.channels import routes_file
from remediator.tickets.channels.github.limits import problem
from remediator.web.evictions import PATH
from remediator.web.serving import SERVICES, served_names
from tests.harness import yaml_files

ROOT = Path(__file__).parents[2]
Object = dict[str, Any]


def resources(folder: Path) -> Iterator[Path]:
    """The files that a kustomization names, folders followed."""
    for entry in yaml_files.read(folder / "kustomization.yaml")["resources"]:
        path = (folder / entry).resolve()
        yield from resources(path) if path.is_dir() else [path]


FILES = list(resources(ROOT / "deploy"))
OBJECTS: list[Object] = [one for path in FILES for one in yaml_files.read_all(path)]
KUSTOMIZATION = yaml_files.read(ROOT / "deploy" / "kustomization.yaml")
OURS = {kind.name for kind in api.KINDS}


def of(kind: str) -> list[Object]:
    return [one for one in OBJECTS if one["kind"] == kind]


def address(one: Object) -> tuple[str, str]:
    return one["metadata"].get("namespace", ""), one["metadata"]["name"]


def named(kind: str, name: str, namespace: str = "") -> Object:
    return next(one for one in of(kind) if address(one) == (namespace, name))


PORTS = {"probes": 8080, "extender": 8443, "webhook": 8444, "evictions": 8447}
CALLS = {"Never": "Always", "Now": "OnEscalation", "WhenIdle": "OnEscalation"}
ACCOUNTS = {address(one) for one in of("ServiceAccount")}
POLICY = "ValidatingAdmissionPolicy"


def test_every_manifest_is_part_of_the_whole() -> None:
    found = {path for folder in ("deploy", "operations") for path in (ROOT / folder).rglob("*.yaml")}
    # In docs/tickets.md, shared-gpus.md, threat-model.md, beside-nvsentinel.md, scheduler.md, janitor.md, watchdog.md,
    # alerts.md, requests.md, page.md, safety.md. The chart takes the whole and adds its own (test_chart.py).
    folders = (
        "tickets",
        "shared-gpus",
        "examples",
        "foreign",
        "second",
        "janitor",
        "pod-network",
        "watchdog",
        "monitoring",
        "requests",
        "page",
        "node-leases",
    )
    # Components, in docs/hosts.md (test_hosts.py) and docs/log-monitors.md (test_log_monitors.py).
    components = {path for path in found if {ROOT / "deploy/hosts", ROOT / "deploy/log-monitors"} & {*path.parents}}
    written = {path for path in found - components if path.parent.name not in folders and "chart" not in path.parts}
    # Servers older than 1.36 do not know the kinds of admission-stamps.yaml, which docs/security.md names.
    apart = {"kustomization.yaml", "images.yaml", "scheduler-config.yaml", "admission-stamps.yaml"}
    assert {path for path in written if path.name not in apart} == set(FILES)


def test_no_object_is_there_twice() -> None:
    seen = [(one["kind"], *address(one)) for one in OBJECTS]
    assert sorted(seen) == sorted(set(seen))


@pytest.mark.slow
def test_policies_budgets_and_templates_pass_lint() -> None:
    documents, findings = [], []
    for path in FILES:
        read, unreadable = lint.read(path.name, path.read_text())
        documents += read
        findings += unreadable
    assert sum(document["kind"] in OURS for _, document in documents) >= 4
    assert [str(finding) for finding in findings + lint.lint(documents)] == []


def test_policies_do_nothing_until_an_operator_says_so() -> None:
    modes = {policy["metadata"]["name"]: policy["spec"]["mode"] for policy in of("RemediationPolicy")}
    assert set(modes) >= {"gpu-lost", "gpu-ecc", "nfs-stale", "nfs-unavailable", "unkillable-process", "node-not-ready"}
    assert set(modes.values()) == {"DryRun"}


def test_a_policy_that_touches_no_node_calls_a_person_and_one_that_does_hands_over_what_it_cannot_cure() -> None:
    said = {
        policy["metadata"]["name"]: (policy["spec"].get("urgency", {}).get("mode", "Now"), policy["spec"]["ticket"])
        for policy in of("RemediationPolicy")
    }
    assert {name for name, (mode, ticket) in said.items() if ticket != {"when": CALLS[mode]}} == set()


def test_one_budget_holds_for_nodes_that_no_other_selects() -> None:
    (budget,) = of("NodeDisruptionBudget")
    assert budget["metadata"]["name"] == "default"
    assert budget["spec"] == {"selector": {}, "maxUnavailable": "5%", "fallback": True}


def test_every_condition_that_a_policy_names_comes_from_a_detector_or_the_kubelet() -> None:
    configs = [yaml_files.read(path) for path in (ROOT / "deploy" / "npd").glob("*.json")]
    known = {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"}
    known |= {DEVICES_MISSING, NODE_DRIFT, REBOOT_LOOP, STUCK_PODS}  # which the controller writes
    known |= {condition["type"] for config in configs for condition in config["conditions"]}
    for policy in of("RemediationPolicy"):
        assert {entry["condition"] for entry in policy["spec"]["when"]} <= known


def test_every_detector_config_is_mounted_and_named_to_node_problem_detector() -> None:
    (generated,) = KUSTOMIZATION["configMapGenerator"]
    configs = sorted(path.name for path in (ROOT / "deploy" / "npd").glob("*.json"))
    assert sorted(Path(file).name for file in generated["files"]) == configs
    pod = named("DaemonSet", "node-problem-detector", "remediator-system")["spec"]["template"]["spec"]
    container = pod["containers"][0]
    (monitors,) = [arg for arg in container["args"] if arg.startswith("--config.custom-plugin-monitor=")]
    (mount,) = [mount for mount in container["volumeMounts"] if mount["name"] == "config"]
    assert sorted(monitors.split("=", 1)[1].split(",")) == [f"{mount['mountPath']}/{name}" for name in configs]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert volumes["config"]["configMap"]["name"] == generated["name"]
    assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes)


def test_node_problem_detector_goes_wherever_a_node_is_sick() -> None:
    pod = named("DaemonSet", "node-problem-detector", "remediator-system")["spec"]["template"]["spec"]
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["priorityClassName"] == "system-node-critical"
    assert "cpu" not in pod["containers"][0]["resources"]["limits"]


def heartbeat() -> float:
    """The seconds after which node-problem-detector writes a whole status again in which nothing has changed."""
    pod = named("DaemonSet", "node-problem-detector", "remediator-system")["spec"]["template"]["spec"]
    args = pod["containers"][0]["args"]
    (beat,) = [arg.split("=")[1] for arg in args if arg.startswith("--k8s-exporter-heartbeat-period=")]
    return api.seconds(beat)


def test_detectors_of_five_thousand_nodes_write_at_most_seventeen_statuses_a_second() -> None:
    assert 5000 / heartbeat() <= 17


def test_the_heartbeat_of_detectors_is_shorter_than_what_policies_call_fresh() -> None:
    beat = heartbeat()
    for policy in of("RemediationPolicy"):
        if "verify" in policy["spec"]:
            assert beat < api.seconds(policy["spec"]["verify"]["fresh"])


LONGEST_BOOT = 20 * 60  # seconds that a server with 8 GPUs is silent while somebody reboots it: 10 to 20 min


def test_no_power_is_cut_while_a_server_may_only_be_booting() -> None:
    silent = [
        (policy["metadata"]["name"], api.seconds(entry.get("for", "2m")))
        for policy in of("RemediationPolicy")
        for entry in policy["spec"]["when"]
        if (entry["condition"], entry.get("status")) == ("Ready", "Unknown")
    ]
    assert [name for name, _ in silent] == ["node-unreachable"]
    assert [name for name, tolerance in silent if tolerance < 1.5 * LONGEST_BOOT] == []


MAKERS = {"Deployment", "DaemonSet", "NodeOperationTemplate"}


def pod_specs() -> Iterator[tuple[str, str, Object]]:
    """(title, namespace, Pod spec) of everything that makes Pods."""
    for kind in ("Deployment", "DaemonSet"):
        for one in of(kind):
            yield one["metadata"]["name"], one["metadata"]["namespace"], one["spec"]["template"]["spec"]
    for one in of("NodeOperationTemplate"):
        yield one["metadata"]["name"], "remediator-operations", one["spec"]["podTemplate"]["spec"]


PODS = list(pod_specs())


@pytest.mark.parametrize(("title", "namespace", "pod"), PODS, ids=[title for title, _, _ in PODS])
def test_every_pod_has_an_account_that_exists_and_an_image_that_can_be_replaced(
    title: str, namespace: str, pod: Object
) -> None:
    assert (namespace, pod["serviceAccountName"]) in ACCOUNTS
    replaced = {image["name"] for image in KUSTOMIZATION["images"]}
    assert {container["image"].split(":")[0] for container in pod["containers"]} <= replaced


def test_one_value_names_the_registry_of_every_image_and_until_it_is_set_nobody_can_own_one() -> None:
    (registry,) = [one for one in of("ConfigMap") if one["metadata"]["name"] == "remediator-registry"]
    assert registry["metadata"]["annotations"] == {"config.kubernetes.io/local-config": "true"}, "it is not applied"
    images = {container["image"] for _, _, pod in PODS for container in pod["containers"]}
    assert {image.partition("/")[0] for image in images} == {registry["data"]["registry"]} == {"registry.invalid"}
    (replacement,) = KUSTOMIZATION["replacements"]
    assert {target["select"]["kind"] for target in replacement["targets"]} == {
        one["kind"] for one in OBJECTS if '"image": ' in json.dumps(one) and one["kind"] in MAKERS
    }


@pytest.mark.parametrize(("title", "namespace", "pod"), PODS, ids=[title for title, _, _ in PODS])
def test_an_operation_has_privileges_or_a_token_and_never_both(title: str, namespace: str, pod: Object) -> None:
    if namespace != "remediator-operations":
        return
    contexts = [container.get("securityContext", {}) for container in pod["containers"]]
    strong = any(context.get("privileged") or context.get("capabilities", {}).get("add") for context in contexts)
    strong |= any(pod.get(word) for word in ("hostPID", "hostNetwork", "hostIPC"))
    strong |= any("hostPath" in volume for volume in pod.get("volumes", ()))
    tokenless = pod["serviceAccountName"] == "remediator-host" and pod.get("automountServiceAccountToken") is False
    assert tokenless or not strong


def test_the_account_of_host_operations_has_no_token_and_no_rights() -> None:
    assert named("ServiceAccount", "remediator-host", "remediator-operations")["automountServiceAccountToken"] is False
    bindings = of("RoleBinding") + of("ClusterRoleBinding")
    bound = {subject["name"] for binding in bindings for subject in binding["subjects"]}
    assert "remediator-host" not in bound


def test_the_controller_runs_without_privileges_and_is_probed() -> None:
    pod = named("Deployment", "remediator", "remediator-system")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not any(pod.get(word) for word in ("hostPID", "hostNetwork", "hostIPC", "volumes"))
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz/extender"
    assert {port["name"]: port["containerPort"] for port in container["ports"]} == PORTS
    probes = ("startupProbe", "livenessProbe", "readinessProbe")
    assert {container[probe]["httpGet"]["port"] for probe in probes} == {"probes"}


def test_replicas_of_the_controller_never_share_a_node_and_rather_not_a_zone_and_serve_until_nodes_know() -> None:
    pod = named("Deployment", "remediator", "remediator-system")["spec"]["template"]
    spread = {each["topologyKey"]: each for each in pod["spec"]["topologySpreadConstraints"]}
    assert {key: each["whenUnsatisfiable"] for key, each in spread.items()} == {
        "kubernetes.io/hostname": "DoNotSchedule",
        "topology.kubernetes.io/zone": "ScheduleAnyway",
    }
    assert all(each["labelSelector"]["matchLabels"] == pod["metadata"]["labels"] for each in spread.values())
    (container,) = pod["spec"]["containers"]
    assert "lifecycle" not in container, "it would keep SIGTERM back, and with it the hand-over of the Lease"
    assert pod["spec"]["terminationGracePeriodSeconds"] > FORGET_SECONDS + 6  # to end takes up to six seconds more
    assert container["startupProbe"]["periodSeconds"] * container["startupProbe"]["failureThreshold"] == 120


def test_one_replica_of_the_controller_always_stays_and_others_make_room_for_it() -> None:
    deployment, budget = (named(kind, "remediator", "remediator-system")["spec"] for kind in PAIR)
    pod = deployment["template"]
    assert deployment["replicas"] == 2
    assert (budget["minAvailable"], budget["selector"]) == (1, deployment["selector"])
    assert deployment["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert pod["spec"]["priorityClassName"] == "system-cluster-critical"


PAIR = ("Deployment", "PodDisruptionBudget")


def test_each_endpoint_has_a_service_of_its_own_and_the_port_that_the_controller_listens_on() -> None:
    services = {one["metadata"]["name"]: one["spec"]["ports"] for one in of("Service")}
    reached = {name: [(port["port"], port["targetPort"]) for port in ports] for name, ports in services.items()}
    assert reached == {
        "remediator": [(PORTS["probes"], "probes")],
        "remediator-extender": [(PORTS["extender"], "extender")],
        "remediator-webhook": [(PORTS["webhook"], "webhook")],
        "remediator-evictions": [(443, "evictions")],
    }
    of_page = {"remediator-page"}  # deploy/page has it
    assert {f"remediator-{name}" for name in PORTS if name != "probes"} == set(SERVICES) - of_page
    (container,) = named("Deployment", "remediator", "remediator-system")["spec"]["template"]["spec"]["containers"]
    patch = yaml_files.read(ROOT / "deploy" / "tickets" / "deployment.yaml")["spec"]["template"]["spec"]
    words = " ".join([*container["command"], *patch["containers"][0]["args"]]).replace("=", " ")
    listens = dict(re.findall(r"--listen(\S*) 0\.0\.0\.0:(\d+)", words))
    assert listens == {"": "8080", "-extender": "8443", "-webhook": "8444", "-evictions": "8447"}
    assert "--no-tls" not in words


def test_who_is_reached_from_where_is_said_for_every_port_and_nobody_reaches_operations() -> None:
    policies = {address(one): one["spec"] for one in of("NetworkPolicy")}
    closed = policies.pop(("remediator-operations", "remediator-operations"))
    assert {namespace for namespace, _ in policies} == {"remediator-system"}
    assert {name for _, name in policies} == {"remediator", "remediator-evictions"}
    assert closed == {"podSelector": {}, "policyTypes": ["Ingress"]}
    labels = named("Deployment", "remediator", "remediator-system")["spec"]["template"]["metadata"]["labels"]
    assert all(each["podSelector"]["matchLabels"].items() <= labels.items() for each in policies.values())
    ingress = [rule for each in policies.values() for rule in each["ingress"]]
    from_anywhere = {port["port"] for rule in ingress if "from" not in rule for port in rule["ports"]}
    assert from_anywhere == {"extender", "evictions"}, "scheduler and API server are on the network of a node"
    assert {port["port"] for rule in ingress for port in rule["ports"]} == set(PORTS)


def test_the_secret_of_the_controller_is_shipped_empty_and_it_may_read_and_fill_that_one_only() -> None:
    secret = named("Secret", SERVING_SECRET, "remediator-system")
    assert not {"data", "stringData"} & set(secret)
    rules = named("Role", "remediator", "remediator-system")["rules"]
    (rule,) = [rule for rule in rules if rule["resources"] == ["secrets"]]
    assert rule == {
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": [SERVING_SECRET],
        "verbs": ["get", "update"],
    }


def test_the_scheduler_shows_a_certificate_and_trusts_the_name_that_ours_has() -> None:
    (extender,) = yaml_files.read(ROOT / "deploy" / "scheduler" / "scheduler-config.yaml")["extenders"]
    assert extender["urlPrefix"].startswith("https://")
    assert extender["tlsConfig"]["serverName"] in served_names("remediator-system")
    assert {"caFile", "certFile", "keyFile"} <= set(extender["tlsConfig"])
    assert not extender["tlsConfig"].get("insecure")


@pytest.mark.parametrize("kind", ["RoleBinding", "ClusterRoleBinding"])
def test_every_binding_joins_a_role_and_an_account_that_exist(kind: str) -> None:
    roles = {(one["kind"], *address(one)) for role in ("Role", "ClusterRole") for one in of(role)}
    assert of(kind)
    for binding in of(kind):
        reference = binding["roleRef"]
        namespace = address(binding)[0] if reference["kind"] == "Role" else ""
        assert (reference["kind"], namespace, reference["name"]) in roles
        assert {(subject["namespace"], subject["name"]) for subject in binding["subjects"]} <= ACCOUNTS


def granted(kind: str, name: str, namespace: str = "") -> set[str]:
    """Everything that a role allows, as "verb resource"."""
    rules = named(kind, name, namespace)["rules"]
    return {f"{verb} {resource}" for rule in rules for verb in rule["verbs"] for resource in rule["resources"]}


def test_no_role_has_a_wildcard_or_reads_secrets_but_the_one_of_the_controller() -> None:
    for role in of("Role") + of("ClusterRole"):
        rules = [rule for rule in role["rules"] if rule.get("resourceNames") != [SERVING_SECRET]]
        if address(role) == ("remediator-operations", "remediator"):
            rules.remove({"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]})  # URLs of bundles
        words = {word for rule in rules for part in rule.values() for word in part}
        assert not words & {"*", "secrets", "escalate", "bind", "impersonate"}, role["metadata"]["name"]


def test_the_controller_makes_and_ends_pods_only_among_operations() -> None:
    rights = granted("ClusterRole", "remediator")
    everywhere = {right for right in rights if right.split()[1].split("/")[0] == "pods"}
    assert everywhere == {"list pods", "watch pods"}
    assert {"create pods", "patch pods", "delete pods"} <= granted("Role", "remediator", "remediator-operations")
    own = {right.split()[1] for right in granted("Role", "remediator", "remediator-system")}
    assert own == {"leases", "secrets"}


def test_the_controller_never_writes_what_administrators_say() -> None:
    rights = granted("ClusterRole", "remediator")
    for plural in ("remediationpolicies", "nodeoperationtemplates"):
        assert not {f"{verb} {plural}" for verb in ("create", "patch", "update", "delete")} & rights


def test_the_drain_program_has_the_rights_of_a_drain_and_no_more() -> None:
    assert granted("ClusterRole", "remediator-drain") == {
        "get nodes",
        "get podgroups",
        "patch pods",
        "list pods",
        "delete pods",
        "create pods/eviction",
        "list poddisruptionbudgets",
        "get namespaces",
        "get nodeoperations",
        "get noderemediations",
        "get remediationpolicies",
        "patch nodeoperations/status",
    }


USERNAME = r"system:serviceaccount:([\w-]+):([\w-]+)"


def test_admission_policies_are_bound_and_name_accounts_that_exist() -> None:
    bound = {one["spec"]["policyName"] for one in of("ValidatingAdmissionPolicyBinding")}
    assert bound == {one["metadata"]["name"] for one in of(POLICY)}
    named_accounts = re.findall(USERNAME, json.dumps(of("ValidatingAdmissionPolicy")))
    assert set(named_accounts) == ACCOUNTS - {("remediator-operations", "remediator-host")}, "that one has no rights"


def test_every_account_that_writes_is_held_by_a_policy() -> None:
    """Of its own namespace's Leases and of our own kinds the controller writes what it likes."""
    held = {name for _, name in re.findall(USERNAME, json.dumps(of("ValidatingAdmissionPolicy")))}
    writes = {"create", "update", "patch", "delete"}
    writers = {
        subject["name"]
        for kind in ("Role", "ClusterRole")
        for binding in of(f"{kind}Binding")
        for subject in binding["subjects"]
        if writes & {verb for rule in _role(binding)["rules"] for verb in rule["verbs"]}
    }
    assert writers <= held


def _role(binding: Object) -> Object:
    reference = binding["roleRef"]
    return named(reference["kind"], reference["name"], binding["metadata"].get("namespace", ""))


def test_the_routes_that_are_shipped_as_an_example_are_read() -> None:
    loaded = routes_file.load(ROOT / "deploy" / "tickets" / "routes.yaml", problem)
    assert loaded.default.repository == "org/ops"


@pytest.mark.parametrize("patch", ["deployment.yaml", "app.yaml"])
def test_the_patch_that_turns_tickets_on_mounts_the_files_that_it_names(patch: str) -> None:
    pod = yaml_files.read(ROOT / "deploy" / "tickets" / patch)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    folders = [mount["mountPath"] for mount in container["volumeMounts"]]
    named = [value for value in (arg.split("=")[1] for arg in container["args"]) if value.startswith("/")]
    assert [name for name in named if str(Path(name).parent) not in folders] == []
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}


RENAMED: list[Object] = json.loads(
    json.dumps(OBJECTS).replace("remediator-system", "gpu-ops").replace("remediator-operations", "gpu-ops-pods")
)


def test_in_namespaces_of_other_names_nothing_points_at_the_old_ones() -> None:
    """As README says to install them there: every reference is still to an object that is made."""
    spaces = {one["metadata"]["name"] for one in RENAMED if one["kind"] == "Namespace"}
    assert spaces == {"gpu-ops", "gpu-ops-pods"}
    of_kubernetes = {"kube-node-lease", "default"}
    assert {one["metadata"]["namespace"] for one in RENAMED if "namespace" in one["metadata"]} - of_kubernetes == spaces
    accounts = {address(one) for one in RENAMED if one["kind"] == "ServiceAccount"}
    subjects = [subject for one in RENAMED if one["kind"].endswith("RoleBinding") for subject in one["subjects"]]
    assert {(subject["namespace"], subject["name"]) for subject in subjects} <= accounts
    assert set(re.findall(USERNAME, json.dumps(RENAMED))) == accounts - {("gpu-ops-pods", "remediator-host")}
    (role,) = [one for one in RENAMED if (one["kind"], address(one)) == ("ClusterRole", ("", "remediator"))]
    assert {"gpu-ops", "kube-system"} == {name for rule in role["rules"] for name in rule.get("resourceNames", ())}


def test_the_controller_is_told_both_of_its_namespaces() -> None:
    deployment = named("Deployment", "remediator", "remediator-system")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    env = {entry.pop("name"): entry for entry in map(dict, container["env"])}
    assert env["POD_NAMESPACE"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.namespace"
    assert env["OPERATIONS_NAMESPACE"] == {"value": "remediator-operations"}
    assert set(env) == {"POD_NAME", "POD_NAMESPACE", "OPERATIONS_NAMESPACE"}, "each is read by the settings"


def test_a_list_of_bmcs_becomes_one_secret_for_each_node_under_the_name_that_its_pod_mounts(tmp_path: Path) -> None:
    program, example = ROOT / "deploy/bmc/secrets.py", ROOT / "deploy/bmc/nodes.csv"
    made = json.loads(subprocess.run([sys.executable, program, example], capture_output=True, check=True).stdout)
    template = named("NodeOperationTemplate", "power-cycle")["spec"]["podTemplate"]["spec"]
    (form,) = [volume["secret"]["secretName"] for volume in template["volumes"] if "secret" in volume]
    assert [one["metadata"] for one in made["items"]] == [
        {"name": form.replace("$(NODE_NAME)", node), "namespace": "remediator-operations"}
        for node in ("gpu-17", "gpu-18")
    ]
    assert [one["stringData"]["password"] for one in made["items"]] == ["password-of-gpu-17", "quotes, and a comma"]
    (tmp_path / "short.csv").write_text("node,address,password\ngpu-17,a\n")
    refused = subprocess.run([sys.executable, program, tmp_path / "short.csv"], capture_output=True, text=True)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "entry 1 has no node, or not as many fields as the header" in refused.stderr


@pytest.mark.parametrize("path", sorted((ROOT / "operations").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_comment_of_a_template_asks_for_privilege_only_where_its_pod_has_it(path: Path) -> None:
    comment = " ".join(re.findall(r"^# ?(.*)$", path.read_text(), flags=re.MULTILINE))
    containers = [
        container
        for document in yaml_files.read_all(path)
        if document["kind"] == "NodeOperationTemplate"
        for container in document["spec"]["podTemplate"]["spec"]["containers"]
    ]
    privileged = any((container.get("securityContext") or {}).get("privileged") for container in containers)
    assert privileged or "needs privilege" not in comment


def test_the_api_server_asks_about_evictions_of_the_drain_alone_and_takes_no_answer_for_a_no() -> None:
    (webhook,) = named("ValidatingWebhookConfiguration", EVICTIONS)["webhooks"]
    assert webhook["name"] == EVICTION_WEBHOOK
    (rule,) = webhook["rules"]
    about = ("apiGroups", "apiVersions", "operations", "resources")
    assert [rule[part] for part in about] == [[""], ["v1"], ["CREATE"], ["pods/eviction"]]
    (condition,) = webhook["matchConditions"]
    assert condition["expression"] == f"request.userInfo.username == '{drain_account('remediator-operations')}'"
    assert (webhook["failurePolicy"], webhook["sideEffects"]) == ("Fail", "None")
    assert webhook["timeoutSeconds"] > SECONDS + 1, "the controller says by itself what it cannot tell"
    asked = webhook["clientConfig"]["service"]
    assert (asked["path"], asked["port"]) == (PATH, 443)
    assert f"{asked['name']}.{asked['namespace']}.svc" in served_names("remediator-system")
    assert "caBundle" not in webhook["clientConfig"], "applying it again must not take away what the controller wrote"


def test_the_controller_writes_one_webhook_configuration_and_makes_none() -> None:
    rules = named("ClusterRole", "remediator-evictions")["rules"]
    (rule,) = [rule for rule in rules if rule["resources"] == ["validatingwebhookconfigurations"]]
    assert (rule["resourceNames"], rule["verbs"]) == ([EVICTIONS], ["get", "patch"])
    everything = [each for role in of("ClusterRole") + of("Role") for each in role["rules"]]
    kinds = {resource for each in everything for resource in each["resources"] if "webhook" in resource}
    assert kinds == {"validatingwebhookconfigurations"}
