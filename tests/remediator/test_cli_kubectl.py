"""`kubectl remediator`: the command line as a plugin of kubectl, with its words completed and its usual kubeconfig."""

import shlex
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from remediator import cli
from tests.contract.docs.pages import ROOT
from tests.harness.cluster import MemoryCluster
from tests.remediator.test_cli import beside

SCRIPTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]


def test_the_package_brings_the_names_by_which_kubectl_finds_a_plugin():
    assert {"kubectl-remediator", "kubectl_complete-remediator"} <= SCRIPTS.keys()
    for place in SCRIPTS.values():
        module, _, function = place.partition(":")
        assert callable(getattr(import_module(module), function))


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["rel"], ["release"]),
        (["hold", "gpu-1", "--re"], ["--reason"]),
        (["hold", "a b", "--of"], ["--off"]),
        (["nothing-like-it"], []),
    ],
)
def test_the_last_word_is_completed(words, completed, monkeypatch, capsys):
    for variable in ("COMP_WORDS", "COMP_CWORD", "_REMEDIATOR_COMPLETE"):
        monkeypatch.setenv(variable, "")  # so that it is taken back at the end
    monkeypatch.setattr(sys, "argv", ["kubectl_complete-remediator", *words])
    with pytest.raises(SystemExit) as ended:
        cli.complete_for_kubectl()
    assert (ended.value.code or 0, capsys.readouterr().out.split()) == (0, completed)


async def test_without_a_kubeconfig_a_user_reaches_the_cluster_that_kubectl_does(monkeypatch, tmp_path):
    made = MemoryCluster()
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    async with made.server.serve() as endpoint:
        (tmp_path / ".kube").mkdir()
        (tmp_path / ".kube" / "config").write_bytes(endpoint.kubeconfig.read_bytes())
        code, out, err = await beside("status")
        assert (code, out.splitlines()[0], err) == (0, "fleet: 0 nodes; no case is open", "")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")  # a Pod's own account comes first
        code, _, err = await beside("status")
        assert (code, "no service account of a Pod here" in err) == (2, True)


async def test_a_wrong_proxy_of_the_environment_is_not_told_as_a_wrong_kubeconfig(monkeypatch, tmp_path):
    for name in ("https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    config = tmp_path / "config"
    config.write_text(
        '{clusters: [{name: a, cluster: {server: "https://10.96.0.1"}}], users: [{name: b, user: {}}], '
        "contexts: [{name: c, context: {cluster: a, user: b}}], current-context: c}"
    )
    monkeypatch.setenv("HTTPS_PROXY", "socks5://me:canary@proxy:1080")
    code, _, err = await beside("status", "--kubeconfig", str(config))
    assert (code, " ".join(err.split())) == (
        2,
        "remediator: HTTPS_PROXY of the environment is 'socks5://[secret]@proxy:1080': only http:// and https:// "
        "proxies, as http://HOST:PORT; correct or unset it, or put 10.96.0.1 into NO_PROXY",
    )


@pytest.mark.cluster
def test_kubectl_runs_it_and_asks_it_for_words(tmp_path):
    from deploy.images.programs import binary

    shims = {"kubectl-remediator": "main", "kubectl_complete-remediator": "complete_for_kubectl"}
    for name, function in shims.items():
        code = f"from remediator import cli; cli.{function}()"
        (tmp_path / name).write_text(f'#!/bin/sh\nexec {sys.executable} -c {shlex.quote(code)} "$@"\n')
        (tmp_path / name).chmod(0o755)
    run = {"env": {"PATH": f"{tmp_path}:/usr/bin:/bin", "PYTHONPATH": str(ROOT)}, "text": True, "capture_output": True}
    done = subprocess.run([binary("kubectl"), "remediator", "hold", "--help"], check=True, **run)
    assert "Let nothing new start in the case of a node" in done.stdout
    completed = subprocess.run([binary("kubectl"), "__complete", "remediator", "rel"], check=True, **run)
    assert completed.stdout.splitlines()[0] == "release"
