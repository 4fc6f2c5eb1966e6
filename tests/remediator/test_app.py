"""One replica as a whole: each kind is watched once, one lease lets it write, and tickets that fail stop no repair."""

import asyncio
import base64
import hashlib
import hmac
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from remediator import live_file
from remediator.app import Replica
from remediator.clock import SYSTEM
from remediator.core import names
from remediator.core.census import Census
from remediator.core.node import Node
from remediator.core.ticket import About, Subject
from remediator.kube import api
from remediator.kube.api.builtin import LEASE, SECRET, Lease, LeaseSpec
from remediator.kube.api.webhook_configuration import WEBHOOKS
from remediator.kube.informers import Informers
from remediator.kube.runtime.leader import Leader
from remediator.kube.wire import errors
from remediator.metrics import REGISTRY
from remediator.settings import Settings
from remediator.tickets.channels.routes import Route, Routes
from remediator.tickets.reconcile.run import Tickets
from remediator.web.endpoints import KUBE_SCHEDULER
from tests.builders import a_budget, a_node
from tests.harness import yaml_files
from tests.harness.benches import ROOT
from tests.harness.controller import ControllerHarness, controller_harness, running, until
from tests.harness.endpoints import showing
from tests.harness.kinds import NAMESPACES, Object, plain
from tests.harness.replica import at_work
from tests.harness.scheduler import names_body
from tests.remediator.kube.manifests.examples import manifest
from tests.remediator.tickets.memory_channel import MemoryChannel
from tests.remediator.web.test_evictions import asks

pytestmark = pytest.mark.sampled("app")

ROUTES = "default: {repository: org/default}"
NODES, PODS, OURS = "/api/v1/nodes", "/api/v1/pods", "/apis/remediator.dev/v1alpha1"
WATCHED = Counter(
    {
        (NODES, ""): 1,
        (PODS, "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"): 1,
        (PODS, "spec.nodeName!=,status.phase!=Running,status.phase!=Succeeded"): 1,
        ("/api/v1/namespaces/remediator-operations/pods", ""): 1,
        ("/api/v1/namespaces/remediator-system/pods", names.CONTROLLER_LABELS): 1,
        ("/api/v1/namespaces/kube-system/pods", names.CONTROL_PLANE_LABELS): 1,
        ("/api/v1/namespaces", "metadata.name=remediator-system"): 1,
        **{
            (f"{OURS}/{plural}", ""): 1
            for plural in (
                "remediationpolicies",
                "nodeoperationtemplates",
                "nodedisruptionbudgets",
                "noderemediations",
                "nodeoperations",
                "nodeinventories",
                "tickets",
            )
        },
    }
)


@pytest.fixture
async def harness() -> AsyncIterator[ControllerHarness]:
    async with controller_harness() as made:
        yield made


def replica(harness: ControllerHarness, folder: Path, routes: str = ROUTES) -> Replica:
    """A replica with tickets that listens on a port of its own."""
    (folder / "routes.yaml").write_text(routes)
    (folder / "token").write_text("token")
    tickets: dict[str, Any] = {"routes": folder / "routes.yaml", "github_token_file": folder / "token"}
    return Replica(harness.client, Settings(identity="one", listen="127.0.0.1:0", **tickets), SYSTEM)


def watches(harness: ControllerHarness, *, with_a_list: bool = False) -> Counter[tuple[str, str]]:
    """Count from now on which watches are opened, by path and selector; `with_a_list`: those that begin with one."""
    opened: Counter[tuple[str, str]] = Counter()
    stream = harness.client.transport.stream

    def counting(path: str, *, query: Any = (), **more: Any) -> Any:
        said = dict(query)
        if not with_a_list or "sendInitialEvents" in said:
            opened[path, said.get("fieldSelector", "") or said.get("labelSelector", "")] += 1
        return stream(path, query=query, **more)

    harness.client.transport.stream = counting  # type: ignore[method-assign]
    return opened


