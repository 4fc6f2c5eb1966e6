"""The Kubernetes API over one kept connection: http.client, ssl and the token that the kubelet mounts. Nothing else.

A client library would take longer to import than most drains to evict.
"""

import http.client
import json
import re
import ssl
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import urlencode

from nodelib.contract import audit
from nodelib.contract.operation import Failed, Refused
from nodelib.net.answers import why

MERGE_PATCH = "application/merge-patch+json"
TIMEOUT = 30.0
AS_ASKED = (200, 201)  # what was asked for comes as it is
ESCAPED = re.compile(rb"\\(?:u00([2-7][0-9A-Fa-f])|(.))", re.DOTALL)  # of JSON: what a token may have, and all others


class Unreachable(Exception):
    """No answer came, or one that promises a better one later (5xx, 410, 429). Try again.

    `seconds`: how long was waited for a server that does not work; None where it has answered.
    """

    def __init__(self, message: str, seconds: float | None = None):
        super().__init__(message)
        self.seconds = seconds


class ApiReply:
    """One answer: its status, its JSON body ({} for none), how many seconds it asks to wait, the server's time."""

    def __init__(self, status: int, body: bytes, headers: Mapping[str, str]):
        self.status = status
        self.body: dict = _object(body)
        after = headers.get("Retry-After") or (self.body.get("details") or {}).get("retryAfterSeconds") or 0
        self.retry_after = float(after) if str(after).isdigit() else 0.0
        self._date = headers.get("Date")

    @property
    def at(self) -> datetime | None:
        """When it was given, by the server's clock; None where it does not say."""
        try:
            return parsedate_to_datetime(self._date) if self._date else None
        except ValueError:
            return None

    @property
    def message(self) -> str:
        """What the server says of a failure, with the causes that it names."""
        causes = (self.body.get("details") or {}).get("causes") or []
        words = [self.body.get("message") or f"HTTP {self.status}", *(cause.get("message") or "" for cause in causes)]
        return " ".join(word for word in words if word)


class Api:
    """Requests as the Pod's service account. The token is read anew for each, because the kubelet renews it."""

    def __init__(self, variables: Mapping[str, str], token_dir: str):
        try:
            self._host = variables["KUBERNETES_SERVICE_HOST"]
            self._port = int(variables.get("KUBERNETES_SERVICE_PORT") or 443)
            context = ssl.create_default_context(cafile=f"{token_dir}/ca.crt")
            self.namespace = _read(f"{token_dir}/namespace")
        except (KeyError, ValueError, OSError) as error:
            raise Refused(f"no API server to talk to: {type(error).__name__}: {error}") from error
        self._token_path, self._context = f"{token_dir}/token", context
        self._connection = http.client.HTTPSConnection(self._host, self._port, timeout=TIMEOUT, context=context)

    def get(self, path: str, **query: str) -> ApiReply:
        """Read an object or a list. Raises Unreachable, also for 410 and 429: ask again from the start."""
        reply = self.request("GET", f"{path}?{urlencode(query)}" if query else path)
        if reply.status in (410, 429):
            raise Unreachable(f"GET {path}: {reply.message}")
        return reply

    def get_object(self, path: str) -> dict:
        """Return one object. Raises Refused when there is none, Failed when we may not read it."""
        reply = self.get(path)
        if reply.status == 404:
            raise Refused(f"not there any more: {reply.message}")
        return _readable(path, reply)

    def get_object_if_any(self, path: str) -> dict:
        """Return one object, {} where there is none. Raises Failed when we may not read it."""
        reply = self.get(path)
        return {} if reply.status == 404 else _readable(path, reply)

    def wait_for_change(self, path: str, seconds: int, silence: float, **query: str) -> None:
        """Return when something of a list has changed, or after `seconds`. Raises Unreachable.

        A watch that says nothing for `silence` seconds, not even a bookmark, may be cut off: it has ended, too.
        """
        asked = {**query, "watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=silence, context=self._context)
        try:
            connection.request("GET", f"{path}?{urlencode(asked)}", None, self._headers())
            answer = connection.getresponse()
            if answer.status != 200:
                raise Unreachable(f"watch of {path}: HTTP {answer.status}")
            while (line := answer.readline()) and _object(line).get("type") == "BOOKMARK":
                pass
        except TimeoutError:
            return
        except (OSError, http.client.HTTPException) as error:
            raise Unreachable(f"watch of {path}: {why(error)}") from None
        finally:
            connection.close()

    def _headers(self) -> dict[str, str]:
        token = _read(self._token_path)
        if not re.fullmatch("[!-~]+", token):  # http.client would quote it in its error
            raise Unreachable(f"{self._token_path} holds no token, or more than one word")
        return {"Authorization": f"Bearer {token}", "Accept": "application/json"}

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        content_type: str = "application/json",
        before: dict | None = None,
    ) -> ApiReply:
        """Send one request, once, and return the answer. Raises Unreachable; nobody knows then whether it was done.

        What it changes gets its line in the log; `before` is the object as it was read.
        """
        headers = self._headers()
        if body is not None:
            headers["Content-Type"] = content_type
        began = time.monotonic()
        try:
            self._connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = self._connection.getresponse()
            reply = ApiReply(answer.status, _said(answer.status, answer.read(), headers), answer.headers)
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            waited = time.monotonic() - began
            audit.request(method, path, body, 0, {}, before)
            raise Unreachable(f"{method} {path}: {why(error)}", waited) from None
        audit.request(method, path, body, reply.status, reply.body, before)
        if reply.status >= 500:
            raise ServerError(reply, time.monotonic() - began)
        return reply


class ServerError(Unreachable):
    """The server answered 5xx. Some say something worth showing: two PodDisruptionBudgets over one Pod is a 500."""

    def __init__(self, reply: ApiReply, seconds: float):
        super().__init__(reply.message, seconds)
        self.reply = reply


def reply_to(request: Callable[..., ApiReply], *arguments: object) -> ApiReply:
    """Return the answer, also that of a server error: two PodDisruptionBudgets over one Pod are one."""
    try:
        return request(*arguments)
    except ServerError as error:
        return error.reply


def _readable(path: str, reply: ApiReply) -> dict:
    if reply.status != 200:
        raise Failed(f"{path} cannot be read: {reply.message}")
    return reply.body


def _said(status: int, body: bytes, sent: Mapping[str, str]) -> bytes:
    """A body; all but what was asked for without our token, which a server, or a proxy before it, may quote."""
    secret = sent["Authorization"].rpartition(" ")[2].encode()
    if status in AS_ASKED:
        return body
    body = body.replace(secret, b"[secret]")
    plain = ESCAPED.sub(_plain, body)
    return plain.replace(secret, b"[secret]") if secret in plain else body


def _plain(escaped: re.Match) -> bytes:
    """What JSON says without need by an escape, as itself; the text stays the same JSON."""
    code, other = escaped.groups()
    char = bytes.fromhex(code.decode()) if code else other
    return escaped[0] if char in b'"\\' or other not in (None, b"/") else char


def _object(body: bytes) -> dict:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {"message": body[:200].decode(errors="replace")}
    return value if isinstance(value, dict) else {}


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8").strip()
