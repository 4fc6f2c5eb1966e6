"""The connection of a kubeconfig whose user asks a plugin who they are: `kubernetes.aio` asks it, and again later.

The library is imported here alone: it takes 14 MiB and a third of a second, which all others do without.
"""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from kubernetes.aio import config
from kubernetes.aio.client import Configuration

from remediator.kube.wire.connection import Connection, tls

REFRESH_SECONDS = 60.0
log = structlog.get_logger(__name__)


async def connection(paths: str, context: str) -> Connection:
    """As this context of the kubeconfigs says. Raises OSError and ValueError."""
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
        partial(_header, configuration),
        configuration.tls_server_name or "",
        configuration.proxy or "",
        partial(_refresh, loader, configuration) if _header(configuration) else None,
    )


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