def gets(harness: ControllerHarness, end: str) -> Counter[str]:
    """Count from now on how often an object was read and the answer is here."""
    read: Counter[str] = Counter()
    request = harness.client.transport.request

    async def counting(method: str, path: str, **more: Any) -> Any:
        answer = await request(method, path, **more)
        read[end] += method == "GET" and path.endswith(end)
        return answer

    harness.client.transport.request = counting  # type: ignore[method-assign]
    return read


async def test_a_replica_watches_each_kind_once_for_all_of_its_parts_and_writes_under_one_lease(
    harness: ControllerHarness, tmp_path: Path
) -> None:
    opened, made = watches(harness), replica(harness, tmp_path)
    async with at_work(made.run()):
        await until(made.ready)
        await until(lambda: made.leader.is_leader)
        leases = [lease.metadata["name"] for lease in await harness.client.list_all(LEASE)]
    assert opened == WATCHED
    assert leases == ["remediator"]


async def test_a_replica_that_waits_for_the_lease_reads_everything_again_once_the_server_is_restored_from_a_backup(
    harness: ControllerHarness, tmp_path: Path
) -> None:
    """Versions that go on from the backup's soon reach those that its watches had: they would never tell of it."""
    lease = Lease.named("remediator", "remediator-system", LeaseSpec("other", lease_duration_seconds=60))
    lease = await harness.client.create(LEASE, lease, namespace="remediator-system")
    backup = harness.server.cluster.store.snapshot()
    lease.spec.lease_transitions += 1
    await harness.client.replace(LEASE, "remediator", lease, namespace="remediator-system")
    opened, looked = watches(harness, with_a_list=True), gets(harness, "/leases/remediator")
    made = replica(harness, tmp_path)
    async with at_work(made.run()):
        await until(lambda: made.ready() and looked["/leases/remediator"] > 0)
        assert opened == WATCHED
        harness.server.cluster.store.restore(backup)
        await until(lambda: opened == WATCHED + WATCHED)
        assert not made.leader.is_leader


@pytest.mark.parametrize(
    ("routes", "queues"),
    [
        ("default: {repository: org/ops}", set()),
        ("default: {repository: org/ops, commands: true}", {"commands"}),
        ("default: {repository: org/ops}\ndigest: default", {"digest"}),
        ("default: {repository: org/ops, board: {project: org/7}}", {"board"}),
        ("default: {repository: org/ops}\nteams: {ml: {repositories: [org/ml], severity: [Info]}}", {"ticket routes"}),
    ],
)
async def test_comments_digests_boards_and_routes_of_teams_are_served_only_where_the_routes_say_so(
    harness: ControllerHarness, tmp_path: Path, routes: str, queues: set[str]
) -> None:
    made = replica(harness, tmp_path, routes)
    assert {queue.name for queue in made.leader._queues} & {"commands", "digest", "board", "ticket routes"} == queues
    assert ("ticket routes" in made.informers.ages()) == (queues == {"ticket routes"})


async def test_a_store_of_bundles_is_read_at_the_start_and_what_signs_is_named_where_it_is_not_installed(
    harness: ControllerHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "store").write_text("{url: https://s3.example.com/bundles, accessKey: A, secretKey: S}")
    settings = Settings(bundle_store=tmp_path / "store")
    made = Replica(harness.client, settings, SYSTEM)
    assert made.controller.cache.bundle_store is not None
    assert Replica(harness.client, Settings(), SYSTEM).controller.cache.bundle_store is None
    monkeypatch.setitem(sys.modules, "minio.signer", None)
    with pytest.raises(ValueError, match=r"--bundle-store needs minio.signer: pip install 'remediator\[store\]'"):
        Replica(harness.client, settings, SYSTEM)


