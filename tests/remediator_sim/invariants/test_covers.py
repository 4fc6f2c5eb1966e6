"""I10: a rung that an operation below has covered is not tried."""

from itertools import pairwise

from remediator_sim.invariants.contract import TEMPLATES
from tests.remediator_sim.invariants.histories import History, breaks, histories, holds
from tests.remediator_sim.invariants.recording import Recording

LADDER = [{"operation": name, "attempts": 1} for name in ("reboot", "reset-gpu")]


def second(outcome: str, *covers: str) -> History:
    """A reset above a reboot that has ended so, where these templates cover each other in a row."""

    def write(recording: Recording) -> None:
        for template, below in pairwise(covers):
            recording.write(TEMPLATES, template, spec={"covers": [below]})
        recording.policy(ladder=LADDER)
        recording.node("n1")
        first = {"operation": "reboot-1", "template": "reboot", "rung": 1, "outcome": ""}
        recording.case("a", "n1", "Operating", startedAt=True, attempts=[first])
        reset = {"operation": "reset-1", "template": "reset-gpu", "rung": 2, "outcome": ""}
        recording.case("a", attempts=[first | {"outcome": outcome}, reset])

    return write


@histories("checks", [(second("Failed", "reboot", "reset-gpu"), 3), (second("Succeeded", "reset-gpu", "reboot"), 3)])
def test_a_higher_rung_that_nothing_below_has_covered_is_counted(history: History, checks: int) -> None:
    holds("I10", history, checks)


@histories(
    "text",
    [
        (second("Succeeded", "reboot", "reset-gpu"), "which reboot has covered"),
        (second("Succeeded", "reboot", "reload-driver", "reset-gpu"), "which reboot has covered"),
    ],
)
def test_a_rung_that_is_covered_and_tried_is_told_of(history: History, text: str) -> None:
    breaks("I10", history, text)
