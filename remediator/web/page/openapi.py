"""What /api/v1 gives, as an OpenAPI document. Pure."""

from typing import Any

from remediator.web.page.node_standing import NodeStanding

_TEXT: dict[str, Any] = {"type": "string"}
_LETTER: dict[str, Any] = {"type": "string", "enum": [state.letter for state in NodeStanding]}
_NUMBER: dict[str, Any] = {"type": "integer"}
_YES_NO: dict[str, Any] = {"type": "boolean"}
_TIME: dict[str, Any] = {"type": ["string", "null"], "format": "date-time"}


def document() -> dict[str, Any]:
    """All of it."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Remediator",
            "version": "1",
            "description": "The views of the page. Read only; fields may be added. The API to act on is Kubernetes's.",
        },
        "security": [{"token": []}],
        "paths": {path: _operation(path, summary, of) for path, (summary, of) in PATHS.items()},
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": SCHEMAS,
        },
    }


PATHS = {
    "/api/v1/fleet": ("The fleet on one screen, as `remediator status -o json`", "Fleet"),
    "/api/v1/nodes": ("Every node with its rack and its state", "Nodes"),
    "/api/v1/nodes/{name}": ("Why a node is, or is not, repaired, as `remediator explain -o json`", "Node"),
    "/api/v1/nodes/{name}/history": ("All kept cases of a node, as `remediator history -o json`", "History"),
    "/api/v1/cases/{name}": ("A case with its timeline and its evidence", "CaseWithEvidence"),
    "/api/v1/search": ("Nodes and cases by a part of their names", "Matches"),
}


def _operation(path: str, summary: str, of: str) -> dict[str, Any]:
    answer = {"description": summary, "content": {"application/json": {"schema": _ref(of)}}}
    answers = {"200": answer, "401": {"description": "no token, or a bad one"}, "403": {"description": "forbidden"}}
    named = [{"name": "name", "in": "path", "required": True, "schema": _TEXT}] if "{name}" in path else []
    asked = [{"name": "q", "in": "query", "required": True, "schema": _TEXT}] if path.endswith("search") else []
    missing = {"404": {"description": "nothing has this name"}} if named else {}
    return {"get": {"summary": summary, "parameters": named + asked, "responses": answers | missing}}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


def _list(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


def _or_null(of: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [of, {"type": "null"}]}


_MAYBE = {"type": ["integer", "null"]}
_BLOCK = _object(reason=_TEXT, message=_TEXT, since=_TIME, until=_TIME)
_ATTEMPT = _object(
    operation=_TEXT, template=_TEXT, rung=_NUMBER, startedAt=_TIME, finishedAt=_TIME, seconds=_NUMBER, outcome=_TEXT
)
_CASE = _object(
    name=_TEXT,
    node=_TEXT,
    policy=_TEXT,
    trigger=_or_null(_object(condition=_TEXT, status=_TEXT, reason=_TEXT, message=_TEXT, since=_TIME)),
    phase=_TEXT,
    reason=_TEXT,
    message=_TEXT,
    rung=_NUMBER,
    createdAt=_TIME,
    startedAt=_TIME,
    endedAt=_TIME,
    seconds=_NUMBER,
    hold=_YES_NO,
    approved=_YES_NO,
    blockedBy=_list(_BLOCK),
    attempts=_list(_ATTEMPT),
)
_BREAKER = _object(starts=_NUMBER, exact=_YES_NO, most=_NUMBER, windowSeconds=_NUMBER)
_CONTROLLER = _object(leads=_YES_NO, holder=_TEXT, renewedAt=_TIME)
_BUDGET = _object(name=_TEXT, total=_MAYBE, unavailable=_MAYBE, allowed=_MAYBE, quarantined=_MAYBE, breakerOpen=_TEXT)
_GROUP = _object(actor=_TEXT, waitsFor=_TEXT, remedy=_TEXT, since=_TIME, cases=_list(_ref("Case")))
_FRESHNESS = _ref("Freshness")
SCHEMAS: dict[str, Any] = {
    "Freshness": _object(live=_YES_NO, asOf=_TIME, sentence=_TEXT),
    "Case": _CASE,
    "CaseWithEvidence": {
        "allOf": [
            _ref("Case"),
            _object(
                timeline=_list(_object(at=_TIME, reason=_TEXT, message=_TEXT)),
                evidence=_or_null({"type": "object"}),
                freshness=_FRESHNESS,
            ),
        ]
    },
    "Fleet": _object(
        nodes=_MAYBE,
        paused=_YES_NO,
        controller=_CONTROLLER,
        breaker=_BREAKER,
        policies=_list(_object(name=_TEXT, mode=_TEXT, breakerOpen=_TEXT)),
        groups=_list(_GROUP),
        idleTests=_list(_object(node=_TEXT, policy=_TEXT, since=_TIME)),
        budgets=_list(_BUDGET),
        freshness=_FRESHNESS,
    ),
    "Nodes": _object(nodes=_list(_object(name=_TEXT, rack=_TEXT, state=_LETTER, word=_TEXT)), freshness=_FRESHNESS),
    "Node": _object(
        node=_TEXT,
        uid=_TEXT,
        decision=_TEXT,
        sentence=_TEXT,
        believed=_list(_TEXT),
        notBelieved=_list(_object(condition=_TEXT, why=_TEXT)),
        policies=_list(_object(name=_TEXT, mode=_TEXT, health=_TEXT)),
        cases=_list({"type": "object"}),
        before=_list(_ref("Case")),
        budgets=_list(_TEXT),
        breaker=_BREAKER,
        paused=_YES_NO,
        controller=_CONTROLLER,
        freshness=_FRESHNESS,
    ),
    "History": _object(node=_TEXT, cases=_list(_ref("Case")), freshness=_FRESHNESS),
    "Matches": _object(nodes=_list(_TEXT), cases=_list(_TEXT), cut=_YES_NO, freshness=_FRESHNESS),
}
