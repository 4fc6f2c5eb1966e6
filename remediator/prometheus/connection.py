"""One Prometheus or Alertmanager over prometheus-api-client, for threads: what is read is bounded in bytes and in time.

The library's own `custom_query` gives `data.result` alone: a warning of a store that did not answer is lost, and a
partial answer looks like a whole one. So its session is used, and the whole answer is read.
"""

from collections.abc import Callable
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from typing import Any

import requests
from prometheus_api_client import PrometheusConnect
from requests.adapters import BaseAdapter
from urllib3.exceptions import HTTPError, ReadTimeoutError
from urllib3.util import Retry

from remediator import secret_file
from remediator.prometheus.deadline import LimitedAdapter, QuestionDeadline

LARGEST = 1 << 20  # bytes of an answer to a query
QUERY = "/api/v1/query"
PIECE = 1 << 14
ADDRESSES = 4  # that a name may have and that are all tried in time, where none answers


class TooLarge(Exception):
    """The answer is larger than any that can be meant."""


class TooSlow(Exception):
    """The answer was not there in time."""


class BrokenOff(Exception):
    """The answer ends before its end."""


class NoBearerToken(Exception):
    """The file of the token holds none that can be sent; the message says why."""


class PrometheusConnection(PrometheusConnect):  # type: ignore[misc]
    """A client that gives the whole answer. Nothing is tried again, and no redirect is followed."""

    def __init__(self, url: str, token: Path | None, authority: Path | None, monotonic: Callable[[], float]) -> None:
        session = requests.Session()
        session.trust_env = False  # else a .netrc would replace the token
        session.verify = str(authority) if authority else True
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        super().__init__(url=url.rstrip("/"), retry=Retry(0, read=False), session=session)
        self.carry_by(LimitedAdapter())
        self._token, self._monotonic, self._sent = token, monotonic, ""

    def carry_by(self, adapter: BaseAdapter) -> None:
        """Let another adapter of requests carry what is asked."""
        self._session.mount(self.url, adapter)

    def instant(self, params: dict[str, Any], seconds: float) -> tuple[int, bytes]:
        """The status and the body of one answer to a query; see `get`."""
        return self.get(QUERY, params, seconds, LARGEST)

    def get(self, path: str, params: dict[str, Any], seconds: float, largest: int) -> tuple[int, bytes]:
        """The status and the body of one answer, of so many bytes and after so many seconds at most.

        Raises NoToken, TooLarge, TooSlow, BrokenOff, and what requests raises.
        """
        with QuestionDeadline(seconds, self._monotonic) as deadline:
            try:
                answer = self._answer(path, params, seconds, largest)
            except Exception:
                if not deadline.passed:
                    raise
            if deadline.passed:  # else the time may have ended the body, and it looks whole
                raise TooSlow
            return answer

    def _answer(self, path: str, params: dict[str, Any], seconds: float, largest: int) -> tuple[int, bytes]:
        asked = self._session.get(
            f"{self.url}{path}",
            params=params,
            headers=self._headers(),
            timeout=(seconds / ADDRESSES, seconds),
            allow_redirects=False,
            stream=True,
        )
        with asked as answer:
            return answer.status_code, self._body(answer, largest)

    def hidden(self, text: str) -> str:
        """The text without the token: what a server says may quote it."""
        return text.replace(self._sent, "(token)") if self._sent else text

    def _headers(self) -> dict[str, str]:
        headers = {"Accept-Encoding": "identity"}
        if self._token is None:
            return headers
        try:
            token = secret_file.read(self._token, secret_file.not_one_word)
        except (OSError, ValueError) as failed:
            raise NoBearerToken(str(failed)) from None
        if not token:
            raise NoBearerToken(f"the file {self._token} is empty; write the token into it")
        self._sent = token
        return headers | {"Authorization": f"Bearer {token}"}

    def _body(self, answer: requests.Response, largest: int) -> bytes:
        pieces, size = [], 0
        try:
            while piece := answer.raw.read1(PIECE):  # what there is; `iter_content` would wait for all of a piece
                size += len(piece)
                if size > largest:
                    raise TooLarge
                pieces.append(piece)
        except ReadTimeoutError:
            raise TooSlow from None
        except HTTPError as failed:
            raise BrokenOff from failed
        return b"".join(pieces)
