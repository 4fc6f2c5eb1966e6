"""What an admission pass leaves to be written: that a case has claimed its node, or why it is held.

Many wait for the marks of a claim on the node, nobody for these records: the pass over each case writes them, and such
passes give way to claims that are still to be made.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple

from remediator.controller.cache import ClusterCache
from remediator.controller.effects import CreateEvents, Done, EffectResult, SaveCase
from remediator.controller.events import PendingEvents
from remediator.controller.hold import hold
from remediator.controller.perform import Performer
from remediator.core import names
from remediator.core.breaker import DisruptiveStart
from remediator.core.case import Block, Case, Phase
from remediator.core.jobs_at_stake import BlastRadius
from remediator.core.node import Node

AGAIN = 0.05  # seconds until the next pass over a case that has more to be written

Asking = tuple[Any, ...]  # the uid of a case, and all else of it that an admission may rest on
Considered = tuple[Asking, Node | None]


class Claimed(NamedTuple):
    """A case whose marks are on its node; `save` records that it holds the node, since `at`."""

    save: SaveCase
    at: datetime


class Records:
    """What is still to be written, by the names of cases, and what the last admission pass has seen of them."""

    def __init__(self) -> None:
        self._claimed: dict[str, Claimed] = {}
        self._holds: Mapping[str, tuple[Block, ...]] = {}  # by the uid of the case
        self._blast: Mapping[str, BlastRadius] = {}  # what those that are held show of it, by the uid of the case
        self._new_holds: list[str] = []
        self._asked: set[str] = set()  # uids of cases whose pass waits for what the next admission pass says
        self._considered: dict[str, Considered] = {}
        self._written: dict[str, datetime] = {}  # when status.blockedBy was written last, by the uid of the case
        self.events = PendingEvents()

    @property
    def due(self) -> list[str]:
        """The cases that something new may be written of since the last admission pass."""
        return [*self._claimed, *self._new_holds]

    def starts(self, cache: ClusterCache, since: datetime) -> list[DisruptiveStart]:
        """The claims admitted anew that no case says yet and whose entries in the ledgers are older than this."""
        claims = [(claimed.at, claimed.save.before) for claimed in self._claimed.values()]
        counted = ((at, case) for at, case in claims if case.takes_capacity)
        return [DisruptiveStart(at, case.uid, case.node) for at, case in counted if _older(cache, case.uid, since)]

    def as_claimed(self, cases: Iterable[Case]) -> list[Case]:
        """These cases; of those that only are to be told that they have claimed their node, what they will say."""
        return [self._claimed[case.name].save.after if self._has_claim(case) else case for case in cases]

    def _has_claim(self, case: Case) -> bool:
        claimed = self._claimed.get(case.name)
        return claimed is not None and claimed.save.before == case

    def clear(self) -> None:
        """Forget everything: who leads next reads it live."""
        self._claimed, self._holds, self._new_holds, self._asked = {}, {}, [], set()
        self._considered, self._written, self._blast = {}, {}, {}
        self.events.clear()

    # --- the admission pass ------------------------------------------------------------------------------------------

    def has_claim(self, case: Case) -> bool:
        """Whether the case has claimed its node and is only to be told so; not where it has changed meanwhile."""
        claimed = self._claimed.get(case.name)
        if claimed is not None and claimed.save.before != case:
            self._drop(claimed)
            return False
        return claimed is not None

    def _drop(self, claimed: Claimed) -> None:
        """Nothing is left to record of it: the case asks for admission anew, unless it says that it has claimed."""
        name = claimed.save.before.name
        if self._claimed.get(name) is claimed:
            del self._claimed[name]
            self._considered.pop(name, None)

    def consider(self, cases: dict[str, Considered], cache: ClusterCache) -> None:
        """A pass has begun over these, by name, and no others."""
        self._considered = cases
        self._claimed = {
            name: claimed for name, claimed in self._claimed.items() if cache.cases.get(name) == claimed.save.before
        }
        uids = {uid for (uid, *_), _ in self._considered.values()}
        self._written = {uid: at for uid, at in self._written.items() if uid in uids}

    def claim(self, save: SaveCase, now: datetime) -> None:
        """The marks of this case are on its node."""
        self._claimed[save.before.name] = Claimed(save, now)

    def hold(
        self, held: Sequence[tuple[Case, tuple[Block, ...]]], blast: Mapping[str, BlastRadius] | None = None
    ) -> None:
        """These are held, and no others. `blast`: what their starts would end, by the uid of the case."""
        blast = blast or {}
        self._new_holds = [
            case.name
            for case, blocks in held
            if case.uid in self._asked
            or self._holds.get(case.uid) != blocks
            or self._blast.get(case.uid) != blast.get(case.uid)
        ]
        self._holds, self._asked, self._blast = {case.uid: blocks for case, blocks in held}, set(), blast

    # --- the pass over a case ----------------------------------------------------------------------------------------

    def withdraw(self, case: Case) -> None:
        """A stop has come between the marks and the record: the next admission pass decides by what stands then."""
        claimed = self._claimed.get(case.name)
        if claimed is not None:
            self._drop(claimed)

    def asks(self, case: Case, node: Node | None) -> bool:
        """Whether the case needs an admission pass: the last one has not seen it and its node as they are now.

        The next one has the case looked at again, since what it says may be what it said before.
        """
        if self.has_claim(case) or self._considered.get(case.name) == considered(case, node):
            return False
        self._asked.add(case.uid)
        return True

    async def write(self, case: Case, performer: Performer, now: datetime) -> float | None:
        """Write what is to be written of this case; seconds until it may be written anew.

        A claim is recorded once: where that fails, the next admission pass reads live what has become of it. A hold is
        shown though the node changes all the time, but not of another state of the case.
        """
        if self.has_claim(case):
            claimed = self._claimed[case.name]
            result = await self._save(claimed.save, performer)
            self._drop(claimed)
            return AGAIN if isinstance(result, Done) else result.after
        asking, _ = self._considered.get(case.name, (None, None))
        blocks = self._holds.get(case.uid) if asking == _asking(case) else None
        return await self._hold(case, blocks, performer, now) if blocks else None

    async def _hold(self, case: Case, blocks: tuple[Block, ...], performer: Performer, now: datetime) -> float | None:
        """Show why a case may not start; the mark on its node gives way to what other cases have to show."""
        held = hold(case, blocks, self._written.get(case.uid), now, self._blast.get(case.uid))
        save = next((effect for effect in held.effects if isinstance(effect, SaveCase)), None)
        result = await (self._save(save, performer) if save else performer.all(held.effects))
        if not isinstance(result, Done):
            return result.after
        if save:
            self._written[case.uid] = now
            return AGAIN
        later = [when for when in (held.rewrite_at, held.report_at) if when is not None]
        return max(1.0, (min(later) - now).total_seconds()) if later else None

    async def _save(self, save: SaveCase, performer: Performer) -> EffectResult:
        """Write a status; its Events give way to what other cases have to show, and come with the next pass over it."""
        result = await performer.all([replace(save, events_later=True)])
        if isinstance(result, Done):
            self.events.add(CreateEvents(save.after, save.events))
        return result


def _older(cache: ClusterCache, uid: str, since: datetime) -> bool:
    entered = cache.entries.since(uid)
    return entered is None or entered <= since


def considered(case: Case, node: Node | None) -> Considered:
    """All of a case and its node that an admission may rest on: nothing that showing a hold changes."""
    if node is None:
        return _asking(case), None
    taints = tuple(taint for taint in node.taints if taint.key != names.DEGRADED_TAINT)
    return _asking(case), node if taints == node.taints else replace(node, taints=taints)


_SHOWN = frozenset({"version", "phase", "blocks", "blast", "timeline", "reason", "message"})  # by showing a hold
_rests_on = attrgetter("uid", *(field.name for field in fields(Case) if field.name not in _SHOWN))


def _asking(case: Case) -> Asking:
    return *_rests_on(case), case.phase if case.claimed else Phase.NEW
