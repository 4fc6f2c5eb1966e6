"""Proves that the cases are gone whose uids nodes carry: by live lists, of which one node must not cause many."""

from collections.abc import Callable, Collection

from remediator.controller.perform import Performer

EVERY = 30.0  # seconds between two lists of all cases
MOST_KNOWN, LONGEST_UID = 1000, 64  # what is remembered, and of how many characters


class GoneCases:
    """What is known of cases that are no more. A uid never comes back, so what is proven once stays so.

    Args:
        performer: Asks the API server.
        monotonic: Seconds of the monotonic clock.
    """

    def __init__(self, performer: Performer, monotonic: Callable[[], float]) -> None:
        self._performer, self._monotonic = performer, monotonic
        self._known: dict[str, None] = {}  # oldest first
        self._next = float("-inf")  # when the lists may be read again

    async def among(self, uids: Collection[str]) -> tuple[frozenset[str], float | None]:
        """Which of these are proven gone, and after how many seconds the others can be asked about again."""
        asked = frozenset(uids)
        unproven = asked - self._known.keys()
        if unproven and self._monotonic() >= self._next:
            self._next = self._monotonic() + EVERY
            gone = await self._performer.gone(unproven)
            self._remember(gone)
            return asked - (unproven - gone), EVERY if unproven - gone else None
        return asked - unproven, self._next - self._monotonic() if unproven else None

    def _remember(self, gone: Collection[str]) -> None:
        """Keep the newest; whoever writes a node may write any text."""
        self._known |= dict.fromkeys(sorted(uid for uid in gone if len(uid) <= LONGEST_UID))
        for uid in list(self._known)[:-MOST_KNOWN]:
            del self._known[uid]
