"""The story of one seed: one line for each thing that happened, the same in every run."""

from datetime import datetime

from remediator_sim.simulation.clock import true_time


class Journal:
    """Lines in the order in which they happened."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, who: str, text: str) -> None:
        """One more line."""
        self.lines.append(f"{_clock(true_time())}  {who:<10} {text}")

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join(self.lines) + "\n"


def _clock(at: datetime) -> str:
    return at.strftime("%d %H:%M:%S.") + f"{at.microsecond // 1000:03}"
