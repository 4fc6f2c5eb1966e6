"""Who may ask: a certificate of this name, signed by the authority of callers, or the bearer of a token."""

import hmac
import ssl
from collections.abc import Callable
from functools import lru_cache

import structlog
from aiohttp import web

from remediator.metrics import CERTIFICATE_ENDS

log = structlog.get_logger()
CERTIFICATES = 64  # of callers whose end is remembered


# By how OpenSSL writes it: a caller shows the same certificate with each of its requests.
_ends = lru_cache(CERTIFICATES)(ssl.cert_time_to_seconds)


class Callers:
    """Those who show one of two things.

    `name` is the common name of a certificate, "" takes none; `token()` a bearer token, asked for each time so that
    it may be exchanged; while it is "" nobody comes in with one, nor while it raises OSError or ValueError, which is
    logged once. None takes none.
    """

    def __init__(self, name: str, token: Callable[[], str] | None) -> None:
        self._name, self._token, self._failure = name, token, ""
        words = [f"a client certificate for {name}"] * bool(name) + ["a bearer token"] * (token is not None)
        self.wanted = f"show {' or '.join(words)}"

    def may(self, request: web.Request) -> bool:
        """Whether the caller may ask. TLS has looked at the signature and the time of the certificate."""
        return self._certified(request) or self._carries(request.headers.get("Authorization", ""))

    def _certified(self, request: web.Request) -> bool:
        shown = request.get_extra_info("peercert") or {}
        subject = [pair for group in shown.get("subject", ()) for pair in group]
        if not self._name or ("commonName", self._name) not in subject:
            return False
        CERTIFICATE_ENDS.labels(self._name).set(_ends(shown["notAfter"]))
        return True

    def _carries(self, header: str) -> bool:
        """Takes as long for a wrong token as for the right one."""
        if self._token is None:
            return False
        scheme, _, given = header.partition(" ")
        token = self._now(self._token)
        same = hmac.compare_digest(given.strip().encode(errors="replace"), token.encode())
        return same and bool(token) and scheme.lower() == "bearer"

    def _now(self, token: Callable[[], str]) -> str:
        try:
            text, failure = token(), ""
        except (OSError, ValueError) as error:
            text, failure = "", str(error)
        if failure and failure != self._failure:
            log.error("nobody is let in with a token", error=failure)
        self._failure = failure
        return text


class Anybody(Callers):
    """Everybody on this machine, for trying out."""

    def __init__(self) -> None:
        super().__init__("", None)

    def may(self, request: web.Request) -> bool:
        """They may."""
        return True
