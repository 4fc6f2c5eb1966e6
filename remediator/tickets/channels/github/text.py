"""Texts as GitHub takes them: cut where they are too long."""

from remediator.tickets.render.markdown import BEGIN, END

TITLE, BODY, ASSIGNEES = 256, 65_536, 10  # GitHub's limits: characters, characters, people
_NOTE = "\n\n_(Cut here: GitHub takes no longer text.)_\n\n"


def title(text: str) -> str:
    """At most 256 characters, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= TITLE else line[: TITLE - 1] + "…"


def body(text: str, note: str = "") -> str:
    """At most 65,536 characters, `note` at the end always whole.

    What stands between our two marks stays whole, too, and the text around it is cut. Where even that part does not
    fit, it loses its own tail, and keeps both marks, so that it can be replaced later.
    """
    limit = BODY - len(note)
    return (text if len(text) <= limit else _cut(text, limit)) + note


def _cut(text: str, limit: int) -> str:
    start = text.rfind(BEGIN)
    end = text.find(END, start) + len(END)
    if start < 0 or end < len(END):
        return text[: limit - len(_NOTE)] + _NOTE
    before, section, after = text[:start], text[start:end], text[end:]
    room = limit - len(section) - len(_NOTE)
    if room < 0:
        return section[: limit - len(_NOTE) - len(END)] + _NOTE + END
    if len(before) > room:
        return before[:room] + _NOTE + section
    return before + section + after[: room - len(before)] + _NOTE


def unassigned(names: tuple[str, ...], why: str) -> str:
    """What a person reads at the end of a body when people could not be assigned. Mentions nobody."""
    people = ", ".join(f"`{name}`" for name in names)
    return f"\n\n> **Not assigned:** {people}: {why}. Please correct the assignees of the route.\n" if names else ""
