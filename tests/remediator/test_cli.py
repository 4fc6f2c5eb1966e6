"""The command line: what it says, and how it exits."""

import ast
import asyncio
import inspect
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import typer
from aiohttp import web
from typer.testing import CliRunner

from remediator import cli
from remediator.cli.every import app
from remediator.core.names import SERVING_SECRET
from remediator.core.places import DEFAULT
from remediator.core.rejections import PODS_REJECTED
from remediator.kube.api.builtin import SECRET, Secret
from remediator.kube.wire.transport import STRATEGIC_PATCH
from tests.harness.controller import ControllerHarness, controller_harness
from tests.harness.endpoints import authority
from tests.harness.kinds import NODES
from tests.remediator.kube.wire.test_http import talking_to, write_kubeconfig

ROOT = Path(__file__).parents[2]
Run = Callable[..., Awaitable[tuple[int, str, str]]]
COMMAND = (sys.executable, "-m", "remediator")


def remediator(*args: object):
    """Run a command that needs no cluster, in this process."""
    return CliRunner().invoke(app, [str(arg) for arg in args], env={"COLUMNS": "200", "TERM": "dumb"})


async def spawned(*args: object) -> tuple[int, str, str]:
    """Run a command as its own process: exit code, stdout, stderr."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*COMMAND, *(str(arg) for arg in args), stdout=pipe, stderr=pipe)
    try:
        async with asyncio.timeout(60):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    return process.returncode or 0, out.decode(), err.decode()


async def beside(*args: object) -> tuple[int, str, str]:
    """Run a command in a thread, for this process is the server that it asks: exit code, stdout, stderr."""
    done = await asyncio.to_thread(remediator, *args)
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), ["run", "crds", "lint", "explain", "demo", "client-certificate"]),
        (
            ("run",),
            [
                "--kubeconfig",
                "--listen",
                "--listen-extender",
                "--listen-webhook",
                "--drains",
                "--starts",
                "--window",
                "--lease-seconds",
                "--log-json",
                "POD_NAMESPACE",
            ],
        ),
        (("crds",), ["--output", "CustomResourceDefinitions"]),
        (("lint",), ["--template", "Exit 1 where anything is wrong"]),
        (("explain",), ["Name of the node", "changes nothing"]),
        (("demo",), ["--keep", "--nodes", "--only"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_help_names_every_command_and_option(args, words):
    done = remediator(*args, "--help")
    assert done.exit_code == 0
    said = " ".join(done.output.split())
    assert [word for word in words if word not in said] == []


def test_the_demo_without_the_simulator_is_refused_with_what_installs_it(monkeypatch):
    monkeypatch.setattr(cli.demo, "SIMULATOR", "remediator_sim_that_is_not_installed")
    done = remediator("demo")
    assert done.exit_code == 2
    assert done.output == "remediator: the simulator is not installed: pip install 'remediator[sim]'\n"


@pytest.mark.slow
def test_a_command_starts_without_the_libraries_that_only_a_replica_needs():
    heavy = {"structlog", "prometheus_client", "aiohttp", "kubernetes", "github", "apscheduler", "jinja2"}
    code = "import sys; had = set(sys.modules); import remediator.cli.every; print(*set(sys.modules) - had)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "remediator.cli" in loaded
    assert heavy.isdisjoint(loaded)


@pytest.mark.slow
@pytest.mark.parametrize("words", [["status"], ["explain", "gpu-1"], ["hold", "gpu-1"]])
def test_a_command_that_asks_a_cluster_loads_no_library_that_it_does_without(words, tmp_path):
    """A third of a second for the one that reads kubeconfigs, a tenth for colours, a tenth to walk all that is new."""
    config = write_kubeconfig(tmp_path / "config", "https://127.0.0.1:9", {"token": "x"})
    code = f"""
