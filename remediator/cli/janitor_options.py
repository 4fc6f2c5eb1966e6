"""The options of `remediator janitor` by what they are about."""

from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from remediator.cli.common import (
    AlertmanagerCaFile,
    AlertmanagerMatcher,
    AlertmanagerTokenFile,
    AlertmanagerWatchdog,
    PrometheusCaFile,
    PrometheusTokenFile,
)
from remediator.core.idle_policy import JanitorMode
from remediator.janitor.selection import ALL, Selection
from remediator.janitor.settings import INTERVAL, MOST_DELETIONS, Terms
from remediator.settings import Settings

DEFAULT = Selection()


def _listed(plurals: frozenset[str]) -> str:
    return ",".join(sorted(plurals))


def _split(text: str) -> frozenset[str]:
    return frozenset(part.strip() for part in text.split(",") if part.strip())


@dataclass(frozen=True, slots=True)
class PassOptions:
    """Whether anything is written, and how often it looks."""

    mode: Annotated[JanitorMode, typer.Option(help="DryRun writes nothing and reports what it would do.")] = (
        JanitorMode.DRY_RUN
    )
    once: Annotated[bool, typer.Option("--once", help="One pass, its report on stdout, and exit.")] = False
    interval: Annotated[float, typer.Option(min=1, max=86_400, help="Seconds from one pass to the next.")] = INTERVAL
    listen: Annotated[str, typer.Option(help="host:port for probes, metrics and /report.")] = "127.0.0.1:8080"


@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """Which kinds and namespaces are looked at."""

    include_resources: Annotated[
        str, typer.Option(help="Plurals with commas between them. Secrets are read only where they are named.")
    ] = ALL
    exclude_resources: Annotated[str, typer.Option(help="Plurals that are left out.")] = _listed(
        DEFAULT.exclude_resources
    )
    include_namespaces: Annotated[str, typer.Option(help="Namespaces with commas between them.")] = ALL
    exclude_namespaces: Annotated[str, typer.Option(help="Namespaces that are left out.")] = _listed(
        DEFAULT.exclude_namespaces
    )

    @property
    def selection(self) -> Selection:
        """What they become."""
        kinds = _split(self.include_resources), _split(self.exclude_resources)
        return Selection(*kinds, _split(self.include_namespaces), _split(self.exclude_namespaces))


@dataclass(frozen=True, slots=True)
class TtlOptions:
    """Times to live: rules, notice, and how much is deleted at once."""

    rules_file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Rules in YAML, as kube-janitor has them.")
    ] = None
    delete_notification: Annotated[
        int, typer.Option(min=0, max=31_536_000, help="Seconds before its deletion that an owner is told. 0: not.")
    ] = 0
    deployment_time_annotation: Annotated[
        str, typer.Option(help="Annotation with the time of the last deployment, from which a TTL counts, too.")
    ] = ""
    max_deletions: Annotated[
        int, typer.Option(min=1, help="At most so many deletions, and as many notices, in one pass.")
    ] = MOST_DELETIONS
    wait_after_delete: Annotated[float, typer.Option(min=0, max=3600, help="Seconds to wait after each deletion.")] = (
        0.0
    )
    resource_context_hook: Annotated[
        str, typer.Option(help="module.function of yours that gives rules more to ask for in _context.")
    ] = ""

    @property
    def terms(self) -> Terms:
        """What two of them become."""
        return Terms(timedelta(seconds=self.delete_notification), self.deployment_time_annotation)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Who is asked what IdlePolicies are about, and how owners are reached."""

    owners_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="YAML with the team, GitHub user, mail and chat of owners."),
    ] = None
    prometheus_url: Annotated[
        str,
        typer.Option(help="Prometheus with the metrics that IdlePolicies ask for. Left out: none is asked."),
    ] = ""
    prometheus_token_file: PrometheusTokenFile = None
    prometheus_ca_file: PrometheusCaFile = None
    alertmanager_url: Annotated[
        list[str] | None,
        typer.Option(help="Alertmanager whose alerts IdlePolicies name; once for each, HA peers too."),
    ] = None
    alertmanager_token_file: AlertmanagerTokenFile = None
    alertmanager_ca_file: AlertmanagerCaFile = None
    alertmanager_watchdog: AlertmanagerWatchdog = ""
    alertmanager_matcher: AlertmanagerMatcher = ""

    @property
    def settings(self) -> Settings:
        """What they become. Raises ValueError that names the option and what it should be."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "owners_file"}
        return Settings(**given | {"alertmanager_url": tuple(self.alertmanager_url or ())})
