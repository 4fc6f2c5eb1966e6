"""Every manifest and every configuration in the pages is taken by who is to read it."""

import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from deploy.images.programs import binary
from remediator.controller import bundle_store
from remediator.janitor import rules
from remediator.kube import api
from remediator.kube.manifests import lint
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.tickets.channels import rooms
from remediator.web import certificates
from remediator_sim import manifests
from remediator_sim.apiserver import EmbeddedServer
from tests.cluster.control_plane import ControlPlane
from tests.cluster.servers import serving
from tests.cluster.trying import Trier
from tests.contract.docs import shapes
from tests.contract.docs.pages import ROOT
from tests.contract.docs.shapes import Manifest, of
from tests.contract.docs.test_tables import bare, table
from tests.contract.docs.world import lay_out
from tests.contract.test_programs import pod_spec, templates
from tests.harness import yaml_files
from tests.harness.endpoints import HOUR, NOW, authority
from tests.harness.waiting import until

REQUESTS = ("deploy/requests/noderepairs.yaml", "deploy/requests/noderepairtemplates.yaml")
OPTIONAL = ROOT / "deploy" / "watchdog" / "templates.yaml"
TEMPLATES = {yaml_files.read(path)["metadata"]["name"] for path in templates()}
TEMPLATES |= {each["metadata"]["name"] for each in yaml_files.read_all(OPTIONAL)}


def title(one: Manifest) -> str:
    return f"{one.title}-{one.value.get('kind', one.kind) if isinstance(one.value, dict) else ''}"


def test_every_yaml_in_the_pages_is_of_a_kind_that_is_checked() -> None:
    assert shapes.ALL
    assert [title(one) for one in shapes.ALL if not one.kind] == []


def test_a_manifest_of_a_kind_that_nobody_checks_is_found_in_a_page() -> None:
    page = "```yaml\nimage: {tag: latest}\n---\ndefault: {repository: a/b}\n```\n```yaml\n- 1\n```\n"
    assert [(one.title, one.kind) for one in shapes.manifests("made-up.md", page)] == [
        ("made-up.md:1", ""),
        ("made-up.md:1", "routes"),
        ("made-up.md:6", ""),
    ]


@pytest.mark.parametrize("one", of("audit policy"), ids=title)
def test_an_audit_policy_logs_the_writes_of_accounts_in_our_namespaces_and_no_body_of_a_secret(one: Manifest) -> None:
    secrets, writes = one.value["rules"]
    assert (secrets["level"], secrets["resources"]) == ("Metadata", [{"group": "", "resources": ["secrets"]}])
    spaces = [each["metadata"]["name"] for each in yaml_files.read_all(ROOT / "deploy/namespaces.yaml")]
    assert sorted(writes["userGroups"]) == sorted(f"system:serviceaccounts:{name}" for name in spaces)


@pytest.mark.parametrize("one", of("vector"), ids=title)
def test_what_vector_archives_is_the_audit_line_with_the_pod_that_vector_has_read_it_from(one: Manifest) -> None:
    sources, transforms, sinks = (one.value[part] for part in ("sources", "transforms", "sinks"))
    assert [each["inputs"] for each in transforms.values()] == [list(sources)]
    assert [each["inputs"] for each in sinks.values()] == [list(transforms)]
    for each in transforms.values():
        assert each["drop_on_abort"]
        assert each["drop_on_error"]
        parsed, filtered, kept, whole = each["source"].splitlines()
        assert (parsed.partition(" = ")[0], whole) == ("line", ". = line")
        assert filtered == 'if line.event != "audit" { abort }'
        assert kept == "line.kubernetes = .kubernetes"  # what the shipper says, over what the line says


@pytest.mark.parametrize("one", of("fluent bit"), ids=title)
def test_what_fluent_bit_keeps_is_the_audit_line_beside_the_pod_that_it_has_read_it_from(one: Manifest) -> None:
    pipeline = one.value["pipeline"]
    assert {each["match"] for each in pipeline["filters"]} == {each["tag"] for each in pipeline["inputs"]}
    shipper, kept = pipeline["filters"]
    assert (shipper["name"], shipper["merge_log"]) == ("kubernetes", "on")
    assert kept["regex"] == f"${shipper['merge_log_key']}['event'] ^audit$"  # beside `kubernetes`, never in it


@pytest.mark.parametrize("one", of("values of the chart"), ids=title)
def test_values_of_the_chart_are_what_its_schema_takes(one: Manifest) -> None:
    jsonschema.validate(one.value, json.loads((ROOT / "deploy/chart/values.schema.json").read_text()))


@pytest.mark.parametrize("one", of("bundle store"), ids=title)
def test_a_file_of_a_bundle_store_is_read(one: Manifest, tmp_path: Path) -> None:
    (tmp_path / "store.yaml").write_text(one.text)
    assert bundle_store.load(tmp_path / "store.yaml").url == one.value["url"]