@pytest.mark.parametrize(
    ("rooms", "clients"),
    [
        ("{slack: {tokenFile: token}, rooms: {team: {slack: C01}}}", "slack_sdk"),
        ("rooms: {pager: {apprise: urls}}", "apprise"),
    ],
)
async def test_rooms_are_served_where_a_file_names_some_and_a_client_that_is_not_installed_is_named(
    harness: ControllerHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rooms: str, clients: str
) -> None:
    (tmp_path / "routes.yaml").write_text(ROUTES)
    (tmp_path / "token").write_text("token")
    (tmp_path / "urls").write_text("json://localhost")
    (tmp_path / "chat.yaml").write_text(rooms)
    tickets: dict[str, Any] = {"routes": tmp_path / "routes.yaml", "github_token_file": tmp_path / "token"}
    settings = Settings(chat=tmp_path / "chat.yaml", **tickets)
    made = Replica(harness.client, settings, SYSTEM)
    assert made.rooms is not None
    assert "chat" in {queue.name for queue in made.leader._queues}
    await made.rooms.aclose()
    monkeypatch.setitem(sys.modules, clients, None)
    for module in ("slack", "slack_errors", "apprised"):
        monkeypatch.delitem(sys.modules, f"remediator.tickets.channels.{module}", raising=False)
    with pytest.raises(ValueError, match=f"--chat needs {clients}: pip install 'remediator\\[chat\\]'"):
        Replica(harness.client, settings, SYSTEM)


def test_a_replica_without_tickets_and_prometheus_imports_none_of_their_clients() -> None:
    """They take 12 MiB, a tenth of what a controller of 5,000 nodes takes; apprise takes 23."""
    clients = {"github", "requests", "urllib3", "prometheus_api_client", "slack_sdk", "apprise"}
    asked = f"import remediator.cli.every, remediator.app, sys; print(*sorted({clients!r} & set(sys.modules)))"
    made = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert made.stdout.split() == []


async def test_a_replica_with_endpoints_makes_its_certificate_and_answers_a_scheduler_that_trusts_it(
    harness: ControllerHarness,
) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "remediator-system"}}
    with suppress(errors.AlreadyExists):
        await harness.client.create(NAMESPACES, space)
    here = "127.0.0.1:0"
    made = Replica(harness.client, Settings(identity="one", listen=here, listen_extender=here), SYSTEM)
    async with at_work(made.run()):
        await until(made.ready)
        secret = await harness.client.get(SECRET, names.SERVING_SECRET, namespace="remediator-system")
        url = f"https://127.0.0.1:{made.endpoints.ports['extender']}/scheduler/filter"
        shown = showing(secret.data, KUBE_SCHEDULER)
        async with aiohttp.ClientSession() as session, session.post(url, data=names_body(["a"]), ssl=shown) as reply:
            assert (await reply.json())["NodeNames"] == ["a"]
        async with aiohttp.ClientSession() as session:
            with pytest.raises((aiohttp.ClientError, OSError)):
                await session.post(url, data=b"", ssl=showing(secret.data))


async def test_a_replica_that_is_asked_about_evictions_answers_whoever_trusts_what_its_leader_has_written(
    harness: ControllerHarness,
) -> None:
    kind, shipped = plain(WEBHOOKS), yaml_files.read_all(ROOT / "deploy/evictions/webhook.yaml")
    await harness.client.create(kind, next(each for each in shipped if each["kind"] == kind.name))
    here = "127.0.0.1:0"
    made = Replica(harness.client, Settings(identity="one", listen=here, listen_evictions=here), SYSTEM)

    async def trusted() -> str:
        (webhook,) = (await harness.client.get(kind, names.EVICTIONS))["webhooks"]
        return str(webhook["clientConfig"].get("caBundle", ""))

    pod = {"metadata": {"name": "a", "namespace": "team", "uid": "u"}}
    async with at_work(made.run()):
        authority = base64.b64decode(await until(trusted)).decode()
        url = f"https://127.0.0.1:{made.endpoints.ports['evictions']}/evictions"
        known = ssl.create_default_context(cadata=authority)
        async with aiohttp.ClientSession() as session, session.post(url, json=asks(pod), ssl=known) as reply:
            response = (await reply.json())["response"]
    assert (response["allowed"], response["status"]["code"]) == (False, 503), "nobody knows such a drain"