import atexit, gc, sys
sys.argv[1:] = [*{words!r}, "--kubeconfig", {str(config)!r}]
atexit.register(lambda: print({{"aiohttp", "kubernetes", "rich"}} & sys.modules.keys(), gc.get_threshold()[0]))
from remediator.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "no answer from https://127.0.0.1:9" in done.stderr
    assert done.stdout == "{'aiohttp'} 100000\n"


def test_a_command_that_has_a_module_of_its_name_is_the_only_one_that_is_imported():
    names = set(typer.main.get_command(app).commands)
    modules = {path.stem.replace("_", "-") for path in (ROOT / "remediator" / "cli").glob("*.py")}
    assert set(cli.ALONE) == names & modules
    for word, others in (("status", False), ("hold", True)):
        code = (
            f"import sys; from remediator.cli import load; load(['{word}']); print('remediator.cli.rma' in sys.modules)"
        )
        loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        assert loaded == f"{others}\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", cli.ALONE)
def test_a_command_that_is_imported_alone_is_called_by_its_name(name):
    code = f"import sys; sys.argv[1:] = ['{name}', '--help']; from remediator.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[2] == name


def options(command, *path):
    """By path each subcommand's options and arguments."""
    own = {path: sorted(word for parameter in command.params for word in parameter.opts)}
    subcommands = getattr(command, "commands", {})
    return own | {key: found for name in subcommands for key, found in options(subcommands[name], *path, name).items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", cli.ALONE)
def test_a_command_that_is_imported_alone_has_the_subcommands_and_options_that_it_has_among_all(name):
    code = f"from remediator.cli import load; load(['{name}'])\n{inspect.getsource(options)}\n"
    code += "import typer; from remediator.cli.common import app; print(options(typer.main.get_command(app)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    alone, among_all = ast.literal_eval(done.stdout), options(typer.main.get_command(app))
    assert (name,) in alone
    assert {path: found for path, found in among_all.items() if path[:1] == (name,)} == {
        path: found for path, found in alone.items() if path[:1] == (name,)
    }


def test_no_command_shows_the_help():
    assert "explain" in remediator().output


@pytest.mark.slow
def test_the_crds_of_the_repository_are_those_that_are_written(tmp_path):
    assert remediator("crds", "--output", tmp_path / "crds").exit_code == 0
    for written in (tmp_path / "crds").iterdir():
        assert written.read_text() == (ROOT / "deploy" / "crds" / written.name).read_text(), "run make crds"
    assert len(list((tmp_path / "crds").iterdir())) == 10


@pytest.mark.slow
def test_crds_without_a_folder_go_to_stdout():
    done = remediator("crds")
    assert done.output.count("kind: CustomResourceDefinition") == 10


POLICY = """\
apiVersion: remediator.dev/v1alpha1
kind: RemediationPolicy
metadata: {name: p}
spec:
  mode: Enforce
  nodeSelector: {matchLabels: {pool: a}}
  when: [{condition: GpuLost}]
  ladder: [{operation: reboot}]
"""


@pytest.fixture
def manifest(tmp_path):
    """A function that writes a file."""

    def write(text: str, name: str = "policy.yaml") -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_lint_is_content_with_a_good_policy_whose_template_is_known(manifest):
    done = remediator("lint", "--template", "reboot", manifest(POLICY))
    assert (done.exit_code, done.stdout) == (0, "")
    assert "1 document, 0 findings" in done.stderr


@pytest.mark.parametrize(
    ("text", "field"),
    [
        pytest.param(POLICY, "spec.ladder[0].operation", id="an operation that nobody knows"),
        pytest.param(POLICY.replace("Enforce", "Enforced"), "spec.mode", id="a mistyped value"),
        pytest.param(POLICY.replace("mode:", "mod:"), "spec.mod", id="a mistyped field"),
    ],
)
def test_lint_names_file_line_object_and_field(manifest, text, field):
    path = manifest(text)
    done = remediator("lint", path)
    assert done.exit_code == 1
    assert f"{path}:1: RemediationPolicy/p: {field}: " in done.stdout


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "rules:\n- {id: a, resources: [pods], jmespath: metadata, ttl: 1h}\n"
            "- {id: b, resources: [pods], jmespath: 'metadata.[name', ttl: 1h}\n",
            "{file}:1: rule b: rules[1].jmespath: column 15: ",
        ),
        (
            "\n\nrules:\n- {id: a, resources: [pods], jmespath: 'begins(metadata.name)', ttl: 1h}\n",
            "{file}:3: rule a: rules[0].jmespath: column 1: there is no function begins\n",
        ),
        ("rules:\n- {id: a, resources: [pods], jmespath: metadata, ttl: soon}\n", "{file}:1: rules[0].ttl of a: "),
        ("rules: {}\n", "{file}:1: has no list rules; "),
        ("rules: []\n---\na: 1\n", "{file}:1: is no YAML (expected a single document"),
    ],
)
def test_lint_reads_a_rules_file_as_the_janitor_does_and_names_rule_and_column(manifest, text, says):
    done = remediator("lint", path := manifest(text))
    assert says.format(file=path) in done.stdout
    assert (done.exit_code, done.stdout.count("\n")) == (1, 1)


