"""`remediator janitor`: deletes what nobody needs any more, with notice."""

import asyncio
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from remediator.cli.common import Kubeconfig, Namespace, app, connect, out, refusal
from remediator.cli.groups import with_groups
from remediator.cli.janitor_options import PassOptions, SelectionOptions, SourceOptions, TtlOptions
from remediator.cli.run_options import LogOptions
from remediator.clock import SYSTEM
from remediator.core import names
from remediator.core.idle_policy import JanitorMode
from remediator.janitor.settings import JanitorSettings
from remediator.settings import Settings, address, identity

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from remediator.janitor.directory import Directory
    from remediator.janitor.idle.sources import Sources
    from remediator.janitor.rules import JanitorRule
    from remediator.janitor.settings import Hook
    from remediator.kube.runtime.skew import ServerClock
    from remediator.kube.wire.client import Client
    from remediator.live_file import LiveFile, Unchanging

LEASE = "remediator-janitor"


@app.command()
@with_groups
def janitor(
    *,
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = names.SYSTEM_NAMESPACE,
    passes: PassOptions,
    ttl: TtlOptions,
    selected: SelectionOptions,
    sources: SourceOptions,
    log: LogOptions,
) -> None:
    """Delete objects whose time to live is over, by annotation or by rule. In DryRun unless --mode Enforce is given."""
    from remediator import metrics

    if address(passes.listen) is None:
        raise refusal(f"--listen is {passes.listen!r}; write host:port, such as 127.0.0.1:8080")
    settings = JanitorSettings(
        passes.mode,
        _rules(ttl.rules_file),
        selected.selection,
        ttl.terms,
        ttl.max_deletions,
        ttl.wait_after_delete,
        passes.interval,
        _hook(ttl.resource_context_hook),
        _directory(sources.owners_file),
    )
    metrics.configure("warning" if passes.once and log.log_level == "info" else log.log_level, log.log_json, SYSTEM)
    try:
        asked = sources.settings
    except ValueError as wrong:
        raise refusal(wrong) from None
    if passes.once:
        raise typer.Exit(asyncio.run(_once(kubeconfig, settings, asked)))
    asyncio.run(_run(kubeconfig, settings, namespace, passes.listen, asked))


@asynccontextmanager
async def _sources(asked: Settings) -> "AsyncIterator[Sources]":
    """Whom IdlePolicies may ask, for as long as the block runs."""
    from remediator.janitor.idle.sources import Sources

    async with AsyncExitStack() as stack:
        prometheus = alertmanagers = None
        if asked.prometheus_url:
            from remediator.prometheus.prometheus import Prometheus

            token, authority = asked.prometheus_token_file, asked.prometheus_ca_file
            prometheus = Prometheus(asked.prometheus_url, SYSTEM, token=token, authority=authority)
            await stack.enter_async_context(aclosing(prometheus))
        if asked.alertmanager_url:
            from remediator.prometheus.alertmanager import Alertmanager
            from remediator.prometheus.alerts import Alertmanagers

            token, authority = asked.alertmanager_token_file, asked.alertmanager_ca_file
            peers = [
                Alertmanager(url, SYSTEM, token=token, authority=authority, matcher=asked.alertmanager_matcher)
                for url in asked.alertmanager_url
            ]
            alertmanagers = Alertmanagers(peers, "", asked.alertmanager_watchdog)
            await stack.enter_async_context(aclosing(alertmanagers))
        yield Sources(prometheus, alertmanagers)


def _rules(file: Path | None) -> "tuple[JanitorRule, ...]":
    from remediator.janitor import rules

    if file is None:
        return ()
    try:
        return rules.read(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as failed:
        raise refusal(f"{file}: {failed}; name a file of YAML that can be read") from None
    except rules.WrongRules as wrong:
        raise refusal("\n".join(f"{file}: {line}" for line in str(wrong).splitlines())) from None


def _directory(file: Path | None) -> "Unchanging[Directory] | LiveFile[Directory]":
    from remediator.janitor import directory
    from remediator.janitor.metrics import OWNERS_OUTDATED
    from remediator.live_file import LiveFile, Unchanging

    try:
        return LiveFile(file, directory.load, "owners", OWNERS_OUTDATED) if file else Unchanging(directory.Directory())
    except ValueError as wrong:
        raise refusal(wrong) from None


def _hook(name: str) -> "Hook | None":
    from remediator.janitor import context

    try:
        return context.hook(name) if name else None
    except ValueError as wrong:
        raise refusal(f"--resource-context-hook: {wrong}") from None


async def _once(kubeconfig: Path | None, settings: JanitorSettings, asked: Settings) -> int:
    """Exit 1 where something could not be done or read: the report says what."""
    from remediator.janitor.outcome import JanitorOutcome
    from remediator.janitor.run import Janitor
    from remediator.kube.runtime.audited import AuditedTransport
    from remediator.kube.runtime.skew import ServerClock
    from remediator.kube.wire import errors
    from remediator.kube.wire.client import Client

    transport = await connect(kubeconfig)
    server = ServerClock(transport, SYSTEM)
    try:
        await server.request("GET", "/version")  # whatever is answered has a date
        wrong = _clocks(server)
        if wrong and settings.mode is JanitorMode.ENFORCE:
            raise refusal(wrong)
        async with _sources(asked) as sources:
            client = Client(AuditedTransport(server, "janitor"))
            report = await Janitor(client, settings, SYSTEM, lambda: not server.differs, sources).once()
            report.problems += [wrong] if wrong else []
    except errors.ApiError as failed:
        raise refusal(failed.message) from None
    finally:
        await transport.close()
    for line in report.rendered():
        out.print(line)
    failures = report.totals[JanitorOutcome.FAILED] + sum(idle.count(JanitorOutcome.FAILED) for idle in report.idle)
    return 1 if report.problems or report.idle_problems or failures else 0


def _clocks(server: "ServerClock") -> str:
    """Why times of objects cannot be compared with ours, "" where they can."""
    seconds = server.skew.total_seconds()
    sentence = f"the API server's clock is {seconds:+.0f} s from ours, so nobody can tell whose time is over"
    return f"{sentence}: set the clock of this machine; until then nothing is written" if server.differs else ""


async def _run(
    kubeconfig: Path | None, settings: JanitorSettings, namespace: str, listen: str, asked: Settings
) -> None:
    from remediator.kube.runtime.audited import AuditedTransport
    from remediator.kube.wire.client import Client
    from remediator.process import answers, until_ended

    transport = await connect(kubeconfig)
    try:
        await answers(transport)
        async with _sources(asked) as sources:
            client = Client(AuditedTransport(transport, "janitor"))
            await until_ended(_serve(client, settings, namespace, listen, sources))
    except OSError as wrong:
        raise refusal(wrong) from None
    finally:
        await transport.close()


async def _serve(client: "Client", settings: JanitorSettings, namespace: str, listen: str, sources: "Sources") -> None:
    """Of several replicas the one with the Lease works."""
    from remediator.janitor.run import Janitor
    from remediator.kube.runtime.elector import Elector
    from remediator.web import janitor as page

    elector = Elector(client, LEASE, namespace, identity(), SYSTEM)
    made = Janitor(client, settings, SYSTEM, lambda: elector.is_leader, sources)
    async with page.endpoint(made).served(listen):
        await elector.run(made.run)
