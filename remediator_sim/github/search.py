"""GET /search/issues: words and qualifiers, over an index that lags behind."""

import re
from collections.abc import Callable

from remediator_sim.github.refusal import Refusal
from remediator_sim.github.store import Issue

LONGEST = 256  # characters of the words, qualifiers not counted
_TOKEN = re.compile(r'(?:(\w+):)?("[^"]*"|\S+)')


def matching(query: str, issues: list[Issue]) -> list[Issue]:
    """The issues that a query finds. Words are compared without punctuation and case, phrases as runs of words.

    Raises:
        Refusal: 422, no query, one that is too long, or a qualifier that is not known here.
    """
    if not query.strip():
        raise Refusal(422, "Validation Failed", [{"resource": "Search", "field": "q", "code": "missing"}])
    pairs = [(name, text.strip('"')) for name, text in _TOKEN.findall(query)]
    words = [text for name, text in pairs if not name]
    if sum(map(len, words)) > LONGEST:
        raise _wrong("The search is longer than 256 characters.")
    if unknown := [name for name, _ in pairs if name and name not in (*_QUALIFIERS, "in")]:
        raise _wrong(f"This fake does not know the qualifier {unknown[0]}.")
    fields = [text for name, text in pairs if name == "in"] or ["title", "body", "comments"]
    tests = [(_QUALIFIERS[name], text) for name, text in pairs if name in _QUALIFIERS]
    hits = [issue for issue in issues if all(test(issue, text) for test, text in tests)]
    return [issue for issue in hits if all(_holds(issue, word, fields) for word in words)]


def _holds(issue: Issue, phrase: str, fields: list[str]) -> bool:
    texts = {
        "title": issue.title,
        "body": issue.body,
        "comments": "\n".join(comment.body for comment in issue.comments),
    }
    return any(f" {_words(phrase)} " in f" {_words(texts[name])} " for name in fields if name in texts)


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _wrong(message: str) -> Refusal:
    return Refusal(
        422, "Validation Failed", [{"resource": "Search", "field": "q", "code": "invalid", "message": message}]
    )


def _is(issue: Issue, word: str) -> bool:
    kinds = {"issue": not issue.pull_request, "pr": issue.pull_request, "open": issue.open, "closed": not issue.open}
    return kinds.get(word, False)


_QUALIFIERS: dict[str, Callable[[Issue, str], bool]] = {
    "repo": lambda issue, text: issue.repository.lower() == text.lower(),
    "is": _is,
    "type": _is,
    "state": _is,
    "label": lambda issue, text: text.lower() in map(str.lower, issue.labels),
    "author": lambda issue, text: issue.author.lower() == text.lower(),
    "assignee": lambda issue, text: text.lower() in map(str.lower, issue.assignees),
}
