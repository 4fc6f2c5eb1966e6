"""The credentials of the janitor show nowhere, whatever Prometheus, Alertmanager and its own files do."""

from pathlib import Path

import pytest

from remediator.kube import api
from remediator.kube.wire.client import Client
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.ports import free_ports
from remediator_sim.prometheus import PrometheusReply
from tests.harness.canaries import Seen, asked, running, stored
from tests.harness.cluster import with_kinds
from tests.harness.kinds import DEPLOYMENTS, NAMESPACES, PODS, plain
from tests.harness.prometheus import fake_prometheus
from tests.harness.waiting import until
from tests.remediator.janitor.idle_place import JOBS, SETS, STATEFUL, serve
from tests.remediator.test_cli import beside

pytestmark = pytest.mark.sampled("canaries")

TOKEN, ALERTS, MAIL = "canary-of-prometheus-4e1f", "canary-of-alertmanager-88c0", "canary-of-an-owner-5d2a"
GPUS = {"containers": [{"name": "m", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
REPEATED = f"you sent Authorization: Bearer {TOKEN} {ALERTS}".encode()


async def cluster() -> EmbeddedServer:
    """One Pod with a GPU that has run for years, and a policy that asks Prometheus and Alertmanager about it."""
    server = EmbeddedServer(like=with_kinds())
    client = Client(server.transport())
    await serve(client, JOBS, DEPLOYMENTS, STATEFUL, SETS)
    await client.create(NAMESPACES, {"metadata": {"name": "team"}})
    await client.create(PODS, {"metadata": {"name": "p", "labels": {"owner": "alice"}}, "spec": GPUS}, namespace="team")
    status = {"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}}
    await client.patch(PODS, "p", status, namespace="team", subresource="status")
    for name, spec in {"gpus": {}, "alerts": {"finds": "Alert", "alert": "Idle"}}.items():
        body = {"mode": "Enforce", "namespaces": ["team"], "actions": ["Delete"], **spec}
        made = {"apiVersion": api.API_VERSION, "kind": "IdlePolicy", "metadata": {"name": name}, "spec": body}
        await client.create(plain(api.IDLE_POLICY), made)
    return server


@pytest.mark.timeout(600)
async def test_a_janitor_shows_no_credential_whatever_those_whom_it_asks_answer(tmp_path: Path) -> None:
    """Both answer with what they were sent, in four ways; then a file holds two tokens, and one no YAML."""
    seen, server = Seen(), await cluster()
    for name, text in {
        "token": TOKEN,
        "alerts": ALERTS,
        "owners": f"owners: {{alice: {{mail: {MAIL}@x.org}}}}",
    }.items():
        (tmp_path / name).write_text(text)
    (port,) = free_ports(1)
    answers = [PrometheusReply(status, REPEATED) for status in (401, 500, 200)]
    answers.append(PrometheusReply(400, b'{"status": "error", "errorType": "bad_data", "error": "%s"}' % REPEATED))
    with fake_prometheus() as fake:
        fake.script = lambda params: answers[len(fake.asked) % len(answers)]
        async with server.serve() as endpoint:
            options = [f"--kubeconfig={endpoint.kubeconfig}", f"--listen=127.0.0.1:{port}", "--interval=1"]
            options += ["--mode=Enforce", f"--owners-file={tmp_path}/owners"]
            options += [f"--prometheus-url={fake.url}", f"--prometheus-token-file={tmp_path}/token"]
            options += [f"--alertmanager-url={fake.url}", f"--alertmanager-token-file={tmp_path}/alerts"]
            async with running(seen, tmp_path / "log", *options, "--namespace=default", command="janitor"):
                await until(lambda: {TOKEN, ALERTS} <= _sent(fake.asked), 120)
                (tmp_path / "owners").write_text(f"owners: {{alice: {{mail: {MAIL}")
                await until(lambda: "owners" in _errors(tmp_path / "log"), 120)
                for path in ("report", "metrics"):
                    assert await asked(seen, "GET", f"http://127.0.0.1:{port}/{path}") == 200
            (tmp_path / "owners").write_text("")
            once = [await beside("janitor", "--once", "--log-level=debug", *options)]
            (tmp_path / "token").write_text(f"{TOKEN}\n{TOKEN}")
            once += [await beside("janitor", "--once", "--log-level=debug", *options)]
            refusal = await beside("janitor", "--once", f"--prometheus-url=https://me:{TOKEN}@x", options[0])
    seen.add("output", *once, *refusal)
    seen.add("objects and events", stored(server))
    assert len(fake.asked) >= len(answers), "each answer was given"
    for words in ("--prometheus-url is not https://HOST", "is no YAML", "holds more than one word"):
        assert seen.shows([words]), "what was said was looked at"
    assert seen.shows([TOKEN, ALERTS, MAIL]) == []


def _sent(asked: list[tuple[str, object, object]]) -> set[str]:
    """The tokens that were sent."""
    texts = "".join(str(headers) for *_, headers in asked)
    return {token for token in (TOKEN, ALERTS) if token in texts}


def _errors(log: Path) -> str:
    return "\n".join(line for line in log.read_text().splitlines() if "is no YAML" in line)
