"""How often each promise was put to the test, and what was found."""

from collections.abc import Iterable
from dataclasses import dataclass, field

# What is said of one thing that was looked at: HELD, or a sentence that names what is wrong.
HELD = ""
MOST_SAID = 50


@dataclass(frozen=True, slots=True)
class Checked:
    """One promise. `checks` counts only what there really was to look at: zero means that nothing tested it."""

    name: str
    text: str
    checks: int
    broken: tuple[str, ...]


@dataclass(slots=True)
class PromiseCount:
    """The count of one promise while it grows; a sentence that was said before is not said again."""

    checks: int = 0
    broken: dict[str, None] = field(default_factory=dict)

    def enter(self, findings: Iterable[str]) -> bool:
        """Count findings; whether one is among them that was not said before."""
        said = len(self.broken)
        for finding in findings:
            self.checks += 1
            if finding != HELD and len(self.broken) < MOST_SAID:
                self.broken[finding] = None
        return len(self.broken) > said
