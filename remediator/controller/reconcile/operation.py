"""One pass over one operation."""

from datetime import datetime

from remediator.controller.handlers import request
from remediator.controller.handlers.base import Dependencies
from remediator.controller.handlers.operation import HANDLERS
from remediator.controller.operation_view import operation_view
from remediator.controller.request_view import request_view
from remediator.core.operation_table import operation_move
from remediator.core.request_table import request_answer


class OperationReconciler:
    """Brings each operation one move further. One that a user has made gets a case of its own."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies

    async def reconcile(self, name: str, now: datetime) -> float | None:
        """One move."""
        operation = self._dependencies.cache.operations.get(name)
        if operation is None:
            return None
        if not operation.case_uid:
            asked = request_view(self._dependencies.cache, operation)
            return await request.HANDLERS[request_answer(asked.observation)].handle(asked, self._dependencies, now)
        view = operation_view(self._dependencies.cache, operation, now)
        return await HANDLERS[operation_move(view.observation)].handle(view, self._dependencies, now)
