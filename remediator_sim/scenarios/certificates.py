"""The Secret with which the controller serves, and what the scheduler and Alertmanager of the demo show and trust."""

import ssl
from datetime import datetime, timedelta
from pathlib import Path

from remediator.core import names
from remediator.kube.api.builtin import SECRET, Secret
from remediator.kube.wire.client import Client
from remediator.web import certificates
from remediator.web.serving import served_names

LIFE = timedelta(days=1)


async def caller(client: Client, name: str, folder: Path, now: datetime) -> ssl.SSLContext:
    """What a caller of this name trusts and shows; its files lie in `folder`. The first call makes the authority."""
    held = {
        secret.metadata["name"]: secret for secret in await client.list_all(SECRET, namespace=names.SYSTEM_NAMESPACE)
    }
    data = held[names.SERVING_SECRET].data if names.SERVING_SECRET in held else await _made(client, now)
    folder.mkdir()
    for file, text in certificates.for_caller(data, name, LIFE, now).items():
        (folder / file).write_bytes(text)
    context = ssl.create_default_context(cafile=folder / "ca.crt")
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    return context


async def _made(client: Client, now: datetime) -> dict[str, bytes]:
    data = certificates.renewed({}, served_names(names.SYSTEM_NAMESPACE), now)
    assert data is not None
    secret = Secret({"name": names.SERVING_SECRET, "namespace": names.SYSTEM_NAMESPACE}, data)
    await client.create(SECRET, secret, namespace=names.SYSTEM_NAMESPACE)
    return data
