"""A regular expression of all expressions that can be read, for the admission of Pods: CEL cannot call our parser.

Written for RE2 and for Python. It does not count: neither the requirements nor the values nor the characters.
"""

import re
from collections.abc import Mapping

from remediator.scheduler.attributes.catalog import names_of
from remediator.scheduler.attributes.values import LONGEST, ValueKind

VALUES: Mapping[ValueKind, str] = {
    ValueKind.SIZE: r"[0-9]{1,12}([.][0-9]{1,3})?(k|[KMGT]i|[MGT])?B?",
    ValueKind.VERSION: r"[0-9]{1,9}([.][0-9]{1,9}){0,3}",
    ValueKind.NUMBER: r"[0-9]{1,9}",
    ValueKind.SWITCH: r"(?i:true|false|on|off)",
    ValueKind.TEXT: rf"[-A-Za-z0-9_.*]{{1,{LONGEST}}}",
}


def pattern() -> str:
    """From the first character of an expression to the last."""
    every = "|".join(_row(kind) for kind in ValueKind)
    exists = rf"(!\s*)?({names_pattern(*ValueKind)})"
    return rf"^\s*({exists}|{every})\s*(,\s*({exists}|{every})\s*)*$"


def _row(kind: ValueKind) -> str:
    """A requirement with a value."""
    sign, value = "[<>]=?|[!=]=|=" if kind.ordered else "[!=]=|=", VALUES[kind]
    return rf"({names_pattern(kind)})(\s*({sign})\s*({value})|\s+(in|notin)\s*\(\s*({value})\s*(,\s*({value})\s*)*\))"


def names_pattern(*kinds: ValueKind) -> str:
    """All names of the attributes of these kinds."""
    return "|".join(
        re.escape(name).replace(r"\.", "[.]").replace(r"\-", "-") for kind in kinds for name in names_of(kind)
    )