@pytest.mark.parametrize("given", [{"no_tls": True}, {"tls_cert_file": Path("c"), "tls_key_file": Path("k")}, {}])
def test_nobody_writes_an_authority_that_is_not_ours(harness: ControllerHarness, given: dict[str, Any]) -> None:
    here = {} if not given else {"listen_evictions": "127.0.0.1:0"}
    made = Replica(harness.client, Settings(identity="one", listen="127.0.0.1:0", **here, **given), SYSTEM)
    assert "eviction-webhook" not in {queue.name for queue in made.leader._queues}


async def test_a_replica_tells_on_each_ticket_route_whether_it_is_used_and_watches_them_once(
    harness: ControllerHarness, tmp_path: Path
) -> None:
    kind, match = plain(api.TICKET_ROUTE), {"severity": ["Critical"]}
    for space, repository in (("ml", "org/ml"), ("hw", "org/other")):
        await harness.client.create(NAMESPACES, {"metadata": {"name": space}})
        spec = {"repository": repository, "match": match}
        await harness.client.create(kind, manifest("TicketRoute", "all", **spec), namespace=space)
    routes = "default: {repository: org/ops}\nteams: {ml: {repositories: [org/ml], severity: [Critical]}}"
    opened, made = watches(harness), replica(harness, tmp_path, routes)

    async def told(space: str) -> str | None:
        found = await harness.client.get(kind, "all", namespace=space)
        return next((each["reason"] for each in found.get("status", {}).get("conditions", ())), None)

    async with at_work(made.run()):
        assert await until(lambda: told("ml")) == "Accepted"
        assert await until(lambda: told("hw")) == "NamespaceNotAllowed"
        assert made.functions["tickets"]()
    assert opened == WATCHED + Counter({(f"{OURS}/ticketroutes", ""): 1})