def test_what_the_page_of_the_janitor_shows_of_lint_is_what_it_prints(manifest):
    path = manifest(
        "rules:\n- {id: broken, resources: [pods], jmespath: metadata..name, ttl: 1h}\n"
        "- {id: previews, resources: [namespaces], jmespath: \"begins_with(metadata.name, 'pr-')\", ttl: 4d}\n",
        "rules.yaml",
    )
    done = remediator("lint", path)
    shown = (done.stdout + done.stderr).replace(str(path), "rules.yaml")
    assert f"```text\n{shown}```" in (ROOT / "docs/janitor.md").read_text()


def test_lint_is_content_with_good_rules_and_with_objects_that_have_rules_of_another_kind(manifest):
    good = "rules:\n- {id: a, resources: [pods], jmespath: metadata, ttl: 1h}\n"
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a}\nrules: [{verbs: [get]}]\n"
    of_detectors = (ROOT / "deploy/npd/gpu-lost.json").read_text()
    for text in (good, role, of_detectors):
        done = remediator("lint", manifest(text))
        assert (done.exit_code, done.stdout) == (0, "")
    assert remediator("lint", ROOT / "deploy/janitor/rules.yaml").exit_code == 0


def test_lint_reads_folders_and_finds_the_templates_in_them(manifest, tmp_path):
    template = "spec: {drain: {strategy: Evict}, podTemplate: {spec: {containers: [{name: a, image: b}]}}}\n"
    head = "apiVersion: remediator.dev/v1alpha1\nkind: NodeOperationTemplate\nmetadata: {name: reboot}\n"
    manifest(POLICY)
    manifest(head + template, "template.yaml")
    assert remediator("lint", tmp_path).exit_code == 0


def test_lint_of_policies_alone_says_where_their_templates_may_be(manifest):
    path = manifest(POLICY)
    done = remediator("lint", path)
    assert done.stderr.splitlines()[-2:] == [
        "1 finding of templates that none of these files has; name the folder that has them, too, such as operations, "
        "or each with --template",
        "1 document, 1 finding",
    ]
    assert "none of these files" not in remediator("lint", "--template", "reboot", path).stderr


def test_lint_reads_a_file_once_however_often_and_by_whatever_name_it_is_named(manifest, tmp_path):
    path = manifest(POLICY)
    (tmp_path / "link.yaml").symlink_to(path)
    done = remediator("lint", "--template", "reboot", path, tmp_path, tmp_path / ".." / tmp_path.name / path.name)
    assert (done.exit_code, done.stdout) == (0, "")
    assert "1 document, 0 findings" in done.stderr


@pytest.mark.parametrize("name", ["policy.yaml", "policy.yml", "policy.json"])
def test_lint_of_a_folder_reads_what_kubectl_would_apply(manifest, tmp_path, name):
    path = manifest('{\n\t"apiVersion": "remediator.dev/v1", "kind": "Ticket"}', name)
    if path.suffix != ".json":
        path.write_text(path.read_text().replace("\t", ""))
    done = remediator("lint", tmp_path)
    assert done.exit_code == 1
    assert f"{path}:1: Ticket/?: apiVersion: must be remediator.dev/v1alpha1" in done.stdout


