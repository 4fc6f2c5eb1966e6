"""What all ports but that of probes serve TLS with, kept up to date without a restart."""

import asyncio
import os
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

import structlog

from remediator.clock import Clock
from remediator.core import names
from remediator.kube.api.builtin import SECRET, Secret
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client
from remediator.metrics import CERTIFICATE_ENDS

log = structlog.get_logger()
SOON = 2.0  # seconds until the next look while there is nothing to serve with
SERVICES = ("remediator-extender", "remediator-webhook", "remediator-page", names.EVICTIONS)


class PemOrigins(NamedTuple):
    """Where the parts of a Pem come from, for whoever must correct them."""

    chain: str
    key: str
    callers: str


class Pem(NamedTuple):
    """A chain with its key, and the authorities of callers; "" where certificates of callers are not taken."""

    chain: bytes
    key: bytes
    callers: str
    places: PemOrigins


class CertificateSource(Protocol):
    """Where certificates come from; looked at again every so many seconds."""

    every: float

    async def read(self) -> Pem:
        """What to serve with now. Raises ApiError, OSError or ValueError, never with a secret in it."""


class Files:
    """Files that somebody else writes, such as cert-manager."""

    every = 10.0

    def __init__(self, chain: Path, key: Path, callers: Path | None) -> None:
        self._chain, self._key, self._callers = chain, key, callers
        self._places = PemOrigins(f"--tls-cert-file {chain}", f"--tls-key-file {key}", _option(callers))

    async def read(self) -> Pem:
        """The files as they are now."""
        chain, key = _read(self._chain, self._places.chain), _read(self._key, self._places.key)
        return Pem(chain, key, _authorities(self._callers), self._places)


class FromSecret:
    """The Secret of ours that every replica reads, and that the first one to see it empty, or to end soon, writes."""

    every = 600.0

    def __init__(self, client: Client, namespace: str, clock: Clock, callers: Path | None) -> None:
        from remediator.web import certificates  # only here: it takes 8 MiB, which who serves no TLS does without

        self._client, self._namespace, self._clock, self._callers = client, namespace, clock, callers
        self._renewed = certificates.renewed

    async def read(self) -> Pem:
        """What the Secret holds, or what we have just written there. Who loses a race reads what the other wrote."""
        secret = await self._get()
        wanted = self._renewed(secret.data, served_names(self._namespace), self._clock.wall())
        if wanted is not None:
            secret = await self._write(Secret(secret.metadata, wanted, type=secret.type))
        callers = _authorities(self._callers) if self._callers else secret.data["ca.crt"].decode()
        places = PemOrigins(*(f"{name} of Secret {names.SERVING_SECRET}" for name in ("tls.crt", "tls.key", "ca.crt")))
        if self._callers:
            places = places._replace(callers=_option(self._callers))
        return Pem(secret.data["tls.crt"], secret.data["tls.key"], callers, places)

    async def _get(self) -> Secret:
        try:
            return await self._client.get(SECRET, names.SERVING_SECRET, namespace=self._namespace)
        except errors.NotFound:
            return Secret({"name": names.SERVING_SECRET, "namespace": self._namespace})

    async def _write(self, secret: Secret) -> Secret:
        """Under the version that was read."""
        try:
            if secret.stored:
                return await self._client.replace(SECRET, names.SERVING_SECRET, secret, namespace=self._namespace)
            return await self._client.create(SECRET, secret, namespace=self._namespace)
        except (errors.AlreadyExists, errors.Conflict):
            return await self._client.get(SECRET, names.SERVING_SECRET, namespace=self._namespace)


def _option(callers: Path | None) -> str:
    return f"--client-ca-file {callers}"


def _authorities(callers: Path | None) -> str:
    """The certificates of a file in ASCII; "" where none is given. Raises OSError."""
    return _read(callers, _option(callers)).decode(errors="replace") if callers else ""


