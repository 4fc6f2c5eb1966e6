"""Those facts of an informer that meet a condition, kept change by change: nobody walks all the others for them."""

from collections.abc import Callable, Iterator
from typing import Generic

from remediator.kube.runtime.informer import F, Informer


class Subset(Generic[F]):
    """The facts for which `belongs(fact)` is true; `key(fact)` is their key in the informer."""

    def __init__(self, informer: Informer[F], belongs: Callable[[F], object], key: Callable[[F], str]) -> None:
        self._informer, self._belongs, self._key = informer, belongs, key
        self._keys: dict[str, None] = {}
        informer.on_view(self._moved)

    def __iter__(self) -> Iterator[F]:
        """As they were when the iteration began, but for those that have left since."""
        self._informer.settle()
        facts = (self._informer.get(key) for key in tuple(self._keys))
        return (fact for fact in facts if fact is not None and self._belongs(fact))

    def _moved(self, old: F | None, new: F | None) -> None:
        fact = new if new is not None else old
        if fact is None:
            return
        if new is not None and self._belongs(new):
            self._keys[self._key(fact)] = None
        else:
            self._keys.pop(self._key(fact), None)