def test_lint_leaves_templates_of_a_helm_chart_to_helm(tmp_path: Path):
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("name: ours\n")
    (chart / "templates/policy.yaml").write_text("{{- if .Values.policy }}\n")
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates/policy.yaml").write_text("{{- a folder of this name elsewhere is read }}\n")
    done = remediator("lint", tmp_path)
    assert [line for line in done.stdout.splitlines() if "templates" in line] == [done.stdout.splitlines()[0]]
    assert str(tmp_path / "templates/policy.yaml") in done.stdout


@pytest.mark.parametrize(
    ("name", "text"),
    [("x.txt", "kind: Ticket\n"), ("x.yaml", ""), ("x.yaml", "---\n# nothing\n---\n"), ("x.json", "")],
)
def test_lint_of_a_folder_with_nothing_to_check_exits_2_also_beside_one_that_has_something(manifest, name, text):
    folder = manifest(text, name).parent
    done = remediator("lint", ROOT / "deploy" / "budgets", folder)
    assert done.exit_code == 2
    assert f"nothing to check in {folder}; " in done.stderr


def test_lint_of_an_empty_file_among_others_tells_of_every_one(tmp_path):
    empty, other = tmp_path / "empty.yaml", tmp_path / "other.yaml"
    empty.write_text("")
    other.write_text("# nothing\n")
    (tmp_path / "ticket.yaml").write_text("kind: Ticket\n")
    done = remediator("lint", empty, tmp_path / "ticket.yaml", other)
    assert (done.exit_code, "ticket.yaml:1: Ticket/?: apiVersion: must be" in done.stdout) == (2, True)
    assert "1 document, " in done.stderr
    assert [f"nothing to check in {file}; " in done.stderr for file in (empty, other)] == [True, True]


def test_lint_of_an_empty_file_exits_2():
    done = remediator("lint", "/dev/null")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "nothing to check in /dev/null" in done.stderr


def test_lint_of_what_cannot_be_read_exits_2(tmp_path, manifest):
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe")
    for path, said in ((tmp_path / "[/none].yaml", "No such file"), (tmp_path / "bytes.yaml", "not text in UTF-8")):
        done = remediator("lint", path)
        assert done.exit_code == 2
        assert f"remediator: {path}: " in done.stderr
        assert said in done.stderr


def test_a_broken_link_in_a_folder_is_not_passed_over(tmp_path, manifest):
    manifest(POLICY)
    (tmp_path / "gone.yaml").symlink_to("nowhere")
    done = remediator("lint", "--template", "reboot", tmp_path)
    assert (done.exit_code, "gone.yaml: No such file" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--listen", "foo", "--listen is 'foo', not host:port"),
        ("--listen", "127.0.0.1:", "--listen is '127.0.0.1:', not host:port"),
        ("--listen", ":99999", "--listen is ':99999', not host:port with a port of at most 65535"),
        ("--listen", "::1:80", "--listen is '::1:80', not host:port"),
        ("--docs-url", "javascript:alert(1)", "--docs-url is not https://HOST/PATH without a slash at its end"),
        ("--docs-url", "https://h/docs/", "--docs-url is not https://HOST/PATH without a slash at its end"),
        ("--github-url", "https://", "--github-url is not https://HOST"),
        ("--github-url", "ftp://a", "--github-url is not https://HOST"),
        ("--github-url", "https://a:99999", "--github-url is not https://HOST"),
        ("--github-url", "https://a b", "--github-url is not https://HOST"),
        ("--prometheus-url", "prometheus:9090", "--prometheus-url is not https://HOST or https://HOST:PORT/PATH"),
        ("--prometheus-token-file", "/nowhere", "--prometheus-token-file"),
        ("--namespace", "a/b", "--namespace is 'a/b', not the name of a namespace"),
        ("--operations-namespace", "GPU", "--operations-namespace is 'GPU', not the name of a namespace"),
        ("--log-level", "foo", "--log-level"),
        ("--window", "99999999999999", "--window"),
        ("--lease-seconds", "nan", "--lease-seconds"),
        ("--lease-seconds", "1e300", "--lease-seconds"),
        ("--github-spacing", "inf", "--github-spacing"),
        ("--github-token-file", "/nowhere", "--github-token-file"),
        ("--webhook-token-file", "/", "--webhook-token-file"),
    ],
)
def test_a_wrong_option_is_named_before_anything_is_started(option, value, said):
    done = remediator("run", "--kubeconfig", "/nowhere", option, value)
    assert done.exit_code == 2, done.exception
    assert said in done.stderr
    assert "no kubeconfig" not in done.stderr