@pytest.mark.parametrize("one", of("ours"), ids=title)
def test_a_manifest_of_our_kinds_passes_lint(one: Manifest) -> None:
    documents, unreadable = lint.read(one.title, one.text)
    assert documents
    assert [str(finding) for finding in [*unreadable, *lint.lint(documents, TEMPLATES)]] == []


def place(one: dict[str, Any]) -> tuple[Any, str]:
    """Where an object belongs: its kind, and its namespace if it has one."""
    ours = {kind.name: kind for kind in api.KINDS}
    kind = ours.get(one["kind"]) or manifests.kind_of(one)
    return kind, one["metadata"].get("namespace", "default") if kind.namespaced else ""


@pytest.mark.parametrize("one", of("ours", "kubernetes"), ids=title)
async def test_a_manifest_is_taken_by_an_api_server_that_minds_every_field(one: Manifest) -> None:
    client = Client(EmbeddedServer().transport())
    await manifests.create(client, *manifests.documents(("deploy/crds", *REQUESTS, "deploy/namespaces.yaml")))
    kind, namespace = place(one.value)
    await client.create(kind, one.value, namespace=namespace, query=[("fieldValidation", "Strict")])
    wrong = {**one.value, "metadata": {"name": "mistyped"}, "specc": {}}
    with pytest.raises(errors.ApiError, match="specc"):
        await client.create(kind, wrong, namespace=namespace, query=[("fieldValidation", "Strict")])


@pytest.mark.parametrize("one", of("routes"), ids=title)
def test_routes_are_read_as_the_controller_reads_them(one: Manifest, tmp_path: Path) -> None:
    assert shapes.load_routes(one.text, tmp_path).default.repository


@pytest.mark.parametrize("one", of("rooms"), ids=title)
def test_rooms_are_read_as_the_controller_reads_them(one: Manifest, tmp_path: Path) -> None:
    (tmp_path / "chat.yaml").write_text(one.text)
    assert rooms.load(tmp_path / "chat.yaml")


@pytest.mark.parametrize("one", of("janitor"), ids=title)
def test_rules_of_the_janitor_compile(one: Manifest) -> None:
    assert [rule.problem for rule in rules.read(one.text)] == [""] * len(one.value["rules"])


def test_a_mistyped_route_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="repositry"):
        shapes.load_routes("default: {repositry: a/b}", tmp_path)


def test_a_configuration_of_kube_scheduler_has_only_fields_that_the_shipped_one_has() -> None:
    shipped = yaml.safe_load(shapes.SCHEDULER.read_text())
    for one in [shipped, *(found.value for found in of("kube-scheduler"))]:
        shapes.check_scheduler(one)
    with pytest.raises(ValueError, match=r"extenders\[\]\.wieght"):
        shapes.check_scheduler({**shipped, "extenders": [{"wieght": 5}]})


@pytest.mark.parametrize("one", of("alertmanager"), ids=title)
def test_a_configuration_of_alertmanager_has_only_fields_that_it_knows_and_reaches_our_webhook(one: Manifest) -> None:
    shapes.check_alertmanager(one.value)


HOOK = {
    "url": "https://remediator-webhook:8444/webhooks/alertmanager",
    "http_config": {"authorization": {"credentials_file": "f"}, "tls_config": {"ca_file": "f"}},
}
SOUND: dict[str, Any] = {
    "route": {"receiver": "r", "group_by": ["node"]},
    "receivers": [{"name": "r", "webhook_configs": [HOOK]}],
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"route": {"receiver": "r", "group_bye": []}}, "group_bye"),
        ({"route": {"receiver": "absent"}}, "no receiver is called absent"),
        ({"route": {"receiver": "r", "group_wait": "soon"}}, "no duration: soon"),
        (
            {"receivers": [{"name": "r", "webhook_configs": [{**HOOK, "url": "https://remediator/"}]}]},
            "does not lead to",
        ),
        ({"receivers": [{"name": "r", "webhook_configs": [{"url": HOOK["url"]}]}]}, "http_config"),
        (
            {
                "receivers": [
                    {"name": "r", "webhook_configs": [{**HOOK, "http_config": {"tls_config": {"ca_file": "f"}}}]}
                ]
            },
            "neither a token nor a certificate",
        ),
    ],
)
def test_what_alertmanager_or_our_webhook_would_not_take_is_refused(change: dict[str, Any], said: str) -> None:
    shapes.check_alertmanager(SOUND)
    with pytest.raises(ValueError, match=said):
        shapes.check_alertmanager({**SOUND, **change})


