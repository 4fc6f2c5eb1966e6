"""One pass over one policy."""

from datetime import datetime

from remediator.controller.effects import Patch
from remediator.controller.fleet import missing
from remediator.controller.handlers.base import Dependencies, seconds
from remediator.core.node import Status
from remediator.core.policy import Readiness
from remediator.core.reasons import Reason
from remediator.kube import api
from remediator.kube.api import encode


class PolicyReconciler:
    """Writes on each policy whether it can act."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies

    async def reconcile(self, name: str, now: datetime) -> float | None:
        """Write the Ready condition where it differs."""
        policy = self._dependencies.cache.policies.get(name)
        if policy is None or policy.unreadable:
            return None
        operations = {rung.operation for rung in policy.ladder}
        unknown = sorted(missing(self._dependencies.cache, operations))
        reason = Reason.UNKNOWN_OPERATION.value if unknown else "Ready"
        readiness = Readiness(Status.FALSE if unknown else Status.TRUE, reason, policy.generation)
        if policy.readiness == readiness:
            return None
        message = f"no NodeOperationTemplate {', '.join(unknown)}" if unknown else "every operation is known"
        body = encode.policy_ready(readiness, message, now)
        return seconds(await self._dependencies.performer.all([Patch(api.POLICY, name, body, "", "status")]))
