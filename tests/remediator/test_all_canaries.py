"""One controller that has every secret at once shows none of them, on paths that work and on those that fail."""

from base64 import b64decode
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import structlog

from remediator.clock import SYSTEM
from remediator.core import names
from remediator.core.names import SERVING_SECRET
from remediator.metrics import configure
from remediator_sim.github import FakeGitHub, GithubFault
from remediator_sim.kubeconfig import write_kubeconfig
from remediator_sim.ports import free_ports
from remediator_sim.prometheus import PrometheusReply
from remediator_sim.slack import CallFault as ChatFault
from remediator_sim.slack import FakeSlack
from tests.harness.canaries import Seen, asked, running, stored
from tests.harness.cluster import MemoryCluster
from tests.harness.controller import make_template
from tests.harness.endpoints import connected
from tests.harness.kinds import NAMESPACES, NODES, POLICIES
from tests.harness.prometheus import fake_prometheus
from tests.harness.tickets import delivery, fires
from tests.harness.waiting import until
from tests.remediator.test_canaries import ROOMS, STORE
from tests.remediator.tickets.test_canaries import signed

REPO = "org/ops"
# The file that holds it, and the secret.
CANARIES = {
    "hook": "canary-of-githubs-posts-1b7e",
    "webhook": "canary-of-alertmanagers-posts-93c4",
    "extender": "canary-of-kube-scheduler-5d20",
    "prometheus": "canary-of-prometheus-a8f1",
    "alerts": "canary-of-alertmanager-6e3b",
    "service": "canary-of-a-chat-service-c90d",
    "bucket": "canary-of-the-bucket-27fa",
    "apiserver": "canary-of-the-api-server-4e88",
    "reader": "canary-of-a-reader-0b6d",
}
# What GitHub, or a proxy that repeats what it was sent, does to its first requests: proofs of who we are, then tokens.
WAYS = {1: 401, 2: 500, 4: 401, 6: 403, 7: 422, 8: 502}
MULTIPLE = "holds more than one word"


class Repeating(FakeGitHub):
    """It keeps what it was sent as a proof of who we are, and repeats it in what it refuses."""

    def __init__(self) -> None:
        super().__init__([REPO], ["ann"])
        self.sent: list[str] = []

    def serve(self, method: str, url: str, headers: Mapping[str, str], raw: bytes):  # type: ignore[no-untyped-def]
        shown = {name.lower(): value for name, value in headers.items()}.get("authorization", "")
        self.sent.append(shown.partition(" ")[2])
        if status := WAYS.get(len(self.sent)):
            self.fail(method, ".", GithubFault(status, f"you sent Authorization: {shown}"))
        return super().serve(method, url, headers, raw)


async def fleet(cluster: MemoryCluster) -> None:
    """A node whose evidence is collected and sent off, and eight about each of which Prometheus is asked once."""
    await cluster.client.create(NAMESPACES, {"metadata": {"name": names.OPERATIONS_NAMESPACE}})
    for template in (names.DIAGNOSTICS_TEMPLATE, "reboot"):
        await make_template(cluster, template)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    times = {"lastTransitionTime": now, "lastHeartbeatTime": now}
    conditions = [{"type": kind, "status": "True"} | times for kind in ("Ready", "GpuLost")]
    for name in ("sent-1", *(f"asked-{number}" for number in range(8))):
        await cluster.client.create(NODES, {"metadata": {"name": name, "labels": {"kind": name.partition("-")[0]}}})
        status = {"conditions": conditions, "nodeInfo": {"bootID": "boot-1"}}
        await cluster.client.patch(NODES, name, {"status": status}, subresource="status")
    asks = {"sent": {}, "asked": {"confirm": {"promQL": 'max(xid{node="{{node}}"})', "within": "30s"}}}
    for kind, more in asks.items():
        when = [{"condition": "GpuLost", "for": "0s"}]
        ruled = {"mode": "Enforce", "nodeSelector": {"matchLabels": {"kind": kind}}, "when": when, **more}
        await cluster.make(POLICIES, kind, ladder=[{"operation": "reboot"}], **ruled)


def files(folder: Path, github: Repeating, slack: FakeSlack) -> list[str]:
    """Every file that holds a secret, and the options that name them."""
    texts = {name: CANARIES[name] for name in ("hook", "webhook", "extender", "prometheus", "alerts")}
    texts |= {"routes.yaml": f"default: {{repository: {REPO}, commands: true}}\n", "key": github.app[2]}
    texts |= {"slack": slack.token, "chat.yaml": ROOMS % slack.url, "store": STORE % CANARIES["bucket"]}
    texts["urls"] = f"json://me:{CANARIES['service']}@127.0.0.1:1/{CANARIES['service']}"
    for name, text in texts.items():
        (folder / name).write_text(text)
    options = {
        "routes": "routes.yaml",
        "chat": "chat.yaml",
        "bundle-store": "store",
        "github-app-key-file": "key",
        "github-webhook-secret-file": "hook",
        "webhook-token-file": "webhook",
        "extender-token-file": "extender",
        "prometheus-token-file": "prometheus",
        "alertmanager-token-file": "alerts",
    }
    return [f"--{option}={folder / name}" for option, name in options.items()]


