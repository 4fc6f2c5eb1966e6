"""The kept cases by the boards and the GPUs that they were about, wherever these were then."""

from collections.abc import Mapping

from remediator.core.case import Case
from remediator.core.gpus import Gpu
from remediator.kube.runtime.index import Index
from remediator.kube.runtime.informer import Informer


class FaultMemory:
    """Follows the cases change by change: what a case costs does not grow with their number.

    A board is found by its serial number, which two GPUs may share, and a GPU by its UUID; a node by its name, in the
    index of the informer, whatever its uid.
    """

    def __init__(self, cases: Informer[Case]) -> None:
        self._cases, self._by_key = cases, Index()
        cases.on_view(self._moved)

    def of_gpus(self, case: Case) -> Mapping[Gpu, list[Case]]:
        """All cases of each GPU that this case is about, by the serial of its board and by its UUID."""
        if not case.gpus:
            return {}
        self._cases.settle()
        return {gpu: self._with(gpu) for gpu in case.gpus}

    def _with(self, gpu: Gpu) -> list[Case]:
        names = dict.fromkeys(name for key in gpu.keys for name in self._by_key.keys(key))
        return [case for name in names if (case := self._cases.get(name)) is not None]

    def _moved(self, old: Case | None, new: Case | None) -> None:
        before, after = _keys(old), _keys(new)
        for key in before - after:
            self._by_key.discard(*key)
        for key in after - before:
            self._by_key.add(*key)


def _keys(case: Case | None) -> set[tuple[str, str]]:
    return {(key, case.name) for gpu in case.gpus for key in gpu.keys} if case else set()
