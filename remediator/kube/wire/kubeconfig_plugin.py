"""The connection that a kubeconfig names: `kubernetes.aio` reads it, and asks plugins for tokens.

The library is imported here alone, so that a controller in a Pod, which has no kubeconfig, does without its 14 MiB.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from kubernetes.aio import config
from kubernetes.aio.client import Configuration

from remediator.kube.wire import kubeconfig
from remediator.kube.wire.connection import Connection, TokenFile, tls

REFRESH_SECONDS = 60.0
log = structlog.get_logger(__name__)


async def connection(paths: str) -> Connection:
    """As the current context of the kubeconfigs says. Raises FileNotFoundError, OSError and ValueError."""
    context = kubeconfig.current_context(paths)  # the library would take that of the last file
    configuration = Configuration()
    try:
        loader = await config.load_kube_config(paths, context, configuration, persist_config=False)
    except config.ConfigException as wrong:
        raise ValueError(str(wrong)) from wrong
    if loader._user and "exec" in loader._user and not (configuration.api_key or configuration.cert_file):
        raise ValueError("exec of the user gave neither a token nor a certificate")  # the library logs why
    if not _header(configuration).isprintable():
        raise ValueError("token of the user: has a line break, or another character that no token has")
    authority, certificate, key = (
        Path(file) if file else None
        for file in (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    )
    return Connection(
        configuration.host,
        tls(authority, certificate, key, verified=configuration.verify_ssl),
        _authorization(loader, configuration),
        configuration.tls_server_name or "",
        configuration.proxy or "",
        partial(_refresh, loader, configuration) if _header(configuration) else None,
    )


def _authorization(loader: Any, configuration: Any) -> Callable[[], str]:
    """A file of a token is read again when it is another; the library reads it once."""
    user = loader._user
    if user and "tokenFile" in user and "token" not in user and "exec" not in user:
        return TokenFile(Path(loader._get_base_path(user.path), user["tokenFile"]))
    return partial(_header, configuration)


def _header(configuration: Any) -> str:
    token: str = configuration.api_key.get("BearerToken", "")
    return token.strip()


async def _refresh(loader: Any, configuration: Any) -> None:
    """Keep the token fresh: the library offers this, but does not start it and stops at an error."""
    while True:
        try:
            await config.refresh_token(loader, configuration, interval=REFRESH_SECONDS)
            return  # a token that never changes
        except Exception as error:
            log.warning("token not refreshed", server=configuration.host, error=str(error))
            await asyncio.sleep(REFRESH_SECONDS)
