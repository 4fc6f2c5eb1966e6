"""Tests run by a product that ignores a field: `python -m tests.contract.fields_used.ignoring KIND FIELD VALUE TEST`.

Whatever is decoded, or made by a test, the attribute that says what the field says has one value: that of an object
without the field (`left_out`), or that of the documents (`written`), where a test rests on the default.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from tests.contract.fields_used.decoded import Use, uses

QUIET = ("-q", "-x", "-p", "no:cacheprovider", "--tb=no", "--no-header")
VALUES = ("left_out", "written")


def ignore(found: Iterable[Use], value: str) -> None:
    """Break this process."""
    for use in found:
        setattr(use.noun, use.attribute, _constant(getattr(use, value)))


def _constant(value: Any) -> property:
    """It is read as this, whatever is written."""
    return property(lambda noun: value, lambda noun, written: None)


def main(arguments: Sequence[str]) -> int:
    """Run the tests; the exit status is that of pytest."""
    kind, field, value, *tests = arguments
    ignore(uses(kind, field), value)
    return int(pytest.main([*QUIET, *tests]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
