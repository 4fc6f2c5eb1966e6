"""Ways to break the expression of an alert that still can be read: each has to be noticed by the series of its test."""

import re
from collections.abc import Iterator

FLIPPED = {">": "<", ">=": "<", "<": ">", "<=": ">", "==": "!="}
NEGATED = {"=": "!=", "!=": "=", "=~": "!~", "!~": "=~"}
METRIC = r"\b(?:remediator_\w+|kube_\w+|probe_\w+|DCGM_\w+|node_[a-z]+_\w+)"


def broken(expr: str) -> dict[str, str]:
    """What was done, and what is left.

    >>> sorted(broken('max(up{job="a"}) > 2').values())[:2]
    ['max(up{job!="a"}) > 2', 'max(up{job="a"}) < 2']
    """
    ways = (*_comparisons(expr), *_thresholds(expr), *_matchers(expr), *_metrics(expr), *_branches(expr))
    return {f"{what} at {at}": left for what, at, left in ways}


def _comparisons(expr: str) -> Iterator[tuple[str, int, str]]:
    for match in re.finditer(r" (>=|<=|==|>|<) ", expr):
        yield "turned round", match.start(), _with(expr, match, FLIPPED[match[1]], 1)


def _thresholds(expr: str) -> Iterator[tuple[str, int, str]]:
    """Ten times as much; where it is 0, a number that nothing reaches."""
    for match in re.finditer(r" (?:>=|<=|==|>|<) ([0-9.]+)(?![\w.)]| [*/])", expr):
        yield "another limit", match.start(), _with(expr, match, f"{float(match[1]) * 10 or 1e9:g}", 1)


def _matchers(expr: str) -> Iterator[tuple[str, int, str]]:
    for match in re.finditer(r'\w(=~|!~|!=|=)"', expr):
        yield "the other label", match.start(), _with(expr, match, NEGATED[match[1]], 1)


def _metrics(expr: str) -> Iterator[tuple[str, int, str]]:
    for match in re.finditer(METRIC, expr):
        yield f"without {match[0]}", match.start(), _with(expr, match, "no_such_metric", 0)


def _branches(expr: str) -> Iterator[tuple[str, int, str]]:
    """Each way to raise it alone: what stands on one side of an `or` or `and` that is in no bracket."""
    for match in re.finditer(r" (or|and) ", expr):
        before = expr[: match.start()]
        if before.count("(") == before.count(")"):
            yield f"without what is behind `{match[1]}`", match.start(), before


def _with(expr: str, match: re.Match[str], word: str, group: int) -> str:
    return expr[: match.start(group)] + word + expr[match.end(group) :]
