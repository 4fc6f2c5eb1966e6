"""`remediator janitor` and `remediator keep`: options, refusals, exit codes."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest

from remediator.clock import Clock
from remediator.kube.wire.client import Client
from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.ports import free_ports
from tests.harness.cluster import with_kinds
from tests.harness.kinds import CONFIG_MAPS, NAMESPACES, PODS, SECRETS, Object
from tests.harness.waiting import until
from tests.remediator.janitor.place import owned_by
from tests.remediator.test_cli import COMMAND, beside, remediator

pytestmark = pytest.mark.sampled("command")

OLD, POD = "2020-01-01", {"spec": {"containers": [{"name": "m", "image": "x"}]}}


@pytest.fixture
async def cluster() -> AsyncIterator[tuple[Client, Path]]:
    server = EmbeddedServer(like=with_kinds())
    client = Client(server.transport())
    for name in ("default", "team"):
        if name == "team":
            await client.create(NAMESPACES, {"metadata": {"name": name}})
        meta = {"name": "old", "annotations": {"janitor/expires": OLD}}
        await client.create(PODS, {"metadata": meta, **POD}, namespace=name)
    async with server.serve() as endpoint:
        yield client, endpoint.kubeconfig


async def pods(client: Client) -> set[str]:
    listed: list[Object] = await client.list_all(PODS)
    return {one["metadata"]["namespace"] for one in listed}


async def test_once_reports_what_it_would_do_and_with_enforce_does_it(cluster: tuple[Client, Path]) -> None:
    client, kubeconfig = cluster
    code, out, _ = await beside("janitor", "--once", "--kubeconfig", kubeconfig)
    assert code == 0
    assert "would delete  pods/default/old  ExpiryTimeReached  janitor/expires: 2020-01-01; over since" in out
    assert await pods(client) == {"default", "team"}
    options = ("--include-resources", "pods", "--exclude-namespaces", "team, kube-system")
    code, out, _ = await beside("janitor", "--once", "--mode", "Enforce", "--kubeconfig", kubeconfig, *options)
    assert (code, out.count("deleted")) == (0, 2)
    assert await pods(client) == {"team"}


@pytest.mark.parametrize("days", [-20_000, 365])
async def test_where_the_clock_of_the_machine_is_wrong_nothing_is_deleted_and_the_report_says_so(
    cluster: tuple[Client, Path], days: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, kubeconfig = cluster
    clock = Clock(lambda: datetime.now(UTC) + timedelta(days=days), time.monotonic)
    monkeypatch.setattr("remediator.cli.janitor.SYSTEM", clock)
    says = " s from ours, so nobody can tell whose time is over: set the clock of this machine"
    code, out, said = await beside("janitor", "--once", "--mode", "Enforce", "--kubeconfig", kubeconfig)
    assert (code, out, says in said) == (2, "", True)
    assert await pods(client) == {"default", "team"}
    code, out, _ = await beside("janitor", "--once", "--kubeconfig", kubeconfig)
    assert (code, says in out) == (1, True)
    assert f"problem: the API server's clock is {'-' if days > 0 else '+'}" in out


async def test_a_rule_that_cannot_be_used_is_named_and_makes_the_exit_code_1(
    cluster: tuple[Client, Path], tmp_path: Path
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules: [{id: broken, resources: [pods], jmespath: 'a == ', ttl: 1h}]")
    code, out, _ = await beside("janitor", "--once", "--rules-file", rules, "--kubeconfig", cluster[1])
    assert code == 1
    assert "problem: rule broken: column 6: " in out
    assert "would delete  pods/team/old" in out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--listen", "nowhere"), "--listen is 'nowhere'; write host:port"),
        (("--resource-context-hook", "no.module"), "--resource-context-hook: 'no.module' names no function"),
        (("--rules-file", "RULES"), "rules[0]: jmespath, ttl missing; write rules: as a list"),
        (("--mode", "Perhaps"), "'Perhaps' is not one of 'DryRun', 'Enforce'"),
        (("--prometheus-url", "prometheus:9090"), "--prometheus-url is not https://HOST"),
        (("--alertmanager-url", "alertmanager:9093"), "--alertmanager-url is not at most 16 times https://HOST"),
        (("--alertmanager-watchdog", "Watchdog"), "--alertmanager-url is needed for"),
        (("--interval", "0"), "Input should be greater than or equal to 1"),
    ],
)
def test_a_setting_that_cannot_be_meant_exits_2_and_says_what_to_write(
    options: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    (tmp_path / "rules.yaml").write_text("rules: [{id: a, resources: [pods]}]")
    given = [str(tmp_path / "rules.yaml") if word == "RULES" else word for word in options]
    done = remediator("janitor", "--once", *given)
    assert done.exit_code == 2
    assert says in done.stderr


@pytest.mark.parametrize("what", ["old", "pods/old", "pod/old"])
async def test_keep_says_until_when_an_object_is_kept(cluster: tuple[Client, Path], what: str) -> None:
    _, kubeconfig = cluster
    code, out, _ = await beside("keep", what, "8h", "-n", "team", "--kubeconfig", kubeconfig)
    assert code == 0
    assert out.startswith("pods/old in team is kept: remediator.dev/keep-until=20")
    _, report, _ = await beside("janitor", "--once", "--kubeconfig", kubeconfig)
    assert "held          pods/team/old     KeptByUser" in report


async def test_keep_keeps_what_owns_an_object_too(cluster: tuple[Client, Path]) -> None:
    client, kubeconfig = cluster
    job = await client.create(CONFIG_MAPS, {"metadata": {"name": "job"}}, namespace="team")
    meta = {"name": "pod", "ownerReferences": [owned_by(job)]}
    await client.create(PODS, {"metadata": meta, **POD}, namespace="team")
    _, out, _ = await beside("keep", "pod", "forever", "-n", "team", "--kubeconfig", kubeconfig)
    assert out.splitlines() == [
        "pods/pod in team is kept: remediator.dev/keep-until=forever",
        "configmaps/job in team is kept, too, since pods/pod would go with it: remediator.dev/keep-until=forever",
    ]
    assert (await client.get(CONFIG_MAPS, "job", namespace="team"))["metadata"]["annotations"]


async def test_keep_knows_every_kind_and_for_ever(cluster: tuple[Client, Path]) -> None:
    code, out, _ = await beside("keep", "namespaces/team", "forever", "--kubeconfig", cluster[1])
    assert (code, out) == (0, "namespaces/team is kept: remediator.dev/keep-until=forever\n")
    assert "NamespaceKept" in (await beside("janitor", "--once", "--kubeconfig", cluster[1]))[1]


async def test_keep_warns_of_a_kind_that_the_janitor_does_not_look_at(cluster: tuple[Client, Path]) -> None:
    client, kubeconfig = cluster
    await client.create(SECRETS, {"metadata": {"name": "key"}}, namespace="team")
    code, out, err = await beside("keep", "secrets/key", "forever", "-n", "team", "--kubeconfig", kubeconfig)
    assert (code, out) == (0, "secrets/key in team is kept: remediator.dev/keep-until=forever\n")
    unseen = "the janitor of deploy/janitor does not look at secrets"
    assert err == f"warning: {unseen}: secrets/key goes with namespace team; keep that, too\n"
    for looked_at in ("pods/old", "namespaces/team"):
        assert (await beside("keep", looked_at, "1h", "-n", "team", "--kubeconfig", kubeconfig))[2] == ""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("old", "90"), "'90' is no length of time: write a number with s, m, h, d or w"),
        (("pods/gone", "8h"), 'pods "gone" not found'),
        (("gadgets/x", "8h"), "the cluster has no kind gadgets; write its plural"),
    ],
)
async def test_keep_refuses_what_it_cannot_keep(
    cluster: tuple[Client, Path], words: tuple[str, str], says: str
) -> None:
    code, _, err = await beside("keep", *words, "--kubeconfig", cluster[1])
    assert code == 2
    assert says in err


async def test_it_runs_until_it_is_told_to_end_and_shows_its_last_report(cluster: tuple[Client, Path]) -> None:
    (port,) = free_ports(1)
    words = ("janitor", "--kubeconfig", str(cluster[1]), "--listen", f"127.0.0.1:{port}", "--namespace", "team")
    process = await asyncio.create_subprocess_exec(*COMMAND, *words, stderr=asyncio.subprocess.DEVNULL)
    try:
        async with aiohttp.ClientSession() as session:

            async def report() -> str:
                try:
                    async with session.get(f"http://127.0.0.1:{port}/report") as answer:
                        return await answer.text() if answer.status == 200 else ""
                except aiohttp.ClientConnectionError:
                    return ""

            assert "would delete  pods/team/old" in await until(report, 60)
        process.terminate()
        async with asyncio.timeout(30):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
