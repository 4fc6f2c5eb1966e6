"""A Prometheus in memory that knows enough of PromQL for the queries of our tests: selectors, max, and comparisons.

tests/contract/prometheus holds it to a real one.
"""

import io
import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import requests
from requests.adapters import BaseAdapter

LOOKBACK = 300.0  # seconds that a sample is good for, unless a question says otherwise
_QUERY = re.compile(
    r"\s*(?P<max>max\s*\()?\s*(?P<name>[A-Za-z_:][\w:]*)\s*(?P<labels>\{[^}]*\})?\s*(?P<range>\[\d+[smh]\])?\s*"
    r"(?(max)\))\s*(?:(?P<compare>>=|<=|==|!=|>|<)\s*(?P<bool>bool\s+)?(?P<number>[\d.]+))?\s*"
)
_DATED = re.compile(r"\(\n(?P<query>.*)\n\)(?P<dates>( and on\(\) \(min\(timestamp\(.*?\)\) >= time\(\) - [\d.]+\))+)")
_DATE = re.compile(r"timestamp\((.*?)\)\) >= time\(\) - ([\d.]+)")
_LABEL = re.compile(r'\s*(\w+)\s*(=~|=)\s*"((?:\\.|[^"\\])*)"\s*(?:,|$)')
_NUMBER, _TEXT = re.compile(r"\s*([\d.]+)\s*"), re.compile(r"\s*\"([^\"]*)\"\s*")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}


class PrometheusReply(NamedTuple):
    """What a server answers."""

    status: int
    body: bytes
    headers: Mapping[str, str] = {}


class Sampled(NamedTuple):
    """The newest sample of one series."""

    labels: Mapping[str, str]
    at: float
    value: float


class MemoryPrometheus:
    """Its series, by what is written into them, and its answers. `now` gives seconds since 1970."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.series: dict[tuple[tuple[str, str], ...], Sampled] = {}

    def write(self, name: str, value: float, at: float | None = None, **labels: str) -> None:
        """A new sample of one series."""
        whole = {"__name__": name, **labels}
        self.series[tuple(sorted(whole.items()))] = Sampled(whole, self._now() if at is None else at, value)

    def answer(self, params: Mapping[str, str]) -> PrometheusReply:
        """What /api/v1/query says to these parameters."""
        query, lookback = params.get("query", ""), float(params.get("lookback_delta", LOOKBACK))
        if dated := _DATED.fullmatch(query):
            return self._dated(dated, params)
        if literal := _NUMBER.fullmatch(query):
            return self._success("scalar", [self._now(), literal[1]])
        if literal := _TEXT.fullmatch(query):
            return self._success("string", [self._now(), literal[1]])
        parsed = _QUERY.fullmatch(query)
        if parsed is None:
            return failure(400, "bad_data", f'invalid parameter "query": parse error: {query}')
        if parsed["range"]:
            return self._success("matrix", [])
        samples = [*self._compared(parsed, self._found(parsed, lookback))]
        return self._success("vector", [{"metric": labels, "value": [self._now(), shown]} for labels, shown in samples])

    def _dated(self, dated: re.Match[str], params: Mapping[str, str]) -> PrometheusReply:
        """The answer, or an empty one where a series that it names is older than it says."""
        reply = self.answer({**params, "query": dated["query"]})
        if reply.status == 200 and b'"resultType": "vector"' not in reply.body:
            return failure(400, "bad_data", "expected type instant vector in binary expression")
        for series, seconds in _DATE.findall(dated["dates"]):
            samples = self._selected(_QUERY.fullmatch(series), LOOKBACK)
            if not samples or min(sample.at for sample in samples) < self._now() - float(seconds):
                return reply if reply.status != 200 else self._success("vector", [])
        return reply

    def _found(self, parsed: re.Match[str], lookback: float) -> list[tuple[Mapping[str, str], float]]:
        samples = [(sample.labels, sample.value) for sample in self._selected(parsed, lookback)]
        return [({}, max(value for _, value in samples))] if parsed["max"] and samples else samples

    def _selected(self, parsed: re.Match[str] | None, lookback: float) -> list[Sampled]:
        if parsed is None:
            return []
        wanted = {(key, sign): value for key, sign, value in _LABEL.findall((parsed["labels"] or "{}")[1:-1])}
        return [
            sample
            for sample in self.series.values()
            if sample.labels["__name__"] == parsed["name"]
            and sample.at >= self._now() - lookback
            and all(_matches(sign, value, sample.labels.get(key, "")) for (key, sign), value in wanted.items())
        ]

    def _compared(
        self, parsed: re.Match[str], samples: list[tuple[Mapping[str, str], float]]
    ) -> Iterator[tuple[Mapping[str, str], str]]:
        for labels, value in samples:
            if not parsed["compare"]:
                yield labels, f"{value:g}"
                continue
            holds = _COMPARE[parsed["compare"]](value, float(parsed["number"]))
            if parsed["bool"]:
                yield {key: text for key, text in labels.items() if key != "__name__"}, str(int(holds))
            elif holds:
                yield labels, f"{value:g}"

    def _success(self, kind: str, result: Any) -> PrometheusReply:
        return success({"resultType": kind, "result": result})


def _matches(sign: str, wanted: str, value: str) -> bool:
    return value == wanted if sign == "=" else re.fullmatch(wanted, value) is not None


def success(data: Any, **more: Any) -> PrometheusReply:
    """An answer that gives something; `more` stands beside it, such as warnings."""
    return PrometheusReply(200, json.dumps({"status": "success", "data": data, **more}).encode())


def failure(status: int, kind: str, message: str) -> PrometheusReply:
    """An answer that says why there is none."""
    body = {"status": "error", "errorType": kind, "error": message}
    return PrometheusReply(status, json.dumps(body).encode(), {"Content-Type": "application/json"})


class InProcess(BaseAdapter):  # type: ignore[misc]
    """Carries what requests sends to a function instead of over a network. It may raise what requests raises."""

    def __init__(self, serve: Callable[[Mapping[str, str]], PrometheusReply]) -> None:
        super().__init__()
        self._serve = serve

    def send(self, request: requests.PreparedRequest, *args: Any, **named: Any) -> requests.Response:
        """See BaseAdapter."""
        params = {key: values[0] for key, values in parse_qs(urlsplit(request.url or "").query).items()}
        reply, response = self._serve(params), requests.Response()
        response.status_code, response.request = reply.status, request
        response.headers.update(reply.headers)
        response.raw, response.url = io.BytesIO(reply.body), request.url or ""
        return response

    def close(self) -> None:
        """Nothing is open."""
