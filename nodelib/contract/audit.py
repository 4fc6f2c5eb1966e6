"""The log's line of what a program does to a node, or to what runs there: JSON with the keys of docs/logs.md.

The controller writes the same line of what it does itself.
"""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime

DONE, RETRY, GAVE_UP, UNKNOWN = "Done", "Retry", "GaveUp", "Unknown"
VERBS = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}
# Writes that say who works, or how far it is: nothing of a node changes by them.
QUIET = frozenset({"leases.coordination.k8s.io", "nodeoperations.remediator.dev/status", "pods/status"})
PATH = re.compile("/apis?/(?:(?P<group>[^/]+[.][^/]+)/)?[^/]+/(?:namespaces/(?P<namespace>[^/]+)/)?(?P<rest>.+)")
LONGEST = 256  # letters of a value
MOST_SAID = 4096  # objects of which the last line is known
Object = Mapping[str, object]
_said: dict[tuple[str, str, str], dict[str, object]] = {}  # the last line of each object, the oldest first


def say(
    verb: str,
    resource: str,
    name: str,
    outcome: str,
    *,
    namespace: str = "",
    version: str = "",
    changes: list[dict[str, object]] | None = None,
    why: str = "",
) -> None:
    """Write one line on standard error, unless it says again what the last one of its object said.

    Who has asked for it stands in the environment.

    Where nobody takes the line any more the program goes on: what it does must not hang on its log.
    """
    by, _, who = os.environ.get("ON_BEHALF_OF", "").partition(" ")
    line = {
        "program": os.environ.get("OPERATION", ""),
        "verb": verb,
        "resource": resource,
        "namespace": namespace,
        "name": name,
        "version": version,
        "node": os.environ.get("NODE_NAME", ""),
        "case": os.environ.get("CASE_NAME", ""),
        "by": by,
        "who": who,
        "approved_by": "",
        "changes": changes or [],
        "outcome": outcome,
        "why": " ".join(why.split())[:LONGEST],
    }
    if _says_again(line):
        return
    line = line | {
        "event": "audit",
        "level": "info" if outcome in (DONE, RETRY) else "warning",
        "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    with suppress(OSError, ValueError):
        print(json.dumps(line), file=sys.stderr, flush=True)


def _says_again(line: dict[str, object]) -> bool:
    """Whether nothing has changed by it, and it says what was said of its object last, which it is from now on."""
    about = str(line["resource"]), str(line["namespace"]), str(line["name"])
    before = _said.pop(about, None)
    _said[about] = line
    if len(_said) > MOST_SAID:
        del _said[next(iter(_said))]
    stays = line["verb"] == VERBS["DELETE"] and line["version"]  # without a version it is gone
    return line == before and bool(line["outcome"] == RETRY or stays)


def request(method: str, path: str, body: object, status: int, answer: Object, before: Object | None = None) -> None:
    """Say what a request to the API server has done; `status` 0: nobody knows. `before`: the object as it was read."""
    where, _, query = path.partition("?")
    match = PATH.fullmatch(where)
    if method not in VERBS or "dryRun" in query or not match:
        return
    plural, name, sub = (*match["rest"].split("/"), "", "")[:3]
    resource = f"{plural}.{match['group']}" if match["group"] else plural
    resource = f"{resource}/{sub}" if sub else resource
    if resource in QUIET:
        return
    wanted: Object = body if isinstance(body, dict) else {}
    meta = _mapping(answer, "metadata")
    say(
        VERBS[method],
        resource,
        name or str(_mapping(wanted, "metadata").get("name") or ""),
        outcome(method, status, str(answer.get("reason") or "")),
        namespace=match["namespace"] or "",
        version=str(meta.get("resourceVersion") or _mapping(wanted, "metadata").get("resourceVersion") or ""),
        changes=list(changes(wanted, before)) if plural == "nodes" else [],
        why="" if 0 < status < 400 else f"{status} {answer.get('reason') or ''}".strip() if status else "no answer",
    )


def outcome(method: str, status: int, reason: str) -> str:
    """What became of a request. Made twice, or gone already, is what was wanted."""
    if status == 0 or status >= 500:
        return UNKNOWN
    wanted = (method == "DELETE" and status == 404) or reason == "AlreadyExists"
    if status < 400 or wanted:
        return DONE
    return RETRY if status in (404, 409, 410, 429) else GAVE_UP


def changes(wanted: Object, before: Object | None) -> Iterator[dict[str, object]]:
    """Yield the fields of a node that a merge patch changes."""
    meta, spec = _mapping(wanted, "metadata"), _mapping(wanted, "spec")
    old, old_spec = _mapping(before or {}, "metadata"), _mapping(before or {}, "spec")
    for part in ("annotations", "labels"):
        for key, value in (_mapping(meta, part)).items():
            yield from _change(f"metadata.{part}[{key}]", _mapping(old, part).get(key), value, before)
    for key, value in spec.items():
        yield from _change(f"spec.{key}", _plain(key, old_spec.get(key)), _plain(key, value), before)


def _change(field: str, old: object, new: object, before: Object | None) -> Iterator[dict[str, object]]:
    if before is None:
        yield {"field": field, "after": _short(new)}
    elif old != new:
        yield {"field": field, "before": _short(old), "after": _short(new)}


def _plain(key: str, value: object) -> object:
    if key == "unschedulable":
        return bool(value)
    if key != "taints":
        return value
    value = value if isinstance(value, list) else []
    taints = (f"{each['key']}={each.get('value', '')}:{each.get('effect', '')}" for each in value)
    return [taint.replace("=:", ":") for taint in taints]


def _short(value: object) -> object:
    return value[:LONGEST] if isinstance(value, str) else value


def _mapping(within: Object, key: str) -> Object:
    inner = within.get(key)
    return inner if isinstance(inner, dict) else {}
