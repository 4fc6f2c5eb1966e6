"""Our part of a text that users also write in: it stands between two HTML comments, and all else is theirs."""

from remediator.tickets.channels.base import Marker

BEGIN, END = "<!-- remediator:begin -->", "<!-- remediator:end -->"
NOTICE = "_Remediator keeps everything above this line up to date. Write below it, or in comments: that stays._"


def fenced(text: str, marker: Marker, *, kept_up: bool = True) -> str:
    """Our part with its two marks, the hidden marker and, where it is kept up to date, a notice to users."""
    notice = f"{NOTICE}\n" if kept_up else ""
    return f"{BEGIN}\n<!-- {marker.whole} -->\n\n{text}\n\n{notice}{END}"


def overhead(marker: Marker) -> int:
    """How many characters the fence adds to a text."""
    return len(fenced("", marker))


def spliced(body: str, section: str) -> str:
    """The body with our section in the place of the one before; all else stays. Where ours is gone, it goes below."""
    start = body.rfind(BEGIN)
    end = body.find(END, start)
    if start < 0 or end < 0:
        return f"{body.rstrip()}\n\n{section}" if body.strip() else section
    return body[:start] + section + body[end + len(END) :]


def outside(body: str) -> int:
    """How many characters of the body are not ours."""
    return len(spliced(body, ""))
