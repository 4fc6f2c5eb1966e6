"""What an operator may set, in one place. Each replica logs it when it starts; secrets lie in files of their own."""

import os
import re
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from remediator.core import names
from remediator.core.breaker import Breaker
from remediator.core.duration import part_seconds
from remediator.core.places import DEFAULT, ApiNodes
from remediator.core.quiet import QuietRule
from remediator.core.selector import FORM, parse

HIGHEST_PORT = 65535
LONGEST_LABEL = 63

Level = Literal["debug", "info", "warning", "error"]  # of the log
ExtenderScore = Literal["fgd", "fgd-blend", "packing"]


def identity() -> str:
    """Who we are in the Lease, new for each process: a container that starts again in its Pod is another replica."""
    return f"{os.environ.get('POD_NAME') or socket.gethostname()}-{secrets.token_hex(4)}"


def address(listen: str) -> tuple[str, int] | None:
    """The host and the port of host:port, None for anything else. "" is every interface; IPv6 stands in brackets."""
    parts = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([\w.-]*)):([0-9]{1,5})", listen)
    if parts is None or int(parts[3]) > HIGHEST_PORT:
        return None
    return parts[1] or parts[2], int(parts[3])


def _is_url(text: str) -> bool:
    parts = re.fullmatch(r"https?://(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::([0-9]{1,5}))?(?:/api/v3)?/?", text)
    return parts is not None and int(parts[1] or 0) <= HIGHEST_PORT


def _is_namespace(text: str) -> bool:
    return len(text) <= LONGEST_LABEL and re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", text) is not None


def _is_prometheus(text: str) -> bool:
    parts = re.fullmatch(r"https?://(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::([0-9]{1,5}))?(?:/[\w.~-]+)*/?", text)
    return not text or (parts is not None and int(parts[1] or 0) <= HIGHEST_PORT)


def _are_docs(text: str) -> bool:
    return not text or re.fullmatch(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~%+-]+)*", text) is not None


def _are_alertmanagers(urls: tuple[str, ...]) -> bool:
    return len(urls) <= MOST_ALERTMANAGERS and all(url and _is_prometheus(url) for url in urls)


def _is_loopback(url: str) -> bool:
    return any(re.match(rf"http://\[?{re.escape(host)}\]?(:|/|$)", url) for host in LOOPBACK)


NAMESPACE_FORM = f"the name of a namespace, such as {names.SYSTEM_NAMESPACE}"
LEASES_FORM = "the name of a namespace, such as medik8s-leases"
LISTEN_FORM = "host:port with a port of at most 65535, such as 127.0.0.1:8080"
URL_FORM = "https://HOST or https://HOST/api/v3, such as https://api.github.com"
PROMETHEUS_FORM = "https://HOST or https://HOST:PORT/PATH, such as http://prometheus.monitoring.svc:9090"
DOCS_FORM = "https://HOST/PATH without a slash at its end, such as https://git.example.org/remediator/blob/main/docs"
MOST_ALERTMANAGERS = 16
ALERTMANAGER_FORM = (
    f"at most {MOST_ALERTMANAGERS} times https://HOST or https://HOST:PORT/PATH, "
    "such as http://alertmanager-0.alertmanager.monitoring.svc:9093"
)
# field, its option, whether a value fits, what would, whether a refusal quotes the value: a URL may hold a credential
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def _listens(listen: str | None) -> bool:
    return listen is None or address(listen) is not None


