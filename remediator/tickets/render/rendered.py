"""The text of one issue, rendered once for each content that it has."""

import hashlib

from remediator.tickets.render.body import text
from remediator.tickets.render.content import Content


class Rendered:
    """The newest text and its hash. The hash stays until the content changes; the text goes once it is written."""

    def __init__(self, room: int) -> None:
        """`room` is how many characters the channel takes."""
        self._room = room
        self._content: Content | None = None
        self._text: str | None = None
        self._digest = ""
        self.problem = ""  # with the template of the route, when the content was last rendered

    def digest(self, content: Content) -> str:
        """What tells whether the text of this content was written already."""
        if content != self._content:
            self.text(content)
        return self._digest

    def text(self, content: Content) -> str:
        """The text of this content."""
        if content != self._content or self._text is None:
            self._content = content
            self._text, self.problem = text(content, self._room)
            self._digest = hashlib.sha256(self._text.encode()).hexdigest()
        return self._text

    def drop_text(self, written: str) -> None:
        """Keep the hash only, where the text with this hash was written: thousands of tickets have texts of 64 kB."""
        if written == self._digest:
            self._text = None
