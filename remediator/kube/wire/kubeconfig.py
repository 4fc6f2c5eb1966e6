"""Checks a kubeconfig before the library reads it, because the library's errors name neither field nor file."""

import os
from pathlib import Path

import msgspec

from remediator.kube.manifests import yamlfile


class _Cluster(msgspec.Struct, rename="kebab"):
    server: str = ""
    tls_server_name: str | None = None
    insecure_skip_tls_verify: bool | None = None
    proxy_url: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: bytes | None = None


class _User(msgspec.Struct, rename="kebab"):
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    client_certificate: str | None = None
    client_certificate_data: bytes | None = None
    client_key: str | None = None
    client_key_data: bytes | None = None


class _Context(msgspec.Struct):
    cluster: str
    user: str | None = None


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: _Cluster


class _NamedUser(msgspec.Struct):
    name: str
    user: _User


class _NamedContext(msgspec.Struct):
    name: str
    context: _Context


class _Kubeconfig(msgspec.Struct, rename="kebab"):
    """One file. Data of certificates and keys must be base64, which msgspec asks of bytes."""

    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str | None = None


def current_context(paths: str) -> str:
    """The context that kubectl would take: of the first file that names one.

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
    if lack := _lack(named[0], read):
        raise ValueError(f"current-context {named[0]!r}: {lack}")
    return named[0]


def _lack(name: str, read: list[_Kubeconfig]) -> str:
    """What is missing for this context; "" for nothing. Of several that have one name the first counts."""
    contexts = [entry.context for config in read for entry in config.contexts or () if entry.name == name]
    if not contexts:
        return "no context has that name; `kubectl config get-contexts` lists them"
    cluster, user = contexts[0].cluster, contexts[0].user
    servers = [entry.cluster.server for config in read for entry in config.clusters or () if entry.name == cluster]
    if not servers:
        return f"there is no cluster {cluster!r}"
    users = [entry for config in read for entry in config.users or () if entry.name == user]
    if servers[0].startswith("https") and not users:
        return f"its user is {user or ''!r}, which is not there; a server of https lets nobody in without"
    return ""


def _read(file: Path, where: str) -> _Kubeconfig:
    try:
        written = yamlfile.one(file.read_text("utf-8"))
        if written is None:
            raise ValueError("the file is empty")
        return msgspec.convert(written, _Kubeconfig)
    except yamlfile.UnreadableYaml as error:
        raise ValueError(where + error.unquoted) from None
    except (OSError, ValueError) as error:  # msgspec.ValidationError is one; it names the field as $.users[0].name
        raise ValueError(where + str(error).replace("`$.", "`")) from error
