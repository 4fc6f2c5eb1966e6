"""By which keys the facts with one value of a field are found."""

from collections.abc import Collection

FEW = 8  # keys in a tuple, of which thousands take a third of the memory that sets do


class Index:
    """Keys by value. Most values of most fields have a few keys: those need no set."""

    def __init__(self) -> None:
        self._keys: dict[str, tuple[str, ...] | set[str]] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def keys(self, value: str) -> Collection[str]:
        """The keys of this value."""
        return self._keys.get(value, ())

    def add(self, value: str, key: str) -> None:
        """One more key of this value; added twice it is there once."""
        keys = self._keys.get(value, ())
        if isinstance(keys, set):
            keys.add(key)
        elif key not in keys:
            self._keys[value] = (*keys, key) if len(keys) < FEW else {*keys, key}

    def discard(self, value: str, key: str) -> None:
        """One key less; a value that nothing has any more is dropped, lest the index grow for ever."""
        keys = self._keys.get(value, ())
        if isinstance(keys, set):
            keys.discard(key)
        else:
            keys = self._keys[value] = tuple(other for other in keys if other != key)
        if not keys:
            self._keys.pop(value, None)
