"""What a seed stands for: a fleet, its policies, and a schedule of what happens to it. A value; nothing is run here."""

from dataclasses import dataclass, replace
from typing import Any

Words = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens, so many seconds after the begin: a kind of the vocabulary, to whom, and how.

    The word `case`, a node and a phase, lets it wait for a case of the node to be in that phase.
    """

    at: float
    kind: str
    target: str = ""
    words: Words = ()

    def __getitem__(self, word: str) -> Any:
        return dict(self.words)[word]

    def __str__(self) -> str:
        how = ", ".join(f"{word}={value}" for word, value in self.words)
        return f"{self.kind} {self.target}" + (f" ({how})" if how else "")


@dataclass(frozen=True, slots=True)
class Plan:
    """`budgets`: (name, spec) pairs; `policies`: (name, mode) pairs; `until`: seconds after which all is
    judged as soon as no case does anything any more; `tickets`: (policy, when its cases have one) pairs;
    `roles`: (node, role) pairs, see steps/roles.py; `places`: the only nodes that may take Pods with rights in the API,
    where the settings choose so few; `confirmed`: the policies that have a second source; `recurrence`: what all
    policies say of faults that come back; `jobs`: whether nodes run gangs, and another system may drain them;
    `gates`: (policy, part of its spec) pairs, see gates.py; `specs`: the same of variants.py, None takes a part away;
    `shows`: what nodes and Pods show besides, in the words of variants.py.
    """

    seed: int
    nodes: tuple[str, ...]
    policies: tuple[tuple[str, str], ...]
    budgets: tuple[tuple[str, Words], ...]
    steps: tuple[Step, ...]
    until: float
    tickets: tuple[tuple[str, str], ...] = ()
    roles: tuple[tuple[str, str], ...] = ()
    places: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    recurrence: Words = ()
    jobs: bool = False
    gates: tuple[tuple[str, Words], ...] = ()
    specs: tuple[tuple[str, Words], ...] = ()
    shows: tuple[str, ...] = ()

    def with_steps(self, steps: tuple[Step, ...]) -> "Plan":
        """The same fleet, to which other things happen."""
        return replace(self, steps=steps)
