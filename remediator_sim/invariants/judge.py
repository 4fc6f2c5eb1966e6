"""Takes in one happening after the other, asks every check about it, and keeps the count."""

from collections import defaultdict
from collections.abc import Mapping

from remediator_sim.invariants.event import Event
from remediator_sim.invariants.history import History
from remediator_sim.invariants.table import CHECKS, TEXTS, Row
from remediator_sim.invariants.tally import Checked, Tally
from remediator_sim.invariants.trails import Limits


class Judge:
    """The ten promises and what is known of them."""

    def __init__(self, limits: Limits) -> None:
        self.history = History(limits)
        self._tallies = {name: Tally() for name in TEXTS}
        self._rows: defaultdict[str, list[Row]] = defaultdict(list)
        for row in CHECKS:
            self._rows[row.kind].append(row)

    def hear(self, event: Event) -> None:
        """Judge one event. They come in the order in which they happened."""
        self.history.take(event)
        for row in self._rows.get(event.kind, ()):
            self._tallies[row.name].enter(row.check(self.history, event))

    def report(self) -> Mapping[str, Checked]:
        """How each promise stands, by its name."""
        found = self._tallies.items()
        return {name: Checked(name, TEXTS[name], tally.checks, tuple(tally.broken)) for name, tally in found}