@pytest.mark.parametrize(
    "url",
    [
        "https://api.github.com",
        "http://127.0.0.1:8000",
        "https://h.example/api/v3",
        "https://h/",
        "https://h/api/v3/",
        "https://[::1]:1",
    ],
)
def test_an_address_of_github_is_taken(url):
    assert "no kubeconfig" in remediator("run", "--kubeconfig", "/nowhere", "--github-url", url).stderr


@pytest.mark.slow
@pytest.mark.parametrize("where", ["file", "file/below", "/dev/null", "/proc/none"])
def test_crds_say_which_folder_cannot_be_written(tmp_path, where):
    (tmp_path / "file").touch()
    done = remediator("crds", "--output", tmp_path / where)
    assert done.exit_code == 2, done.exception
    assert f"--output {tmp_path / where}: " in done.stderr
    assert "name a folder that may be written" in done.stderr


@pytest.mark.slow
async def test_a_name_that_is_no_text_is_printed_all_the_same(tmp_path):
    (tmp_path / os.fsdecode(b"\xff.yaml")).write_text("kind: Ticket\n")
    code, out, err = await spawned("lint", tmp_path)
    assert (code, "\\udcff.yaml:1: Ticket/?: " in out) == (1, True), err


@pytest.mark.slow
def test_the_policies_of_the_repository_and_the_examples_of_some_pass_without_a_warning():
    deploy = ROOT / "deploy"
    examples = [file for file in (deploy / "examples").glob("*.yaml") if "kind: RemediationPolicy" in file.read_text()]
    assert len(examples) >= 3
    done = remediator("lint", deploy / "policies", deploy / "budgets", ROOT / "operations", *examples)
    assert (done.exit_code, done.stdout, "warning" in done.stderr) == (0, "", False), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "code", "said"),
    [
        (
            "v1.29.4",
            2,
            "the API server is Kubernetes v1.29.4, and 1.30 or newer is needed: upgrade the control plane first",
        ),
        ("v1.30.0", None, ""),
    ],
)
async def test_the_controller_does_not_start_on_a_kubernetes_that_is_too_old(tmp_path, version, code, said):
    started = asyncio.Event()

    async def handler(request):
        if request.path == "/version":
            return web.json_response({"gitVersion": version})
        started.set()  # it goes on
        return web.Response(status=503)

    async with talking_to(tmp_path, handler):
        ends = asyncio.ensure_future(spawned("run", "--kubeconfig", tmp_path / "config", "--listen", "127.0.0.1:0"))
        goes_on = asyncio.ensure_future(started.wait())
        try:
            await asyncio.wait((ends, goes_on), return_when=asyncio.FIRST_COMPLETED)
            assert (ends.done(), started.is_set()) == (code is not None, code is None)
            if code is not None:
                assert (ends.result()[0], said in ends.result()[2]) == (code, True)
        finally:
            for task in (ends, goes_on):
                task.cancel()
            await asyncio.gather(ends, goes_on, return_exceptions=True)


