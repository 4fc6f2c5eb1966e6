"""The connection that a kubeconfig names.

Certificates, tokens and passwords are read here. Where a plugin gives them, the library asks it, and is imported only
then: with it every command of a user would begin a third of a second later.
"""

import base64
from collections.abc import Callable
from pathlib import Path

from remediator.kube.wire.connection import Connection, TokenFile, bearer, nobody, tls
from remediator.kube.wire.kubeconfig import CurrentContext, KubeconfigUser, current_context


async def connection(paths: str) -> Connection:
    """As the current context of the kubeconfigs says. Raises FileNotFoundError, OSError and ValueError."""
    context = current_context(paths)
    if not context.user.asks_plugin:
        return direct(context)
    from remediator.kube.wire import kubeconfig_plugin

    return await kubeconfig_plugin.connection(paths, context.name)


def direct(context: CurrentContext) -> Connection:
    """For who needs no plugin. Raises OSError and ValueError that names the field."""
    cluster, user = context.cluster, context.user
    server = cluster.server.rstrip("/")
    files: list[Path | bytes | None] = [None] * 3
    if server.startswith("https"):
        files = [
            _file_or_data("certificate-authority", cluster.certificate_authority, cluster.certificate_authority_data),
            _file_or_data("client-certificate", user.client_certificate, user.client_certificate_data),
            _file_or_data("client-key", user.client_key, user.client_key_data),
        ]
    return Connection(
        server,
        tls(*files, verified=not cluster.insecure_skip_tls_verify),
        _authorization(user),
        cluster.tls_server_name or "",
        cluster.proxy_url or "",
    )


def _authorization(user: KubeconfigUser) -> Callable[[], str]:
    """A token counts before a password, and an empty one for none, as with kubectl. Raises OSError and ValueError."""
    if user.token:
        header = bearer(user.token)
        return lambda: header
    if user.token_file:
        return TokenFile(Path(user.token_file))
    if user.username is None or user.password is None:
        return nobody
    shown = base64.b64encode(_utf8("username", user.username) + b":" + _utf8("password", user.password)).decode()
    return lambda: f"Basic {shown}"


def _utf8(field: str, text: str) -> bytes:
    """Raises ValueError that says nothing of the text, which may be a secret."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{field} of the user: has half of a surrogate pair, which UTF-8 cannot write") from None


def _file_or_data(field: str, file: str | None, data: bytes | None) -> Path | bytes | None:
    if data or not file:
        return data or None
    if not Path(file).is_file():
        raise ValueError(f"{field}: there is no file {file}")
    return Path(file)
