"""`remediator janitor`: deletes what nobody needs any more, with notice."""

import asyncio
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from remediator.cli.common import (
    Kubeconfig,
    Namespace,
    PrometheusCaFile,
    PrometheusTokenFile,
    app,
    connect,
    out,
    refusal,
)
from remediator.clock import SYSTEM
from remediator.core import names
from remediator.janitor.selection import ALL, Selection
from remediator.janitor.settings import INTERVAL, MOST_DELETIONS, JanitorSettings, Mode, Terms
from remediator.settings import Level, Settings, address, identity

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from remediator.janitor.rules import Rule
    from remediator.janitor.settings import Hook
    from remediator.kube.wire.client import Client
    from remediator.prometheus.source import Source

LEASE = "remediator-janitor"
DEFAULT = Selection()


def _listed(names_: frozenset[str]) -> str:
    return ",".join(sorted(names_))


@app.command()
def janitor(
    kubeconfig: Kubeconfig = None,
    namespace: Namespace = names.SYSTEM_NAMESPACE,
    mode: Annotated[Mode, typer.Option(help="DryRun writes nothing and reports what it would do.")] = Mode.DRY_RUN,
    once: Annotated[bool, typer.Option("--once", help="One pass, its report on stdout, and exit.")] = False,
    interval: Annotated[float, typer.Option(min=1, max=86_400, help="Seconds from one pass to the next.")] = INTERVAL,
    rules_file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Rules in YAML, as kube-janitor has them.")
    ] = None,
    include_resources: Annotated[
        str, typer.Option(help="Plurals with commas between them. Secrets are read only where they are named.")
    ] = ALL,
    exclude_resources: Annotated[str, typer.Option(help="Plurals that are left out.")] = _listed(
        DEFAULT.exclude_resources
    ),
    include_namespaces: Annotated[str, typer.Option(help="Namespaces with commas between them.")] = ALL,
    exclude_namespaces: Annotated[str, typer.Option(help="Namespaces that are left out.")] = _listed(
        DEFAULT.exclude_namespaces
    ),
    delete_notification: Annotated[
        int, typer.Option(min=0, max=31_536_000, help="Seconds before its deletion that an owner is told. 0: not.")
    ] = 0,
    deployment_time_annotation: Annotated[
        str, typer.Option(help="Annotation with the time of the last deployment, from which a TTL counts, too.")
    ] = "",
    max_deletions: Annotated[
        int, typer.Option(min=1, help="Most deletions in one pass, and most notices.")
    ] = MOST_DELETIONS,
    wait_after_delete: Annotated[
        float, typer.Option(min=0, max=3600, help="Seconds to wait after each deletion.")
    ] = 0.0,
    resource_context_hook: Annotated[
        str, typer.Option(help="module.function of yours that gives rules more to ask for in _context.")
    ] = "",
    prometheus_url: Annotated[
        str,
        typer.Option(help="Prometheus with the metrics of dcgm-exporter, for IdlePolicies. Left out: none is used."),
    ] = "",
    prometheus_token_file: PrometheusTokenFile = None,
    prometheus_ca_file: PrometheusCaFile = None,
    listen: Annotated[str, typer.Option(help="host:port for probes, metrics and /report.")] = "127.0.0.1:8080",
    log_level: Annotated[Level, typer.Option(case_sensitive=False, help="What is said at least.")] = "info",
    log_json: Annotated[bool, typer.Option("--log-json", help="Log JSON lines.")] = False,
) -> None:
    """Delete objects whose time to live is over, by annotation or by rule. In DryRun unless --mode Enforce is given."""
    from remediator import metrics

    if address(listen) is None:
        raise refusal(f"--listen is {listen!r}; write host:port, such as 127.0.0.1:8080")
    settings = JanitorSettings(
        mode,
        _rules(rules_file),
        Selection(*map(_split, (include_resources, exclude_resources, include_namespaces, exclude_namespaces))),
        Terms(timedelta(seconds=delete_notification), deployment_time_annotation),
        max_deletions,
        wait_after_delete,
        interval,
        _hook(resource_context_hook),
    )
    metrics.configure("warning" if once and log_level == "info" else log_level, log_json)
    try:
        Settings(
            prometheus_url=prometheus_url,
            prometheus_token_file=prometheus_token_file,
            prometheus_ca_file=prometheus_ca_file,
        )
    except ValueError as wrong:
        raise refusal(wrong) from None
    asked = _Asked(prometheus_url, prometheus_token_file, prometheus_ca_file)
    if once:
        raise typer.Exit(asyncio.run(_once(kubeconfig, settings, asked)))
    asyncio.run(_run(kubeconfig, settings, namespace, listen, asked))


