"""How an API server is reached: its address, TLS, a proxy, and what a request shows to be let in."""

import re
import ssl
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import structlog
from yarl import URL

log = structlog.get_logger(__name__)


def nobody() -> str:
    """Shows nothing, or nothing but the certificate."""
    return ""


@dataclass(frozen=True, slots=True)
class Connection:
    """One server, and us.

    `server` is a URL without a slash at its end. `authorization()` is the header of the next request, "" for none.
    `renewal()`, where there is one, runs as long as the connection is used.

    Raises ValueError that names the field of a kubeconfig where an address is none.
    """

    server: str
    tls: ssl.SSLContext | None = None
    authorization: Callable[[], str] = nobody
    tls_server_name: str = ""
    proxy: str = ""
    renewal: Callable[[], Coroutine[Any, Any, None]] | None = None

    def __post_init__(self) -> None:
        for field, url in (("server", self.server), ("proxy-url", self.proxy)):
            if (url or field == "server") and not is_url(url):
                raise ValueError(
                    f"{field} of the cluster is {without_user(url)!r}, not a URL such as https://HOST:PORT"
                )
        if wrong := wrong_user(self.proxy):
            raise ValueError(f"proxy-url of the cluster is {without_user(self.proxy)!r}: {wrong}")
        if "@" in urlsplit(self.server).netloc:
            raise ValueError("server of the cluster names a user: write who asks under users of the kubeconfig")


class TokenFile:
    """The header with the token of a file that somebody renews, such as a kubelet; it is read again when it is another.

    Raises OSError or ValueError where there is no token at the start; later the last one is shown until there is.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._failure = path, ""
        self._read = self._stamp()
        self._header = bearer(path.read_text())

    def __call__(self) -> str:
        """The header."""
        try:
            if (stamp := self._stamp()) != self._read:
                self._header = bearer(self._path.read_text())
                self._read = stamp
            self._failure = ""
        except (OSError, ValueError) as error:
            if str(error) != self._failure:
                log.warning("token not read; the last one is shown", file=str(self._path), error=str(error))
            self._failure = str(error)
        return self._header

    def _stamp(self) -> tuple[int, int, int]:
        stat = self._path.stat()
        return stat.st_mtime_ns, stat.st_ino, stat.st_size


def bearer(token: str) -> str:
    """The header that shows a token. Raises ValueError for what is none, so that it says nothing of it."""
    token = token.strip()  # a file ends with a line break
    if not token:
        raise ValueError("token: there is none in the file")
    if not token.isprintable():
        raise ValueError("token of the user: has a line break, or another character that no token has")
    return f"Bearer {token}"


def tls(
    authority: Path | bytes | None = None,
    certificate: Path | bytes | None = None,
    key: Path | bytes | None = None,
    *,
    verified: bool = True,
) -> ssl.SSLContext:
    """TLS with certificates that are files or PEM; those that the system trusts where no authority is given.

    Raises OSError for a file that cannot be read, ValueError for what is no PEM.
    """
    try:
        context = _trusting(authority)
        if certificate is not None:
            with _files(certificate, key) as (certificate_file, key_file):
                context.load_cert_chain(certificate_file, key_file)
    except ssl.SSLError as error:
        fields = "certificate-authority, client-certificate or client-key, or their -data"
        raise ValueError(f"{fields}: not the PEM that was expected ({error})") from error
    if not verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _trusting(authority: Path | bytes | None) -> ssl.SSLContext:
    if isinstance(authority, bytes):
        return ssl.create_default_context(cadata=authority.decode("ascii", "replace"))
    return ssl.create_default_context(cafile=authority)


@contextmanager
def _files(certificate: Path | bytes, key: Path | bytes | None) -> Iterator[tuple[Path, Path | None]]:
    """OpenSSL reads both from files only; what is none is in a folder that nobody else may read, for so long."""
    with tempfile.TemporaryDirectory(prefix="remediator-") as folder:
        yield _file(certificate, Path(folder, "crt")), _file(key, Path(folder, "key")) if key else None


def _file(given: Path | bytes, place: Path) -> Path:
    if isinstance(given, bytes):
        place.write_bytes(given)
        return place
    return given


def without_user(url: str) -> str:
    """What may be no URL, without the user and the password that may stand before the host."""
    user, at, host = url.rpartition("@")
    scheme = re.findall("^[a-z0-9]+://", user)  # there may be none, or less of it
    return "".join([*scheme, "[secret]@", host]) if at else url


def wrong_user(proxy: str) -> str:
    """Why a proxy cannot be shown the user or the password in its URL, "" where it can: each request would fail."""
    url = URL(proxy)
    if ":" in (url.user or ""):
        return "its user has a colon, which begins the password"
    try:
        f"{url.user}:{url.password}".encode("latin-1")
    except UnicodeEncodeError:
        return "its user or its password has a character that is none of Latin-1"
    return ""


def is_url(text: str) -> bool:
    """Whether it is one of HTTP(S) that can be asked: aiohttp would refuse it only later, at each request."""
    try:
        url = urlsplit(text)
        (URL(text).raw_host or "").encode("idna")  # an empty part of a name raises, and one of more than 63 characters
        return url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0  # a port out of range raises
    except ValueError:
        return False