@pytest.mark.skipif(not shutil.which("amtool"), reason="amtool is not installed (package prometheus-alertmanager)")
@pytest.mark.parametrize("one", [*of("alertmanager"), Manifest("sound", "alertmanager", "", SOUND)], ids=title)
def test_amtool_takes_a_configuration_of_alertmanager(one: Manifest, tmp_path: Path) -> None:
    path = tmp_path / "alertmanager.yaml"
    path.write_text(yaml.safe_dump(shapes.whole_alertmanager(one.value)))
    done = subprocess.run(
        ["amtool", "check-config", str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def kubectl(plane: ControlPlane, *args: str, stdin: Any) -> tuple[int, str]:
    """Run kubectl on a real control plane; its exit code and what it complained of."""
    env = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
    done = subprocess.run(
        [binary("kubectl"), *args, "-f", "-"],
        input=json.dumps(stdin),
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


async def once_served(tried: Trier, body: Any) -> tuple[int, str]:
    """What the server says when it would make the object; a kind that is new is served, and judged, after a moment."""

    def answer() -> tuple[int, str] | None:
        made = tried(body)
        new = made.status == 404 or (made.status == 503 and "when they are available" in made.said)
        return None if new else made

    served: tuple[int, str] = await until(answer)
    return served


@pytest.fixture
async def laid_out(request: pytest.FixtureRequest, control_plane: ControlPlane) -> AsyncIterator[ControlPlane]:
    async with serving("real", request) as server:
        await lay_out(server.client, server.controller)
    optional = [yaml_files.read(ROOT / file) for file in REQUESTS]
    for definition in optional:
        assert kubectl(control_plane, "apply", stdin=definition) == (0, "")
    yield control_plane
    for definition in optional:
        kubectl(control_plane, "delete", stdin=definition)


@pytest.mark.cluster
@pytest.mark.timeout(180)
async def test_a_real_api_server_takes_every_manifest_without_a_warning(laid_out: ControlPlane) -> None:
    tried = Trier(laid_out)
    for one in of("ours", "kubernetes"):
        name = {**one.value["metadata"], "name": f"{one.value['metadata']['name']}-of-a-page"}
        body = {**one.value, "metadata": name}
        assert await once_served(tried, body) == (201, ""), one.title


@pytest.mark.cluster
@pytest.mark.timeout(180)
async def test_the_pod_of_each_operation_is_admitted_at_the_level_of_its_row_and_at_no_stricter_one(
    laid_out: ControlPlane,
) -> None:
    rows = {bare(row[0]): row[4] for row in table("operations.md", "template | does")}
    tried, pods = Trier(laid_out), {path: pod_spec(path) for path in templates()}
    names = {spec["serviceAccountName"] for spec in pods.values()}
    accounts = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}} for name in sorted(names)]
    for level in ("privileged", "baseline", "restricted"):
        label = {"pod-security.kubernetes.io/enforce": level}
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": level, "labels": label}}
        assert kubectl(laid_out, "create", stdin=space) == (0, "")
        every = {"apiVersion": "v1", "kind": "List", "items": accounts}
        assert kubectl(laid_out, "create", "-n", level, stdin=every) == (0, "")
    for path, found in pods.items():
        template = yaml_files.read(path)["metadata"]["name"]
        spec = {**found, "automountServiceAccountToken": False}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": template}, "spec": spec}
        for level in ("privileged", "baseline", "restricted"):
            answer = tried(pod, namespace=level)
            assert answer.taken is (rows[template] == "restricted" or level == "privileged"), (
                f"{template} {level} {answer.said}"
            )
            assert answer.taken or "violates PodSecurity" in answer.said


@pytest.mark.cluster
@pytest.mark.parametrize(
    "one", [*of("kube-scheduler"), Manifest("shipped", "", shapes.SCHEDULER.read_text(), {})], ids=title
)
def test_a_real_kube_scheduler_reads_its_configuration(
    one: Manifest, control_plane: ControlPlane, tmp_path: Path
) -> None:
    config = yaml.safe_load(one.text)
    config["clientConnection"] = {"kubeconfig": str(control_plane.kubeconfig)}
    for file, text in certificates.for_caller(authority(), "kube-scheduler", HOUR, NOW).items():
        (tmp_path / file).write_bytes(text)
    for key in ("caFile", "certFile", "keyFile"):
        shown = config["extenders"][0]["tlsConfig"]
        shown[key] = str(tmp_path / Path(shown[key]).name)
    source, written = tmp_path / "config.yaml", tmp_path / "written.yaml"
    source.write_text(yaml.safe_dump(config))
    command = [binary("kube-scheduler"), f"--config={source}", f"--write-config-to={written}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(written.read_text())["extenders"][0]["urlPrefix"] == config["extenders"][0]["urlPrefix"]
