"""The invariants, asked at every write as it happens."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from remediator_sim.apiserver import EmbeddedServer
from remediator_sim.apiserver.store import Change, Listener
from remediator_sim.invariants.checker import Checker
from remediator_sim.invariants.contract import KINDS
from remediator_sim.invariants.event import ABSENT, FINAL, KILLED, PERSON, TICK, Event
from remediator_sim.invariants.results import Checked
from remediator_sim.invariants.tracked import Limits

Tell = Callable[[Event], None]
EVERY = 20.0  # seconds between two looks at the clock


class Judge:
    """Listens to one server from its making on. `tell` is given each event once it was judged."""

    def __init__(self, server: EmbeddedServer, limits: Limits, tell: Tell, found: Callable[[str], None]) -> None:
        self._cluster, self._checker = server.cluster, Checker(limits)
        self._tell, self._found, self._known = tell, found, 0
        for kind in KINDS:
            for entry in server.cluster.store.collection(kind).entries.values():
                self._checker.history.take(Event(kind, self._cluster.now(), None, entry.obj))
            self._listen(kind)

    def _listen(self, kind: str) -> None:
        def hear(change: Change) -> None:
            old = change.old.obj if change.old else None
            new = None if change.type == "DELETED" else change.entry.obj
            self.put(kind, old, new)

        self._cluster.store.collection(kind).listen(Listener(None, hear, lambda: None))

    def put(self, kind: str, old: dict[str, Any] | None = None, new: dict[str, Any] | None = None) -> None:
        """One event, now."""
        event = Event(kind, self._cluster.now(), old, new)
        self._checker.hear(event)
        self._tell(event)
        self._report_news()

    def _report_news(self) -> None:
        broken = self.broken()
        for sentence in broken[self._known :]:
            self._found(sentence)
        self._known = len(broken)

    def broken(self) -> list[str]:
        """What was found wrong, by promise."""
        return [f"{checked.name}: {text}" for checked in self.report().values() for text in checked.broken]

    def report(self) -> Mapping[str, Checked]:
        """How each promise stands, and how often it was put to the test."""
        return self._checker.report()

    def nodes(self) -> list[str]:
        """The names of the nodes that there are."""
        return list(self._checker.history.nodes)

    def killed(self) -> None:
        """A replica has just been killed."""
        self.put(KILLED)

    def person(self, node: str, **marks: Any) -> None:
        """A user has just set this on a node, and it must stay."""
        usual: dict[str, Any] = {"labels": {}, "annotations": {}, "taints": [], "cordon": False}
        self.put(PERSON, None, {"node": node} | usual | marks)

    async def run(self) -> None:
        """Let time pass, until cancelled."""
        while True:
            await asyncio.sleep(EVERY)
            self.put(TICK)

    def end(self) -> None:
        """Everything has happened."""
        self.put(TICK)
        self.put(FINAL)

    def absent(self, absent: bool) -> None:
        """Whether nobody of us can act from now on."""
        self.put(ABSENT, None, {"absent": absent})
