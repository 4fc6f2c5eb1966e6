"""What rules may ask as `_context`: of claims whether anybody needs them, and what a hook of the administrator says."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import structlog

from remediator.janitor.settings import Hook
from remediator.janitor.subject import JanitorSubject
from remediator.kube.api.claims import SCHEDULES, VOLUMES_POD, WORKLOADS, Claims, claims
from remediator.kube.wire import errors
from remediator.kube.wire.client import Client

CLAIMS = "persistentvolumeclaims"
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Resource:
    """An object as hooks of kube-janitor look at it."""

    obj: Mapping[str, Any]
    kind: str
    name: str
    namespace: str
    annotations: Mapping[str, str]


class Context:
    """The context of objects. What names claims is read once for each namespace."""

    def __init__(self, client: Client, hook: Hook | None) -> None:
        self._client, self._hook = client, hook
        self._claims: dict[str, Claims] = {}
        self._cache: dict[str, Any] = {}

    async def of(self, subject: JanitorSubject, obj: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The context of one object; None where nobody can tell."""
        context: dict[str, Any] = {}
        try:
            if subject.kind.plural == CLAIMS:
                context |= (await self._read(subject.namespace)).context(subject.name)
            if self._hook is not None:
                kind = subject.kind.name
                about = Resource(obj, kind, subject.name, subject.namespace, subject.annotations)
                context |= self._hook(about, self._cache)
        except errors.ApiError as error:
            log.warning("context not read", namespace=subject.namespace, answer=str(error))
            return None
        except Exception as error:  # of the hook, whose code is not ours
            log.warning("the context hook fails", object=str(subject), exc_info=error)
            return None
        return context

    async def _read(self, namespace: str) -> Claims:
        if namespace not in self._claims:
            pods = await self._client.list_all(VOLUMES_POD, namespace=namespace)
            schedules = await self._client.list_all(SCHEDULES, namespace=namespace)
            works = [work for kind in WORKLOADS for work in await self._client.list_all(kind, namespace=namespace)]
            self._claims[namespace] = claims(pods, schedules, works)
        return self._claims[namespace]


def hook(name: str) -> Hook:
    """The function that `module.function` names. Raises ValueError."""
    module, _, function = name.rpartition(".")
    try:
        named = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{name!r} names no function ({error}); write module.function") from None
    if not callable(named):
        raise ValueError(f"{name!r} is no function; write module.function")
    return named  # type: ignore[no-any-return]