async def test_what_the_routes_file_asks_for_later_begins_without_a_restart(
    harness: ControllerHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remediator.live_file.LOOK_EVERY", timedelta())
    await harness.client.create(NAMESPACES, {"metadata": {"name": "ml"}})
    spec = {"repository": "org/ml", "match": {"severity": ["Critical"]}}
    await harness.client.create(plain(api.TICKET_ROUTE), manifest("TicketRoute", "all", **spec), namespace="ml")
    opened, made = watches(harness), replica(harness, tmp_path)

    def begun() -> set[str]:
        return {queue.name for queue in made.leader._queues if queue.leading} & {"commands", "digest", "board"}

    async def told() -> bool:
        assert made.tickets is not None
        made.tickets.measure()  # as each scrape does
        found = await harness.client.get(plain(api.TICKET_ROUTE), "all", namespace="ml")
        return bool(found.get("status")) and begun() == {"commands", "digest", "board"}

    async with at_work(made.run()):
        await until(made.ready)
        await until(lambda: made.leader.is_leader)
        assert (begun(), opened) == (set(), WATCHED)
        text = "default: {repository: org/ops, commands: true, board: {project: org/7}}\ndigest: default"
        teams = "\nteams: {ml: {repositories: [org/ml], severity: [Critical]}}"
        (tmp_path / "routes.yaml").write_text(text + teams)
        await until(told)
        assert made.ready()
    assert opened == WATCHED + Counter({(f"{OURS}/ticketroutes", ""): 1})


TEAMS = f"{ROUTES}\nteams: {{ml: {{repositories: [org/ml], labels: {{team: ml}}}}}}"


async def with_a_team_route(harness: ControllerHarness, folder: Path) -> tuple[Replica, MemoryChannel, Object]:
    """A replica without routes of teams, whose TicketRoutes are read at the fourth try; a Ticket that a route takes."""
    await harness.client.create(NAMESPACES, {"metadata": {"name": "ml"}})
    spec = {"repository": "org/ml", "match": {"labels": {"team": ["ml"]}}}
    await harness.client.create(plain(api.TICKET_ROUTE), manifest("TicketRoute", "all", **spec), namespace="ml")
    alert = {"fingerprint": "f", "name": "Hot", "startsAt": "2026-01-01T00:00:00Z", "labels": {"team": "ml"}}
    subject = Subject(About.ALERT, alert="Hot")
    ticket = manifest("Ticket", subject.name, subject={"kind": "Alert", "alertName": "Hot"}, alerts=[alert])
    channel = MemoryChannel()
    (folder / "routes.yaml").write_text(ROUTES)
    (folder / "token").write_text("token")
    given: dict[str, Any] = {"routes": folder / "routes.yaml", "github_token_file": folder / "token"}
    asked = Settings(identity="one", listen="127.0.0.1:0", issues_per_hour=0, **given)
    harness.server.faults.refuse(503, times=3, when=lambda asked: asked.path.endswith("/ticketroutes"))
    return Replica(harness.client, asked, SYSTEM, github=lambda *args, **named: channel), channel, ticket


async def test_the_time_in_which_issues_are_opened_again_is_that_of_the_settings(
    harness: ControllerHarness, tmp_path: Path
) -> None:
    (tmp_path / "routes.yaml").write_text(ROUTES)
    (tmp_path / "token").write_text("token")
    given: dict[str, Any] = {"routes": tmp_path / "routes.yaml", "github_token_file": tmp_path / "token"}
    for options, within in (({}, timedelta(hours=24)), ({"reopen_within": "1h30m"}, timedelta(minutes=90))):
        made = Replica(
            harness.client, Settings(**given, **options), SYSTEM, github=lambda *args, **named: MemoryChannel()
        )
        assert made.tickets is not None
        assert made.tickets._reconciler._times.reopen_within == within


async def test_whoever_begins_to_lead_reads_the_routes_and_what_teams_say_before_an_issue_is_filed(
    harness: ControllerHarness, tmp_path: Path
) -> None:
    made, channel, ticket = await with_a_team_route(harness, tmp_path)
    await harness.client.create(plain(api.TICKET), ticket)
    (tmp_path / "routes.yaml").write_text(TEAMS)  # another replica has led since it began, and the file has changed
    async with at_work(made.run()):
        await until(lambda: bool(channel.issues))
    assert [issue.repository for issue in channel.issues] == ["org/ml"]


async def test_what_teams_say_counts_before_an_issue_is_filed_also_where_the_file_names_them_while_a_replica_leads(
    harness: ControllerHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_file, "LOOK_EVERY", timedelta(0))
    made, channel, ticket = await with_a_team_route(harness, tmp_path)
    async with at_work(made.run()):
        await until(lambda: made.ready() and made.leader.is_leader)
        (tmp_path / "routes.yaml").write_text(TEAMS)
        assert made.tickets is not None
        made.tickets.measure()
        assert made.tickets.ready(), "posts are taken all the same"
        await harness.client.create(plain(api.TICKET), ticket)
        await until(lambda: bool(channel.issues))
    assert [issue.repository for issue in channel.issues] == ["org/ml"]


async def test_github_posts_over_tls_without_a_certificate_of_its_own_and_is_known_by_its_signature(
    harness: ControllerHarness, tmp_path: Path
) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "remediator-system"}}
    with suppress(errors.AlreadyExists):
        await harness.client.create(NAMESPACES, space)
    for name, text in (("routes.yaml", ROUTES), ("token", "token"), ("secret", "shared\n")):
        (tmp_path / name).write_text(text)
    given: dict[str, Any] = {"routes": tmp_path / "routes.yaml", "github_token_file": tmp_path / "token"}
    given |= {"listen_github": "127.0.0.1:0", "github_webhook_secret_file": tmp_path / "secret"}
    made = Replica(harness.client, Settings(identity="one", listen="127.0.0.1:0", **given), SYSTEM)
    async with at_work(made.run()):
        await until(lambda: made.endpoints.ready() and "github" in made.endpoints.ports)
        secret = await harness.client.get(SECRET, names.SERVING_SECRET, namespace="remediator-system")
        url = f"https://127.0.0.1:{made.endpoints.ports['github']}/webhooks/github"
        signed = "sha256=" + hmac.new(b"shared", b"{}", hashlib.sha256).hexdigest()
        async with aiohttp.ClientSession() as session:
            for signature, status in ((signed, 200), (signed[:-1], 401)):
                headers = {"X-GitHub-Event": "ping", "X-Hub-Signature-256": signature}
                async with session.post(url, data=b"{}", headers=headers, ssl=showing(secret.data)) as reply:
                    assert reply.status == status