def test_lint_knows_what_the_nodes_run_on_by_its_option(manifest):
    path = manifest(POLICY)
    assert remediator("lint", "--template", "reboot", "--platform", "talos", path).exit_code == 0
    done = remediator("lint", "--template", "reboot", "--platform", "gke-autopilot", path)
    assert (done.exit_code, "is refused on GKE Autopilot: " in done.stdout) == (1, True)
    assert remediator("lint", "--platform", "solaris", path).exit_code == 2


# --- against a server ----------------------------------------------------------------------------------------------


async def _explained(harness: ControllerHarness, node: str, run: Run = beside) -> tuple[int, str, str]:
    async with harness.server.serve() as endpoint:
        return await run("explain", node, "--kubeconfig", endpoint.kubeconfig)


@pytest.mark.slow
async def test_explain_says_what_would_happen_to_a_sick_node_and_what_stands_in_the_way():
    async with controller_harness() as harness:
        await harness.policy(mode="DryRun")
        await harness.budget("all", 1)
        await harness.node("gpu-1", "True")
        before = [one for one in harness.server.audit if "/nodes" not in one.path]
        code, out, err = await _explained(harness, "gpu-1", spawned)
        after = [one for one in harness.server.audit if "/nodes" not in one.path]
    assert (code, err) == (0, "")
    assert out.startswith("gpu-1: gpu-lost holds (GpuLost=True, Said); a case opens now\n")
    assert "held: DryRun: would try reboot; set spec.mode of the policy to Enforce to let it act" in out
    assert "policy gpu-lost (DryRun), health: Unhealthy" in out
    assert "budget all: 0 of 1 unavailable" in out
    assert before == after, "it changes nothing"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("False", "gpu-1: healthy: the conditions of every policy prove it"),
        ("Unknown", "gpu-1: health is unknown: GpuLost is Unknown; nothing starts, nothing ends"),
    ],
)
async def test_explain_tells_health_from_not_knowing(status, said):
    async with controller_harness() as harness:
        await harness.policy()
        await harness.node("gpu-1", status)
        code, out, _ = await _explained(harness, "gpu-1")
    assert (code, out.splitlines()[0]) == (0, said)


async def test_what_a_worker_says_of_itself_gives_a_terminal_no_commands_and_makes_no_line_of_its_own():
    """A kubelet may write any text into the status of its node; this text writes to the clipboard of a terminal."""
    said = "\x1b]52;c;cm0gLXJm\x07\x9b2J\u202e\n  policy all (Enforce), health: Healthy"
    async with controller_harness() as harness:
        await harness.node("gpu-1")
        await harness.condition("gpu-1", "True", PODS_REJECTED)
        body = {"status": {"conditions": [{"type": PODS_REJECTED, "message": said}]}}
        await harness.client.patch(NODES, "gpu-1", body, subresource="status", content_type=STRATEGIC_PATCH)
        code, out, _ = await _explained(harness, "gpu-1")
    assert (code, out.replace("\n", "").isprintable()) == (0, True)
    assert [line[:22] for line in out.splitlines() if "(Enforce)" in line] == ["  PodsRejected since 2"]


async def test_explain_of_a_node_that_is_not_there_exits_1():
    async with controller_harness() as harness:
        assert await _explained(harness, "gpu-9") == (1, "", "remediator: no node gpu-9 in the cluster\n")


@pytest.mark.slow
async def test_a_server_that_does_not_answer_is_said_in_one_line(tmp_path):
    async with controller_harness() as harness, harness.server.serve() as endpoint:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(endpoint.kubeconfig.read_text())
        kubeconfig.with_name("ca.crt").write_bytes(endpoint.ca_file.read_bytes())
        text = kubeconfig.read_text().replace(str(endpoint.ca_file), str(kubeconfig.with_name("ca.crt")))
        kubeconfig.write_text(text)
    code, out, err = await beside("explain", "gpu-1", "--kubeconfig", kubeconfig)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith("remediator: ")
    assert endpoint.url.removeprefix("https://") in err.replace("https://", "")