class _Asked(NamedTuple):
    """Where Prometheus is, and what it takes to be answered."""

    url: str
    token: Path | None
    authority: Path | None

    @asynccontextmanager
    async def source(self) -> "AsyncIterator[Source | None]":
        """It, for as long as the block runs; None where there is none."""
        if not self.url:
            yield None
            return
        from remediator.prometheus.prometheus import Prometheus

        async with aclosing(Prometheus(self.url, SYSTEM, token=self.token, authority=self.authority)) as prometheus:
            yield prometheus


def _split(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split(",") if part.strip())


def _rules(file: Path | None) -> "tuple[Rule, ...]":
    from remediator.janitor import rules

    if file is None:
        return ()
    try:
        return rules.read(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as failed:
        raise refusal(f"{file}: {failed}; name a file of YAML that can be read") from None
    except rules.Wrong as wrong:
        raise refusal("\n".join(f"{file}: {line}" for line in str(wrong).splitlines())) from None


def _hook(name: str) -> "Hook | None":
    from remediator.janitor import context

    try:
        return context.hook(name) if name else None
    except ValueError as wrong:
        raise refusal(f"--resource-context-hook: {wrong}") from None


async def _once(kubeconfig: Path | None, settings: JanitorSettings, asked: _Asked) -> int:
    """Exit 1 where something could not be done or read: the report says what."""
    from remediator.janitor.idle.report import Outcome as Failed
    from remediator.janitor.report import Outcome
    from remediator.janitor.run import Janitor
    from remediator.kube.wire import errors
    from remediator.kube.wire.client import Client

    transport = await connect(kubeconfig)
    try:
        async with asked.source() as source:
            report = await Janitor(Client(transport), settings, SYSTEM, source=source).once()
    except errors.ApiError as failed:
        raise refusal(failed.message) from None
    finally:
        await transport.close()
    for line in report.rendered():
        out.print(line)
    failures = report.totals[Outcome.FAILED] + sum(idle.count(Failed.FAILED) for idle in report.idle)
    return 1 if report.problems or failures else 0


async def _run(kubeconfig: Path | None, settings: JanitorSettings, namespace: str, listen: str, asked: _Asked) -> None:
    from remediator.cli.run import answers, until_ended
    from remediator.kube.wire.client import Client

    transport = await connect(kubeconfig)
    try:
        await answers(transport)
        async with asked.source() as source:
            await until_ended(_serve(Client(transport), settings, namespace, listen, source))
    except OSError as wrong:
        raise refusal(wrong) from None
    finally:
        await transport.close()


async def _serve(
    client: "Client", settings: JanitorSettings, namespace: str, listen: str, source: "Source | None"
) -> None:
    """Of several replicas the one with the Lease works."""
    from remediator.janitor.run import Janitor
    from remediator.kube.runtime.elector import Elector
    from remediator.web import janitor as page

    elector = Elector(client, LEASE, namespace, identity(), SYSTEM)
    made = Janitor(client, settings, SYSTEM, lambda: elector.is_leader, source)
    async with page.endpoint(made).served(listen):
        await elector.run(made.run)
