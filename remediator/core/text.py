"""Text from outside, before it is written anywhere."""


def printable(text: str) -> str:
    """With a blank for each control character and line break: on one line, and nothing that a terminal obeys.

    >>> printable("a\\nb\\x1b[2J")
    'a b [2J'
    """
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)


def one_line(text: str, most: int) -> str:
    """One line of at most `most` characters that JSON and the API server take: no control characters."""
    return " ".join(printable(text).split())[:most]