def test_a_kubeconfig_that_is_not_there_is_said_in_one_line(tmp_path):
    done = remediator("explain", "gpu-1", "--kubeconfig", tmp_path / "none")
    assert done.exit_code == 2
    assert done.stderr.startswith(f"remediator: kubeconfig {tmp_path / 'none'}: no kubeconfig at ")
    assert done.stderr.endswith("; correct it, or give another with --kubeconfig or KUBECONFIG\n")


def test_neither_a_kubeconfig_nor_a_pod_is_said_with_the_option_that_helps(monkeypatch, tmp_path):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)  # which has no .kube/config
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    done = remediator("explain", "gpu-1")
    assert done.exit_code == 2
    assert done.stderr.endswith("; give --kubeconfig FILE\n")


def test_explain_refuses_what_cannot_be_a_namespace():
    done = remediator("explain", "gpu-1", "--namespace", "a/b")
    assert done.exit_code == 2
    assert done.stderr.startswith("remediator: --namespace is 'a/b', not the name of a namespace")


async def test_a_client_certificate_is_written_for_its_owner_alone_once_the_controller_has_an_authority(
    tmp_path,
) -> None:
    asked = ("client-certificate", "kube-scheduler", "--namespace", "default", "--output", tmp_path / "shown")
    async with controller_harness() as harness, harness.server.serve() as endpoint:
        words = (*asked, "--kubeconfig", endpoint.kubeconfig)
        secret = Secret({"name": SERVING_SECRET, "namespace": "default"})
        for held in (None, {}, authority()):
            if held is not None:
                secret = Secret({"name": SERVING_SECRET, "namespace": "default"}, dict(held))
                await harness.client.create(SECRET, secret, namespace="default")
            code, out, err = await beside(*words)
            if not held:
                assert (code, out) == (2, "")
                assert err.startswith("remediator: Secret default/remediator-serving")
            if held == {}:
                await harness.client.delete(SECRET, SERVING_SECRET, namespace="default")
    assert code == 0, err
    written = {file.name: file for file in (tmp_path / "shown").iterdir()}
    assert sorted(written) == ["ca.crt", "tls.crt", "tls.key"]
    assert out.splitlines() == [f"wrote {written[name]}" for name in ("ca.crt", "tls.crt", "tls.key")]
    assert written["tls.key"].stat().st_mode & 0o777 == 0o600
    assert written["ca.crt"].read_bytes() == authority()["ca.crt"]


@pytest.mark.slow
async def test_a_port_that_is_taken_is_said_with_its_option():
    async with controller_harness() as harness, harness.server.serve() as endpoint:
        taken = endpoint.url.removeprefix("https://")
        code, _, err = await spawned("run", "--kubeconfig", endpoint.kubeconfig, "--listen", taken)
    assert code == 2
    assert "Traceback" not in err
    said = err.splitlines()[-1]
    assert said.startswith(f"remediator: --listen {taken}: ")
    assert said.endswith("address already in use; name an address of this machine with a free port")


@pytest.mark.parametrize(
    ("status", "said"),
    [(200, "the answer is not one of Kubernetes"), (404, "says '<html> log in</html>'; is it an API server")],
)
async def test_what_is_no_api_server_is_said_to_be_none(tmp_path, status, said):
    async def page(request):
        return web.Response(status=status, text="<html>\nlog in</html>")

    async with talking_to(tmp_path, page):
        code, out, err = await beside("explain", "gpu-1", "--kubeconfig", tmp_path / "config")
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert said in err


def test_lint_warns_where_a_policy_selects_nodes_for_pods_with_rights_in_the_api(manifest, monkeypatch):
    done = remediator("lint", "--template", "reboot", manifest(POLICY))
    assert done.exit_code == 0
    assert "warning: policy" in done.stderr
    assert f"may select nodes on which {DEFAULT!r} lets Pods with rights in the API run" in done.stderr
    apart = remediator("lint", "--template", "reboot", "--api-pods-node-selector", "!pool", manifest(POLICY))
    assert (apart.exit_code, "warning" in apart.stderr) == (0, False)
    monkeypatch.setenv("API_PODS_NODE_SELECTOR", "")
    everywhere = remediator("lint", "--template", "reboot", manifest(POLICY))
    assert "may select nodes on which '' lets Pods with rights in the API run" in everywhere.stderr
    wrong = remediator("lint", "--api-pods-node-selector", "a b", manifest(POLICY))
    assert (wrong.exit_code, "--api-pods-node-selector: 'a b' is no requirement on a label" in wrong.stderr) == (
        2,
        True,
    )