def _is_selector(text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


MOST_DOMAINS, MOST_GROUP_LABELS = 4, 8  # labels: answers are kept for each
REOPEN_FORM = "a time of at most 7d, for which a Ticket stays without a cause, such as 24h or 1h30m; 0s: never"


def _is_reopening(text: str) -> bool:
    try:
        return "ms" not in text and sum(part_seconds(text)) <= sum(part_seconds("7d"))
    except ValueError:
        return False


DOMAINS_FORM = f"at most {MOST_DOMAINS} keys of labels with commas between them, such as {names.DOMAINS[1]}"


GROUPS_FORM = f"at most {MOST_GROUP_LABELS} keys of labels with commas between them, such as {names.GROUP_LABELS[1]}"


def _are_labels(text: str, most: int) -> bool:
    keys = text.split(",") if text else []
    return len(keys) <= most and all(re.fullmatch(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9_.-]{1,63}", key) for key in keys)


REQUESTERS = ("node-repairs", "nvsentinel")  # whose objects may ask for repairs, see kube/api/outside.py


def _are_sources(given: tuple[str, ...]) -> bool:
    return set(given) <= set(REQUESTERS) and len(set(given)) == len(given)


_RULES: tuple[tuple[str, str, Callable[[Any], object], str, bool], ...] = (
    ("listen", "--listen", address, LISTEN_FORM, True),
    ("listen_extender", "--listen-extender", _listens, LISTEN_FORM, True),
    ("listen_webhook", "--listen-webhook", _listens, LISTEN_FORM, True),
    ("listen_github", "--listen-github", _listens, LISTEN_FORM, True),
    ("listen_page", "--listen-page", _listens, LISTEN_FORM, True),
    ("listen_evictions", "--listen-evictions", _listens, LISTEN_FORM, True),
    ("namespace", "--namespace", _is_namespace, NAMESPACE_FORM, True),
    ("operations_namespace", "--operations-namespace", _is_namespace, NAMESPACE_FORM, True),
    ("github_url", "--github-url", _is_url, URL_FORM, False),
    ("docs_url", "--docs-url", _are_docs, DOCS_FORM, False),
    ("prometheus_url", "--prometheus-url", _is_prometheus, PROMETHEUS_FORM, False),
    ("alertmanager_url", "--alertmanager-url", _are_alertmanagers, ALERTMANAGER_FORM, False),
    ("reopen_within", "--reopen-within", _is_reopening, REOPEN_FORM, True),
    ("requests_from", "--requests-from", _are_sources, f"one of {', '.join(REQUESTERS)}, each once", True),
    ("node_leases", "--node-leases", lambda text: not text or _is_namespace(text), LEASES_FORM, True),
    ("gang_topology", "--gang-topology", lambda text: _are_labels(text, MOST_DOMAINS), DOMAINS_FORM, True),
    ("drift_labels", "--drift-labels", lambda text: _are_labels(text, MOST_GROUP_LABELS), GROUPS_FORM, True),
    ("api_pods_node_selector", "--api-pods-node-selector", _is_selector, FORM, True),
)


Misfit = tuple[object, str]  # whether some settings do not go together, and why


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds. Raises ValueError that names the option and what it should be."""

    identity: str = field(default_factory=identity)
    namespace: str = names.SYSTEM_NAMESPACE
    operations_namespace: str = names.OPERATIONS_NAMESPACE
    breaker: Breaker = field(default_factory=Breaker)
    quiet: QuietRule = field(default_factory=QuietRule)
    api_pods_node_selector: str = DEFAULT
    drains: int = 50
    workers: int = 16
    lease_duration: float = 15.0
    lease_renew: float = 10.0
    lease_retry: float = 2.0
    listen: str = "127.0.0.1:8080"
    listen_extender: str | None = None
    listen_webhook: str | None = None
    listen_github: str | None = None
    listen_page: str | None = None
    listen_evictions: str | None = None
    page_api_tokens: bool = False
    docs_url: str = ""
    no_tls: bool = False
    tls_cert_file: Path | None = None
    tls_key_file: Path | None = None
    client_ca_file: Path | None = None
    extender_token_file: Path | None = None
    extender_whole_nodes: bool = False
    gang_topology: str = ",".join(names.DOMAINS)
    shared_gpus: bool = False
    extender_score: ExtenderScore = "fgd"
    extender_workload: Path | None = None
    routes: Path | None = None
    chat: Path | None = None
    github_url: str = "https://api.github.com"
    github_token_file: Path | None = None
    github_app_id: str = ""
    github_app_installation_id: int = 0
    github_app_key_file: Path | None = None
    github_spacing: float = 1.0
    issues_per_hour: int = 60
    fold_alerts_at: int = 10
    reopen_within: str = "24h"
    github_webhook_secret_file: Path | None = None
    webhook_token_file: Path | None = None
    webhook_mib: int = 16
    device_taints: bool = False
    drift_labels: str = ",".join(names.GROUP_LABELS)
    requests_from: tuple[str, ...] = ()
    node_leases: str = ""
    bundle_store: Path | None = None
    prometheus_url: str = ""
    prometheus_token_file: Path | None = None
    prometheus_ca_file: Path | None = None
    alertmanager_url: tuple[str, ...] = ()
    alertmanager_token_file: Path | None = None
    alertmanager_ca_file: Path | None = None
    alertmanager_receiver: str = "remediator"
    alertmanager_watchdog: str = ""
    alertmanager_matcher: str = ""

    def __post_init__(self) -> None:
        for name, option, fits, form, quoted in _RULES:
            value = getattr(self, name)
            if not fits(value):
                shown = f"{value!r}, not" if quoted else "not"
                raise ValueError(f"{option} is {shown} {form}")
        if wrong := next((why for holds, why in self._misfits() if holds), ""):
            raise ValueError(wrong)

    def _misfits(self) -> tuple[Misfit, ...]:
        return (*self._misfits_of_tls(), *self._misfits_of_listeners(), *self._misfits_of_servers())

    def _misfits_of_tls(self) -> tuple[Misfit, ...]:
        files = bool(self.tls_cert_file)
        strange = [listen for listen in self.listens_with_tls if (address(listen) or ("",))[0] not in LOOPBACK]
        return (
            (files is not bool(self.tls_key_file), "--tls-cert-file and --tls-key-file belong together"),
            (files and self.no_tls, "--no-tls is given beside --tls-cert-file; leave one out"),
            (self.no_tls and self.client_ca_file, "--client-ca-file needs TLS; leave out --no-tls"),
            (self.no_tls and strange, f"--no-tls is for loopback only, such as 127.0.0.1:8443, not {strange}"),
        )

    def _misfits_of_listeners(self) -> tuple[Misfit, ...]:
        """Those of what asks us: the scheduler, Alertmanager and GitHub."""
        uncertified = not self.client_ca_file and bool(self.tls_cert_file or self.no_tls)
        return (
            (
                self.listen_extender and uncertified and not self.no_tls and not self.extender_token_file,
                "--listen-extender needs --client-ca-file or --extender-token-file: who may ask",
            ),
            (
                self.listen_webhook and uncertified and not self.webhook_token_file,
                "--listen-webhook needs --client-ca-file or --webhook-token-file: who may post",
            ),
            (
                self.shared_gpus and not self.listen_extender,
                "--listen-extender is needed for --shared-gpus: kube-scheduler binds their Pods there",
            ),
            (
                self.extender_workload and self.extender_score == "packing",
                "--extender-workload is given beside --extender-score packing, which counts GPUs alone; leave one out",
            ),
            (self.listen_webhook and not self.routes, "--routes is needed for --listen-webhook"),
            (self.listen_github and not self.routes, "--routes is needed for --listen-github"),
            (
                bool(self.listen_github) is not bool(self.github_webhook_secret_file),
                "--listen-github and --github-webhook-secret-file belong together: only what GitHub has signed counts",
            ),
            (self.chat and not self.routes, "--routes is needed for --chat: rooms hear of tickets"),
            (
                self.webhook_token_file and not self.listen_webhook,
                "--listen-webhook is needed for --webhook-token-file",
            ),
        )

    def _misfits_of_servers(self) -> tuple[Misfit, ...]:
        """Those of what we ask: Prometheus and Alertmanager."""
        return (
            (
                (self.prometheus_token_file or self.prometheus_ca_file) and not self.prometheus_url,
                "--prometheus-url is needed for --prometheus-token-file and --prometheus-ca-file",
            ),
            (
                self.prometheus_token_file
                and self.prometheus_url.startswith("http://")
                and not _is_loopback(self.prometheus_url),
                "--prometheus-token-file needs a --prometheus-url of https: everybody on the way could read the token",
            ),
            (
                (
                    self.alertmanager_token_file
                    or self.alertmanager_ca_file
                    or self.alertmanager_watchdog
                    or self.alertmanager_matcher
                )
                and not self.alertmanager_url,
                "--alertmanager-url is needed for --alertmanager-token-file, --alertmanager-ca-file, "
                "--alertmanager-watchdog and --alertmanager-matcher",
            ),
            (
                self.alertmanager_token_file
                and any(url.startswith("http://") and not _is_loopback(url) for url in self.alertmanager_url),
                "--alertmanager-token-file needs each --alertmanager-url to be https: everybody on the way could read "
                "the token",
            ),
        )

    def shown(self) -> dict[str, str]:
        """Every setting that has a value as text, by name. Of a secret only the path of its file."""
        parts = {
            "breaker_starts": self.breaker.starts,
            "breaker_window_seconds": self.breaker.window.total_seconds(),
            "quiet_hours": self.quiet.period.total_seconds() / 3600,
            "quiet_share": self.quiet.share,
        }
        plain = (field.name for field in fields(self) if field.name not in ("breaker", "quiet"))
        values = {name: getattr(self, name) for name in plain} | parts
        return {name: str(value) for name, value in values.items() if value is not None}

    @property
    def listens_with_tls(self) -> tuple[str, ...]:
        """What is served with TLS, unless that is off."""
        callers = (self.listen_extender, self.listen_webhook, self.listen_github)
        return tuple(listen for listen in (*callers, self.listen_page, self.listen_evictions) if listen)

    @property
    def makes_certificates(self) -> bool:
        """Whether what is served with TLS has certificates of our own."""
        return bool(self.listens_with_tls) and not self.no_tls and not self.tls_cert_file

    @property
    def domains(self) -> tuple[str, ...]:
        """The labels by which Pods of a gang keep together, from the narrowest domain to the widest."""
        return tuple(self.gang_topology.split(",")) if self.gang_topology else ()

    @property
    def group_labels(self) -> tuple[str, ...]:
        """The labels by which nodes are one group that should run with the same versions."""
        return tuple(self.drift_labels.split(",")) if self.drift_labels else ()

    @property
    def api_nodes(self) -> ApiNodes:
        """Where Pods with rights in the API may run."""
        return ApiNodes(self.api_pods_node_selector)

    @property
    def namespaces(self) -> names.Namespaces:
        """Both of them."""
        return names.Namespaces(self.namespace, self.operations_namespace)
