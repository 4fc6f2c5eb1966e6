"""One request from the door to its answer: faults, credentials, limits, GitHub's description, the operation."""

import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from remediator_sim.github import operations, routes
from remediator_sim.github.faults import GithubFault, GithubFaults
from remediator_sim.github.handlers import GitHubState, installation_token
from remediator_sim.github.refusal import Refusal, not_found
from remediator_sim.github.request import GithubAnswer, GithubRequest, Logged
from remediator_sim.github.validate import all_errors, shape_errors

VERSION = "2022-11-28"
FOREIGN = "http://github.invalid"


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes out. `cut`: nothing does, and the connection breaks; `silent`: nothing ever does."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut: bool = False
    silent: bool = False


@dataclass(slots=True)
class GithubDispatcher:
    """Serves one `GitHubState`, and keeps what tests ask about."""

    github: GitHubState
    web: str
    described: bool = True  # whether GitHub's description is asked
    faults: GithubFaults = field(default_factory=GithubFaults)
    log: list[Logged] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)  # requests that GitHub's description forbids
    broken: list[str] = field(default_factory=list)  # answers of ours that it forbids

    def serve(self, request: GithubRequest) -> Reply:
        """The reply to one request."""
        fault = self.faults.meet(request.method, request.path)
        if fault is None or fault.carried_out or fault.foreign:
            reply = self._carry_out(request)
        else:
            reply = Reply(0)
        if fault is not None:
            reply = self._spoil(reply, fault)
        status = 0 if reply.cut or reply.silent else reply.status
        shown = {name: value for name, value in request.headers.items() if name != "authorization"}
        self.log.append(Logged(request.method, request.path, request.query, shown, request.body, status, request.at))
        return reply

    def _spoil(self, reply: Reply, fault: GithubFault) -> Reply:
        if fault.drop or fault.silent:
            return Reply(0, cut=fault.drop, silent=fault.silent)
        if fault.foreign:
            headers = {name: value.replace(self.web, FOREIGN) for name, value in reply.headers.items()}
            return replace(reply, headers=headers, body=reply.body.replace(self.web.encode(), FOREIGN.encode()))
        if fault.text:
            return Reply(fault.status, {"content-type": "text/html", **fault.headers}, fault.text.encode())
        refusal = Refusal(fault.status, fault.message, headers=fault.headers)
        return Reply(fault.status, refusal.headers, json.dumps(refusal.body()).encode())

    def _carry_out(self, request: GithubRequest) -> Reply:
        request = replace(request, path=self.github.store.spelled(request.path))
        if there := self.github.store.leads(request.path):
            return self._elsewhere(request, there)
        found = routes.find(request)
        route = found[0] if found else None
        resource = route.resource if route else "core"
        try:
            self._admit(request, route)
            if found is None:
                raise not_found()
            answer, model = found[0].handler(self.github, found[1]), found[0].answers
        except Refusal as refusal:
            answer, model = GithubAnswer(refusal.status, refusal.body(), refusal.headers), refusal.model
        body = b"" if answer.body is None else json.dumps(answer.body).encode()
        if answer.body is not None and model and self.described:
            self.broken += [f"{request.method} {request.path}: {error}" for error in all_errors(model, body)]
        limits = self.github.limits.headers(resource, request.at) if resource else {}
        return self._conditional(request, resource, Reply(answer.status, limits | dict(answer.headers), body))

    def _elsewhere(self, request: GithubRequest, there: str) -> Reply:
        """Another address instead of an answer: GitHub redirects reads with 301, and 307 asks to repeat a write."""
        query = f"?{urlencode(request.query)}" if request.query else ""
        moved = Refusal(301 if request.method == "GET" else 307, "Moved Permanently")
        body = moved.body() | {"url": f"{self.github.api}{there}{query}"}
        return Reply(moved.status, {"location": body["url"]}, json.dumps(body).encode())

    def _admit(self, request: GithubRequest, route: routes.Route | None) -> None:
        """Let a request in, or raise the Refusal that GitHub would give."""
        version = request.headers.get("x-github-api-version")
        if version != VERSION:
            self._violate(request, f"X-GitHub-Api-Version is {version}, not {VERSION}")
        if route is None or route.handler is not installation_token:
            self.github.tokens.check(request.headers.get("authorization", ""), request.at)
        if route is None:
            return
        if route.resource:
            self.github.limits.spend(route.resource, request.at, creates=route.creates)
        if route.described and self.described:
            for problem in operations.find(route.method, route.described).query_errors(request.query):
                self._violate(request, problem)
        if route.asks and request.raw:
            self._judge(request, route.asks)
        elif route.asks:
            self._violate(request, "no body")
            raise Refusal(400, "Body should be a JSON object")

    def _judge(self, request: GithubRequest, model: str) -> None:
        """GitHub's answer to a body that its description forbids; a field that it does not know is only noted."""
        try:
            json.loads(request.raw)
        except ValueError:
            self._violate(request, "not JSON")
            raise Refusal(400, "Problems parsing JSON") from None
        if not self.described:
            return
        for problem in all_errors(model, request.raw):
            self._violate(request, problem)
        if problems := shape_errors(model, request.raw):
            raise Refusal(422, "Invalid request.\n\n" + "\n".join(problems))

    def _violate(self, request: GithubRequest, problem: str) -> None:
        self.violations.append(f"{request.method} {request.path}: {problem}")

    def _conditional(self, request: GithubRequest, resource: str, reply: Reply) -> Reply:
        """An ETag on what was read; 304 to who has it already, which costs nothing."""
        if request.method != "GET" or reply.status != 200:
            return reply
        tag = f'W/"{hashlib.sha256(reply.body).hexdigest()[:32]}"'
        tagged = replace(reply, headers={**reply.headers, "etag": tag})
        if request.headers.get("if-none-match") != tag:
            return tagged
        if resource:
            self.github.limits.quota(resource, request.at).used -= 1
        return replace(tagged, status=304, body=b"")


def parse(raw: bytes) -> Any:
    """The JSON of a body, for those who look at it before GitHub's description did; None where it is none."""
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        return None
