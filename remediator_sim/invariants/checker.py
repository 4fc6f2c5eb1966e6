"""Takes in one happening after the other, asks every check about it, and keeps the count."""

from collections import defaultdict
from collections.abc import Mapping

from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.results import Checked, PromiseCount
from remediator_sim.invariants.table import CHECKS, TEXTS, CheckRow
from remediator_sim.invariants.tracked import Limits


class Checker:
    """The thirteen promises and what is known of them."""

    def __init__(self, limits: Limits) -> None:
        self.history = History(limits)
        self._results = {name: PromiseCount() for name in TEXTS}
        self._rows: defaultdict[str, list[CheckRow]] = defaultdict(list)
        for row in CHECKS:
            self._rows[row.kind].append(row)

    def hear(self, event: Event) -> bool:
        """Check one event, and say whether it broke something. They come in the order in which they happened."""
        self.history.standing = False
        self.history.take(event)
        rows = self._rows.get(event.kind, ())
        return sum(self._results[row.name].enter(row.check(self.history, event)) for row in rows) > 0

    def report(self) -> Mapping[str, Checked]:
        """How each promise stands, by its name."""
        results = self._results.items()
        return {name: Checked(name, TEXTS[name], result.checks, tuple(result.broken)) for name, result in results}
