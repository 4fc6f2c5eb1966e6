"""By which keys the facts with one value of a field are found."""

from collections.abc import Collection


class Index:
    """Keys by value. Most values of most fields have one key: that needs no set."""

    def __init__(self) -> None:
        self._keys: dict[str, str | set[str]] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def keys(self, value: str) -> Collection[str]:
        """The keys of this value."""
        keys = self._keys.get(value, ())
        return (keys,) if isinstance(keys, str) else keys

    def add(self, value: str, key: str) -> None:
        """One more key of this value; added twice it is there once."""
        keys = self._keys.setdefault(value, key)
        if isinstance(keys, set):
            keys.add(key)
        elif keys != key:
            self._keys[value] = {keys, key}

    def discard(self, value: str, key: str) -> None:
        """One key less; a value that nothing has any more is dropped, lest the index grow for ever."""
        keys = self._keys.get(value)
        if isinstance(keys, set):
            keys.discard(key)
        if not keys or keys == key:
            self._keys.pop(value, None)
