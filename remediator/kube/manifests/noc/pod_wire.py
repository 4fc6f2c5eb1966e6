"""What is looked at in the Job of an operation of theirs; all other fields are passed over, and carried over."""

from typing import Annotated

import msgspec
from msgspec import Meta

Seconds = Annotated[int, Meta(ge=1)]


class Lax(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """Every type below."""


class Named(Lax, frozen=True, kw_only=True):
    """Names a Secret or a ConfigMap."""

    name: str = ""


class FieldRef(Lax, frozen=True, kw_only=True):
    """A field of the Pod itself."""

    field_path: str = ""


class Source(Lax, frozen=True, kw_only=True):
    """Where the value of a variable comes from."""

    field_ref: FieldRef | None = None
    config_map_ref: Named | None = None
    config_map_key_ref: Named | None = None
    secret_ref: Named | None = None
    secret_key_ref: Named | None = None


class Variable(Lax, frozen=True, kw_only=True):
    """One variable of the environment."""

    name: str
    value_from: Source | None = None


class Container(Lax, frozen=True, kw_only=True):
    """What a container is told."""

    env: tuple[Variable, ...] | None = None
    env_from: tuple[Source, ...] | None = None


class SecretVolume(Lax, frozen=True, kw_only=True):
    """A Secret as files."""

    secret_name: str = ""


class Claim(Lax, frozen=True, kw_only=True):
    """A PersistentVolumeClaim as files."""

    claim_name: str = ""


class Volume(Lax, frozen=True, kw_only=True):
    """What of the namespace is mounted."""

    config_map: Named | None = None
    secret: SecretVolume | None = None
    persistent_volume_claim: Claim | None = None


class PodSpec(Lax, frozen=True, kw_only=True):
    """The spec of the Pod."""

    containers: tuple[Container, ...]
    init_containers: tuple[Container, ...] | None = None
    volumes: tuple[Volume, ...] | None = None
    image_pull_secrets: tuple[Named, ...] | None = None
    service_account_name: str = ""
    node_name: str = ""
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    active_deadline_seconds: Seconds | None = None


class PodTemplate(Lax, frozen=True, kw_only=True):
    """The template of the Pod."""

    metadata: dict[str, object] | None = None
    spec: PodSpec


class Job(Lax, frozen=True, kw_only=True):
    """The spec of the Job."""

    template: PodTemplate
    active_deadline_seconds: Seconds | None = None
    parallelism: int = 1
    completions: int = 1