def _read(file: Path, place: str) -> bytes:
    """Raises OSError that names the option."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise OSError(f"{place} cannot be read: {error.strerror}") from error


def served_names(namespace: str) -> list[str]:
    """What callers may call us by: our Services, and this machine."""
    suffixes = ("", f".{namespace}", f".{namespace}.svc", f".{namespace}.svc.cluster.local")
    return [*(service + suffix for service in SERVICES for suffix in suffixes), "localhost", "127.0.0.1", "::1"]


NAMES = ("extender", "webhook", "github", "page", "evictions")  # endpoints
# Nobody is asked for a certificate: a browser would ask its user for one, and the API server has none for us.
UNASKED = frozenset({"page", "evictions"})


class Tls:
    """The context of new connections; None until there is a certificate. Run it as a task.

    `token` says whether callers may show a token, in which case those without a certificate are let through to it.
    """

    def __init__(self, source: CertificateSource, *, tokens: Iterable[str]) -> None:
        from remediator.web import certificates

        self._source, self._tokens, self._ends = source, frozenset(tokens), certificates.ends
        self._pem: Pem | None = None
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._failure = ""

    def ready(self) -> bool:
        """Whether there is something to serve with."""
        return self._pem is not None

    def context(self, endpoint: str) -> ssl.SSLContext | None:
        """For a connection to this endpoint that is made now."""
        return self._contexts.get(endpoint)

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(self._source.every if self.ready() else SOON)

    async def look(self) -> None:
        """Take in what there is now. What cannot be read leaves things as they are, and is said once."""
        try:
            pem = await self._source.read()
            if pem != self._pem:
                contexts = {name: context(_asking(pem, name), token=name in self._tokens) for name in NAMES}
                until = self._ends(pem.chain)
                self._contexts, self._pem = contexts, pem
                CERTIFICATE_ENDS.labels("server").set(until.timestamp())
                log.info("serving with a certificate", until=str(until))
            self._failure = ""
        except (errors.ApiError, OSError, TimeoutError, ValueError) as error:
            if self._failure != (failure := str(error) or type(error).__name__):
                log.error(
                    "no certificate to serve with" if self._pem is None else "certificate not renewed", error=failure
                )
            self._failure = failure


def _asking(pem: Pem, endpoint: str) -> Pem:
    return pem._replace(callers="") if endpoint in UNASKED else pem


def context(pem: Pem, *, token: bool) -> ssl.SSLContext:
    """Raises ValueError that names the place for what is no certificate, or not of its key."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.options |= ssl.OP_NO_RENEGOTIATION
    made.num_tickets = 0  # callers keep their connections
    made.set_alpn_protocols(["http/1.1"])
    _load(made, pem)
    if pem.callers:
        _trust(made, pem)
        made.verify_mode = ssl.CERT_OPTIONAL if token else ssl.CERT_REQUIRED
    return made


def _trust(made: ssl.SSLContext, pem: Pem) -> None:
    try:
        made.load_verify_locations(cadata=pem.callers)
    except (ssl.SSLError, ValueError) as error:
        raise ValueError(
            f"{pem.places.callers} holds no certificates in PEM ({_why(error)}): write those of the authority that "
            "signs the certificates of callers"
        ) from error


def _why(error: Exception) -> str:
    return str(getattr(error, "reason", None) or "no PEM")


def _load(made: ssl.SSLContext, pem: Pem) -> None:
    """OpenSSL reads a chain from a file only; this one is in memory, so that no key lies on a disk.

    Without a password of ours it would ask for one on the terminal where a key is encrypted.
    """
    with os.fdopen(os.memfd_create("chain"), "wb") as file:
        file.write(pem.chain + b"\n" + pem.key)
        file.flush()
        try:
            made.load_cert_chain(f"/proc/self/fd/{file.fileno()}", password="")
        except (ssl.SSLError, ValueError) as error:
            raise ValueError(
                f"{pem.places.chain} and {pem.places.key} are no certificate with its key in PEM ({_why(error)}): "
                "write the chain into one, and the key of its first certificate, without a password, into the other"
            ) from error
