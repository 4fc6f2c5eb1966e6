"""Texts within the limits of GitHub: cut where they are too long."""

from datetime import UTC, datetime

from remediator.tickets.channels.base import Draft, Edit, Marker
from remediator.tickets.channels.section import END, fenced, outside, overhead, spliced

TITLE, BODY, ASSIGNEES = 256, 65_536, 10  # GitHub's limits: characters, characters, people
ROOM = 64_000  # of a new issue's text: what is left holds the fence, and a note about assignees
_FENCE = overhead(Marker("0" * 16, datetime(1970, 1, 1, tzinfo=UTC)))
_NOTE = "\n\n_(Cut here: GitHub takes no longer text.)_\n\n"


def title(text: str) -> str:
    """At most 256 characters, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= TITLE else line[: TITLE - 1] + "…"


def new(draft: Draft, note: str) -> str:
    """The body of a new issue, `note` at its end always whole. A text that is too long keeps its fence."""
    section = fenced(draft.text, draft.marker, kept_up=draft.kept_up)
    limit = BODY - len(note)
    return (section if len(section) <= limit else section[: limit - len(_NOTE) - len(END)] + _NOTE + END) + note


def edited(body: str, edit: Edit) -> str:
    """The body with our part replaced."""
    return spliced(body, fenced(edit.text, edit.marker))


def room(body: str) -> int:
    """How many characters our part may have in an issue with this body."""
    return max(0, min(ROOM, BODY - outside(body) - _FENCE))


def cut(text: str) -> str:
    """A comment of at most 65,536 characters."""
    return text if len(text) <= BODY else text[: BODY - len(_NOTE)] + _NOTE


def unassigned(names: tuple[str, ...], why: str) -> str:
    """What a user reads at the end of a body when people could not be assigned. Mentions nobody."""
    people = ", ".join(f"`{name}`" for name in names)
    return f"\n\n> **Not assigned:** {people}: {why}. Please correct the assignees of the route.\n" if names else ""
