"""A secret shows in no log, object, Event, issue, metric, answer, error or command line, whatever goes wrong."""

import asyncio
from pathlib import Path

import pytest

from remediator.clock import SYSTEM
from remediator.core.names import SERVING_SECRET
from remediator.kube.api.builtin import SECRET
from remediator.kube.wire.client import Client
from remediator.tickets.channels.base import ChannelError, Draft, Marker
from remediator.tickets.channels.github import AppKeyFile, GitHub
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.github import FakeGitHub, GithubFault
from remediator_sim.ports import free_ports
from remediator_sim.slack import CallFault as ChatFault
from remediator_sim.slack import FakeSlack
from tests.harness.canaries import Seen, asked, running, stored
from tests.harness.cluster import with_kinds
from tests.harness.tickets import delivery, fires
from tests.harness.waiting import until
from tests.remediator.test_cli import beside
from tests.remediator.tickets.memory_channel import START

pytestmark = pytest.mark.sampled("canaries")

WEBHOOK, URL, SERVICE = "canary-of-the-webhook-7c1e", "canary-of-the-url-93bd", "canary-of-a-service-51aa"
ROOMS = """
slack: {tokenFile: slack, url: "%s"}
rooms:
  gpu-team: {slack: C0123456789, severity: [Critical, Warning]}
  pager: {apprise: urls, severity: [Critical, Warning]}
"""
REPO = "org/ops"
STORED = "canary-of-the-bucket-0d4b"
STORE = "url: https://s3.example.com/bundles\naccessKey: canary\nsecretKey: %s\n"


def faults(token: str) -> tuple[GithubFault, ...]:
    """What GitHub, or a proxy that repeats what it was sent, does to one creation each."""
    repeated = f"you sent Authorization: token {token}"
    return (
        GithubFault(401, f"Bad credentials: {repeated}"),
        GithubFault(403, f"Resource not accessible: {repeated}"),
        GithubFault(403, f"{'x' * 295} {token} is cut where it is long"),
        GithubFault(404, repeated),
        GithubFault(410, repeated),
        GithubFault(422, repeated),
        GithubFault(500, repeated),
        GithubFault(502, text=f"<html>{repeated}</html>"),
        GithubFault(200, text=f"<html>{repeated}</html>"),
        GithubFault(drop=True),
        GithubFault(foreign=True),
    )


@pytest.mark.timeout(600)
async def test_a_controller_shows_no_secret_whatever_github_and_callers_do(tmp_path: Path) -> None:
    """Tickets whose creation fails in eleven ways, posts with wrong tokens, a token file of two lines, our keys; rooms
    whose chat is away, or stands behind a proxy that repeats what it was sent; the key of the store of bundles.
    """
    seen, server = Seen(), EmbeddedServer(like=with_kinds())
    (tmp_path / "routes.yaml").write_text(f"default: {{repository: {REPO}}}\n")
    (tmp_path / "webhook").write_text(WEBHOOK)
    (port, posts) = free_ports(2)
    hook, metrics = f"https://127.0.0.1:{posts}/webhooks/alertmanager", f"http://127.0.0.1:{port}/metrics"
    async with FakeGitHub([REPO]) as fake, server.serve() as endpoint, FakeSlack(["C0123456789"]) as slack:
        slack.fail("chat.postMessage", ChatFault(status=502, page=f"<html>you sent Bearer {slack.token}</html>"))
        (tmp_path / "slack").write_text(slack.token)
        (tmp_path / "urls").write_text(f"json://me:{SERVICE}@127.0.0.1:1/{SERVICE}")
        (tmp_path / "chat.yaml").write_text(ROOMS % slack.url)
        (tmp_path / "github").write_text(fake.token)
        ways = faults(fake.token)
        for fault in ways:
            fake.fail("POST", "/issues$", fault)
        files = [f"--routes={tmp_path}/routes.yaml", f"--github-token-file={tmp_path}/github"]
        (tmp_path / "store.yaml").write_text(STORE % STORED)
        files += [f"--chat={tmp_path}/chat.yaml", f"--bundle-store={tmp_path}/store.yaml"]
        files += [f"--webhook-token-file={tmp_path}/webhook", f"--kubeconfig={endpoint.kubeconfig}"]
        where = [
            f"--listen=127.0.0.1:{port}",
            f"--listen-webhook=127.0.0.1:{posts}",
            f"--github-url={fake.url}",
            "--github-spacing=0",
            "--issues-per-hour=0",
        ]
        async with running(seen, tmp_path / "log", *files, *where):
            alerts = delivery(*(fires(f"Alert{number}", node="") for number in range(len(ways) + 2)))
            await until(lambda: _is(200, asked(seen, "POST", hook, alerts, WEBHOOK)), 120)
            assert await asked(seen, "POST", hook, b"{}", WEBHOOK + "x") == 401
            assert await asked(seen, "POST", hook, WEBHOOK.encode(), WEBHOOK) == 400
            await until(lambda: fake.issues(REPO) and len(_tried(fake)) > len(ways), 40)
            (tmp_path / "github").write_text(f"{fake.token}\n{fake.token}")
            await asked(seen, "POST", hook, delivery(fires("gpu-late", node="")), WEBHOOK)
            await until(lambda: "holds more than one word" in (tmp_path / "log").read_text(), 40)
            await until(lambda: (tmp_path / "log").read_text().count("room not told") >= 2, 40)
            assert await asked(seen, "GET", metrics) == 200
        told = await beside("explain", "gpu-1", "--kubeconfig", endpoint.kubeconfig)
        seen.add("explain", *told[1:])
        seen.add("objects and events", stored(server))
        seen.add("issues", *fake.issues(REPO), *(one.body for one in fake.requests))
        served = await Client(server.transport()).get(SECRET, SERVING_SECRET, namespace="default")
        keys = [served.data[name].decode().splitlines()[1] for name in ("ca.key", "tls.key")]
        secrets = (fake.token, fake.token[:4], WEBHOOK, WEBHOOK[:-4], slack.token, SERVICE, STORED, *keys)
        assert [where for where in seen.shows(["Alert1"]) if where.startswith("objects")], "and what is stored"
        assert seen.shows(["could not create an issue in org/ops", "gpu-late"]), "what was said was looked at"
        assert seen.shows(secrets) == []


