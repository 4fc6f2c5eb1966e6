"""The one place that every write of a program passes: what touches a node gets a line in the log (docs/logs.md)."""

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import partial

import msgspec
import structlog

from remediator.core import names
from remediator.core.audit import (
    ACCEPTED,
    LEASES,
    PODS,
    QUIET,
    AuditOutcome,
    Mandate,
    Value,
    Write,
    line,
    outcome,
    quiet,
    says_again,
)
from remediator.core.case import Case
from remediator.core.node import Node
from remediator.core.pod import Pod
from remediator.kube import api
from remediator.kube.api.decode.writes import NODES, place, renews, write
from remediator.kube.runtime.informer import Informer
from remediator.kube.wire import frames
from remediator.kube.wire.transport import JSON, Query, Reply, Stream, Transport

log = structlog.get_logger()
READS = frozenset({"GET", "HEAD"})
CASES = f"{api.CASE.plural}.{names.GROUP}"
DRY_RUN = ("dryRun", "All")
LOST = "no answer"
MOST_SAID = 4096  # objects of which the last line is known
_word: ContextVar[Mandate | None] = ContextVar("word", default=None)


@contextmanager
def on_behalf(word: Mandate) -> Iterator[None]:
    """What is written within is written on this word, where the object itself does not say on whose."""
    token = _word.set(word)
    try:
        yield
    finally:
        _word.reset(token)


class Caches:
    """What is known of nodes, cases and Pods before a write; without them a line says less."""

    def __init__(self, nodes: Informer[Node], cases: Informer[Case], pods: Informer[Pod]) -> None:
        self._nodes, self._cases, self._pods = nodes, cases, pods

    def node(self, name: str) -> Node | None:
        """The node of this name."""
        return self._nodes.get(name)

    def pod(self, key: str) -> Pod | None:
        """The Pod of an operation, by namespace/name."""
        return self._pods.get(key)

    def case(self, written: Write) -> Case | None:
        """The case that a write is about: which it names, else the open one of its node where it marks the node."""
        if written.resource.partition("/")[0] == CASES and (named := self._cases.get(written.name)):
            return named
        cases = [case for uid in written.uids for case in self._cases.by("uid", uid)]
        if written.resource != PODS:  # that of an operation may run elsewhere; a node may write another's uid on itself
            cases = [case for case in cases if written.node in ("", case.node)]
        marks = written.resource == NODES and any(change.field == "spec.taints" for change in written.changes)
        waiting = [case for case in self._cases.by("node", written.node) if case.open] if marks else []
        return next(iter((*cases, *waiting)), None)


class AuditedTransport:
    """A transport whose writes are said in the log, whatever becomes of them."""

    def __init__(self, inner: Transport, program: str) -> None:
        self._inner, self._program = inner, program
        self._said: dict[tuple[str, str, str], dict[str, Value]] = {}  # the last line of each object, the oldest first
        self.caches: Caches | None = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: bytes = b"",
        content_type: str = JSON,
        accept: str = JSON,
        timeout: float = 30.0,
    ) -> Reply:
        """See Transport.request."""
        tell = self._teller(method, path, body) if method not in READS and DRY_RUN not in query else None
        form = {"content_type": content_type, "accept": accept, "timeout": timeout}
        if tell is None:
            return await self._inner.request(method, path, query=query, body=body, **form)  # type: ignore[arg-type]
        reply = None
        try:
            reply = await self._inner.request(method, path, query=query, body=body, **form)  # type: ignore[arg-type]
            return reply
        finally:  # also where nobody waits for the answer any more
            tell(reply)

    def _teller(self, method: str, path: str, body: bytes) -> Callable[[Reply | None], None] | None:
        """The same as `_told_by`, with nothing that it or its answer could raise: no write hangs on its line."""
        try:
            tell = self._told_by(method, path, body)
        except Exception:
            log.exception("no audit line", method=method, path=path)
            return None
        return partial(_contained, tell) if tell is not None else None

    def _told_by(self, method: str, path: str, body: bytes) -> Callable[[Reply | None], None] | None:
        """How the end of a write is told; what is known before it is looked up now. None: it needs no line."""
        where = place(path)
        if (where.resource in QUIET and where.resource != LEASES) or renews(where, body):  # as most writes do
            return None
        known = self.caches
        node = known.node(where.name) if known and where.resource.partition("/")[0] == NODES else None
        pod = known.pod(f"{where.namespace}/{where.name}") if known and where.resource == PODS else None
        written = write(method, path, body, node, pod)
        if written.word is None and (word := _word.get()) is not None:
            written = replace(written, word=word)
        if written.repeats or quiet(written):
            return None
        case = known.case(written) if known else None
        return lambda reply: self._tell(written, case, reply)

    def _tell(self, written: Write, case: Case | None, reply: Reply | None) -> None:
        status, (reason, version) = (reply.status, _answer(reply)) if reply else (0, ("", ""))
        ended = outcome(written.verb, status, reason)
        why = "" if reply and status < 400 else f"{status} {reason}".strip() if reply else LOST
        write_line = log.info if ended in (AuditOutcome.DONE, AuditOutcome.RETRY) else log.warning
        entry = line(self._program, written, case, ended, why, version)
        if not self._says_again(entry):
            write_line("audit", **entry)

    def _says_again(self, entry: dict[str, Value]) -> bool:
        """Whether it says what was said of its object last, which it is from now on."""
        about = entry["resource"], entry["namespace"], entry["name"]
        before = self._said.pop(about, None)
        self._said[about] = entry
        if len(self._said) > MOST_SAID:
            del self._said[next(iter(self._said))]
        return says_again(entry, before)

    def stream(
        self, path: str, *, query: Query = (), idle_timeout: float = 75.0
    ) -> AbstractAsyncContextManager[Stream]:
        """See Transport.stream."""
        return self._inner.stream(path, query=query, idle_timeout=idle_timeout)

    async def close(self) -> None:
        """See Transport.close."""
        await self._inner.close()


def _contained(tell: Callable[[Reply | None], None], reply: Reply | None) -> None:
    with suppress(Exception):  # the log itself may be what fails
        tell(reply)


def _answer(reply: Reply) -> tuple[str, str]:
    """Why it was refused, in one word, and the version that the object has now; "" where it does not say."""
    try:
        if reply.status >= ACCEPTED:
            return msgspec.json.decode(reply.body, type=frames.WatchFailure).reason, ""
        return "", msgspec.json.decode(reply.body, type=frames.ObjectHead).metadata.resource_version
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "", ""
