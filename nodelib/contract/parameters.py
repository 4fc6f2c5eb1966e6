"""PARAMETERS, read with care: what makes no sense is refused by its name, with what to write instead.

In a NodeOperation every parameter is text, so each type is taken as such and as text: "30", "true", "kubelet,sssd".
"""

from collections.abc import Collection, Mapping, Sequence

from nodelib.contract.operation import Refused

MOST = 86400.0


def number(given: Mapping[str, object], name: str, default: float, least: float = 0.0, most: float = MOST) -> float:
    """Return a number from `least` to `most`. Raises Refused for anything else."""
    value = given.get(name, default)
    try:
        parsed = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        parsed = float("nan")
    if not least <= parsed <= most:
        raise Refused(f"PARAMETERS.{name} is {value!r}: write a number from {least:g} to {most:g}")
    return parsed


def flag(given: Mapping[str, object], name: str) -> bool:
    """Return a yes or no, no when it is not there. Raises Refused for anything but true and false."""
    value = given.get(name, False)
    if isinstance(value, bool):
        return value
    if value not in ("true", "false"):
        raise Refused(f"PARAMETERS.{name} is {value!r}: write true or false")
    return bool(value == "true")


def text(given: Mapping[str, object], name: str) -> str:
    """Return a text, "" when it is not there. Raises Refused for anything but text."""
    value = given.get(name, "")
    if not isinstance(value, str):
        raise Refused(f"PARAMETERS.{name} is {value!r}: write it as text")
    return value


def words(
    given: Mapping[str, object], name: str, default: Sequence[str] = (), allowed: Collection[str] = ()
) -> tuple[str, ...]:
    """Return a list of words, each of `allowed` where there are any. Raises Refused for anything else."""
    value = given.get(name, default)
    if isinstance(value, str):
        value = [word.strip() for word in value.split(",") if word.strip()]
    if not (isinstance(value, list | tuple) and all(isinstance(word, str) for word in value)):
        raise Refused(f"PARAMETERS.{name} is not a list of words: write them with commas between")
    strange = [word for word in value if allowed and word not in allowed]
    if strange:
        raise Refused(f"PARAMETERS.{name} may not name {', '.join(strange)}: it takes {', '.join(allowed)}")
    return tuple(value)