def _tried(fake: FakeGitHub) -> list[object]:
    return [one for one in fake.requests if one.method == "POST" and one.path.endswith("/issues")]


async def _is(status: int, request: object) -> bool:
    return await request == status  # type: ignore[misc]


async def test_a_url_with_a_credential_is_refused_without_a_word_of_it(tmp_path: Path) -> None:
    seen = Seen()
    told = await beside("run", f"--github-url=https://me:{URL}@github.example", f"--kubeconfig={tmp_path}/none")
    seen.add("refusal", *told)
    assert told[0] == 2
    assert seen.shows(["--github-url is not https://HOST"])
    assert seen.shows([URL]) == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (STORE.replace("https", "ftp") % STORED, "url is not https://HOST"),
        (STORE % f"[{STORED}]", "secretKey"),
        (STORE % f"{STORED} {STORED}", "secretKey is not one word"),
        (STORE % f"'{STORED}", "it is no YAML"),
    ],
)
async def test_a_bad_store_of_bundles_is_refused_without_a_word_of_its_key(
    tmp_path: Path, text: str, names: str
) -> None:
    seen = Seen()
    (tmp_path / "store.yaml").write_text(text)
    async with EmbeddedServer(like=with_kinds()).serve() as endpoint:
        store = f"--bundle-store={tmp_path}/store.yaml"
        told = await asyncio.wait_for(beside("run", store, f"--kubeconfig={endpoint.kubeconfig}"), 40)
    seen.add("refusal", *told)
    assert told[0] != 0
    assert seen.shows([names])
    assert seen.shows([STORED]) == []


async def test_an_app_shows_neither_its_key_nor_its_tokens_nor_the_proof_of_who_it_is(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """No token to be had in four ways, a token refused in two, a key file that is none; a proxy repeats it all."""
    seen = Seen()
    async with FakeGitHub([REPO]) as fake:
        key = fake.app[2]
        (tmp_path / "key").write_text(key)
        hub = GitHub(fake.url, AppKeyFile("1", 100, tmp_path / "key"), SYSTEM, spacing=0.0)
        draft = Draft("gpu-1: lost", "text", Marker("mark", START))
        sent: list[str] = []
        serve = fake.serve

        def repeating(method, url, headers, raw):  # type: ignore[no-untyped-def]
            sent.append({name.lower(): value for name, value in headers.items()}["authorization"].partition(" ")[2])
            if len(sent) in (1, 2, 3, 5):
                status = {1: 401, 2: 500, 3: 404, 5: 403}[len(sent)]
                fake.fail(method, ".", GithubFault(status, f"you sent {sent[-1]}"))
            return serve(method, url, headers, raw)

        fake.serve = repeating  # type: ignore[method-assign]
        for _ in range(4):
            with pytest.raises(ChannelError) as caught:
                await hub.create(REPO, draft)
            seen.add("errors", caught.value, caught.value.message, repr(caught.value))
        (tmp_path / "key").write_text(key.replace("A", "B"))
        hub._credentials._forget()  # type: ignore[attr-defined]
        with pytest.raises(ChannelError) as caught:
            await hub.create(REPO, draft)
        seen.add("errors", caught.value.message)
        await hub.aclose()
    seen.add("output", *capfd.readouterr())
    assert len(set(sent)) >= 2, "a proof and a token were sent"
    assert seen.shows(["holds no private key", "[secret]"])
    assert seen.shows([*sent, *key.splitlines()[1:-1]]) == []
