"""What we read of a KubeSchedulerConfiguration. Fields of an extender are held to those that kube-scheduler knows."""

from typing import Any

import msgspec

Text = str | None


class Base(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """Keys in camelCase; other keys are passed over."""


class ManagedResource(Base, forbid_unknown_fields=True, frozen=True):
    """Pods that ask for this are sent to the extender."""

    name: str
    ignored_by_scheduler: bool = False


class TLS(Base, forbid_unknown_fields=True, frozen=True):
    """Whom the scheduler trusts, and what it shows."""

    insecure: bool = False
    server_name: Text = None
    cert_file: Text = None
    key_file: Text = None
    ca_file: Text = None
    cert_data: Text = None
    key_data: Text = None
    ca_data: Text = None


class Extender(Base, forbid_unknown_fields=True, frozen=True):
    """One extender."""

    url_prefix: str = ""
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int | None = None
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: TLS | None = None
    http_timeout: str | None = None
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] | None = None
    ignorable: bool = False

    @property
    def resources(self) -> tuple[str, ...]:
        """The names of its resources; none for every Pod."""
        return tuple(resource.name for resource in self.managed_resources or ())


class Plugin(Base, frozen=True):
    """A plugin that is switched on or off."""

    name: str
    weight: int | None = None


class PluginSet(Base, frozen=True):
    """Plugins of one point."""

    enabled: tuple[Plugin, ...] | None = None
    disabled: tuple[Plugin, ...] | None = None


class Plugins(Base, frozen=True):
    """The points at which nodes are scored."""

    score: PluginSet | None = None
    multi_point: PluginSet | None = None


class Counted(Base, frozen=True):
    """A resource that a score counts."""

    name: str
    weight: int | None = None


class Point(Base, frozen=True):
    """One point of a shape."""

    utilization: int = 0
    score: int = 0


class Ratio(Base, frozen=True):
    """The score by how full a node is."""

    shape: tuple[Point, ...] | None = None


class ScoringStrategy(Base, frozen=True):
    """How NodeResourcesFit scores."""

    type: str = "LeastAllocated"
    resources: tuple[Counted, ...] | None = None
    requested_to_capacity_ratio: Ratio | None = None


class Args(Base, frozen=True):
    """Arguments of a plugin, as far as we read them."""

    scoring_strategy: ScoringStrategy | None = None


class PluginConfig(Base, frozen=True):
    """Arguments of one plugin."""

    name: str = ""
    args: dict[str, Any] | None = None


class Profile(Base, frozen=True):
    """One scheduler name."""

    scheduler_name: str = "default-scheduler"
    plugins: Plugins | None = None
    plugin_config: tuple[PluginConfig, ...] | None = None


class LeaderElection(Base, frozen=True):
    """Which Lease the replicas share."""

    leader_elect: bool = True
    resource_name: str = "kube-scheduler"


class Configuration(Base, frozen=True):
    """The whole file."""

    api_version: str = ""
    kind: str = ""
    leader_election: LeaderElection = LeaderElection()
    profiles: tuple[Profile, ...] | None = None
    extenders: tuple[Extender, ...] | None = None


def read(document: Any) -> Configuration:
    """Raises ValueError with the place of what is of the wrong kind, or of a field that no extender has."""
    return msgspec.convert(document, Configuration)


def scoring(profile: Profile) -> ScoringStrategy:
    """How NodeResourcesFit of a profile scores. Raises ValueError where its arguments are of the wrong kind."""
    rows = (row.args for row in profile.plugin_config or () if row.name == "NodeResourcesFit")
    args = msgspec.convert(next(rows, None) or {}, Args)
    return args.scoring_strategy or ScoringStrategy()


def weight(profile: Profile, name: str) -> int:
    """How much a score plugin of the defaults counts in a profile; 0 where it is off."""
    points = [] if profile.plugins is None else [profile.plugins.score, profile.plugins.multi_point]
    sets = [point for point in points if point is not None]
    enabled = next((plugin for each in sets for plugin in each.enabled or () if plugin.name == name), None)
    if enabled is not None:
        return enabled.weight or 1
    off = any(plugin.name in (name, "*") for each in sets for plugin in each.disabled or ())
    return 0 if off else 1
