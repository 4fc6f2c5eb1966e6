"""The text of a query of PromQL, as far as its author can be told what is wrong before Prometheus is asked."""

import re
from collections.abc import Iterator

NODE = "{{node}}"  # the one placeholder
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
# A comment, or a string with the operator before it: quotes in comments and brackets in strings mean nothing.
_TOKENS = re.compile(
    r"""(?P<comment>\#[^\n]*) | (?P<operator>=~|!~)?\s*(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`[^`]*`)""",
    re.VERBOSE,
)
_SELECTOR = re.compile(r"(?P<name>[A-Za-z_:][\w:]*)?\s*\{[^{}]*\}")
# What is written between series, of Prometheus and of VictoriaMetrics, in any case.
_SET, _MATCHING = (
    {"and", "or", "unless", "atan2", "bool"},
    {"on", "ignoring", "group_left", "group_right", "by", "without"},
)
_FILL, _CHANGE = {"fill", "fill_left", "fill_right"}, {"offset", "anchored", "smoothed", "inf", "nan"}
_VICTORIA = {"default", "if", "ifnot", "limit", "keep_metric_names", "prefix", "with"}
_KEYWORDS = frozenset(_SET | _MATCHING | _FILL | _CHANGE | _VICTORIA)
# No series: labels that are grouped by, and ranges.
_ASIDE = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^()]*\)|\[[^\]]*\]", re.IGNORECASE)
_WORD = re.compile(r"(?<![\w:.])[A-Za-z_:][\w:]*(?![\w:])(?!\s*\()")
_LEAVES = re.compile(r"(==|!=|<=|<(?!=))(?!\s*bool\b)", re.IGNORECASE)
_CLOSES = {")": "(", "]": "[", "}": "{"}


def filled(query: str, node: str) -> str:
    """The query about one node. A dot of its name is only a dot, also in a regular expression.

    Raises ValueError for what cannot be the name of a node: it might be read as a part of the query.
    """
    if not _NAME.fullmatch(node):
        raise ValueError(f"{node!r} cannot be the name of a node")

    def replace(token: re.Match[str]) -> str:
        pattern = node.replace(".", "[.]") if token["operator"] else node
        return token[0] if token["comment"] else token[0].replace(NODE, pattern)

    return _TOKENS.sub(replace, query)


def faults(query: str) -> Iterator[str]:
    """What is wrong with a query, a sentence each with what to do. Whether its names are known, Prometheus says."""
    bare = _TOKENS.sub(" ", query)
    if NODE in bare:
        yield f'{NODE} stands outside of quotes, where it is not replaced; write node="{NODE}"'
        bare = bare.replace(NODE, " ")
    if quote := next((letter for letter in bare if letter in "\"'`"), ""):
        yield f"the string that begins with {quote} does not end; close it"
    elif wrong := _unbalanced(bare):
        yield wrong
    if not selectors(query):
        yield f'it names no series with labels, such as up{{node="{NODE}"}}; its answer would be about no node'
    if bare.rstrip().endswith("]"):
        yield "it asks for a range, which is no verdict; wrap it in a function such as max_over_time"


def lets_zero_through(query: str) -> bool:
    """Whether it has a comparison that leaves a series with its value, which may be 0, instead of saying 1.

    >>> [lets_zero_through(f'up{{a!="b"}} {how}') for how in ("== 0", "<= 3", "== bool 0", "> 0", "")]
    [True, True, False, False, False]
    """
    return _LEAVES.search(_SELECTOR.sub(" ", _TOKENS.sub(_masked, query))) is not None


def selectors(query: str) -> list[str]:
    """The series that a query names with labels, without ranges and offsets."""
    named = (query[begin:end].strip() for begin, end in _selectors(_TOKENS.sub(_masked, query)))
    return list(dict.fromkeys(named))


def series(query: str) -> list[str]:
    """All series that a query names, those without labels last; each once."""
    masked = _TOKENS.sub(_masked, query)
    for begin, end in _selectors(masked):
        masked = masked[:begin] + " " * (end - begin) + masked[end:]
    bare = [word for word in _WORD.findall(_ASIDE.sub(" ", masked)) if word.lower() not in _KEYWORDS]
    return list(dict.fromkeys([*selectors(query), *bare]))


def _selectors(masked: str) -> Iterator[tuple[int, int]]:
    """Where each series with labels begins and ends."""
    for match in _SELECTOR.finditer(masked):
        keyword = (match["name"] or "").lower() in _KEYWORDS
        yield match.end("name") if keyword else match.start(), match.end()


def _masked(token: re.Match[str]) -> str:
    """As many letters that mean nothing; an operator before a string stays."""
    begin = token.start("string") - token.start() if token["string"] else 0
    return token[0][:begin] + "." * (len(token[0]) - begin)


def fresh(query: str, seconds: float) -> str:
    """The query with no answer where one of its series has a newest sample that is older than so many seconds.

    The samples of an answer bear the time of the question, so nobody can see their age afterwards. Raises ValueError
    where no series is named.
    """
    named = series(query)
    if not named:
        raise ValueError(f'the query names no series such as up{{node="{NODE}"}}, so that nobody knows how old it is')
    return f"(\n{query}\n)" + "".join(f" and on() (min(timestamp({each})) >= time() - {seconds:g})" for each in named)


def _unbalanced(text: str) -> str:
    opened: list[str] = []
    for letter in text:
        if letter in _CLOSES.values():
            opened.append(letter)
        elif letter in _CLOSES and (not opened or opened.pop() != _CLOSES[letter]):
            return f"{letter} closes nothing; remove it, or open it before"
    return f"{opened[-1]} is not closed; close it" if opened else ""
