"""What a real API server says against an object that it is not to keep: a request each, where kubectl takes a start."""

import json
import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from remediator.kube import api
from remediator_sim.manifests import kind_of
from tests.cluster.control_plane import ControlPlane

OURS = {kind.name: kind for kind in api.KINDS}
CONTROLLER = "system:serviceaccount:remediator-system:remediator"
GROUPS = {CONTROLLER: ["system:serviceaccounts", "system:serviceaccounts:remediator-system"]}
ADMINISTRATOR = "tries"
STRICT = "dryRun=All&fieldValidation=Strict"


class Tried(NamedTuple):
    """`status` of the answer, below 400 where the object would be created; `said` against it or as a warning."""

    status: int
    said: str

    @property
    def taken(self) -> bool:
        """Whether it would be created."""
        return self.status < 400


class Trier:
    """As `kubectl create --dry-run=server --validate=strict`, by an administrator or in the name of the controller."""

    def __init__(self, plane: ControlPlane) -> None:
        self._url = plane.url
        self._users = {
            ADMINISTRATOR: plane.context_for(ADMINISTRATOR, ["system:masters"]),
            CONTROLLER: plane.context_for(CONTROLLER, GROUPS[CONTROLLER]),
        }

    def __call__(self, document: Mapping[str, Any], user: str = ADMINISTRATOR, namespace: str = "default") -> Tried:
        kind: Any = OURS.get(document["kind"]) or kind_of(dict(document))
        space = document["metadata"].get("namespace", namespace) if kind.namespaced else ""
        body = json.dumps(document).encode()
        headers = {"Content-Type": "application/json"}
        return _said(Request(f"{self._url}{kind.path('', space)}?{STRICT}", body, headers), self._users[user])


def _said(request: Request, context: ssl.SSLContext) -> Tried:
    try:
        with urlopen(request, timeout=60, context=context) as reply:
            return Tried(reply.status, "\n".join(reply.headers.get_all("Warning") or ()))
    except HTTPError as refused:
        text = refused.read().decode()
        return Tried(refused.code, json.loads(text)["message"] if text.startswith("{") else text)
