"""By which keys the facts with one value of a field are found."""

from collections.abc import Collection

FEW = 8  # keys in a tuple, of which thousands take a third of the memory that sets do


class Index:
    """Keys by value. Most values of most fields have one key, which needs no tuple, or a few, which need no set."""

    def __init__(self) -> None:
        self._keys: dict[str, str | tuple[str, ...] | set[str]] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def keys(self, value: str) -> Collection[str]:
        """The keys of this value."""
        keys = self._keys.get(value, ())
        return (keys,) if isinstance(keys, str) else keys

    def add(self, value: str, key: str) -> None:
        """One more key of this value; added twice it is there once."""
        keys = self.keys(value)
        if isinstance(keys, set):
            keys.add(key)
        elif not keys:
            self._keys[value] = key
        elif key not in keys:
            self._keys[value] = (*keys, key) if len(keys) < FEW else {*keys, key}

    def discard(self, value: str, key: str) -> None:
        """One key less; a value that nothing has any more is dropped, lest the index grow for ever."""
        keys = self.keys(value)
        if isinstance(keys, set):
            keys.discard(key)
        else:
            keys = tuple(other for other in keys if other != key)
            self._keys[value] = keys[0] if len(keys) == 1 else keys
        if not keys:
            self._keys.pop(value, None)