def script(answered: list[object]):  # type: ignore[no-untyped-def]
    """What Prometheus and Alertmanager answer, each in turn, with what it was sent: refusals, no JSON, half of it."""
    turns = Counter[str]()

    def answer(params: Mapping[str, str]) -> object:
        answered.append(params)
        server = "prometheus" if "query" in params else "alerts"
        turns[server] += 1
        ways = repeated(f"you sent Bearer {CANARIES[server]}".encode())
        return ways[turns[server] % len(ways)]

    return answer


def repeated(text: bytes) -> list[object]:
    """Every answer that has this text in it."""
    error = b'{"status": "error", "errorType": "bad_data", "error": "%s"}' % text
    odd = b'{"status": "success", "data": {"resultType": "vector", "result": "%s"}}' % text

    def half_way(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n" + text)

    refusals = [PrometheusReply(status, text) for status in (401, 403, 500, 200)]
    return [*refusals, PrometheusReply(400, error), PrometheusReply(200, odd), half_way]


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_a_controller_with_every_secret_at_once_shows_none(tmp_path: Path) -> None:
    seen, cluster, answered = Seen(), MemoryCluster(), list[object]()
    probes, hook, extender, comments, page = free_ports(5)
    await fleet(cluster)
    with fake_prometheus() as prometheus:
        prometheus.script = script(answered)
        async with Repeating() as github, FakeSlack(["C0123456789"]) as slack, cluster.server.serve() as endpoint:
            slack.fail("chat.postMessage", ChatFault(status=502, page=f"<html>you sent Bearer {slack.token}</html>"))
            app, installation, key = github.app
            cluster_file = write_kubeconfig(tmp_path, "us", endpoint.url, CANARIES["apiserver"], endpoint.ca_file)
            options = [*files(tmp_path, github, slack), f"--kubeconfig={cluster_file}", "--page-api-tokens"]
            options += [f"--listen=127.0.0.1:{probes}", f"--listen-webhook=127.0.0.1:{hook}"]
            options += [f"--listen-extender=127.0.0.1:{extender}", f"--listen-github=127.0.0.1:{comments}"]
            options += [f"--listen-page=127.0.0.1:{page}"]
            options += [f"--github-url={github.url}", f"--github-app-id={app}"]
            options += [f"--github-app-installation-id={installation}", "--github-spacing=0", "--issues-per-hour=0"]
            options += [f"--prometheus-url={prometheus.url}", f"--alertmanager-url={prometheus.url}"]
            async with running(seen, tmp_path / "log", *options):
                await posts(seen, f"https://127.0.0.1:{hook}/webhooks/alertmanager")
                await calls(seen, extender)
                await until(lambda: github.issues(REPO), 120)
                (number, *_) = (issue.number for issue in github.issues(REPO))
                github.person("ann").comment(REPO, number, "/why")
                await comment(seen, f"https://127.0.0.1:{comments}/webhooks/github")
                await until(lambda: bundles(cluster), 120)
                await reads(seen, f"https://127.0.0.1:{page}")
                await until(lambda: len(answered) > 6 and tokens(prometheus.asked) == {"prometheus", "alerts"}, 40)
                await until(lambda: (tmp_path / "log").read_text().count("room not told") >= 2, 120)
                await until(lambda: "(token)" in (tmp_path / "log").read_text(), 120)
                for name in ("prometheus", "alerts", "extender", "webhook", "hook"):
                    (tmp_path / name).write_text(f"{CANARIES[name]}\n{CANARIES[name]}")
                await calls(seen, extender)
                await asked(seen, "POST", f"https://127.0.0.1:{hook}/webhooks/alertmanager", b"{}", CANARIES["webhook"])
                await until(lambda: (tmp_path / "log").read_text().count(MULTIPLE) >= 2, 120)
                assert await asked(seen, "GET", f"http://127.0.0.1:{probes}/metrics") == 200
            seen.add("objects and events", stored(cluster.server))
            seen.add("issues", *github.issues(REPO), *(one.body for one in github.requests))
    serving = next(one["data"] for one in cluster_secrets(cluster) if one["metadata"]["name"] == SERVING_SECRET)
    keys = [b64decode(serving[name]).decode().splitlines()[1] for name in ("ca.key", "tls.key")]
    signature = parse_qs(urlsplit(bundles(cluster)[0]).query)["X-Amz-Signature"][0]
    assert len({proof.startswith("ghs_") for proof in github.sent if proof}) == 2, "proofs and tokens were sent"
    for words in (
        "case sent-1",
        "This token is not one of the cluster",
        '"node":"sent-1"',
        "room not told",
        "(token)",
        "[secret]",
        MULTIPLE,
        "remediator_refused_calls_total",
    ):
        assert seen.shows([words]), f"where {words} stands was looked at"
    proofs = [proof for proof in github.sent if proof]
    secrets = [*CANARIES.values(), *proofs, *key.splitlines()[1:-1], slack.token, signature, *keys]
    assert seen.shows(secrets) == []


async def posts(seen: Seen, url: str) -> None:
    """As Alertmanager, and as somebody who has a wrong token or no JSON."""
    alerts = delivery(*(fires(f"Alert{number}", node="") for number in range(6)))
    await until(lambda: _is(200, asked(seen, "POST", url, alerts, CANARIES["webhook"])), 120)
    assert await asked(seen, "POST", url, b"{}", CANARIES["webhook"] + "x") == 401
    assert await asked(seen, "POST", url, CANARIES["webhook"].encode(), CANARIES["webhook"]) == 400


async def calls(seen: Seen, port: int) -> None:
    """As kube-scheduler, as somebody with a wrong token, with no JSON, and with a body that does not come."""
    url, token = f"https://127.0.0.1:{port}/scheduler/filter", CANARIES["extender"]
    for body in (b'{"Pod": {}, "NodeNames": ["sent-1"]}', token.encode()):
        await asked(seen, "POST", url, body, token)
        await asked(seen, "POST", url, body, token + "x")
    head = f"POST /scheduler/filter HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {token}\r\n"
    silent = await connected(port, f"{head}\r\n".encode())
    seen.add("answers", await silent.ended())


async def reads(seen: Seen, url: str) -> None:
    """As a reader of the page and of its JSON, and as somebody whose token nobody knows, in header, cookie and form."""
    reader, pages = CANARIES["reader"], ("/", "/now", "/nodes/sent-1", "/cases/none", "/search?q=sent", "/api/v1/fleet")
    pages += ("/api/v1/nodes", "/api/v1/nodes/sent-1", "/api/v1/nodes/sent-1/history", "/api/v1/search?q=sent")
    for path in pages:
        assert await asked(seen, "GET", url + path, token=reader) in (200, 404)
        await turned_away(seen, "GET", url + path, token=f"{reader}.no.jwt")
    await turned_away(seen, "GET", url, Cookie=f"__Host-remediator={'x' * 4000}{reader}")
    await turned_away(seen, "POST", f"{url}/sign-in", f"token={reader}.no.jwt&to=%2F".encode())


async def turned_away(seen: Seen, method: str, url: str, body: bytes = b"", **more: str) -> None:
    """A stranger is asked to sign in; where ten have asked in a second, not before the next."""
    await until(lambda: _is(401, asked(seen, method, url, body, **more)), 30)


async def comment(seen: Seen, url: str) -> None:
    """As GitHub, and as somebody else."""
    body, secret = CANARIES["hook"].encode(), CANARIES["hook"]
    await until(lambda: _is(400, asked(seen, "POST", url, body, **signed(body, secret))), 120)
    assert await asked(seen, "POST", url, body, **signed(body, secret + "x")) == 401
    assert await asked(seen, "POST", url, body) == 401


async def _is(status: int, request: object) -> bool:
    return await request == status  # type: ignore[misc,no-any-return]


def tokens(requests: list[tuple[str, object, Mapping[str, str]]]) -> set[str]:
    """Whose tokens were sent."""
    texts = "".join(str(headers) for *_, headers in requests)
    return {name for name in ("prometheus", "alerts") if CANARIES[name] in texts}


def cluster_secrets(cluster: MemoryCluster) -> list[dict]:  # type: ignore[type-arg]
    return [entry.copy() for entry in cluster.server.cluster.store.collection("secrets").entries.values()]


def bundles(cluster: MemoryCluster) -> list[str]:
    """The URLs that were signed for Pods."""
    made = [one["data"] for one in cluster_secrets(cluster) if one.get("type") == names.BUNDLE_SECRET]
    return [b64decode(data["BUNDLE_URL"]).decode() for data in made]


@pytest.mark.parametrize("json", [False, True], ids=["for people", "JSON"])
def test_a_traceback_in_the_log_shows_no_value_of_a_variable(json: bool, capfd: pytest.CaptureFixture[str]) -> None:
    before = structlog.get_config()
    try:
        configure("info", json, SYSTEM)  # type: ignore[arg-type]
        secret = CANARIES["webhook"]
        try:
            raise ValueError(len(secret))
        except ValueError:
            structlog.get_logger().exception("pass failed")
    finally:
        structlog.configure(**before)
    shown = "".join(capfd.readouterr())
    assert "Traceback" in shown
    assert "ValueError" in shown
    assert secret not in shown


def test_a_traceback_in_the_log_for_people_gives_a_terminal_no_commands(capfd: pytest.CaptureFixture[str]) -> None:
    before = structlog.get_config()
    try:
        configure("info", json=False, clock=SYSTEM)
        try:
            raise ValueError("what a node said: \x1b[2J\x9b31m\rgone")
        except ValueError:
            structlog.get_logger().exception("pass failed")
    finally:
        structlog.configure(**before)
    shown = "".join(capfd.readouterr())
    assert "what a node said:  [2J 31m gone" in shown
    assert [char for char in shown if not char.isprintable() and char != "\n"] == []
