"""The command line: what it says, and how it exits."""

import asyncio
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from remediator.cli import app
from tests.remediator.controller.lab import Lab, laboratory

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-c", "from remediator.cli import main; main()")


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


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), ["run", "crds", "lint", "explain"]),
        (("run",), ["--kubeconfig", "--listen", "--drains", "--starts", "--window", "--lease-seconds", "--log-json"]),
        (("crds",), ["--output", "CustomResourceDefinitions"]),
        (("lint",), ["--template", "Exit 1 where anything is wrong"]),
        (("explain",), ["Name of the node", "changes nothing"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_help_names_every_command_and_option(args, words):
    done = remediator(*args, "--help")
    assert done.exit_code == 0
    said = " ".join(done.output.split())
    assert [word for word in words if word not in said] == []


def test_no_command_shows_the_help():
    assert "explain" in remediator().output


def test_the_crds_of_the_repository_are_those_that_are_written(tmp_path):
    assert remediator("crds", "--output", tmp_path / "crds").exit_code == 0
    for written in (tmp_path / "crds").iterdir():
        assert written.read_text() == (ROOT / "deploy" / "crds" / written.name).read_text(), "run make crds"
    assert len(list((tmp_path / "crds").iterdir())) == 6


def test_crds_without_a_folder_go_to_stdout():
    done = remediator("crds")
    assert done.output.count("kind: CustomResourceDefinition") == 6


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
    assert "1 documents, 0 findings" in done.stderr


@pytest.mark.parametrize(
    ("text", "field"),
    [
        pytest.param(POLICY, "spec.ladder[0].operation", id="an operation that nobody knows"),
        pytest.param(POLICY.replace("Enforce", "Enforced"), "spec.mode", id="a mistyped value"),
        pytest.param(POLICY.replace("mode:", "mod:"), "spec.mod", id="a mistyped field"),
        pytest.param(
            POLICY.replace("  when:", "  windows: [{cron: x, duration: 1h}]\n  when:"), "spec.windows", id="later"
        ),
    ],
)
def test_lint_names_file_line_object_and_field(manifest, text, field):
    path = manifest(text)
    done = remediator("lint", path)
    assert done.exit_code == 1
    assert f"{path}:1: RemediationPolicy/p: {field}: " in done.stdout


def test_lint_reads_folders_and_finds_the_templates_in_them(manifest, tmp_path):
    template = "spec: {drain: {strategy: Evict}, podTemplate: {spec: {containers: [{name: a, image: b}]}}}\n"
    head = "apiVersion: remediator.dev/v1alpha1\nkind: NodeOperationTemplate\nmetadata: {name: reboot}\n"
    manifest(POLICY)
    manifest(head + template, "template.yaml")
    assert remediator("lint", tmp_path).exit_code == 0


def test_lint_of_what_cannot_be_read_exits_2(tmp_path):
    done = remediator("lint", tmp_path / "none.yaml")
    assert done.exit_code == 2


def test_the_policies_of_the_repository_pass():
    assert (
        remediator("lint", ROOT / "deploy" / "policies", ROOT / "deploy" / "budgets", ROOT / "operations").exit_code
        == 0
    )


# --- against a server ----------------------------------------------------------------------------------------------


async def _explained(lab: Lab, node: str) -> tuple[int, str, str]:
    async with lab.server.serve() as endpoint:
        return await spawned("explain", node, "--kubeconfig", endpoint.kubeconfig)


async def test_explain_says_what_would_happen_to_a_sick_node_and_what_stands_in_the_way():
    async with laboratory() as lab:
        await lab.policy(mode="DryRun")
        await lab.budget("all", 1)
        await lab.node("gpu-1", "True")
        before = [one for one in lab.server.audit if "/nodes" not in one.path]
        code, out, err = await _explained(lab, "gpu-1")
        after = [one for one in lab.server.audit if "/nodes" not in one.path]
    assert (code, err) == (0, "")
    assert out.startswith("gpu-1: gpu-lost holds (GpuLost=True, Said); a case opens now\n")
    assert "held: DryRun: would try reboot; set spec.mode of the policy to Enforce to let it act" in out
    assert "policy gpu-lost (DryRun) sees BAD" in out
    assert "budget all: 0 of 1 unavailable" in out
    assert before == after, "it changes nothing"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("False", "gpu-1: healthy: every policy sees clearly that it is well"),
        ("Unknown", "gpu-1: cannot tell: GpuLost absent, Unknown or stale; nothing starts, nothing ends"),
    ],
)
async def test_explain_tells_health_from_not_knowing(status, said):
    async with laboratory() as lab:
        await lab.policy()
        await lab.node("gpu-1", status)
        code, out, _ = await _explained(lab, "gpu-1")
    assert (code, out.splitlines()[0]) == (0, said)


async def test_explain_of_a_node_that_is_not_there_exits_1():
    async with laboratory() as lab:
        assert await _explained(lab, "gpu-9") == (1, "", "remediator: no node gpu-9 in the cluster\n")


async def test_a_server_that_does_not_answer_is_said_in_one_line(tmp_path):
    async with laboratory() as lab, lab.server.serve() as endpoint:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(endpoint.kubeconfig.read_text())
        kubeconfig.with_name("ca.crt").write_bytes(endpoint.ca_file.read_bytes())
        text = kubeconfig.read_text().replace(str(endpoint.ca_file), str(kubeconfig.with_name("ca.crt")))
        kubeconfig.write_text(text)
    code, out, err = await spawned("explain", "gpu-1", "--kubeconfig", kubeconfig)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith("remediator: ")
    assert endpoint.url.removeprefix("https://") in err.replace("https://", "")


def test_a_kubeconfig_that_is_not_there_is_said_in_one_line(tmp_path):
    done = remediator("explain", "gpu-1", "--kubeconfig", tmp_path / "none")
    assert done.exit_code == 2
