"""Messages as Slack takes them. Pure.

Whatever others wrote stands in text elements of a rich_text block, which Slack shows as they are: only an element of
another type could mention, link or format.
"""

from typing import Any

from remediator.core.policy import Severity
from remediator.tickets.channels.chat import ChatLine, Message

ICONS = {Severity.CRITICAL: "red_circle", Severity.WARNING: "large_orange_circle", Severity.INFO: "large_blue_circle"}
FALLBACK = 300  # characters of what notifications show


def written(message: Message) -> dict[str, Any]:
    """A message as Slack takes it: blocks, and what notifications show."""
    elements: list[dict[str, Any]] = [{"type": "emoji", "name": ICONS[message.severity]}, _text(" ")]
    elements += [_element(message.title, bold=True)]
    for line in message.lines:
        elements += [_text("\n"), _element(line)]
    block = {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]}
    shown = " - ".join(line.text for line in (message.title, *message.lines[:1]))[:FALLBACK]
    return {"text": escaped(shown), "blocks": [block]}


def escaped(text: str) -> str:
    """Text in which Slack sees no mention, link or special sequence."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("@", "@\N{ZERO WIDTH SPACE}").replace("://", ":\N{ZERO WIDTH SPACE}//")


def _element(line: ChatLine, *, bold: bool = False) -> dict[str, Any]:
    style = {"style": {"bold": True}} if bold else {}
    if not line.url:
        return _text(line.text) | style
    return {"type": "link", "url": line.url, "text": line.text or line.url} | style


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text or " "}
