"""resourceVersions of one kind: ordered integers wherever both are decimal; others have no order."""


def number(version: str) -> int:
    """A version as a number, -1 where it is none."""
    return int(version) if version.isdecimal() else -1


def reaches(version: str, other: str) -> bool:
    """Whether a version is the other or newer.

    Equality alone would not do: heartbeats move a node past our write before anybody looks, and then the write would
    hide what came after it.
    """
    if version.isdecimal() and other.isdecimal():
        return int(version) >= int(other)
    return version == other


def is_older(version: str, other: str) -> bool:
    """Whether a version is clearly older than the other: a server that says so was restored from a backup."""
    return -1 < number(version) < number(other)
