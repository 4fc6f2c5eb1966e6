"""Text as Go handles it: byte strings that are nearly UTF-8, quoted, trimmed, cut, and printed without arguments.

Bytes that are no UTF-8 are kept as lone surrogates (Python's surrogateescape), one for each byte.
"""

import re

SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"
_ESCAPES = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}
_ESCAPES |= {"\\": r"\\", '"': r"\""}
_SURROGATES = re.compile("[\udc80-\udcff]")
_VERB = re.compile(r"%[+\-# 0]*(?:[0-9]+)?(?:\.[0-9]*)?(.?)", re.DOTALL)


def trimmed(output: bytes) -> str:
    """What a program said, without white space around it."""
    return output.decode("utf-8", "surrogateescape").strip(SPACE)


def cut(text: str, limit: int) -> str:
    """The first `limit` bytes of `text`, even where that cuts a character in two."""
    return text.encode("utf-8", "surrogateescape")[:limit].decode("utf-8", "surrogateescape")


def quoted(text: str) -> str:
    """`text` as %q prints it: between double quotes, what cannot be printed escaped."""
    return f'"{"".join(map(_quoted_char, text))}"'


def _quoted_char(char: str) -> str:
    code = ord(char)
    if char in _ESCAPES:
        return _ESCAPES[char]
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if char.isprintable():
        return char
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def printed(text: str) -> str:
    """`text` as Printf prints it when no arguments follow: node-problem-detector takes an event's text for a format."""
    return _VERB.sub(_verb, text)


def _verb(match: re.Match[str]) -> str:
    if match[1] == "%":
        return "%"
    return f"%!{match[1]}(MISSING)" if match[1] else "%!(NOVERB)"


def on_the_wire(text: str) -> str:
    """`text` as JSON can hold it: a replacement character for each byte that is no UTF-8."""
    return _SURROGATES.sub("\ufffd", text)
