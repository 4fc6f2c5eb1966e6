"""What a kubeconfig says, and what is wrong in it, by field and file."""

import os
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from remediator.kube.manifests import yamlfile


class KubeconfigCluster(msgspec.Struct, rename="kebab"):
    """A server. Files are as in the kubeconfig, or, of a CurrentContext, where they are."""

    server: str = ""
    tls_server_name: str | None = None
    insecure_skip_tls_verify: bool | None = None
    proxy_url: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: bytes | None = None


class KubeconfigUser(msgspec.Struct, rename="kebab"):
    """Who asks. Files are as of a KubeconfigCluster."""

    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    client_certificate: str | None = None
    client_certificate_data: bytes | None = None
    client_key: str | None = None
    client_key_data: bytes | None = None
    exec: Any = None
    auth_provider: Any = None
    as_: Any = msgspec.field(default=None, name="as")
    as_uid: Any = None
    as_groups: Any = None
    as_user_extra: Any = None

    @property
    def asks_plugin(self) -> bool:
        """Whether a plugin says who it is."""
        return self.exec is not None or self.auth_provider is not None

    @property
    def impersonation(self) -> str:
        """The field that makes kubectl ask as somebody else, "" for none."""
        fields = ("as", self.as_), ("as-uid", self.as_uid), ("as-groups", self.as_groups)
        return next((field for field, given in (*fields, ("as-user-extra", self.as_user_extra)) if given), "")


_Part = TypeVar("_Part", KubeconfigCluster, KubeconfigUser)


class _Context(msgspec.Struct):
    cluster: str
    user: str | None = None


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: KubeconfigCluster


class _NamedUser(msgspec.Struct):
    name: str
    user: KubeconfigUser


class _NamedContext(msgspec.Struct):
    name: str
    context: _Context


class _Kubeconfig(msgspec.Struct, rename="kebab"):
    """One file. Data of certificates and keys must be base64, which msgspec asks of bytes."""

    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str | None = None


@dataclass(frozen=True, slots=True)
class CurrentContext:
    """The one that counts. Where no user is named, or is there, `user` says nothing."""

    name: str
    cluster: KubeconfigCluster
    user: KubeconfigUser


def current_context(paths: str) -> CurrentContext:
    """The context that kubectl would take: of the first file that names one. Of several with one name the first counts.

    Args:
        paths: one file, or several as in the variable KUBECONFIG; of several, those that are not there are passed over.

    Raises:
        FileNotFoundError: there is none of these files.
        ValueError: names the field, of several files also the file, and what is expected; or what the context lacks.
    """
    files = [Path(path) for path in paths.split(os.pathsep) if path and Path(path).is_file()]
    if not files:
        raise FileNotFoundError(f"no kubeconfig at {paths}")
    read = [_read(file, f"{file}: " if len(files) > 1 else "") for file in files]
    named = [config.current_context for config in read if config.current_context]
    if not named:
        raise ValueError("no current-context: set one with `kubectl config use-context NAME`")
    try:
        return _found(named[0], read)
    except ValueError as lack:
        raise ValueError(f"current-context {named[0]!r}: {lack}") from None


def _found(name: str, read: list[_Kubeconfig]) -> CurrentContext:
    """Raises ValueError that says what is missing for this context."""
    contexts = chain.from_iterable(config.contexts or () for config in read)
    context = next((entry.context for entry in contexts if entry.name == name), None)
    if context is None:
        raise ValueError("no context has that name; `kubectl config get-contexts` lists them")
    clusters = chain.from_iterable(config.clusters or () for config in read)
    cluster = next((entry.cluster for entry in clusters if entry.name == context.cluster), None)
    if cluster is None:
        raise ValueError(f"there is no cluster {context.cluster!r}")
    users = chain.from_iterable(config.users or () for config in read)
    user = next((entry.user for entry in users if entry.name == context.user), None)
    if user is None and cluster.server.startswith("https"):
        raise ValueError(
            f"its user is {context.user or ''!r}, which is not there; a server of https lets nobody in without"
        )
    if user and (field := user.impersonation):
        raise ValueError(
            f"`{field}` of its user {context.user!r}: Remediator impersonates nobody, and would ask as the user itself;"
            " remove the field and give the user the rights, or name in the context a user that has them"
        )
    return CurrentContext(name, cluster, user or KubeconfigUser())


def _read(file: Path, where: str) -> _Kubeconfig:
    try:
        written = yamlfile.one(file.read_text("utf-8"))
        if written is None:
            raise ValueError("the file is empty")
        return _placed(msgspec.convert(written, _Kubeconfig), file.parent.absolute())
    except yamlfile.UnreadableYaml as error:
        raise ValueError(where + error.unquoted) from None
    except (OSError, ValueError) as error:  # msgspec.ValidationError is one; it names the field as $.users[0].name
        raise ValueError(where + str(error).replace("`$.", "`")) from error


def _placed(config: _Kubeconfig, folder: Path) -> _Kubeconfig:
    """With files where they are: a kubeconfig names them from its own folder."""
    for cluster in config.clusters or ():
        cluster.cluster = _with_files(cluster.cluster, folder, "certificate_authority")
    for user in config.users or ():
        user.user = _with_files(user.user, folder, "token_file", "client_certificate", "client_key")
    return config


def _with_files(part: _Part, folder: Path, *fields: str) -> _Part:
    given = {field: getattr(part, field) for field in fields}
    return replace(part, **{field: os.path.normpath(folder / file) for field, file in given.items() if file})
