"""The options of `remediator run` by what they are about. Most have the name of the setting that they become."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from remediator.cli.common import (
    DOMAINS,
    AlertmanagerCaFile,
    AlertmanagerMatcher,
    AlertmanagerTokenFile,
    AlertmanagerWatchdog,
    GangTopology,
    PrometheusCaFile,
    PrometheusTokenFile,
    Starts,
    Window,
)
from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.core.quiet import QuietRule
from remediator.settings import ExtenderScore, Level

CertFile = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="Certificate to serve all but probes with. Left out: one of our own, in the Secret "
        f"{names.SERVING_SECRET}.",
    ),
]

BundleStore = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="YAML file with an object store for bundles of evidence, and its key. Left out: they stay on their nodes.",
    ),
]

DeviceTaints = Annotated[
    bool,
    typer.Option(
        "--device-taints",
        help="Watch ResourceSlices (DRA, Kubernetes 1.37) and write what their taints say as Conditions of nodes.",
    ),
]


DRIFT_LABELS = ",".join(names.GROUP_LABELS)
DriftLabels = Annotated[
    str,
    typer.Option(
        help="Labels: nodes with the same values of all of these, and the same model of GPU, should run with the same "
        "versions and settings (NodeDrift). Empty: the model alone.",
    ),
]


RequestsFrom = Annotated[
    list[str] | None,
    typer.Option(
        help="Whose objects may ask for repairs: node-repairs (medik8s, Cluster API) or nvsentinel; may be given "
        "twice. Left out: nobody's.",
    ),
]


NodeLeases = Annotated[
    str,
    typer.Option(
        help="Namespace of the Leases by which controllers of medik8s say who works on a node, such as medik8s-leases: "
        "they are respected, and taken for cases. Left out: none.",
    ),
]


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """What is served, and to whom."""

    listen: Annotated[str, typer.Option(help="host:port for probes and metrics.")] = "127.0.0.1:8080"
    listen_extender: Annotated[
        str | None, typer.Option(help="host:port for the scheduler extender. Left out: nobody may ask it.")
    ] = None
    listen_webhook: Annotated[str | None, typer.Option(help="host:port for Alertmanager. Left out: no webhook.")] = None
    listen_github: Annotated[
        str | None, typer.Option(help="host:port where GitHub posts new comments. Left out: they are only read.")
    ] = None
    listen_page: Annotated[
        str | None,
        typer.Option(envvar="LISTEN_PAGE", help="host:port for the page of the fleet and its JSON. Left out: no page."),
    ] = None
    listen_evictions: Annotated[
        str | None,
        typer.Option(
            help="host:port where the API server asks about evictions of drains. Left out: nobody answers it, and "
            "where deploy/evictions is applied a drain evicts nobody."
        ),
    ] = None
    page_api_tokens: Annotated[
        bool,
        typer.Option(
            "--page-api-tokens",
            envvar="PAGE_API_TOKENS",
            help="Let readers of the page also sign in with tokens for the API server, as OIDC users have.",
        ),
    ] = False
    docs_url: Annotated[
        str,
        typer.Option(
            envvar="DOCS_URL",
            help="Where your people read docs/, such as https://git.example.org/remediator/blob/main/docs: the page "
            "links runbooks there. Left out: it shows their paths.",
        ),
    ] = ""
    no_tls: Annotated[
        bool,
        typer.Option("--no-tls", help="All but probes in clear text, on loopback only, to try them out."),
    ] = False
    tls_cert_file: CertFile = None
    tls_key_file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Key of --tls-cert-file; both are reread.")
    ] = None
    client_ca_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Who signs callers' certificates. Left out: our own authority."),
    ] = None


@dataclass(frozen=True, slots=True)
class ExtenderOptions:
    """Who may ask the scheduler extender, and how it answers."""

    extender_token_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="File with a bearer token that may ask the extender, too."),
    ] = None
    extender_whole_nodes: Annotated[
        bool, typer.Option("--extender-whole-nodes", help="Take requests of 96 MiB instead of 4: nodeCacheCapable off.")
    ] = False
    gang_topology: GangTopology = DOMAINS
    shared_gpus: Annotated[
        bool,
        typer.Option(
            "--shared-gpus", envvar="SHARED_GPUS", help="Filter and bind Pods that ask for aliyun.com/gpu-mem."
        ),
    ] = False
    extender_score: Annotated[
        ExtenderScore, typer.Option(help="How nodes are scored; docs/packing.md says which is right when.")
    ] = "fgd"
    extender_workload: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="YAML file with the kinds of Pods. Left out: learnt from Pods."),
    ] = None


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """How much may be done at once, and for how long one replica leads."""

    drains: Annotated[int, typer.Option(min=1, help="How many nodes may drain at once.")] = 50
    starts: Starts = 10
    window: Window = 600
    quiet_hours: Annotated[
        int,
        typer.Option(min=0, max=8760, help="For how long what is new in a release is only shown; 0: not at all."),
    ] = 168
    quiet_share: Annotated[
        int,
        typer.Option(min=1, max=100, help="Percent of a policy's nodes above which what is new mutes itself."),
    ] = 10
    lease_seconds: Annotated[
        float, typer.Option(min=1.0, max=3600.0, help="How long the leader's lease lasts without being renewed.")
    ] = 15.0

    @property
    def settings(self) -> dict[str, Any]:
        """What they become."""
        return {
            "drains": self.drains,
            "breaker": Breaker(self.starts, timedelta(seconds=self.window)),
            "quiet": QuietRule(timedelta(hours=self.quiet_hours), self.quiet_share),
            "lease_duration": self.lease_seconds,
            "lease_renew": self.lease_seconds * 2 / 3,
            "lease_retry": self.lease_seconds * 2 / 15,
        }


@dataclass(frozen=True, slots=True)
class TicketOptions:
    """Where issues go, and who may post alerts."""

    routes: Annotated[
        Path | None, typer.Option(help="YAML file that says which repository issues go to. Left out: no tickets.")
    ] = None
    chat: Annotated[
        Path | None, typer.Option(help="YAML file with rooms of a chat that hear of tickets. Left out: none.")
    ] = None
    github_url: Annotated[
        str, typer.Option(help="GitHub's REST API; https://HOST/api/v3 for an Enterprise Server.")
    ] = "https://api.github.com"
    github_token_file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="File with a token that may write issues.")
    ] = None
    github_app_id: Annotated[
        str, typer.Option(help="The id or the client id of a GitHub App, in place of a token.")
    ] = ""
    github_app_installation_id: Annotated[int, typer.Option(min=0, help="The number of the App's installation.")] = 0
    github_app_key_file: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="File with the App's private key, PEM.")
    ] = None
    github_spacing: Annotated[
        float, typer.Option(min=0.0, max=3600.0, help="Seconds between two writes to GitHub.")
    ] = 1.0
    issues_per_hour: Annotated[
        int,
        typer.Option(
            min=0,
            max=400,
            help="Issues opened within an hour, the most severe first; one more lists the others. 0: no limit, and "
            "each issue is opened at once.",
        ),
    ] = 60
    fold_alerts_at: Annotated[
        int,
        typer.Option(min=2, max=5000, help="An alert that begins on so many nodes within 10 minutes has one issue."),
    ] = 10
    reopen_within: Annotated[
        str,
        typer.Option(
            metavar="LENGTH",
            help="For how long an issue that was closed because its causes were over is opened again where one comes "
            "back, such as 24h or 90m, at most 7d; later a new one is opened. 0s: always a new one.",
        ),
    ] = "24h"
    github_webhook_secret_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="File with the secret with which GitHub signs its posts."),
    ] = None
    webhook_token_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="File with a bearer token that may post to the webhook, too."),
    ] = None
    webhook_mib: Annotated[int, typer.Option(min=1, max=64, help="Largest post to the webhook, in MiB.")] = 16


@dataclass(frozen=True, slots=True)
class PrometheusOptions:
    """The second source of policies that want one."""

    prometheus_url: Annotated[
        str,
        typer.Option(help="Prometheus that is asked what policies want confirmed; left out, their cases are held."),
    ] = ""
    prometheus_token_file: PrometheusTokenFile = None
    prometheus_ca_file: PrometheusCaFile = None


@dataclass(frozen=True, slots=True)
class AlertmanagerOptions:
    """Who is asked which alerts fire."""

    alertmanager_url: Annotated[
        list[str] | None,
        typer.Option(
            help="Alertmanager that is asked which alerts fire; once for each, HA peers and all that post to the "
            "webhook. Left out: what the webhook is told counts."
        ),
    ] = None
    alertmanager_token_file: AlertmanagerTokenFile = None
    alertmanager_ca_file: AlertmanagerCaFile = None
    alertmanager_receiver: Annotated[
        str, typer.Option(help="Name of the receiver in Alertmanager whose alerts make tickets.")
    ] = "remediator"
    alertmanager_watchdog: AlertmanagerWatchdog = ""
    alertmanager_matcher: AlertmanagerMatcher = ""

    @property
    def settings(self) -> dict[str, Any]:
        """What they become."""
        return {
            "alertmanager_url": tuple(self.alertmanager_url or ()),
            "alertmanager_token_file": self.alertmanager_token_file,
            "alertmanager_ca_file": self.alertmanager_ca_file,
            "alertmanager_receiver": self.alertmanager_receiver,
            "alertmanager_watchdog": self.alertmanager_watchdog,
            "alertmanager_matcher": self.alertmanager_matcher,
        }


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What is logged, and in which form."""

    log_level: Annotated[
        Level, typer.Option(case_sensitive=False, help="Write log lines of this level and of more severe ones.")
    ] = "info"
    log_json: Annotated[bool, typer.Option("--log-json", help="Log JSON lines.")] = False
