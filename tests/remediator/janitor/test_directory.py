"""The directory file, and the notices that owners have as metrics, from which Alertmanager reaches them."""

from pathlib import Path

import pytest

from remediator.clock import Clock
from remediator.core.idle_policy import JanitorMode
from remediator.janitor.directory import Contact, Directory, load, read
from remediator.janitor.idle.sources import Sources
from remediator.janitor.metrics import NOTICES, OWNERS_OUTDATED
from remediator.janitor.run import Janitor
from remediator.janitor.settings import JanitorSettings
from remediator.live_file import LOOK_EVERY, LiveFile, Unchanging
from remediator.metrics import REGISTRY
from tests.harness.kinds import PODS
from tests.remediator.janitor.idle_place import HOUR, Cluster
from tests.remediator.janitor.place import NOW
from tests.remediator.test_cli import remediator

FILE = """
owners:
  alice: {team: ml, github: alice-k, mail: alice@example.org, chat: U024BE7LH}
namespaces:
  team: {team: ops}
"""


def test_an_owner_is_reached_as_the_file_says_or_else_as_his_namespace_is() -> None:
    directory = read(FILE)
    assert directory.contact("alice", "team") == Contact(
        team="ml", github="alice-k", mail="alice@example.org", chat="U024BE7LH"
    )
    assert directory.contact("bob", "team") == directory.contact("", "team") == Contact(team="ops")
    assert directory.contact("bob", "other") == Contact()
    assert read("") == Directory()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("owners: {alice: {mail: alice}}", "$.owners[...].mail"),
        ("owners: {alice: {github: a b}}", "$.owners[...].github"),
        ("owners: {alice: {phone: 1}}", "unknown field `phone`"),
        ("people: {}", "unknown field `people`"),
        ("owners: [alice]", "$.owners"),
        ("{", "is no YAML"),
    ],
)
def test_what_is_wrong_with_the_file_is_named(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="write owners: and namespaces:") as wrong:
        read(text)
    assert says in str(wrong.value)
    file = tmp_path / "owners.yaml"
    file.write_text(text)
    done = remediator("janitor", "--once", "--owners-file", str(file))
    assert done.exit_code == 2
    assert done.stderr.startswith(f"remediator: --owners-file: {file}: ")


async def test_a_notice_is_a_metric_with_whom_it_is_for_until_it_is_taken_back() -> None:
    at = Cluster()
    await at.policy()
    await at.gpus("p")
    other = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "bert", "uid": "7"}}
    await at.gpus("bert-0", owner=other)
    moments = [NOW]
    settings = JanitorSettings(JanitorMode.ENFORCE, directory=Unchanging(read(FILE)))
    clock = Clock(lambda: moments[-1], lambda: moments[-1].timestamp())
    janitor = Janitor(at.client, settings, clock, sources=Sources(at.asked))

    def until(name: str) -> float | None:
        who = {"team": "ml", "github": "alice-k", "mail": "alice@example.org", "chat": "U024BE7LH"}
        what = {"policy": "gpus", "finds": "IdleGPUs", "object": f"pods/team/{name}", "namespace": "team"}
        metric = "remediator_janitor_notice_until_timestamp_seconds"
        return REGISTRY.get_sample_value(metric, {**what, "owner": "alice", **who})

    for hours in (0, 1):
        moments.append(NOW + hours * HOUR)
        await janitor.once()
        assert (until("p"), until("bert-0")) == ((NOW + 4 * HOUR).timestamp(), 0)
    at.asked.pods["p"] = (50, 2, 120)
    moments.append(NOW + 2 * HOUR)
    await janitor.once()
    assert (until("p"), until("bert-0")) == (None, 0)
    assert await at.names(PODS, "team") == {"p", "bert-0"}


async def test_what_only_would_be_told_is_no_notice() -> None:
    at = Cluster()
    await at.policy(mode="DryRun")
    await at.gpus("p")
    report = await at.idle()
    assert (report.notices, len(report.lines)) == ([], 1)


async def test_the_file_is_read_again_when_it_changes_and_kept_while_it_has_a_mistake(tmp_path: Path) -> None:
    at, file, moments = Cluster(), tmp_path / "owners.yaml", [NOW]
    await at.policy()
    await at.gpus("p")
    file.write_text("owners: {alice: {team: ml}}")
    live = LiveFile(file, load, "owners", OWNERS_OUTDATED)
    clock = Clock(lambda: moments[-1], lambda: moments[-1].timestamp())
    settings = JanitorSettings(JanitorMode.ENFORCE, directory=live)
    janitor = Janitor(at.client, settings, clock, sources=Sources(at.asked))

    async def teams(text: str) -> tuple[list[str], list[str]]:
        file.write_text(text)
        moments.append(moments[-1] + LOOK_EVERY)
        problems = (await janitor.once()).problems
        return [sample.labels["team"] for metric in NOTICES.collect() for sample in metric.samples], problems

    assert await teams("owners: {alice: {team: gpu}}") == (["gpu"], [])
    known, (problem,) = await teams("owners: {alice: {phone: 1}}")
    assert (known, OWNERS_OUTDATED._value.get()) == (["gpu"], 1)
    assert problem.startswith(f"--owners-file: {file}: Object contains unknown field `phone`")
    assert problem.endswith("; until then the owners from before that change count")
    assert await teams("owners: {alice: {team: new}}") == (["new"], [])
    assert OWNERS_OUTDATED._value.get() == 0
