"""What the YAML in the pages is, told by what it says, and the loader that it must pass."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from remediator.kube import api
from remediator.tickets.channels import routes_file
from remediator.tickets.channels.github.limits import problem
from remediator.tickets.channels.routes import Routes
from remediator.web.webhook import PATH
from tests.contract.docs.pages import PAGES, ROOT, blocks

Object = dict[str, Any]
SCHEDULER = ROOT / "deploy" / "scheduler" / "scheduler-config.yaml"
DURATION = re.compile(r"(\d+(ms|[smhdwy]))+")


class Manifest(NamedTuple):
    """One document of a `yaml` block. `kind`: a word of KINDS, "" for what nobody recognises."""

    title: str
    kind: str
    text: str
    value: Any


KINDS: Mapping[str, Callable[[Object], bool]] = {
    "ours": lambda found: str(found.get("apiVersion", "")).startswith(f"{api.GROUP}/"),
    "kube-scheduler": lambda found: found.get("kind") == "KubeSchedulerConfiguration",
    "kubernetes": lambda found: {"apiVersion", "kind", "metadata"} <= set(found),
    "routes": lambda found: (
        "default" in found
        and set(found)
        <= {"default", "routes", "cluster", "links", "match", "schedules", "digest", "teams"}
        | {"urlRepositories", "labelRepositories"}
    ),
    "rooms": lambda found: "rooms" in found and set(found) <= {"rooms", "slack"},
    "bundle store": lambda found: {"url", "accessKey"} <= set(found),
    "janitor": lambda found: set(found) == {"rules"},
    "values of the chart": lambda found: "registry" in (found.get("image") or ()),
    "kustomization": lambda found: str(found.get("apiVersion", "")).startswith("kustomize.config.k8s.io/"),
    "audit policy": lambda found: found.get("apiVersion") == "audit.k8s.io/v1",
    "vector": lambda found: set(found) == {"sources", "transforms", "sinks"},
    "fluent bit": lambda found: set(found) == {"pipeline"},
    "alertmanager": lambda found: bool({"receivers", "route"} & set(found)),
}


def recognised(value: Any) -> str:
    """The first kind that fits; "" where none does."""
    return next((kind for kind, fits in KINDS.items() if isinstance(value, dict) and fits(value)), "")


def manifests(page: str, text: str) -> Iterator[Manifest]:
    """Every document of every `yaml` block of a page."""
    for block in blocks(page, text):
        if block.language == "yaml":
            for part in re.split(r"^---\n", block.text, flags=re.MULTILINE):
                value = yaml.safe_load(part)
                if value is not None:
                    yield Manifest(f"{page}:{block.line}", recognised(value), part, value)


ALL = [one for page in PAGES for one in manifests(page.relative_to(ROOT).as_posix(), page.read_text())]


def of(*kinds: str) -> list[Manifest]:
    """The manifests of these kinds in all pages."""
    return [one for one in ALL if one.kind in kinds]


def load_routes(text: str, folder: Path) -> Routes:
    """Read it as the controller does. Raises ValueError."""
    path = folder / "routes.yaml"
    path.write_text(text)
    schedules = (ROOT / "docs/tickets.md").read_text().split("```text\nhardware:")[1].split("```")[0]
    (folder / "oncall.yaml").write_text(f"hardware:{schedules}")
    return routes_file.load(path, problem)


def check_scheduler(found: Object) -> None:
    """Fail for a field that the shipped file, which a real kube-scheduler runs with, has not. Raises ValueError."""
    shipped = yaml.safe_load(SCHEDULER.read_text())
    strange = sorted(set(_paths(found)) - set(_paths(shipped)) - {"profiles", "profiles[].schedulerName"})
    if strange or found.get("apiVersion") != shipped["apiVersion"]:
        raise ValueError(f"not in {SCHEDULER.name}: {', '.join(strange) or found.get('apiVersion')}")


def _paths(value: Any, at: str = "") -> Iterator[str]:
    for key, inner in value.items() if isinstance(value, dict) else ():
        path = f"{at}.{key}".lstrip(".")
        yield path
        yield from _paths(inner, path)
    for inner in value if isinstance(value, list) else ():
        yield from _paths(inner, f"{at}[]")


class Strict(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A part of Alertmanager's configuration with the fields that the pages use."""


class Authorization(Strict):
    credentials_file: str
    type: str = "Bearer"


class Tls(Strict):
    ca_file: str
    cert_file: str = ""
    key_file: str = ""


class HttpConfig(Strict):
    tls_config: Tls
    authorization: Authorization | None = None


class Webhook(Strict):
    url: str
    http_config: HttpConfig
    send_resolved: bool = True
    max_alerts: int = 0
    timeout: str = "1m"


class Receiver(Strict):
    name: str
    webhook_configs: list[Webhook] = []


class AlertRoute(Strict):
    receiver: str = ""
    group_by: list[str] = []
    matchers: list[str] = []
    group_wait: str = "30s"
    group_interval: str = "5m"
    repeat_interval: str = "4h"
    continue_: bool = msgspec.field(name="continue", default=False)
    routes: list["AlertRoute"] = []


class Alertmanager(Strict):
    receivers: list[Receiver] = []
    route: AlertRoute | None = None
    global_: Mapping[str, Any] = msgspec.field(name="global", default_factory=dict)
    inhibit_rules: list[Mapping[str, Any]] = []


def check_alertmanager(found: Object) -> None:
    """Fail for what Alertmanager, or our webhook, would not take. Raises ValueError (msgspec's errors are such)."""
    config = msgspec.convert(found, Alertmanager)
    for hook in (hook for receiver in config.receivers for hook in receiver.webhook_configs):
        if not re.fullmatch(rf"https://[\w.-]+(:\d+)?{PATH}", hook.url):
            raise ValueError(f"{hook.url} does not lead to {PATH}")
        if not (hook.http_config.authorization or hook.http_config.tls_config.cert_file):
            raise ValueError("http_config shows neither a token nor a certificate")
    known = {receiver.name for receiver in config.receivers}
    for one in _routes(config.route):
        if config.receivers and one.receiver and one.receiver not in known:
            raise ValueError(f"no receiver is called {one.receiver}")
        wrong = [
            each for each in (one.group_wait, one.group_interval, one.repeat_interval) if not DURATION.fullmatch(each)
        ]
        if wrong:
            raise ValueError(f"no duration: {wrong[0]}")


def _routes(first: AlertRoute | None) -> Iterator[AlertRoute]:
    if first is not None:
        yield first
        for one in first.routes:
            yield from _routes(one)


def whole_alertmanager(found: Object) -> Object:
    """A fragment with what Alertmanager cannot be without."""
    receivers = found.get("receivers") or [{"name": name} for name in _named(found.get("route"))] or [{"name": "none"}]
    top = {"receiver": receivers[0]["name"], **(found.get("route") or {})}
    return {**found, "receivers": receivers, "route": top}


def _named(found: Any) -> list[str]:
    inner = [name for one in (found or {}).get("routes", ()) for name in _named(one)]
    return list(dict.fromkeys([*([found["receiver"]] if (found or {}).get("receiver") else []), *inner]))