def test_the_configuration_of_a_scheduler_is_written_and_passes_the_check(tmp_path):
    done = remediator("extender", "config", "--k8s", "1.31", "--url", "https://10.0.0.7:8443/scheduler")
    assert (done.exit_code, "urlPrefix: https://10.0.0.7:8443/scheduler" in done.stdout) == (0, True)
    (tmp_path / "config.yaml").write_text(done.stdout)
    checked = remediator("extender", "check", tmp_path / "config.yaml", "--k8s", "1.31")
    assert (checked.exit_code, checked.stdout, checked.stderr) == (0, "", "0 findings\n")


def test_a_trap_in_the_configuration_of_a_scheduler_is_named_and_exits_1(tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(remediator("extender", "config", "--k8s", "1.24").stdout.replace("weight: 1\n", "weight: 0\n"))
    done = remediator("extender", "check", file, "--k8s", "1.31")
    assert (done.exit_code, done.stderr) == (1, "2 findings\n")
    assert done.stdout.splitlines() == [
        f"{file}: apiVersion: v1beta3 is read by Kubernetes 1.23 to 1.28, not by 1.31",
        f"{file}: extenders[0].weight: is 0: beside prioritizeVerb it must be more than 0; write 1",
    ]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("config", "--k8s", "new"), "--k8s: 'new' is no version of Kubernetes; write one such as 1.31"),
        (("config", "--k8s", "1.20"), "1.20 is older than 1.22"),
        (("config", "--k8s", "1.31", "--url", "http://a"), "--url is 'http://a', not https://ADDRESS:PORT/PATH"),
        (("config", "--k8s", "1.31", "--no-extender"), "--no-extender leaves nothing to write; add --pack"),
        (("check", "/nowhere"), "/nowhere: No such file or directory; name a file that can be read"),
        (("check", "/dev/null"), "/dev/null: 0 documents; name a file with one KubeSchedulerConfiguration"),
    ],
)
def test_what_cannot_be_written_or_checked_is_refused(args, words):
    done = remediator("extender", *args)
    assert done.exit_code == 2, done.exception
    assert done.stderr.startswith(f"remediator: {words}")


async def test_lint_tells_a_cluster_of_0_nodes_from_no_cluster(manifest):
    path = manifest(POLICY)
    _, _, unasked = await beside("lint", "--template", "reboot", path)
    async with controller_harness() as harness, harness.server.serve() as endpoint:
        for node in await harness.client.list_all(NODES):
            await harness.client.delete(NODES, node["metadata"]["name"])
        code, _, err = await beside("lint", "--template", "reboot", path, "--kubeconfig", endpoint.kubeconfig)
    assert code == 0
    assert "warning: the cluster has no nodes, so no policy and no budget could be tried on any" in err
    assert "the cluster has no nodes" not in unasked


async def test_lint_tries_budgets_and_policies_on_those_that_the_cluster_has(manifest):
    path = manifest(POLICY.replace("matchLabels: {pool: a}", "matchLabels: {remediator.dev/pool: a}"))
    async with controller_harness() as harness, harness.server.serve() as endpoint:
        await harness.node("gpu-1", pool="a")
        command = ("lint", "--template", "reboot", path, "--kubeconfig", endpoint.kubeconfig)
        _, _, none = await beside(*command)
        await harness.budget("all", 1)
        code, _, err = await beside(*command)
    assert "warning: policy p is in mode Enforce, and no budget selects 1 of the nodes that it selects (gpu-1)" in none
    assert (code, "no budget selects" in err) == (0, False)
