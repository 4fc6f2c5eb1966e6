"""Times that are legal, and hardly meant in production. (Tests and the demo need shorter ones than a cluster does.)"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from remediator.kube import api


class Usual(NamedTuple):
    """Between which durations the field `path` ("spec.when[].for") of a kind usually lies, and what is wrong else."""

    kind: str
    path: str
    least: str
    most: str
    why: str


_POLICY, _TEMPLATE = api.POLICY.name, api.TEMPLATE.name
USUAL = (
    Usual(_POLICY, "spec.when[].for", "0s", "7d", "nobody repairs such a node for so long"),
    Usual(_POLICY, "spec.cooldown", "0s", "7d", "a new fault of the node waits for so long"),
    Usual(_POLICY, "spec.verify.settle", "1m", "24h", "a fault that comes and goes counts as cured"),
    Usual(_POLICY, "spec.verify.fresh", "1m", "24h", "what a detector wrote before the operation counts as proof"),
    Usual(
        _POLICY, "spec.verify.timeout", "1m", "24h", "too short, it makes attempts vain; too long, it keeps the node"
    ),
    Usual(
        _POLICY, "spec.attempts.window", "24h", "366d", "a node may be operated on attempts.max times in each window"
    ),
    Usual(_POLICY, "spec.urgency.deadline", "1m", "30d", "too short, it waits for no Pod; too long, for every one"),
    Usual(_TEMPLATE, "spec.timeout", "1m", "24h", "too short, it makes attempts vain; too long, it keeps the node"),
    Usual(_TEMPLATE, "spec.drain.timeout", "1m", "30d", "too short, no Pod can end; too long, it keeps the node"),
)


def warnings(documents: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[str]:
    """What to look at, a sentence each."""
    for _, document in documents:
        for usual in USUAL:
            if document.get("kind") == usual.kind:
                yield from _unusual(usual, document)


def _unusual(usual: Usual, document: dict[str, Any]) -> Iterator[str]:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    for place, value in _values(document, usual.path.split(".")):
        if not api.seconds(usual.least) <= value.seconds <= api.seconds(usual.most):
            limits = f"usual is {usual.least} to {usual.most}"
            yield f"{usual.kind}/{name or '?'}: {place} is {value.text}; {limits}: {usual.why}"


class _Value(NamedTuple):
    text: str
    seconds: float


def _values(value: Any, names: list[str], place: str = "") -> Iterator[tuple[str, _Value]]:
    """Each duration at a path, with its place; what is no duration is passed over, for its schema refuses it."""
    if not names:
        try:
            yield place, _Value(value, api.seconds(value))
        except (TypeError, ValueError):
            return
    elif isinstance(value, dict):
        name = names[0].removesuffix("[]")
        below, at = value.get(name), f"{place}.{name}".lstrip(".")
        items = enumerate(below) if names[0].endswith("[]") and isinstance(below, list) else ()
        for index, item in items:
            yield from _values(item, names[1:], f"{at}[{index}]")
        if not names[0].endswith("[]"):
            yield from _values(below, names[1:], at)