async def test_a_replica_whose_tickets_cannot_be_read_answers_schedulers_and_repairs(
    harness: ControllerHarness, tmp_path: Path
) -> None:
    """The account may not list Tickets: that takes neither the extender nor the controller out of service."""
    harness.server.faults.refuse(403, when=lambda asked: asked.path == f"{OURS}/tickets", times=10_000)
    await harness.policy()
    await harness.node("gpu-1", "True")
    made = replica(harness, tmp_path)
    async with at_work(made.run()):
        await until(lambda: made.functions["extender"]() and made.functions["controller"]())
        await until(lambda: harness.ended("gpu-1", "Recovered"))
        assert not made.functions["tickets"]()
        assert not made.ready()


async def test_a_scrape_after_a_new_budget_counts_1000_nodes_in_slices_of_200_also_where_another_replica_leads(
    harness: ControllerHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, put = replica(harness, tmp_path), Census.put
    counted, turns = Counter[int](), Counter[str]()
    cache = made.controller.cache
    for number in range(1000):
        cache.nodes._reflector._keep(f"n{number}", a_node(f"n{number}"))
    cache.nodes_by.members()
    cache.budgets._reflector._keep("new", a_budget("new", 1))

    def counting(census: Census, name: str, node: Node | None) -> None:
        counted[turns["of the loop"]] += 1
        put(census, name, node)

    async def turning() -> None:
        while True:
            turns["of the loop"] += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(Census, "put", counting)
    async with at_work(turning()):
        await made._measure()
    assert (counted.total(), max(counted.values())) == (1000, 200)
    assert REGISTRY.get_sample_value("remediator_budget_nodes", {"budget": "new", "count": "total"}) == 1000


class Failing:
    """A channel that fails in a way that nobody foresaw."""

    def __getattr__(self, verb: str) -> Any:
        raise ValueError(f"a bug in {verb}")


@pytest.mark.parametrize("all_of_it", [False, True], ids=["each pass", "the whole part"])
async def test_tickets_that_fail_are_tried_again_and_the_leader_goes_on_repairing(
    harness: ControllerHarness, all_of_it: bool
) -> None:
    made: list[Leader] = []

    def broken(informers: Informers, leader: Leader) -> Tickets:
        tickets = Tickets(harness.client, Failing(), Routes(Route("org/default")), informers, leader, SYSTEM)  # type: ignore[arg-type]
        if all_of_it:
            tickets._queue._everything = lambda: [][0]
        made.append(leader)
        return tickets

    await harness.policy(ticket={"when": "Always"})
    await harness.node("gpu-1", "True")
    with capture_logs() as logs:
        async with running(harness, beside=broken):
            await until(lambda: harness.ended("gpu-1", "Recovered"))
            assert made[0].is_leader
    failed = "work of the leader failed; it begins anew" if all_of_it else "pass failed"
    assert failed in [entry["event"] for entry in logs]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, "--github-token-file is needed beside --routes"),
        ({"github_app_id": "1"}, "--github-app-key-file are needed together"),
        ({"github_app_id": "1", "github_app_installation_id": 2}, "--github-app-key-file are needed together"),
        (
            {"github_app_id": "1", "github_app_installation_id": 2, "github_app_key_file": Path("key")}
            | {"github_token_file": Path("token")},
            "--github-token-file not beside them",
        ),
    ],
)
async def test_credentials_that_do_not_fit_together_are_refused_by_their_options(
    harness: ControllerHarness, tmp_path: Path, given: dict[str, Any], wanted: str
) -> None:
    (tmp_path / "routes.yaml").write_text(ROUTES)
    with pytest.raises(ValueError, match=wanted):
        Replica(harness.client, Settings(routes=tmp_path / "routes.yaml", **given), SYSTEM)
