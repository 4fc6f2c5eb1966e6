"""The Helm chart, with helm itself: the objects of the kustomization, and its life on a real API server.

No kubelet runs here: hooks.py plays the Jobs of hooks.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.images.programs import binary
from tests.cluster.hooks import Jobs, playing, run, written_chart

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
TESTED = "remediator: no replica of the controller has led yet\n"  # none runs here
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
OLD_KUBERNETES = ("--kube-version", "1.35.0")  # has no admission stamps
Objects = dict[tuple[str, str, str], dict[str, Any]]
OPERATIONS = ("Namespace", "", "remediator-operations")
DAEMON_SET = ("DaemonSet", "remediator-system", "node-problem-detector")
CHARTS_OWN = {("ConfigMap", "remediator-system", f"remediator-{name}") for name in ("defaults", "shipped")}


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written_chart(tmp_path_factory.mktemp("chart"))


def objects(text: str) -> Objects:
    """The objects of a stream by kind, namespace and name."""
    documents = [document for document in yaml.load_all(text, LOADER) if document]
    metas = [(each, each["metadata"]) for each in documents]
    return {(each["kind"], meta.get("namespace", ""), meta["name"]): each for each, meta in metas}


def templated(chart: Path, *options: str) -> Objects:
    """What the chart installs, hooks left out, with what `remediator defaults` would make, and the definitions."""
    text = run(binary("helm"), "template", "r", chart, "-n", "remediator-system", "--include-crds", *options)
    made = {key: each for key, each in objects(text).items() if not hook(each)}
    shipped = made[("ConfigMap", "remediator-system", "remediator-shipped")]["data"]
    return made | {key: each for part in shipped.values() for key, each in objects(part).items()}


def hook(document: dict[str, Any]) -> bool:
    return "helm.sh/hook" in document["metadata"].get("annotations", {})


def kustomized(*folders: str) -> Objects:
    """What kubectl applies. kustomize puts a hash behind the names of ConfigMaps, and wherever they are named."""
    made: Objects = {}
    for folder in folders:
        text = run(binary("kubectl"), "kustomize", ROOT / folder)
        for kind, _, name in objects(text):
            if kind == "ConfigMap":
                text = text.replace(name, name.rpartition("-")[0])
        made |= objects(text)
    return made


def without_annotations(made: Objects) -> Objects:
    """What the chart alone notes: the checksum of the detectors, and that a namespace outlives the release."""
    del made[DAEMON_SET]["spec"]["template"]["metadata"]["annotations"]
    assert made[OPERATIONS]["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    return made


def test_with_default_values_the_chart_gives_the_objects_of_the_kustomization_and_no_others(chart: Path) -> None:
    made, wanted = without_annotations(templated(chart, *OLD_KUBERNETES)), kustomized("deploy")
    assert set(made) - set(wanted) == CHARTS_OWN
    assert set(wanted) - set(made) == set()
    assert [key for key, each in wanted.items() if made[key] != each] == []
    assert len(wanted) > 170


def test_a_newer_kubernetes_has_the_admission_stamps_too(chart: Path) -> None:
    stamps = objects((ROOT / "deploy/admission-stamps.yaml").read_text())
    made = templated(chart, "--kube-version", "1.36.0")
    assert stamps
    assert {key: made[key] for key in stamps} == stamps


def test_janitor_and_watchdog_are_those_of_their_kustomizations(chart: Path) -> None:
    options = ("--set", "janitor.enabled=true,watchdog.enabled=true")
    made = without_annotations(templated(chart, *OLD_KUBERNETES, *options))
    wanted = kustomized("deploy", "deploy/janitor", "deploy/watchdog")
    rules = ("ConfigMap", "remediator-system", "remediator-janitor-rules")
    assert yaml.safe_load(made.pop(rules)["data"]["rules.yaml"]) == yaml.safe_load(
        wanted.pop(rules)["data"]["rules.yaml"]
    )
    assert set(made) == set(wanted) | CHARTS_OWN
    assert [key for key, each in wanted.items() if made[key] != each] == []


def patched(deployment: dict[str, Any], patch: Path) -> dict[str, Any]:
    """As the API server merges a patch of kubectl."""
    command = [binary("kubectl"), "patch", "--local", "-f", "-", "--patch-file", patch, "-o", "json"]
    done = subprocess.run(command, input=json.dumps(deployment), capture_output=True, text=True, check=True)
    merged: dict[str, Any] = json.loads(done.stdout)
    return merged


def test_the_page_is_what_deploy_page_and_its_patch_of_the_deployment_make(chart: Path) -> None:
    key = ("Deployment", "remediator-system", "remediator")
    made = without_annotations(templated(chart, *OLD_KUBERNETES, "--set", "page.enabled=true"))
    wanted = kustomized("deploy", "deploy/page")
    wanted[key] = patched(wanted[key], ROOT / "deploy/page/deployment.yaml")
    for each, part in ((each, part) for each in (made, wanted) for part in ("env", "ports")):
        container(each)[part].sort(key=lambda entry: entry["name"])  # a patch puts its own first
    assert ("Service", "remediator-system", "remediator-page") in made
    assert set(made) == set(wanted) | CHARTS_OWN
    assert [key for key, each in wanted.items() if made[key] != each] == []


@pytest.mark.parametrize(("monitors", "file"), [("podMonitors", "podmonitor"), ("serviceMonitors", "servicemonitor")])
def test_monitoring_is_what_deploy_monitoring_has(chart: Path, monitors: str, file: str) -> None:
    names = (file, "prometheusrule", "node-prometheusrule", "dashboards")
    wanted = {k: v for name in names for k, v in objects((ROOT / f"deploy/monitoring/{name}.yaml").read_text()).items()}
    switches = ",".join(f"monitoring.{name}=true" for name in (monitors, "rules", "nodeRules", "dashboards"))
    made = templated(chart, "--set", switches)
    assert {key: made[key] for key in wanted} == wanted
    selected = templated(chart, "--set", f"{switches},monitoring.labels.release=kps")
    labels = {"app.kubernetes.io/name": "remediator", "release": "kps"}
    kinds = [key for key in wanted if key[0] in ("PodMonitor", "ServiceMonitor", "PrometheusRule")]
    assert {key[0] for key in kinds} == {monitors[0].upper() + monitors[1:-1], "PrometheusRule"}
    assert [selected[key]["metadata"]["labels"] for key in kinds] == len(kinds) * [labels]


def test_the_runbook_of_every_alert_is_a_page_below_the_address_that_a_value_names(chart: Path) -> None:
    """Beside the docs of this repository, and where nobody says so below an address that leads nowhere."""
    switches, base = (
        "monitoring.rules=true,monitoring.nodeRules=true",
        "https://git.example.org/remediator/blob/main/docs",
    )
    made = templated(chart, "--set", f"{switches},monitoring.runbooks={base}")
    groups = [group for key, each in made.items() if key[0] == "PrometheusRule" for group in each["spec"]["groups"]]
    urls = [rule["annotations"]["runbook_url"] for group in groups for rule in group["rules"]]
    assert len(urls) > 45
    assert [url for url in urls if not url.startswith(f"{base}/")] == []
    pages = {ROOT / "docs" / url.removeprefix(f"{base}/").partition("#")[0] for url in urls}
    assert [page for page in pages if not page.is_file()] == []
    assert container(made)["args"] == [f"--docs-url={base}"]  # of the page


def test_both_kinds_of_monitors_are_refused_with_what_to_set(chart: Path) -> None:
    both = "monitoring.podMonitors=true,monitoring.serviceMonitors=true"
    refused = subprocess.run(
        [binary("helm"), "template", "r", chart, "--set", both], capture_output=True, text=True, check=False
    )
    assert refused.returncode != 0
    assert "would count every metric twice; set one of them to false" in refused.stderr


def container(made: Objects, name: str = "remediator") -> dict[str, Any]:
    found: dict[str, Any] = made[("Deployment", "remediator-system", name)]["spec"]["template"]["spec"]["containers"][0]
    return found


def test_other_namespaces_registry_and_digests_stand_wherever_they_are_named(chart: Path) -> None:
    digest = "sha256:" + 64 * "a"
    values = (
        f"operationsNamespace=gpu-pods,image.registry=reg.example:5000/gpu,image.digests.node={digest},image.tag=v9"
    )
    text = run(binary("helm"), "template", "r", chart, "-n", "gpu-ops", "--set", values)
    rest = text.replace("remediator-system/", "").replace("remediator-system-oom", "")  # files, and a detector
    assert "remediator-system" not in rest
    images = {line.split("image: ")[1] for line in text.splitlines() if " image: " in line}
    assert images == {"reg.example:5000/gpu/remediator/controller:v9", f"reg.example:5000/gpu/remediator/node@{digest}"}


def test_without_the_extender_nothing_serves_or_asks_for_it(chart: Path) -> None:
    made = templated(chart, "--set", "extender.enabled=false")
    assert "--listen-extender" not in container(made)["command"]
    assert [port["name"] for port in container(made)["ports"]] == ["probes", "webhook", "evictions"]
    assert container(made)["readinessProbe"]["httpGet"]["path"] == "/readyz/controller"
    assert ("Service", "remediator-system", "remediator-extender") not in made
    rules = made[("NetworkPolicy", "remediator-system", "remediator")]["spec"]["ingress"]
    assert [port["port"] for rule in rules for port in rule["ports"]] == ["probes", "webhook"]


def test_without_the_webhook_for_evictions_nothing_serves_or_asks_for_it_or_may_more(chart: Path) -> None:
    made, usual = templated(chart, "--set", "evictionWebhook.enabled=false"), templated(chart)
    assert "--listen-evictions" not in container(made)["command"]
    assert [port["name"] for port in container(made)["ports"]] == ["probes", "extender", "webhook"]
    gone = {(kind, name) for kind, _, name in set(usual) - set(made)}
    roles, ours = ("ClusterRole", "ClusterRoleBinding"), ("Service", "NetworkPolicy", "ValidatingWebhookConfiguration")
    assert gone == {(kind, "remediator-evictions") for kind in (*roles, *ours)}


def test_tickets_have_the_arguments_and_volumes_of_the_patch(chart: Path) -> None:
    patch = yaml.safe_load((ROOT / "deploy/tickets/deployment.yaml").read_text())["spec"]["template"]["spec"]
    routes = json.loads(json.dumps(yaml.safe_load((ROOT / "deploy/tickets/routes.yaml").read_text())))
    made = templated(chart, "--set", "tickets.enabled=true", "--set-json", f"tickets.routes={json.dumps(routes)}")
    (wanted,) = patch["containers"]
    assert {key: container(made)[key] for key in ("args", "volumeMounts")} == {
        key: wanted[key] for key in ("args", "volumeMounts")
    }
    assert (
        made[("Deployment", "remediator-system", "remediator")]["spec"]["template"]["spec"]["volumes"]
        == patch["volumes"]
    )
    written = made[("ConfigMap", "remediator-system", "remediator-routes")]["data"]["routes.yaml"]
    assert yaml.safe_load(written) == routes
    app = (ROOT / "deploy/tickets/app.yaml").read_text()
    by_app = "tickets.enabled=true,tickets.githubApp.id=1,tickets.githubApp.installationId=1,tickets.routes.default.a=b"
    expected = yaml.safe_load(app)["spec"]["template"]["spec"]["containers"][0]["args"]
    assert container(templated(chart, "--set", by_app))["args"] == expected


def test_volumes_of_a_user_stand_beside_those_of_tickets(chart: Path) -> None:
    volumes, mounts = [{"name": "own", "secret": {"secretName": "own"}}], [{"name": "own", "mountPath": "/own"}]
    own = json.dumps({"extraVolumes": volumes, "extraVolumeMounts": mounts})
    tickets = ("--set", "tickets.enabled=true,tickets.routes.default.a=b")
    for options, before in (((), []), (tickets, ["routes", "tokens"])):
        made = templated(chart, *options, "--set-json", f"controller={own}")
        spec = made[("Deployment", "remediator-system", "remediator")]["spec"]["template"]["spec"]
        assert [volume["name"] for volume in spec["volumes"]] == [*before, "own"]
        assert [mount["name"] for mount in container(made)["volumeMounts"]] == [*before, "own"]
        assert (spec["volumes"][-1:], container(made)["volumeMounts"][-1:]) == (volumes, mounts)


def test_the_job_before_an_uninstall_gives_broken_nodes_back_only_where_a_value_says_so(chart: Path) -> None:
    for options, more in (((), []), (("--set", "uninstall.giveBackBroken=true"), ["--give-back-broken"])):
        text = run(binary("helm"), "template", "r", chart, "-n", "remediator-system", *options)
        job = objects(text)[("Job", "remediator-system", "remediator-uninstall")]
        (container,) = job["spec"]["template"]["spec"]["containers"]
        assert container["command"] == ["remediator", "uninstall", "--yes", *more]


def test_values_reach_the_options_of_the_controller(chart: Path) -> None:
    values = "prometheus.url=http://p,alertmanager.urls={http://a,http://b},apiPods.nodeSelector=pool=system"
    made = templated(
        chart, "--set", values.replace("pool=", "pool\\="), "--set-json", 'controller.arguments=["--starts=3"]'
    )
    assert container(made)["args"] == [
        "--prometheus-url=http://p",
        "--alertmanager-url=http://a",
        "--alertmanager-url=http://b",
        "--starts=3",
    ]
    assert {"name": "API_PODS_NODE_SELECTOR", "value": "pool=system"} in container(made)["env"]


def test_values_say_how_a_release_begins_and_those_of_the_controller_itself_are_not_written(chart: Path) -> None:
    made = templated(chart, "--set", "newCriteria.quietHours=0,newCriteria.quietShare=25")
    assert container(made)["args"] == ["--quiet-hours=0", "--quiet-share=25"]
    assert "args" not in container(templated(chart, "--set", "newCriteria.quietHours=168,newCriteria.quietShare=10"))


@pytest.mark.parametrize(
    ("nodes", "memory", "limit"),
    [(10, "256Mi", "512Mi"), (5000, "320Mi", "640Mi"), (15000, "512Mi", "1Gi"), (100000, "1Gi", "2Gi")],
)
def test_the_controller_has_room_for_its_fleet(chart: Path, nodes: int, memory: str, limit: str) -> None:
    resources = container(templated(chart, "--set", f"fleet.nodes={nodes}"))["resources"]
    assert (resources["requests"]["memory"], resources["limits"]) == (memory, {"memory": limit})


def test_a_misspelt_value_is_refused_and_named(chart: Path) -> None:
    command = [binary("helm"), "template", "r", chart, "--set", "controler.replicas=3"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "controler" in done.stderr


def test_the_linter_of_helm_finds_nothing(chart: Path) -> None:
    assert "0 chart(s) failed" in run(binary("helm"), "lint", chart, "--strict")


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    with playing(tmp_path) as played:
        yield played


def next_version(chart: Path, folder: Path) -> Path:
    """The chart of a later version: other policies, and so other images in all templates."""
    shutil.copytree(chart, folder)
    for name in ("gpu-lost", "gpu-ecc", "nfs-stale"):
        path = folder / f"defaults/policies-{name}.yaml"
        text = path.read_text()
        path.write_text(
            text.replace("cooldown: 30m", "cooldown: 45m") if "cooldown: 30m" in text else text + "  cooldown: 45m\n"
        )
    path = folder / "Chart.yaml"
    path.write_text(path.read_text().replace("0.1.0", "0.2.0"))
    return folder


def test_install_upgrade_rollback_and_uninstall_leave_to_a_user_what_the_user_edited(
    chart: Path, jobs: Jobs, tmp_path: Path
) -> None:
    def helm(*words: object) -> str:
        return run(binary("helm"), "--kubeconfig", jobs.plane.kubeconfig, "-n", "remediator-system", *words)

    def spec(kind: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(jobs.kubectl("get", kind, name, "-o", "json"))["spec"]
        return found

    def image() -> str:
        return str(spec("nopt", "reboot")["podTemplate"]["spec"]["containers"][0]["image"]).rpartition(":")[2]

    def left_alone() -> str:
        words = ("get", "configmap", "remediator-defaults", "-n", "remediator-system", "-o", "jsonpath={.data.report}")
        return jobs.kubectl(*words)

    later = next_version(chart, tmp_path / "later")
    assert "helm test r" in helm("install", "r", chart, "--timeout", "120s")
    assert [name for name, _ in jobs.printed] == ["remediator-crds", "remediator-defaults"]
    assert jobs.printed[1][1].splitlines()[-1] == "0 of 64 were as shipped already"
    assert (spec("rp", "gpu-lost")["mode"], image()) == ("DryRun", "0.1.0")

    jobs.kubectl("get", "nr,rp,ndb")  # kubectl waits until the server can list a kind that is new
    tested = [binary("helm"), "--kubeconfig", jobs.plane.kubeconfig, "-n", "remediator-system", "test", "r"]
    assert subprocess.run([str(word) for word in tested], capture_output=True, timeout=120, check=False).returncode != 0
    assert jobs.printed.pop() == ("remediator-test", TESTED)

    jobs.kubectl("patch", "rp", "gpu-lost", "--type=merge", "-p", '{"spec":{"mode":"Enforce"}}')
    jobs.kubectl("delete", "rp", "nfs-stale")
    definition = "crd/remediationpolicies.remediator.dev"
    cooldown = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/relapse"
    jobs.kubectl("patch", definition, "--type=json", "-p", json.dumps([{"op": "remove", "path": cooldown}]))

    edited = spec("rp", "gpu-lost")
    assert "jsonpath='{.data.report}'" in helm("upgrade", "r", later, "--timeout", "120s")
    assert [name for name, _ in jobs.printed] == 2 * ["remediator-crds", "remediator-defaults"]
    assert spec("rp", "gpu-lost") | {"relapse": None} == edited | {"relapse": None}
    assert (spec("rp", "gpu-ecc")["cooldown"], image()) == ("45m", "0.2.0")
    assert "nfs-stale" not in jobs.kubectl("get", "rp", "-o", "name")
    assert "RemediationPolicy/nfs-stale: not created again" in left_alone()
    assert 'spec.mode: "Enforce" here, "DryRun" shipped' in left_alone()
    assert "relapse" in jobs.kubectl("get", definition, "-o", "json")

    helm("rollback", "r", "1", "--timeout", "120s")
    assert (spec("rp", "gpu-lost")["mode"], spec("rp", "gpu-ecc")["cooldown"], image()) == ("Enforce", "30m", "0.1.0")

    helm("uninstall", "r", "--timeout", "120s")
    assert "docs/uninstall.md" in jobs.printed[-1][1]
    assert jobs.kubectl("get", "deployments,daemonsets,jobs", "-n", "remediator-system", "-o", "name") == ""
    assert spec("rp", "gpu-lost")["mode"] == "Enforce"
    assert "remediator-operations" in jobs.kubectl("get", "namespaces", "-o", "name")

    installed = helm("install", "r", chart, "--timeout", "120s")
    assert "kubectl annotate namespace remediator-system remediator.dev/paused-" in installed
    assert "New policies are in mode DryRun" in installed
