"""What the real kube-scheduler says of configurations that are written, and of those that are said to be refused."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.images.programs import binary
from remediator.core.kubernetes_version import Kubernetes
from remediator.scheduler.config.traps import traps
from remediator.scheduler.config.written import Wanted, written
from remediator.scheduler.packing.points import Score
from remediator.web import certificates
from remediator.web.endpoints import KUBE_SCHEDULER
from tests.harness.endpoints import HOUR, NOW, authority
from tests.remediator.scheduler.config.test_traps import TRAPS

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]
KUBERNETES = Kubernetes(1, 37)
WORDS = ("refuse", "must be more than 0")  # of what kube-scheduler does not start with
REFUSED = [
    row
    for row in TRAPS
    if any(word in finding.message for finding in traps(row.values[0], score=Score.BLEND) for word in WORDS)
]
NOWHERE = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "nowhere",
    "contexts": [{"name": "nowhere", "context": {"cluster": "nowhere", "user": "nobody"}}],
    "clusters": [{"name": "nowhere", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "nobody", "user": {"token": "none"}}],
}


async def said(config: dict[str, Any], folder: Path) -> tuple[bool, str]:
    """Whether kube-scheduler took the configuration and wrote it out again; what it said."""
    for name, text in certificates.for_caller(authority(), KUBE_SCHEDULER, HOUR, NOW).items():
        (folder / name).write_bytes(text)
    (folder / "kubeconfig").write_text(yaml.safe_dump(NOWHERE))
    config["clientConnection"] = {"kubeconfig": str(folder / "kubeconfig")}
    for extender in config.get("extenders", []):
        tls = extender.get("tlsConfig", {})
        tls |= {key: str(folder / Path(tls[key]).name) for key in ("caFile", "certFile", "keyFile") if key in tls}
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    written_to = folder / "taken.yaml"
    flags = [f"--config={folder / 'config.yaml'}", f"--write-config-to={written_to}", f"--cert-dir={folder}"]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(binary("kube-scheduler"), *flags, stdout=pipe, stderr=pipe)
    try:
        async with asyncio.timeout(60):
            _, text = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    return written_to.exists(), text.decode()


@pytest.mark.parametrize("name", ["", "gpu"])
@pytest.mark.parametrize(("packs", "asks"), [(False, True), (True, True), (True, False)])
async def test_every_configuration_that_is_written_is_taken(tmp_path: Path, name: str, packs: bool, asks: bool) -> None:
    config = yaml.safe_load(written(Wanted(KUBERNETES, name=name, packs=packs, asks=asks)))
    taken, text = await said(config, tmp_path)
    assert taken, text


async def test_the_configuration_for_shared_gpus_is_taken(tmp_path: Path) -> None:
    file = Path(__file__).parents[2] / "deploy" / "shared-gpus" / "scheduler-config.yaml"
    taken, text = await said(yaml.safe_load(file.read_text()), tmp_path)
    assert taken, text


@pytest.mark.parametrize(("config", "place", "words"), REFUSED)
async def test_what_is_said_to_be_refused_is(tmp_path: Path, config: dict[str, Any], place: str, words: str) -> None:
    assert traps(config)
    taken, text = await said(yaml.safe_load(yaml.safe_dump(config)), tmp_path)
    assert not taken, text
    assert "command failed" in text
