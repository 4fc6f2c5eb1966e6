"""Alertmanager by a script: what it lists at /api/v2/alerts, in the words of a real one."""

import json
from typing import Any

from remediator.prometheus.alerts import Listing, of_answer
from remediator.prometheus.reading import CannotTell, Doubt

AWAY = CannotTell(Doubt.UNREACHABLE, "it cannot be reached; look at --alertmanager-url")


def listed(posted: dict[str, Any], state: str = "active", receiver: str = "remediator") -> dict[str, Any]:
    """An alert of a post, as a list has it."""
    status = {"state": state, "silencedBy": [], "inhibitedBy": [], "mutedBy": []}
    kept = {key: posted[key] for key in ("labels", "annotations", "startsAt", "fingerprint")}
    times = {"endsAt": "2026-11-20T10:00:00.000Z", "updatedAt": "2026-11-20T09:56:00.000Z"}
    return {**kept, **times, "generatorURL": "", "status": status, "receivers": [{"name": receiver}]}


class PlayedAlertmanager:
    """An `AlertSource`: lists what it was told, or answers `reply` where that is set. `asked`: how often it was."""

    def __init__(self) -> None:
        self.alerts_listed: list[dict[str, Any]] = []
        self.reply: Listing | None = None
        self.closed, self.asked = False, 0

    def lists(self, *alerts: dict[str, Any]) -> None:
        """These fire from now on, and no others."""
        self.alerts_listed, self.reply = list(alerts), None

    async def alerts(self) -> Listing:
        """See AlertSource."""
        self.asked += 1
        return self.reply if self.reply is not None else of_answer(200, json.dumps(self.alerts_listed).encode())

    async def aclose(self) -> None:
        """See AlertSource."""
        self.closed = True
