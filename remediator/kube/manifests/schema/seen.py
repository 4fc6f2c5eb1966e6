"""What of a value a CEL rule can speak of: all else may change, and its answer stays."""

import re
from typing import Any

Parts = dict[str, "Parts | None"]  # by the name of a field: what below it is spoken of, None for all of it

_ROOT = re.compile(r"\b(?:self|oldSelf)\b(?!\s*\()")
_PATH = re.compile(r"(?P<has>\bhas\(\s*)?\b(?:self|oldSelf)(?P<path>(?:\.\w+\b(?!\s*\())+)(?P<end>\s*\))?")


def parts(text: str) -> Parts | None:
    """The parts of `self` and `oldSelf` that a text speaks of; None where it may speak of all, or by an escaped name.

    >>> parts("!has(self.status) || has(self.status.phase) && self.spec.release == oldSelf.spec.release")
    {'status': {'phase': {}}, 'spec': {'release': None}}
    """
    paths = list(_PATH.finditer(text))
    if len(paths) != len(_ROOT.findall(text)) or any("__" in path["path"] for path in paths):
        return None
    spoken_of: Parts = {}
    for path in paths:
        _enter(spoken_of, path["path"].split(".")[1:], whole=not (path["has"] and path["end"]))
    return spoken_of


def _enter(spoken_of: Parts, path: list[str], *, whole: bool) -> None:
    """Add one path. Of what a rule only asks whether it is there, nothing below is spoken of."""
    for name in path[:-1]:
        below = spoken_of.setdefault(name, {})
        if below is None:
            return
        spoken_of = below
    if whole:
        spoken_of[path[-1]] = None
    else:
        spoken_of.setdefault(path[-1], {})


def seen(value: Any, spoken_of: Parts | None) -> Any:
    """The value without what is not spoken of.

    >>> seen({"status": {"phase": "Failed", "message": "3 of 8"}, "kind": "Node"}, {"status": {"phase": None}})
    {'status': {'phase': 'Failed'}}
    """
    if spoken_of is None or not isinstance(value, dict):
        return value
    return {key: seen(item, spoken_of[key]) for key, item in value.items() if key in spoken_of}
